"""The work of matching entries with items."""

import pytest

from smartfeeds.features.documents.ess import NnoEntry
from smartfeeds.features.nno import entries as nno


class CountedSet(set):
    """Counts how often it is asked for a member."""

    steps = 0

    def __contains__(self, value):
        self.steps += 1
        return super().__contains__(value)


@pytest.mark.parametrize(
    ("entry_time", "entry_checksum", "item_time"),
    [
        (lambda number: 60 * number, lambda _: 5, lambda number: 60 * (number + 1_000_000)),
        (lambda _: 60, lambda _: 5, lambda _: 60),
        (lambda _: 60, lambda number: number + 10, lambda _: 60),
        (lambda _: 60, lambda _: 5, lambda number: 60 * number),
    ],
    ids=["equal titles", "all equal", "equal times", "equal entries"],
)
def test_items_are_matched_in_steps_that_grow_with_them(monkeypatch, entry_time, entry_checksum, item_time):
    """An outline and a feed of one sender: each entry was compared with each item."""
    monkeypatch.setattr(nno, "set", CountedSet, raising=False)
    for n in (500, 1_000):
        wanted = nno.requests_of(NnoEntry("http://a/", entry_time(i), entry_checksum(i)) for i in range(n))
        matching = nno._MatchRun([nno.Candidate((item_time(i),), (5,)) for i in range(n)])
        assert matching.free.steps == 0
        matching.run(wanted)
        assert matching.free.steps <= 20 * n
