"""Merging, whatever the histories: idempotent, commutative, associative; endpoints that exchange in any order agree.

`HYPOTHESIS_PROFILE=nightly` makes 10,000 runs of each.
"""

from contextlib import suppress

from hypothesis import example, given, settings
from hypothesis import strategies as st
from lxml import etree

from smartfeeds.errors import FeedError
from smartfeeds.formats.atom import FEEDSYNC_NS
from smartfeeds.sync.document_reader import FeedReader
from smartfeeds.sync.feedsync import FEEDSYNC, is_subsumed
from smartfeeds.sync.lexis import SSE_NS
from smartfeeds.sync.merging import Dialect, Outcome, difference, merge, newer_of
from smartfeeds.sync.record import Edit, Version
from smartfeeds.sync.sse import SSE
from smartfeeds.sync.trees import WinnerSide, merge_trees, parents_of, walk
from smartfeeds.sync.writing import write_item
from support.effort import runs
from support.sync import parse_item

RUNS = runs(150, nightly=10_000)
NAMES = ("A", "B", "C", "D")
# Nobody has a name; some have the same, as after a backup was restored beside the original.
TWINS = st.sampled_from([("", "", "", ""), ("A", "A", "B", "B"), ("A", "", "A", "B")])
S = 1_000_000

# What an endpoint does: edit, delete, make live again, decide on all its conflicts, or read from another.
STEPS = st.lists(
    st.tuples(
        st.integers(0, 3), st.sampled_from(["edit", "edit", "delete", "live", "resolve", "read", "read", "read"]),
        st.integers(0, 3), st.integers(0, 4),
    ),
    max_size=25,
)  # fmt: skip


def text(number: int) -> bytes:
    """The content that a step makes."""
    return f'<entry xmlns="http://www.w3.org/2005/Atom"><title>{number}</title></entry>'.encode()


def run(dialect: Dialect, steps, *, names: tuple[str, ...] = NAMES, noconflicts: bool = False):
    """Endpoints with one shared item, after these steps; times are few, so that there are ties."""
    first = Edit(0, names[0])
    start = dialect.create("i1", text(0), first)
    if noconflicts:
        start = FEEDSYNC.create("i1", text(0), first, noconflicts=True)
    ends = [start] * 4
    for number, (who, what, whom, time) in enumerate(steps, start=1):
        edit = Edit(time * S, names[who])
        item = ends[who]
        if what == "read":
            ends[who] = merge(dialect, item, ends[whom]).version
        elif what == "resolve":
            ends[who] = dialect.resolve(item, edit, item.conflicts, text(number))
        else:
            deleted = {"edit": None, "delete": True, "live": False}[what]
            ends[who] = dialect.update(item, edit, text(number), deleted=deleted)
    return ends


def joined(dialect, *items):
    result = items[0]
    for item in items[1:]:
        result = merge(dialect, result, item).version
    return plain(result)


def plain(item: Version):
    """The item with its conflicts as the set that they are."""
    return item._replace(conflicts=()), frozenset(item.conflicts)


def exchanged(dialect, ends, order):
    """After exchanges in some order, and then in a ring until nothing changes any more."""
    for one, two in order:
        ends[one] = merge(dialect, ends[one], ends[two]).version
    for _ in range(4 * len(ends)):
        changed = False
        for one in range(len(ends)):
            merged = merge(dialect, ends[one], ends[one - 1])
            changed |= merged.outcome is not Outcome.UNCHANGED
            ends[one] = merged.version
        if not changed:
            break
    return ends


PAIRS = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), max_size=12)


@settings(max_examples=RUNS)
@given(STEPS, st.booleans())
def test_feedsync_merge_is_idempotent_commutative_associative(steps, noconflicts):
    """[FS-068] [FS-061] of all versions that editing and merging can make."""
    a, b, c, _ = run(FEEDSYNC, steps, noconflicts=noconflicts)

    assert merge(FEEDSYNC, a, a).outcome is Outcome.UNCHANGED
    assert joined(FEEDSYNC, a, b) == joined(FEEDSYNC, b, a)
    ab = merge(FEEDSYNC, a, b).version
    assert merge(FEEDSYNC, ab, b).outcome is Outcome.UNCHANGED
    bc = merge(FEEDSYNC, b, c).version
    assert joined(FEEDSYNC, ab, c) == joined(FEEDSYNC, a, bc)


@settings(max_examples=RUNS)
@given(STEPS)
def test_having_seen_is_an_order(steps):
    """[FS-065] [FS-066] transitive; and versions that have seen each other are the same version."""
    ends = run(FEEDSYNC, steps)
    found = {one._replace(conflicts=()) for end in ends for one in (end, *end.conflicts)}
    seen = {(a, b) for a in found for b in found if is_subsumed(a.top, b.history)}

    assert all((a, a) in seen for a in found)
    assert all(a == b for a, b in seen if (b, a) in seen)
    assert all((a, d) in seen for a, b in seen for c, d in seen if b == c)


