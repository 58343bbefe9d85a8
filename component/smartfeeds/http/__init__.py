"""The HTTP side: pulls, long polls, event streams, documents, publishing, pages (Smart Feeds, HTTP Pull)."""
