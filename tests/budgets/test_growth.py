"""What a subscription and a new node cost does not grow with the subscriptions and the nodes that exist.

The cost is the number of instructions of SQLite. The clock of a machine and its load do not change it.
"""

from collections import Counter
from collections.abc import Callable

import pytest

from budgets.support_http import without_time
from smartfeeds.core.jid import Jid
from smartfeeds.service.context import Policy
from smartfeeds.service.feeds import FeedService
from smartfeeds.service.requests import CreateNode, Request, Subscribe, Unsubscribe
from support.sqlite_memory import GroupStore

SERVICE = "feeds.example.org"
ANN, BOB = Jid("ann", "example.org"), Jid("bob", "example.org")
GROUP = 20
FEW, MANY = 10, 10_000

# Nodes of one creator, a follower of all of them, and followers of one of them; the same names behind a mark.
_FILL = """
INSERT INTO node (name, kind, state, creator, created_us, options, total, live, last_modified_us, last_created_us,
    audience, subscribed, indexed_us, indexed_no, stale)
WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {number})
SELECT 'n' || i, 'feed', 'live', 'ann@example.org', 1, '{{}}', 0, 0, -1, -1, 0, 1, 0, 0, 0 FROM n;
INSERT INTO affiliation (node_no, jid, affiliation) SELECT node_no, 'ann@example.org', 'owner' FROM node;
INSERT INTO subscription (node_no, jid, bare, view, node_text, service, state, since_us, since_created_us, created_us,
    options)
SELECT node_no, 'bob@example.org', 'bob@example.org', '', name, 'f', 'subscribed', -1, -1, 1, '{{}}' FROM node;
INSERT INTO subscription (node_no, jid, bare, view, node_text, service, state, since_us, since_created_us, created_us,
    options)
SELECT 1, 'u' || node_no || '@x', 'u' || node_no || '@x', '', 'n1', 'f', 'subscribed', -1, -1, 1, '{{}}' FROM node;
INSERT INTO tally SELECT 'subscriptions of ' || bare, 0, count(*) FROM subscription GROUP BY bare;
INSERT INTO tally VALUES ('subscriptions@example.org', 0, {number}), ('subscriptions@x', 0, {number}),
    ('nodes of ann@example.org', 0, {number}), ('nodes@example.org', 0, {number});
"""
FRESH = [Jid("", f"new{number}.example.net") for number in range(GROUP)]


def creates() -> list[Request]:
    return [CreateNode(ANN, SERVICE, f"new{number}") for number in range(GROUP)]


def subscribes_of_many() -> list[Request]:
    return [Subscribe(jid, SERVICE, "n1", str(jid)) for jid in FRESH]


def subscribes_of_one() -> list[Request]:
    return [Subscribe(BOB, SERVICE, f"new{number}", str(BOB)) for number in range(GROUP)]


def unsubscribes_of_many() -> list[Request]:
    return [Unsubscribe(jid, SERVICE, "n1", str(jid)) for jid in FRESH]


async def costs(number: int) -> dict[str, int]:
    """The instructions for each group of requests where so many nodes and subscriptions exist."""
    store = GroupStore()
    await store.open()
    assert store._connection is not None
    store._connection.executescript(_FILL.format(number=number))
    policy = Policy(SERVICE, nodes_per_jid=10**9, subscriptions_per_jid=10**9)
    service = FeedService(store, policy, clock=lambda: 5, new_id=lambda: "i", on_change=lambda _nodes: None)
    steps: Counter[str] = Counter()
    for requests in (creates, subscribes_of_many, subscribes_of_one, unsubscribes_of_many):
        answers: list[object] = []
        for request in requests():
            service.submit(request, lambda answer, error, to=answers: to.append(error or answer))  # type: ignore[misc]

        def tick(name: str = requests.__name__) -> int:
            steps[name] += 1
            return 0

        store._connection.set_progress_handler(tick, 1)
        store.run_group()
        store._connection.set_progress_handler(None, 0)
        assert len(answers) == GROUP
        assert not [answer for answer in answers if isinstance(answer, Exception)]
    await store.close()
    return dict(steps)


@pytest.mark.parametrize("requests", [creates, subscribes_of_many, subscribes_of_one, unsubscribes_of_many])
async def test_cost_does_not_grow(monkeypatch: pytest.MonkeyPatch, requests: Callable[[], list[Request]]) -> None:
    """[xep-map 249] 10 or 10,000 nodes of the creator, subscriptions of the follower, and followers of the node."""
    without_time(monkeypatch)
    few, many = await costs(FEW), await costs(MANY)
    assert many[requests.__name__] == few[requests.__name__], (few, many)
