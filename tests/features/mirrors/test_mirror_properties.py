"""Services that mirror each other in any shape, over links that lose events and break: in the end all are the same.

`HYPOTHESIS_PROFILE=nightly` makes 10,000 runs.
"""

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field

from hypothesis import example, given, settings
from hypothesis import strategies as st
from structlog.testing import capture_logs

from smartfeeds.errors import ConfigError, FeedError
from smartfeeds.features.conflicts.requests import ResolveConflicts, version_tag
from smartfeeds.service.requests import Publish, Retract
from smartfeeds.sync.record import HistoryRecord, Version
from support.effort import runs
from support.mesh import NODE, Net, Site, twin
from support.world import entry, jid

RUNS = runs(40, nightly=10_000)

SITES = st.integers(0, 3)
# A tree holds all sites together; further mirrors go anywhere.
TREE = st.tuples(st.integers(0, 0), st.integers(0, 1), st.integers(0, 2))
MORE = st.lists(st.tuples(SITES, SITES, st.sampled_from(["in", "out", "both"])), max_size=4)
WHAT = [
    *["publish"] * 4, *["twin"] * 2, "retract", "cut", "cut", "heal", "lose", "keep", "restart", "fire", "wait",
    "settle",
]  # fmt: skip
STEPS = st.lists(
    st.tuples(
        SITES,
        st.sampled_from(WHAT),
        st.integers(0, 5),
    ),
    max_size=25,
)
Step = tuple[int, str, int]


