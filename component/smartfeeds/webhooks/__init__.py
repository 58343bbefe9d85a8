"""Deliverers that request callbacks, and their registrations: the WebSub hub and the rssCloud cloud."""