@settings(max_examples=RUNS)
@given(STEPS, PAIRS, PAIRS)
def test_feedsync_endpoints_converge_in_any_order(steps, order, other):
    """[FS-068] [FS-074] winner, conflicts, histories: at all endpoints, and the same whatever the order was."""
    ends = run(FEEDSYNC, steps)
    results = [exchanged(FEEDSYNC, list(ends), pairs) for pairs in (order, other)]

    assert len({plain(one) for result in results for one in result}) == 1


@settings(max_examples=RUNS)
@given(STEPS, PAIRS, TWINS)
def test_feedsync_endpoints_without_names_or_with_the_same_converge(steps, order, names):
    """[A-43] [FS-066] twins too: versions of one sequence, time and endpoint, and other content."""
    ends = exchanged(FEEDSYNC, run(FEEDSYNC, steps, names=names), order)

    assert len({plain(one) for one in ends}) == 1


@settings(max_examples=RUNS)
@given(STEPS, TWINS)
def test_twins_merge_the_same_in_both_directions(steps, names):
    """[A-43] whichever version is local."""
    a, b, _, _ = run(FEEDSYNC, steps, names=names)

    assert merge(FEEDSYNC, a, a).outcome is Outcome.UNCHANGED
    assert joined(FEEDSYNC, a, b) == joined(FEEDSYNC, b, a)


@settings(max_examples=RUNS)
@given(STEPS)
def test_sse_merge_is_idempotent_and_commutative_and_its_winner_associative(steps):
    """[SSE-037] [SSE-039] marks and lists alike."""
    a, b, c, _ = run(SSE, steps)

    assert merge(SSE, a, a).outcome is Outcome.UNCHANGED
    assert joined(SSE, a, b) == joined(SSE, b, a)
    ab, bc = merge(SSE, a, b).version, merge(SSE, b, c).version
    assert merge(SSE, ab, b).outcome is Outcome.UNCHANGED
    assert merge(SSE, ab, c).version.key == merge(SSE, a, bc).version.key


@settings(max_examples=RUNS)
@given(STEPS, PAIRS, TWINS | st.just(NAMES))
def test_sse_endpoints_converge_in_any_order(steps, order, names):
    """[SSE-037] [A-77] winner, marks and lists: the same at all endpoints."""
    ends = exchanged(SSE, run(SSE, steps, names=names), order)

    assert len({plain(one) for one in ends}) == 1


@settings(max_examples=RUNS)
@given(STEPS)
def test_resolved_conflict_does_not_come_back(steps):
    """[FS-071] from whomever it is read again."""
    item, *others = run(FEEDSYNC, steps)
    seen = item.conflicts
    resolved = FEEDSYNC.resolve(item, Edit(9 * S, "A"), seen)

    for conflict in seen:
        assert merge(FEEDSYNC, resolved, conflict).outcome is Outcome.UNCHANGED
    assert merge(FEEDSYNC, resolved, item).outcome is Outcome.UNCHANGED
    assert not set(merge(FEEDSYNC, resolved, others[0]).version.conflicts) & set(seen)


# A service shows who edits its items, or hides it; this may change. Several people edit at each. A number chooses the
# person, the service to read from, the conflicts to settle.
SERVICE_STEPS = st.lists(
    st.tuples(
        st.integers(0, 3),
        st.sampled_from(
            ["edit", "edit", "edit", "delete", "live", "resolve", "retract", "read", "read", "read", "read", "turn"]
        ),
        st.integers(0, 3),
        st.integers(0, 2),
    ),
    min_size=10,
    max_size=30,
)
# Two people edit where publishers are hidden, the first of them at the same time as somebody elsewhere.
TWO_PEOPLE = [(1, "read", 0, 0), (0, "edit", 1, 1), (1, "edit", 2, 2), (0, "read", 1, 0), (0, "edit", 3, 3)]


