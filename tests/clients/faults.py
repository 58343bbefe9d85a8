"""Why cells of the table are not `yes`.

A key is the client, the kind of node (`*`: every kind) and the operation. A reason that holds no longer fails a test.
"""

Reasons = dict[tuple[str, str, str], str]

# The client cannot do it with any service, or does it wrong.
CLIENT_FAULTS: Reasons = {}

# The service does it wrong: to be repaired.
FAULTS: Reasons = {
    ("slixmpp", "generic", "create a node"): "`max_items` below the ceiling is refused",
    ("aioxmpp", "generic", "create a node"): "`max_items` below the ceiling is refused for an empty feed",
    ("xmpp.js", "generic", "create a node"): "`max_items` below the ceiling is refused",
    ("StanzaJS", "generic", "create a node"): "`max_items` below the ceiling is refused",
    ("strophe.js", "generic", "create a node"): "`max_items` below the ceiling is refused",
    ("slixfeed", "generic", "create a node"): "`max_items` below the ceiling is refused",
    ("Movim", "generic", "create a node"): "`pubsub#type` of a Space makes a feed",
    ("Movim", "generic", "read the configuration"): "follows from creating a node",
    ("Movim", "*", "publish with publish-options"): "conflict on `pubsub#notify_sub` and `pubsub#type`",
    ("Movim", "feed", "post, comment and like"): "conflict on `pubsub#notify_sub`",
    ("Movim", "*", "set an avatar for a node"): "conflict on `pubsub#access_model` and `pubsub#max_items`",
    ("Movim", "*", "page forward (result sets)"): "the second page of newer items repeats an item",
    ("Movim", "generic", "ask for pending subscribers"): "no such command",
    ("StanzaJS", "*", "retrieve the newest items (`max_items`)"): "`max_items` with a result set gives the oldest",
}


def reason(table: Reasons, client: str, kind: str, operation: str) -> str:
    """The reason for a cell; empty if there is none."""
    return table.get((client, kind, operation)) or table.get((client, "*", operation)) or ""


def known(client: str, kind: str, operation: str) -> str:
    """Whose fault a cell is, with the reason; empty if no fault is known."""
    for name, table in (("client", CLIENT_FAULTS), ("service", FAULTS)):
        if found := reason(table, client, kind, operation):
            return f"{name}: {found}"
    return ""
