"""Mirrors between services on real servers: what was changed apart meets, all stores end alike, and then all rests."""

import itertools
from collections.abc import Sequence
from pathlib import Path

import pytest

from smartfeeds.core.model import Slice
from smartfeeds.core.times import US_PER_S
from smartfeeds.core.view import SMART
from smartfeeds.features.mirrors import mirror_in
from smartfeeds.features.mirrors.mirror_state import MirrorStateStore
from smartfeeds.service.syncing import endpoint
from smartfeeds.system import now_us
from support.client import ClientFactory
from support.federation import Federation
from support.sharing import NODE, Person, Steps, conflicts, connect, moved, titles
from support.site import AppSite, alike
from support.world import entry

EVERY_S = 0.5
QUICK: dict[str, dict[str, object]] = {"link": {"answer_s": 1.0, "retry_first_s": 0.05}}
FOREIGN = "<a:geo xmlns:a='urn:m' xmlns:c='urn:x' c:at='here' a:b='2' k='1'><a:deep/>t</a:geo>"


@pytest.fixture
def steps(short_pauses: None, monkeypatch: pytest.MonkeyPatch) -> Steps:
    """How often each mirror comes to be in step."""
    made, stepping = Steps(), MirrorStateStore.stepping

    def noted(state_store: MirrorStateStore) -> object:
        made.note(state_store)
        return stepping(state_store)

    monkeypatch.setattr(MirrorStateStore, "stepping", noted)
    return made


