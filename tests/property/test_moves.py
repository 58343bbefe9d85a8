"""Moves in an outline: whatever was moved before, the tree is the one that the mover sees, here and elsewhere."""

from hypothesis import given
from hypothesis import strategies as st

from smartfeeds.errors import FeedError
from smartfeeds.formats.opml import MAX_LEVELS
from smartfeeds.sync.moves import FeedOutline, MoveStep, OutlineRow
from smartfeeds.sync.places import Place
from smartfeeds.sync.trees import ROOT, parents_of

IDS = "abcdefgh"
MOVES = st.tuples(
    st.sampled_from(IDS), st.sampled_from(("", *IDS)), st.integers(0, 8), st.sampled_from([None, *MoveStep])
)
# Places as documents and other services have them: stale ones, cycles, and none.
PLACES = st.none() | st.builds(Place, st.sampled_from(("", *IDS, "z")), st.sampled_from(("", *IDS, "z")))


@given(
    places=st.lists(PLACES, min_size=len(IDS), max_size=len(IDS)),
    deleted=st.sets(st.sampled_from(IDS), max_size=3),
    moves=st.lists(MOVES, max_size=12),
)
def test_outline_after_moves_is_what_the_mover_sees(
    places: list[Place | None], deleted: set[str], moves: list[tuple[str, str, int, MoveStep | None]]
) -> None:
    """[SSE-027] [SSE-028] Another service makes the same outline of the items in the order of their changes."""
    rows = {
        one: OutlineRow(one, time, time + 100, place, one in deleted)
        for time, (one, place) in enumerate(zip(IDS, places, strict=True))
    }
    now_us = 1_000
    for one, parent, at, step in moves:
        outline = FeedOutline.of(list(rows.values()))
        now_us += 1
        try:
            if step is not None and one not in deleted:
                parent, after = outline.step(one, step)
            else:
                siblings = [ROOT, *(other for other in outline.live(parent) if other != one)]
                after = siblings[at % len(siblings)]
            changed = outline.move(one, parent, after)
        except FeedError:
            continue
        expected = {holder: [other for other in ids if other != one] for holder, ids in outline.tree.items()}
        siblings = expected.setdefault(parent, [])
        siblings.insert(siblings.index(after) + 1 if after else 0, one)
        assert bool(changed) is (expected != outline.tree)
        assert not changed or one in changed
        for other, place in changed.items():
            now_us += 1
            rows[other] = rows[other]._replace(place=place, modified_us=now_us)
        assert FeedOutline.of(list(rows.values())).tree == {holder: ids for holder, ids in expected.items() if ids}


@given(st.data())
def test_steps_go_there_and_back(data: st.DataObject) -> None:
    """[SSE-028] Up and down, and right and left, undo each other in an outline without deleted items."""
    parents = {one: data.draw(st.sampled_from(("", *IDS[:at]))) for at, one in enumerate(IDS)}
    rows = [OutlineRow(one, at, at, Place(parents[one], "z")) for at, one in enumerate(IDS)]
    outline = FeedOutline.of(rows)
    one = data.draw(st.sampled_from(IDS))
    for step, back in ((MoveStep.UP, MoveStep.DOWN), (MoveStep.INDENT, MoveStep.OUTDENT)):
        try:
            place = outline.step(one, step)
        except FeedError:
            continue
        moved = {row.sync_id: row for row in rows}
        for time, (other, new) in enumerate(outline.move(one, *place).items(), 100):
            moved[other] = moved[other]._replace(place=new, modified_us=time)
        after = FeedOutline.of(list(moved.values()))
        assert after._moved(one, *after.step(one, back)) == dict(outline.tree)
        assert max(level for level, _ in after.walk_live()) < MAX_LEVELS and parents_of(after.tree).keys() == set(IDS)