class Services:
    """Four services that share one item, and beside their versions what the author of each version really knew."""

    def __init__(self, hidden: tuple[bool, ...], *, noconflicts: bool) -> None:
        first = FEEDSYNC.create("i1", text(0), Edit(0, "A%2F0"), noconflicts=noconflicts)
        self.items = [first] * len(hidden)
        self.hidden = list(hidden)
        # For each version, by its content: what its author had before them, and their name if the service shows it.
        self.settled = {text(0): frozenset[bytes]()}
        self.authors = {text(0): "A%2F0"}

    def step(self, who: int, what: str, number: int, time: int) -> None:
        item = self.items[who]
        if what == "read":
            self.items[who] = merge(FEEDSYNC, item, self.items[number]).version
        elif what == "turn":
            self.hidden[who] = not self.hidden[who]
        else:
            decided = {"resolve": item.conflicts[:: number + 1], "retract": item.conflicts}.get(what, ())
            deleted = {"delete": True, "live": False, "retract": True}.get(what)
            self.items[who] = self._changed(item, who, number, time, decided, deleted)

    def _changed(
        self, item: Version, who: int, number: int, time: int, decided: tuple[Version, ...], deleted: bool | None
    ) -> Version:
        service, content = NAMES[who], text(len(self.settled))
        author = "" if self.hidden[who] else f"{service}%2F{number}"
        own = [one for one in item.conflicts if author and self.authors[one.payload] == author]
        seen = {one.payload for one in (item, *decided, *own)}
        self.settled[content] = frozenset(seen.union(*(self.settled[one] for one in seen)))
        self.authors[content] = author
        edit = Edit(time * S, author or service, shared=not author)
        return FEEDSYNC.resolve(item, edit, decided, content, deleted=deleted)

    @property
    def unsettled(self) -> set[bytes]:
        """The versions that no author of another version had before them."""
        return set(self.settled).difference(*self.settled.values())


def contents(item: Version) -> set[bytes]:
    """Of the winner and its conflicts."""
    return {one.payload for one in (item, *item.conflicts)}


@settings(max_examples=3 * RUNS)
@given(st.tuples(*[st.booleans()] * 4), SERVICE_STEPS, PAIRS)
@example((True, False, False, False), TWO_PEOPLE, [])
def test_version_that_nobody_settled_is_at_every_service(hidden, steps, order):
    """[FS-068] [FS-051] [FS-071] and no other, whoever edits where, and whether services show their publishers."""
    services = Services(hidden, noconflicts=False)
    for one in steps:
        services.step(*one)

    for item in exchanged(FEEDSYNC, services.items, order):
        assert contents(item) == services.unsettled


@settings(max_examples=RUNS)
@given(st.tuples(*[st.booleans()] * 4), SERVICE_STEPS, PAIRS)
def test_item_without_conflicts_is_the_same_at_every_service(hidden, steps, order):
    """[FS-061] the one version that stays is one that nobody settled."""
    services = Services(hidden, noconflicts=True)
    for one in steps:
        services.step(*one)

    (winner,) = {plain(item) for item in exchanged(FEEDSYNC, services.items, order)}
    assert winner[0].payload in services.unsettled and not winner[1]


@settings(max_examples=RUNS)
@given(STEPS, TWINS | st.just(NAMES), st.sampled_from([FEEDSYNC, SSE]))
def test_written_sync_data_is_read_again(steps, names, dialect):
    """[FS-012] [SSE-032] version, history, marks, conflicts."""
    item = run(dialect, steps, names=names)[0]

    found = parse_item(write_item(item, dialect))

    assert plain(found.version) == plain(item)
    assert found.dialect is dialect


@settings(max_examples=RUNS)
@given(STEPS, TWINS | st.just(NAMES), st.sampled_from([FEEDSYNC, SSE]), st.booleans())
def test_version_that_is_taken_unread_is_what_the_merge_comes_to(steps, names, dialect, noconflicts):
    """[FS-059] [SSE-039] what is decided without the content is decided the same with it."""
    a, b, *_ = run(dialect, steps, names=names, noconflicts=noconflicts and dialect is FEEDSYNC)

    newer = newer_of(dialect, a._replace(payload=b""), b._replace(payload=b""))

    if newer is not None:
        merged = merge(dialect, a, b)
        assert merged.version == (a if newer.key == a.key else b)
        assert merged.outcome is difference(a._replace(payload=b""), newer)


# Values that the two documents allow.
VALUES = {
    "id": ["i1"],
    "updates": ["1", "3", "2147483647"],
    "version": ["1", "3"],
    "sequence": ["1", "2", "3", "2147483647"],
    "by": ["A", "b%2Fc@d", "x:y"],
    **dict.fromkeys(("deleted", "noconflicts", "conflict"), ("true", "false")),
    **dict.fromkeys(("x", "{urn:x}y"), ("", "1", "<&\"' \n")),
}
DATES = {FEEDSYNC: "2005-05-21T09:43:33Z", SSE: "Sat, 21 May 2005 09:43:33 GMT"}
WRONG = st.text(st.sampled_from("0123456789-+.TZ:truefals<&\"'%~ Aé\U0001f600"), max_size=24)