async def step(net: Net, sites: Sequence[Site], who: int, what: str, number: int, text: str) -> None:
    site, other = sites[who % len(sites)], sites[number % len(sites)]
    if what == "publish":
        await site.publish("xyz"[number % 3], text)
    elif what == "twin":
        # Two databases have made the same change, as after a restore of a backup.
        name = "xyz"[number % 3]
        await site.publish(name, payload=twin(name, text, updates=1 + number // 3))
    elif what == "retract":
        with suppress(FeedError):
            await site.retract("xyz"[number % 3])
    elif what == "cut" and site is not other:
        net.part(site, other)
    elif what == "heal":
        net.heal()
    elif what in ("lose", "keep"):
        net.lose = lambda _sender, to: what == "lose" and to == site.domain
    elif what == "restart":
        await site.stop()
        await site.start()
    elif what == "fire":
        site.timers.fire(longest=(1, 10, 400)[number % 3])
    elif what == "settle":
        await net.settle()
    net.clock.move((0, 0, 0.3, 2)[number % 4])
    for _ in range((0, 1, 5, 20)[(who + number) % 4]):
        await asyncio.sleep(0)


async def run(count: int, tree: Sequence[int], more: Sequence[tuple[int, int, str]], steps: Sequence[Step]) -> None:
    net = Net()
    try:
        sites = [await net.add(letter) for letter in "abcd"[:count]]
        for site in sites:
            await site.create(*(other.domain for other in sites if other is not site))
        for number, parent in enumerate(tree[: count - 1], 1):
            await sites[number].mirror(sites[parent], "both")
        for one, other, direction in more:
            with suppress(ConfigError):  # there is one already, or it would be of its own node
                await sites[one % count].mirror(sites[other % count], direction)
        for number, (who, what, detail) in enumerate(steps):
            await step(net, sites, who, what, detail, f"step {number}")
        net.heal()
        net.lose = lambda _sender, _to: False
        await net.settle_all(10)

        shown = [await site.shown() for site in sites]
        assert all(one == shown[0] for one in shown)
        standings = [one for site in sites for status in await site.statuses() for one in status.standings]
        assert all(one.in_step and one.state.refused == 0 and not one.state.error for one in standings)
        before = [[item.modified_us for item in await site.items()] for site in sites]
        await net.settle_all(3)
        assert [[item.modified_us for item in await site.items()] for site in sites] == before
    finally:
        await net.close()


@settings(max_examples=RUNS, deadline=None)
@given(st.integers(2, 4), TREE, MORE, STEPS)
def test_services_that_mirror_each_other_end_with_the_same_and_rest(
    count: int, tree: Sequence[int], more: Sequence[tuple[int, int, str]], steps: Sequence[Step]
) -> None:
    """[FS-068] [A-59] Winners, contents, histories and conflicts; and then nothing moves any more."""
    with capture_logs():
        asyncio.run(run(count, tree, more, steps))


# Several people edit one item at each site. A number chooses the person, the other site, the conflicts to settle.
PEOPLE = ("ann@people.example", "bob@people.example", "cia@people.example")
EDITS = st.lists(
    st.tuples(
        SITES,
        st.sampled_from(
            [*["publish"] * 6, "retract", "resolve", "hide", "show", "cut", "cut", "heal", *["settle"] * 3]
        ),
        st.integers(0, 2),
    ),
    min_size=10,
    max_size=24,
)
HIDDEN = st.tuples(*[st.booleans()] * 4)
# Two people edit where publishers are hidden, the first of them at the same time as somebody elsewhere.
TWO_PEOPLE = [
    *[(0, "publish", 0), (0, "settle", 0), (0, "cut", 1), (0, "publish", 1), (1, "publish", 0), (1, "publish", 0)],
    *[(0, "heal", 0), (0, "settle", 0), (0, "publish", 2), (0, "settle", 0)],
]


@dataclass
class Authorship:
    """What the author of each version had seen of the item, derived from what they did, never from a history."""

    payloads: dict[HistoryRecord, bytes] = field(default_factory=dict)
    authors: dict[HistoryRecord, str] = field(default_factory=dict)
    settled: dict[HistoryRecord, frozenset[HistoryRecord]] = field(default_factory=dict)

    def add(self, version: Version, author: str, before: Sequence[Version], decided: Sequence[Version]) -> None:
        """A new version, made of those `before` it. `author` is empty where the site hides it."""
        assert version.top not in self.settled, "two versions with one name"
        own = [one for one in before[1:] if author and self.authors[one.top] == author]
        seen = {one.top for one in (*before[:1], *own, *decided)}
        self.payloads[version.top] = version.payload
        self.authors[version.top] = author
        self.settled[version.top] = frozenset(seen.union(*(self.settled[one] for one in seen)))

    @property
    def unsettled(self) -> dict[HistoryRecord, bytes]:
        """The versions that no author of another one had seen."""
        kept = set(self.settled).difference(*self.settled.values())
        return {top: self.payloads[top] for top in kept}


async def edit(site: Site, what: str, number: int, title: str, authorship: Authorship, *, hidden: bool) -> None:
    """One person publishes, retracts or settles, unless the service refuses it."""
    person = PEOPLE[number]
    decided = (await site.versions("x"))[1:]
    request: Publish | Retract | ResolveConflicts
    if what == "publish":
        request, decided = site.publish_request("x", entry(title), person), []
    elif what == "retract":
        request = site.retract_request("x", person)
    else:
        decided = decided[:: number + 1]
        request = ResolveConflicts(jid(person), site.domain, NODE, "x", "", tuple(map(version_tag, decided)))
    with suppress(FeedError):
        before, after = await site.edit("x", request)
        if what == "retract":
            decided = before[1:]
        authorship.add(after[0], "" if hidden else f"{site.domain}/{person}", before, decided)


async def run_edits(hidden: Sequence[bool], count: int, tree: Sequence[int], steps: Sequence[Step]) -> None:
    net, authorship, hides = Net(), Authorship(), list(hidden)
    try:
        sites = [await net.add(letter) for letter in "abcd"[:count]]
        for site, hide in zip(sites, hides, strict=False):
            await site.create(*PEOPLE, *(other.domain for other in sites), itemreply="none" if hide else "publisher")
        for number, parent in enumerate(tree[: count - 1], 1):
            await sites[number].mirror(sites[parent], "both")
        for turn, (at, what, number) in enumerate(steps):
            site, other = sites[at % count], sites[number % count]
            if what == "settle":
                await net.settle_all(2)
            elif what == "heal":
                net.heal()
            elif what == "cut":
                if site is not other:
                    net.part(site, other)
            elif what in ("hide", "show"):
                hides[at % count] = what == "hide"
                await site.configure(itemreply="none" if what == "hide" else "publisher")
            else:
                await edit(site, what, number, f"step {turn}", authorship, hidden=hides[at % count])
            net.clock.move(number)
        net.heal()
        await net.settle_all(10)

        for site in sites:
            assert {one.top: one.payload for one in await site.versions("x")} == authorship.unsettled
    finally:
        await net.close()


@settings(max_examples=RUNS, deadline=None)
@given(HIDDEN, st.integers(2, 4), TREE, EDITS)
@example((True, False, False, False), 2, (0, 0, 0), TWO_PEOPLE)
def test_version_that_nobody_settled_is_at_every_service(
    hidden: Sequence[bool], count: int, tree: Sequence[int], steps: Sequence[Step]
) -> None:
    """[FS-068] [A-62] and no other, whoever edits where, and whether services show their publishers."""
    with capture_logs():
        asyncio.run(run_edits(hidden, count, tree, steps))
