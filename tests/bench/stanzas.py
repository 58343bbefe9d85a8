"""The requests, as bytes: the same for every target but for the address, and for what a peer cannot do."""

import itertools
from collections.abc import Callable, Iterator

USERS = 10
DOMAIN = "bench.localhost"
PUBSUB = "http://jabber.org/protocol/pubsub"
OWNER_FORM = "http://jabber.org/protocol/pubsub#node_config"
RSM = "http://jabber.org/protocol/rsm"
ITEMS = "http://jabber.org/protocol/disco#items"
ENTRY_BYTES = 1000

_TEXT = "lorem ipsum dolor &lt;b&gt;sit&lt;/b&gt; amet "
_HEAD = (
    "<entry xmlns='http://www.w3.org/2005/Atom'><id>urn:uuid:%d</id><title>Hello %d</title>"
    "<updated>2026-01-01T00:00:00Z</updated><author><name>alice</name></author><category term='x'/>"
    "<content type='html'>"
)
_TAIL = "</content></entry>"
_FILL = ENTRY_BYTES - len(_HEAD) - len(_TAIL)
ENTRY = _HEAD + (_TEXT * (_FILL // len(_TEXT))) + _TAIL

_numbers = itertools.count(1)


def iq(kind: str, to: str, body: str, user: str = "u0") -> bytes:
    """One IQ with a fresh id."""
    return f"<iq type='{kind}' id='bq-{next(_numbers)}' from='{user}@{DOMAIN}/r' to='{to}'>{body}</iq>".encode()


def create(to: str, node: str, user: str, options: dict[str, str]) -> bytes:
    """A node that everybody may publish to and read."""
    values = {"publish_model": "open", "access_model": "open", **options}
    fields = "".join(
        f"<field var='pubsub#{name}'><value>{value}</value></field>" for name, value in values.items() if value
    )
    form = f"<field var='FORM_TYPE' type='hidden'><value>{OWNER_FORM}</value></field>{fields}"
    return iq(
        "set",
        to,
        f"<pubsub xmlns='{PUBSUB}'><create node='{node}'/>"
        f"<configure><x xmlns='jabber:x:data' type='submit'>{form}</x></configure></pubsub>",
        user,
    )


def publishes(to: str, node: str, first: int = 1) -> Iterator[bytes]:
    """New items without end, by the users in turn. One template each, so that the driver has next to nothing to do."""
    template = (
        f"<iq type='set' id='bq-%d' from='u%d@{DOMAIN}/r' to='{to}'><pubsub xmlns='{PUBSUB}'>"
        f"<publish node='{node}'><item id='i%d'>{ENTRY}</item></publish></pubsub></iq>"
    ).encode()
    for number in itertools.count(first):
        yield template % (number, number % USERS, number, number, number)


def subscribe(to: str, node: str, number: int) -> bytes:
    """A subscription of one more user."""
    body = f"<pubsub xmlns='{PUBSUB}'><subscribe node='{node}' jid='s{number}@{DOMAIN}'/></pubsub>"
    return iq("set", to, body, f"s{number}")


def page(to: str, node: str, position: str = "") -> bytes:
    """A page of 50, from the beginning or from a `<after/>` or `<before/>`."""
    return iq(
        "get",
        to,
        f"<pubsub xmlns='{PUBSUB}'><items node='{node}'/><set xmlns='{RSM}'><max>50</max>{position}</set></pubsub>",
    )


def newest(to: str, node: str) -> bytes:
    """The newest 50 items, for a service without result sets."""
    return iq("get", to, f"<pubsub xmlns='{PUBSUB}'><items node='{node}' max_items='50'/></pubsub>")


def listing(to: str, position: str = "") -> bytes:
    """A page of 50 of all nodes."""
    return iq("get", to, f"<query xmlns='{ITEMS}'><set xmlns='{RSM}'><max>50</max>{position}</set></query>")


def many(make: Callable[[int], bytes], count: int) -> Iterator[bytes]:
    """`count` requests, each made of its number."""
    return (make(number) for number in range(count))
