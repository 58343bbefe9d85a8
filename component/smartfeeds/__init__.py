"""smartfeeds: Smart Feeds for XMPP, served by a component beside a Prosody or ejabberd server."""

# The only place of the version. Between releases it is that of the next release with .dev0 at its end (PEP 440).
__version__ = "0.2.0.dev0"