@st.composite
def synced(draw, *, wrong, depth=0):
    """An entry with sync data of either dialect, with conflicts; `wrong` is how many in ten attributes may be so."""
    dialect = FEEDSYNC if depth else draw(st.sampled_from([FEEDSYNC, SSE]))
    namespace = FEEDSYNC_NS if dialect is FEEDSYNC else SSE_NS

    def add(parent, name, *required, maybe=("x", "{urn:x}y")):
        names = [*required, *draw(st.sets(st.sampled_from(maybe)))]
        found = {one: draw(st.sampled_from(VALUES.get(one, [DATES[dialect]]))) for one in names}
        if draw(st.integers(0, 9)) < wrong:
            found[draw(st.sampled_from(names or ["by"]))] = draw(WRONG)
        return etree.SubElement(parent, f"{{{namespace}}}{name}", found)

    root = etree.Element("{http://www.w3.org/2005/Atom}entry")
    etree.SubElement(root, "{http://www.w3.org/2005/Atom}title").text = draw(st.sampled_from(["", "t", "<&"]))
    flag = "noconflicts" if dialect is FEEDSYNC else "conflict"
    sync = add(root, "sync", "id", dialect.counter, maybe=("deleted", flag, "x", "{urn:x}y"))
    sequence = ("sequence",) if dialect is FEEDSYNC else ()
    for _ in range(draw(st.integers(1, 3)) if dialect is FEEDSYNC else 1):
        history = add(sync, "history", *sequence, draw(st.sampled_from(["by", "when"])), maybe=("by", "when", "x"))
    for _ in range(draw(st.integers(0, 2)) if dialect is SSE else 0):
        add(history, "update", "by", "when")
    if draw(st.booleans()):
        add(sync, "unknown").text = "u"
    if depth < 2 and draw(st.booleans()):
        conflicts = add(sync, "conflicts", maybe=("x",))
        for _ in range(draw(st.integers(0, 2))):
            if dialect is FEEDSYNC:
                conflicts.append(draw(synced(wrong=wrong, depth=depth + 1)))
            else:
                add(conflicts, "conflict", "version", "by", maybe=("when",)).text = "c"
    return root


@settings(max_examples=RUNS)
@given(synced(wrong=0))
def test_sync_data_as_the_documents_have_it_is_read_and_written(root):
    """[FS-012] [FS-063] [SSE-032] Every attribute, record and conflict is read again; each stands in the markup."""
    found = parse_item(etree.tostring(root))

    written = write_item(found.version, found.dialect)

    again = parse_item(written)
    assert (again.version, again.dialect) == (found.version, found.dialect)
    sync, result = root[1], etree.fromstring(written).find("{*}sync")
    assert dict(result.attrib) == dict(sync.attrib)
    assert [one.attrib for one in result.findall("{*}history")] == [one.attrib for one in sync.findall("{*}history")]
    assert result.find("{*}unknown") is not None or sync.find("{*}unknown") is None


@settings(max_examples=RUNS)
@given(synced(wrong=1))
def test_any_sync_data_is_read_or_refused(root):
    """[A-52] [FS-029] [A-56] Nothing else ever comes of an item."""
    found = None
    with suppress(FeedError):
        found = parse_item(etree.tostring(root))

    if found is not None:
        assert parse_item(write_item(found.version, found.dialect)).version == found.version


@settings(max_examples=RUNS)
@given(st.binary(max_size=200), st.integers(1, 50))
def test_any_bytes_are_read_or_refused(data, size):
    """[A-52]"""
    reader = FeedReader()
    with suppress(FeedError):
        for start in range(0, len(data), size):
            list(reader.feed(data[start : start + size]))
        list(reader.close())


@st.composite
def trees(draw):
    """Two outlines over some of the same items, and which side each of them was changed on."""
    sides = []
    for _ in range(2):
        tree: dict[str, list[str]] = {}
        known = [""]
        for one in draw(st.permutations("abcdefg")):
            if draw(st.integers(0, 3)):
                tree.setdefault(draw(st.sampled_from(known)), []).append(one)
                known.append(one)
        sides.append(tree)
    return sides, {one: draw(st.sampled_from(list(WinnerSide))) for one in "abcdefg"}


@settings(max_examples=RUNS)
@given(trees())
def test_merged_tree_has_every_item_once_and_is_the_same_from_either_side(case):
    """[SSE-029] [SSE-030] [SSE-043] no item is lost, none is below itself, and merging again changes nothing."""
    (local, incoming), won = case
    other = {
        WinnerSide.LOCAL: WinnerSide.INCOMING,
        WinnerSide.INCOMING: WinnerSide.LOCAL,
        WinnerSide.BOTH: WinnerSide.BOTH,
    }

    tree, repaired = merge_trees(local, incoming, won.__getitem__)

    assert (tree, repaired) == merge_trees(incoming, local, lambda one: other[won[one]])
    names = [one for _, one in walk(tree)]
    assert sorted(names) == sorted({*parents_of(local), *parents_of(incoming)})
    assert merge_trees(tree, tree, lambda _one: WinnerSide.BOTH) == (tree, [])
