"""The component connection: stream, supervisor, router, and the XML of requests and responses."""
