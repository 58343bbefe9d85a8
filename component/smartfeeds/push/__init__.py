"""The deliverer of XMPP notifications."""
