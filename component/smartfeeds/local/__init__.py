"""XMPP servers that this machine runs for demonstrations and tests."""
