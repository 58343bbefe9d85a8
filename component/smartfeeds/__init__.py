"""smartfeeds: Smart Feeds for XMPP, served by a component beside a Prosody or ejabberd server."""

__version__ = "0.1.0"
