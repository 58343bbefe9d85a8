"""Demonstrations on loopback: an example feed to try out, lost notifications, and a feed at two services."""
