"""Services that mirror each other in any shape, over links that lose events and break: in the end all are the same.

`HYPOTHESIS_PROFILE=nightly` makes 10,000 runs.
"""

import asyncio
import os
from collections.abc import Sequence
from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from structlog.testing import capture_logs

from smartfeeds.errors import ConfigError, FeedError
from support.mesh import Net, Site, twin

NIGHTLY = os.environ.get("HYPOTHESIS_PROFILE") == "nightly"
RUNS = 10_000 if NIGHTLY else 40
pytestmark = pytest.mark.timeout(7_200 if NIGHTLY else 120)

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
        assert all(one.in_step and one.half.refused == 0 and not one.half.failure for one in standings)
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
