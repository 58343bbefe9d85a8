"""The namespaces and element names that the XMPP side reads or writes (xep-map 1.1, 1.5)."""

from typing import Final

PUBSUB: Final = "http://jabber.org/protocol/pubsub"
OWNER: Final = f"{PUBSUB}#owner"
EVENT: Final = f"{PUBSUB}#event"
ERRORS: Final = f"{PUBSUB}#errors"
META_DATA: Final = f"{PUBSUB}#meta-data"
NODE_CONFIG: Final = f"{PUBSUB}#node_config"
PUBLISH_OPTIONS: Final = f"{PUBSUB}#publish-options"
SUBSCRIBE_OPTIONS: Final = f"{PUBSUB}#subscribe_options"
STANZAS: Final = "urn:ietf:params:xml:ns:xmpp-stanzas"
DATA: Final = "jabber:x:data"
VALIDATE: Final = "http://jabber.org/protocol/xdata-validate"
RSM: Final = "http://jabber.org/protocol/rsm"
ORDER_BY: Final = "urn:xmpp:order-by:1"
FILTER: Final = "urn:xmpp:pubsub-filter:0"
DISCO_INFO: Final = "http://jabber.org/protocol/disco#info"
DISCO_ITEMS: Final = "http://jabber.org/protocol/disco#items"
SHIM: Final = "http://jabber.org/protocol/shim"
COMMANDS: Final = "http://jabber.org/protocol/commands"
SERVER_INFO: Final = "http://jabber.org/network/serverinfo"
DELAY: Final = "urn:xmpp:delay"
PING: Final = "urn:xmpp:ping"
VERSION: Final = "jabber:iq:version"
REQUIREMENTS: Final = "urn:smartfeeds:0#requirements"
ATOM: Final = "http://www.w3.org/2005/Atom"


def tag(namespace: str, name: str) -> str:
    """Returns an element's name in the notation of lxml."""
    return f"{{{namespace}}}{name}"
