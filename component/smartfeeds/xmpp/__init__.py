"""The component link: stream, supervisor, router, and the XML of requests and answers."""
