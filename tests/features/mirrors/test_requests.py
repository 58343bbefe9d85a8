"""Mirrors by requests: the service checks the rights, whichever wire a request comes from."""

from dataclasses import replace

import pytest

from smartfeeds.core.page import ResultSetRequest
from smartfeeds.errors import Condition
from smartfeeds.features.mirrors import requests
from smartfeeds.features.mirrors.mirror import MirrorRow, make_mirror
from smartfeeds.features.mirrors.requests import AddMirror, ListMirrors, RemoveMirror, RestartMirror
from smartfeeds.features.mirrors.statuses import MirrorStatus, mirror_status
from smartfeeds.service import requests as r
from smartfeeds.service.context import Context
from smartfeeds.service.resources import ListAnswer
from smartfeeds.store.base import ReadTx
from support.world import ALICE, BOB, FEED, OWNER, SERVICE, World, jid, refusal


@pytest.fixture
async def administered(feed: World) -> World:
    """The service with an admin, BOB, and a feed of OWNER."""
    feed.service.policy = replace(feed.service.policy, admins=frozenset({BOB}), creators=frozenset({OWNER}))
    return feed


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        (AddMirror, make_mirror(node="n", address="xmpp:b.example?;node=n")),
        (RemoveMirror, "b"),
        (RestartMirror, "b"),
    ],
)
@pytest.mark.parametrize("who", [OWNER, ALICE])
async def test_request_of_an_admin_is_forbidden_for_others(
    administered: World, kind: type[r.Request], value: object, who: str
) -> None:
    assert await refusal(administered.service.handle(kind(jid(who), SERVICE, value))) is Condition.FORBIDDEN


async def test_mirrors_are_those_of_the_own_nodes(administered: World) -> None:
    """An admin sees all, also the mirror of a node that does not exist yet."""
    for name, node in (("a", FEED), ("b", "later")):
        mirror = make_mirror(node=node, address=f"xmpp:b.example?;node={name}", name=name)
        await administered.service.handle(AddMirror(jid(BOB), SERVICE, mirror))

    async def mirrors(who: str) -> list[str]:
        answer = await administered.service.handle(ListMirrors(jid(who), SERVICE))
        assert isinstance(answer, ListAnswer)
        return [status.mirror.name for status in answer.entries]

    assert (await mirrors(BOB), await mirrors(OWNER), await mirrors(ALICE)) == (["a", "b"], ["a"], [])


async def test_state_of_a_mirror_is_computed_only_if_it_is_shown(
    administered: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After the rights and the page: the state counts the items that are still to be sent."""
    for name, node in (("a", FEED), ("b", FEED), ("c", FEED), ("d", "later"), ("e", FEED)):
        mirror = make_mirror(node=node, address=f"xmpp:b.example?;node={name}", name=name)
        await administered.service.handle(AddMirror(jid(BOB), SERVICE, mirror))
    computed: list[str] = []

    def status(tx: ReadTx, context: Context, row: MirrorRow) -> MirrorStatus:
        computed.append(row.mirror.name)
        return mirror_status(tx, context, row)

    monkeypatch.setattr(requests, "mirror_status", status)

    async def names(who: str, **page: str) -> list[str]:
        computed.clear()
        request = ListMirrors(jid(who), SERVICE, ResultSetRequest(**page) if page else None)
        answer = await administered.service.handle(request)
        assert isinstance(answer, ListAnswer)
        assert [shown.mirror.name for shown in answer.entries] == computed
        return list(computed)

    assert await names(OWNER) == ["a", "b", "c", "e"]
    assert await names(OWNER, max="1", index="2") == ["c"]
    assert await names(ALICE) == []
