"""Why cells of the table are not `yes`.

A key is the client, the kind of node (`*`: every kind) and the operation. A reason that holds no longer fails a test.
"""

from typing import NamedTuple

# The client cannot do it with any service, or does it wrong.
CLIENT_FAULTS: dict[tuple[str, str, str], str] = {
    ("Libervia", "*", "subscribe"): "subscribes by XEP-0376 only, which the user's own server must have",
    ("Libervia", "*", "unsubscribe"): "unsubscribes by XEP-0376 only, which the user's own server must have",
    # It writes `filter_NAME`, and the backend reads `mam_filter_NAME`.
    ("Libervia", "feed", "search (XEP-0442)"): "the command line does not send filters",
    ("Libervia", "*", "list subscribers"): "expects the list in the namespace `pubsub` instead of `pubsub#owner`",
}


class Fault(NamedTuple):
    """What the service does wrong, with the request of a client and the answer."""

    reason: str
    sent: str
    answer: str


_MAX_ITEMS = Fault(
    "`max_items` below the ceiling is refused",
    "<create node='n'/><configure><x type='submit'>... pubsub#title=Notes, pubsub#access_model=open,"
    " pubsub#persist_items=true, pubsub#max_items=20</x></configure>; slixfeed: max_items=50,"
    " type=http://www.w3.org/2005/Atom, deliver_payloads=0, and no FORM_TYPE",
    "modify/not-acceptable: pubsub#max_items: a feed never expires items; leave it at max, or make a generic node",
)
_EMPTY_FEED = Fault(
    "`max_items` below the ceiling is refused for an empty feed",
    "<create node='n'/>, then (#owner) <configure node='n'><x type='submit'>... pubsub#max_items=20</x></configure>",
    "modify/not-acceptable: pubsub#max_items: a feed never expires items; leave it at max, or make a generic node",
)
_SPACE = Fault(
    "`pubsub#type` of a Space makes a feed",
    "<create node='n'/><configure><x type='submit'>... pubsub#type=urn:xmpp:spaces:0, pubsub#access_model=authorize,"
    " pubsub#max_items=max</x></configure>, then <publish node='n'><item id='room@muc'><conference"
    " xmlns='urn:xmpp:bookmarks:1' name='Room'/></item></publish>",
    "the node is created; publish: modify/bad-request, invalid-payload: items of a feed are Atom entries",
)
_NOTIFY_SUB = Fault(
    "conflict on `pubsub#notify_sub`",
    "<publish node='n'><item id='p5'><entry/></item></publish><publish-options><x type='submit'>..."
    " pubsub#persist_items=true, pubsub#max_items=max, pubsub#itemreply=publisher, pubsub#notify_sub=true</x>"
    "</publish-options>",
    "cancel/conflict, precondition-not-met: pubsub#notify_sub is not so",
)
_TYPE = Fault(
    "conflict on `pubsub#type`, which follows from creating a node",
    "<publish node='n'>...</publish><publish-options><x type='submit'>(no FORM_TYPE) pubsub#type=urn:xmpp:spaces:0,"
    " pubsub#notify_sub=true, pubsub#notify_config=true, pubsub#access_model=authorize ...</x></publish-options>",
    "cancel/conflict, precondition-not-met: pubsub#type is not so",
)
_AVATAR = Fault(
    "conflict on `pubsub#access_model` and `pubsub#max_items`",
    "<publish node='n'><item id='urn:xmpp:avatar:metadata'><metadata xmlns='urn:xmpp:avatar:metadata'><info .../>"
    "</metadata></item></publish><publish-options><x type='submit'>... pubsub#persist_items=true,"
    " pubsub#access_model=presence, pubsub#send_last_published_item=on_sub_and_presence, pubsub#deliver_payloads=true,"
    " pubsub#max_items=1</x></publish-options>",
    "cancel/conflict, precondition-not-met: pubsub#access_model is not so; without options: invalid-payload",
)
_NEWER = Fault(
    "the second page of newer items repeats an item",
    "<set><after>FIRST</after><max>2</max></set><items node='n'/>, with FIRST of the answer to the same request",
    "a page that starts with the second item of the page before: `first` of an answer to `after` is no span cursor",
)
_PENDING = Fault(
    "no such command",
    "<command xmlns='http://jabber.org/protocol/commands' node='http://jabber.org/protocol/pubsub#get-pending'"
    " sessionid='OWN' action='execute'><x type='submit'>(no FORM_TYPE) pubsub#node=n</x></command>",
    "cancel/item-not-found: no such command",
)
_NEWEST = Fault(
    "`max_items` with a result set gives the oldest",
    "<items node='n' max_items='2'/><set xmlns='http://jabber.org/protocol/rsm'><max>2</max></set>",
    "the two oldest items, with <first index='0'>",
)

_REACTION = Fault(
    "does not create the node for attachments (XEP-0470)",
    "<publish node='urn:xmpp:pubsub-attachments:1/xmpp:feeds.localhost?;node=n;item=p2'><item id='libervia@localhost'>"
    "<attachments xmlns='urn:xmpp:pubsub-attachments:1'><reactions timestamp='...'><reaction>♥</reaction></reactions>"
    "</attachments></item></publish>; before it <items max_items='1'/> and (#owner) <configure/> of that node",
    "cancel/item-not-found: no such node, or it is closed to you",
)

# The service does it wrong: to be repaired.
FAULTS: dict[tuple[str, str, str], Fault] = {
    ("slixmpp", "generic", "create a node"): _MAX_ITEMS,
    ("slixmpp, remote user", "generic", "create a node"): _MAX_ITEMS,
    ("aioxmpp", "generic", "create a node"): _EMPTY_FEED,
    ("xmpp.js", "generic", "create a node"): _MAX_ITEMS,
    ("StanzaJS", "generic", "create a node"): _MAX_ITEMS,
    ("strophe.js", "generic", "create a node"): _MAX_ITEMS,
    ("Libervia", "generic", "create a node"): _MAX_ITEMS,
    ("Libervia", "feed", "react to an item (XEP-0470)"): _REACTION,
    ("slixfeed", "generic", "create a node"): _MAX_ITEMS,
    ("Movim", "generic", "create a node"): _SPACE,
    ("Movim", "generic", "read the configuration"): _SPACE,
    ("Movim", "feed", "publish with publish-options"): _NOTIFY_SUB,
    ("Movim", "generic", "publish with publish-options"): _TYPE,
    ("Movim", "feed", "post, comment and like"): _NOTIFY_SUB,
    ("Movim", "*", "set an avatar for a node"): _AVATAR,
    ("Movim", "*", "page forward (result sets)"): _NEWER,
    ("Movim", "generic", "ask for pending subscribers"): _PENDING,
    ("StanzaJS", "*", "retrieve the newest items (`max_items`)"): _NEWEST,
}


def known(client: str, kind: str, operation: str) -> str:
    """Whose fault a cell is, with the reason; empty if no fault is known."""
    for key in ((client, kind, operation), (client, "*", operation)):
        if key in CLIENT_FAULTS:
            return f"client: {CLIENT_FAULTS[key]}"
        if key in FAULTS:
            return f"service: {FAULTS[key].reason}"
    return ""
