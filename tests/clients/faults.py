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


# The service does it wrong: to be repaired.
FAULTS: dict[tuple[str, str, str], Fault] = {
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