@pytest.fixture
def merges(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The sync ids of everything that mirrors have merged, whether it changed something or not."""
    found: list[str] = []
    merge_items = mirror_in.merge_items

    def noted(tx, context, name, publisher, items, **options):  # type: ignore[no-untyped-def]
        found.extend(one.sync_item.version.sync_id for one in items)
        return merge_items(tx, context, name, publisher, items, **options)

    monkeypatch.setattr(mirror_in, "merge_items", noted)
    return found


def an_hour_ahead() -> int:
    """The time of a service whose clock is wrong."""
    return now_us() + 3_600 * US_PER_S


async def keys(site: AppSite) -> dict[str, int]:
    """When each item was changed last, in microseconds."""

    def read(tx, _context):  # type: ignore[no-untyped-def]
        return {item.id: item.modified_us for item in tx.slice(tx.node(NODE).node_no, Slice(SMART, 10_000))}

    found: dict[str, int] = await site.app.service.read(read)
    return found


async def check_rest(steps: Steps, sites: Sequence[AppSite], merges: list[str]) -> None:
    """Whatever goes round comes by in as many laps as there are services: then nothing may have moved any more."""
    for _ in sites:
        await steps.lap(sites)
    before = moved(sites), [await keys(site) for site in sites], len(merges)
    for _ in sites:
        await steps.lap(sites)
    assert (moved(sites), [await keys(site) for site in sites], len(merges)) == before, "it goes round and round"


@pytest.mark.parametrize("direction", ["in", "both"])
async def test_what_was_changed_apart_is_the_same_everywhere(
    two: Federation, client: ClientFactory, tmp_path: Path, direction: str, steps: Steps, merges: list[str]
) -> None:
    """[A-50] [A-51] [A-59] The same item on both sides, deleted here and changed there, new ones, by XMPP and HTTP."""
    http: dict[str, object] = {"listen": "127.0.0.1:0"}
    async with (
        AppSite(two.near, tmp_path / "near", http=http, **QUICK) as near,
        AppSite(two.far, tmp_path / "far", http=http, clock=an_hour_ahead, **QUICK) as far,
    ):
        ann, bob = Person(await client(two.near, "ann"), near), Person(await client(two.far, "bob"), far)
        await ann.create([far])
        await bob.create()
        for item_id in ("same", "often", "gone", "buried", "web"):
            await ann.publish(item_id)
        await ann.put("calm", payload=entry("calm", inner=FOREIGN))
        published = await keys(near)
        await connect(near, far, direction, EVERY_S)
        await alike([near, far], NODE, lambda state: len(state) == 6)

        await two.cut()
        await ann.publish("same", "by ann")
        await bob.publish("same", "by bob, an hour later as it seems")
        await ann.publish("often", "by ann")
        await ann.publish("often", "by ann again")
        await bob.publish("often", "by bob")
        await ann.retract("gone")
        await bob.publish("gone", "kept by bob")
        await ann.publish("buried", "kept by ann")
        await bob.retract("buried")
        await ann.put("web", "put by ann")
        await bob.put("web", "put by bob")
        await ann.publish("of-ann")
        await bob.put("of-bob", "of-bob")
        await bob.publish("short")
        await bob.retract("short")
        await two.heal()

        met = {"same": 1, "often": 1, "gone": 1, "buried": 1, "web": 1}
        found = await alike([near, far], NODE, lambda state: len(state) == 9 and conflicts(state) == met)

        assert titles(found) == {
            "same": "by bob, an hour later as it seems",
            "often": "by ann again",
            "gone": "kept by bob",
            "calm": "calm",
            "web": "put by bob",
            "of-ann": "of-ann",
            "of-bob": "of-bob",
        }
        assert b"kept by ann" in found["buried"].sync, "the loser of a deletion is kept"
        for person in (ann, bob):
            by = endpoint(person.site.name, person.jid.bare_text).encode()
            assert all(by in found[item_id].sync for item_id in met), "who changed it apart is in its history"

        await ann.settle("same", "by ann")
        await bob.settle("often")
        await bob.settle("buried", "kept by ann")
        await ann.settle("web")
        settled = await alike([near, far], NODE, lambda state: conflicts(state) == {"gone": 1})

        wanted = {"same": "by ann", "often": "by ann again", "buried": "kept by ann", "web": "put by bob"}
        assert {item_id: titles(settled)[item_id] for item_id in wanted} == wanted
        await check_rest(steps, [near, far], merges)
        assert await alike([near, far], NODE) == settled
        assert (await keys(near))["calm"] == published["calm"], "it came back with other prefixes, which is no change"


@pytest.mark.parametrize("direction", ["in", "both"])
async def test_ring_ends_alike_and_rests(
    ring: Federation, client: ClientFactory, tmp_path: Path, direction: str, steps: Steps, merges: list[str]
) -> None:
    """Each mirrors the one before it. With both ways a cut parts nobody; with one, what is missed comes after it.

    The last cut is one that nobody hears of: what is sent gets lost.
    """
    async with (
        AppSite(ring["a"], tmp_path / "a", **QUICK) as a,
        AppSite(ring["b"], tmp_path / "b", **QUICK) as b,
        AppSite(ring["c"], tmp_path / "c", **QUICK) as c,
    ):
        sites = [a, b, c]
        people = [Person(await client(site.server, "ann"), site) for site in sites]
        for person in people:
            await person.create([site for site in sites if site is not person.site])
        for site, before in zip(sites, [c, a, b], strict=True):
            await site.stop()
            site.mirror(before, NODE, direction, every_s=EVERY_S)
            await site.start()
        for person in people:
            await person.publish(f"of-{person.site.server.name}")
        await alike(sites, NODE, lambda state: len(state) == 3)

        expected = {f"of-{name}" for name in "abc"} | {"all"}
        for one, other in itertools.pairwise("abca"):
            if one == "c":
                ring.lose(one, other)
            else:
                await ring.cut(one, other)
            for person in people:
                where = person.site.server.name
                await person.publish("all", f"by {where}, without {one}{other}")
                await person.publish(f"late-{where}-{one}{other}")
                await person.publish(f"of-{where}", f"without {one}{other}")
            late = {f"late-{name}-{one}{other}" for name in "abc"}
            expected |= late
            if direction == "both":
                await alike(sites, NODE, lambda state, wanted=late: wanted <= set(state))
            await ring.heal(one, other)
            await alike(sites, NODE, lambda state, wanted=late: wanted <= set(state))
        await people[0].retract("late-b-ab")
        found = await alike(sites, NODE, lambda state: state["late-b-ab"].deleted)

        assert set(found) == expected
        assert conflicts(found).keys() <= {"all"}
        assert all(titles(found)[f"of-{name}"] == "without ca" for name in "abc")
        await check_rest(steps, sites, merges)
        assert await alike(sites, NODE) == found
