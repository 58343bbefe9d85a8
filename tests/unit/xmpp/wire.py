"""What the tests of the XMPP side share: XML as the stream gives it, and trees that can be compared."""

from lxml import etree

from smartfeeds.core.jid import Jid

COMPONENT = "jabber:component:accept"
PS = "http://jabber.org/protocol/pubsub"
OW = "http://jabber.org/protocol/pubsub#owner"
ERR = "http://jabber.org/protocol/pubsub#errors"
STANZAS = "urn:ietf:params:xml:ns:xmpp-stanzas"
DATA = "jabber:x:data"
RSM = "http://jabber.org/protocol/rsm"

ACTOR = Jid("juliet", "capulet.lit", "balcony")
SERVICE = "feeds.example"
_BLANK = etree.XMLParser(remove_blank_text=True)


def parse(xml: str | bytes) -> etree._Element:
    """An element as it stands in the stream: in the component namespace where it names none."""
    text = xml.decode() if isinstance(xml, bytes) else xml
    return etree.fromstring(f"<stream xmlns='{COMPONENT}'>{text}</stream>")[0]


def canonical(xml: str | bytes) -> str:
    """A form in which equal trees are equal texts: no white space between elements, attributes sorted."""
    text = xml.decode() if isinstance(xml, bytes) else xml
    root = etree.fromstring(f"<stream xmlns='{COMPONENT}'>{text}</stream>", _BLANK)
    return etree.tostring(root, method="c14n", exclusive=True).decode()


def submit(form_type: str, fields: str = "", kind: str = "submit") -> str:
    """A data form with a FORM_TYPE and further fields."""
    return (
        f"<x xmlns='{DATA}' type='{kind}'><field var='FORM_TYPE' type='hidden'><value>{form_type}</value></field>"
        f"{fields}</x>"
    )


def field(var: str, *values: str) -> str:
    """A field of a submitted form."""
    return f"<field var='{var}'>{''.join(f'<value>{value}</value>' for value in values)}</field>"
