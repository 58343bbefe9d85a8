"""Why cells of the table are not `yes`: the client cannot do it with any service, or does it wrong.

A key is the client, the kind of node (`*`: every kind) and the operation. A reason that holds no longer fails a test.
"""

# It does not wait for the answer of `hasFeature`, so it takes every server for one with XEP-0376.
_PAM = "subscribes by XEP-0376 only, which the user's own server must have"
CLIENT_FAULTS: dict[tuple[str, str, str], str] = {
    ("Libervia", "*", "subscribe"): _PAM,
    ("Libervia", "*", "unsubscribe"): "unsubscribes by XEP-0376 only, which the user's own server must have",
    ("Libervia", "*", "follow another user's node"): _PAM,
    ("Libervia", "*", "request a subscription (`authorize`)"): _PAM,
    ("Libervia", "*", "be refused by a closed node (`whitelist`)"): _PAM,
    ("Libervia", "*", "be refused as an outcast"): _PAM,
    ("Libervia", "*", "receive another user's comment"): _PAM,
    # It writes `filter_NAME`, and the backend reads `mam_filter_NAME`.
    ("Libervia", "feed", "search (XEP-0442)"): "the command line does not send filters",
    ("Libervia", "*", "list subscribers"): "expects the list in the namespace `pubsub` instead of `pubsub#owner`",
}


def known(client: str, kind: str, operation: str) -> str:
    """The fault of the client in a cell; empty if none is known."""
    reasons = (CLIENT_FAULTS.get((client, each, operation)) for each in (kind, "*"))
    return next((f"client: {reason}" for reason in reasons if reason), "")
