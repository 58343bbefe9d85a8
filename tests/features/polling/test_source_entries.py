"""Which item an entry of a source is, whatever a feed does to its ids and links."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from smartfeeds.features.polling.source_entries import (
    DocumentEntry,
    EntryKey,
    SourceEntry,
    assign_items,
)
from smartfeeds.formats.distinct import EntryWords, link_key


def assign(document, known=()):
    """The items of entries that say nothing but their id and link."""
    entries = [DocumentEntry(EntryKey(*key)) for key in document]
    return assign_items(entries, known, lambda entries: [None] * len(entries), lambda *parts: "|".join(parts))


def stored(entries):
    return [replace(entry, entry_no=number) for number, entry in enumerate(entries, start=1)]


def item_ids(entries):
    return [entry.item_id for entry in entries]


def test_entry_keeps_its_item_when_its_link_changes():
    """[SRC-069] The id decides, and the new link is remembered."""
    known = stored(assign([("a", "x"), ("b", "y")]))
    entries = assign([("b", "elsewhere"), ("c", "z")], known)

    assert item_ids(entries) == ["b", "c"]
    assert [entry.entry_no for entry in entries] == [2, 0]
    assert entries[0].key == EntryKey("b", "elsewhere")


def test_two_entries_of_one_id_are_two_items_and_stay_so():
    """[SRC-070] In each later document, alone or together, in any order."""
    known = stored(assign([("x", "1"), ("x", "2")]))
    assert item_ids(known) == ["x", "x|2"]

    assert item_ids(assign([("x", "2")], known)) == ["x|2"]
    assert item_ids(assign([("x", "2"), ("x", "1")], known)) == ["x|2", "x"]
    assert item_ids(assign([("x", "3")], known)) == ["x|3"], "nobody knows which of the two it would be"


def test_second_entry_of_an_id_leaves_the_first_one_its_item():
    """[SRC-070] The first one was alone when it was stored."""
    known = stored(assign([("x", "1")]))

    assert item_ids(assign([("x", "2"), ("x", "1")], known)) == ["x|2", "x"]


def test_entries_keep_their_items_when_the_feed_changes_its_ids():
    """[SRC-073] From http to https in the ids and the links; new entries are new all the same."""
    known = stored(assign([(f"http {n}", link_key(f"http://a.example/{n}/")) for n in range(4)]))
    changed = [(f"https {n}", link_key(f"https://www.a.example/{n}")) for n in (1, 2, 3, 4)]
    entries = assign(changed, known)

    assert item_ids(entries) == ["http 1", "http 2", "http 3", "https 4"]
    assert [entry.key.identity for entry in entries] == [identity for identity, _ in changed]
    assert item_ids(assign([("https 1", "other")], stored(entries))) == ["http 1"], "the new id is remembered"


def test_a_few_new_entries_about_known_links_are_new():
    """[SRC-073] Half of the document is not more than half."""
    known = stored(assign([("a", "1"), ("b", "2")]))

    assert item_ids(assign([("a", "1"), ("c", "2")], known)) == ["a", "c"]


def test_feed_whose_links_are_all_equal_is_matched_by_its_ids_only():
    """[SRC-073]"""
    known = stored(assign([("a", "home"), ("b", "home")]))
    assert item_ids(assign([("c", "home"), ("d", "home")], known)) == ["c", "d"]

    one = stored(assign([("a", "home")]))
    assert item_ids(assign([("b", "home"), ("c", "home")], one)) == ["b", "c"]
    assert item_ids(assign([("b", ""), ("c", "")], stored(assign([("a", "")])))) == ["b", "c"]


KEYS = st.lists(
    st.tuples(st.sampled_from("abcd"), st.sampled_from(["", "1", "2", "3"])).map(lambda pair: EntryKey(*pair)),
    unique=True,
    max_size=8,
)


@given(st.lists(KEYS, max_size=5))
def test_no_two_entries_of_a_document_share_an_item(documents):
    """[SRC-069] [SRC-070] [SRC-073] And the same document again is the same items."""
    memory: dict[int, SourceEntry] = {}
    for document in documents:
        for again in (False, True):
            entries = assign(document, memory.values())
            assert len(set(item_ids(entries))) == len(document)
            if again:
                assert all(entry.entry_no for entry in entries), "every entry is known by now"
            for entry in entries:
                number = entry.entry_no or len(memory) + 1
                memory[number] = replace(entry, entry_no=number)


class Model:
    """A node and the memory of its source: each item has the entry that it was stored with last."""

    def __init__(self):
        self.memory: dict[int, SourceEntry] = {}
        self.items: dict[str, DocumentEntry] = {}

    def poll(self, document, *, is_home=False):
        """The former entry of each item of the document, None if the item is new."""
        places = [replace(one, is_home=is_home) for one in document]
        assigned = assign_items(places, list(self.memory.values()), self.words_of, lambda *parts: "|".join(parts))
        former = [self.items.get(entry.item_id) for entry in assigned]
        for one, entry in zip(document, assigned, strict=True):
            assert entry.entry_no or entry.item_id not in self.items, "a new entry takes no item that is there"
            number = entry.entry_no or len(self.memory) + 1
            self.memory[number] = replace(entry, entry_no=number, digest=one.digest)
            self.items[entry.item_id] = one
        assert len(set(item_ids(assigned))) == len(document)
        return former

    def words_of(self, entries):
        return [self.items[entry.item_id].words for entry in entries]


WORDS = st.builds(
    EntryWords, st.sampled_from(["", "A", "B", "C"]), st.sampled_from(["", "x", "y"]), st.sampled_from([None, 1, 2])
)


def entries(by_link):
    """Entries of one link, with ids or without. The number is content beside the words, such as a picture."""

    def entry(number, words):
        key = EntryKey("link" if by_link else f"id {number}", "page")
        return DocumentEntry(key, f"{by_link} {number} {words}", words, by_link)

    return st.builds(entry, st.integers(0, 1), WORDS)


def documents(entry):
    return st.lists(st.lists(entry, max_size=5, unique_by=lambda one: one.digest), max_size=6)


def agreement(one, other):
    """Whether title, text and date are equal, None for what is unknown."""
    pairs = zip(one.words, other.words, strict=True)
    return [None if "" in pair or None in pair else pair[0] == pair[1] for pair in pairs]


@given(documents(entries(True)), st.booleans())
def test_no_item_is_overwritten_by_another_entry(documents, is_home):
    """[SRC-069] [SRC-070] Entries without ids: something says that the entry of an item is a version of the former one,
    and an entry that has not changed keeps its item."""
    model = Model()
    for document in documents:
        before = {one.digest for one in model.items.values()}
        for one, former in zip(document, model.poll(document, is_home=is_home), strict=True):
            if one.digest in before:
                assert former == one, "an entry that has not changed keeps its item"
            elif former is not None:
                title, text, date = agreement(one, former)
                assert former.digest not in {beside.digest for beside in document}, "the document has both"
                assert title or text or date or (date is None and (title, text) != (False, False))
        assert model.poll(document, is_home=is_home) == document, "the same document again changes nothing"


@given(documents(entries(True) | entries(False)))
def test_same_document_changes_nothing(documents):
    """[SRC-069] [SRC-070] [SRC-073] Entries with ids and without them."""
    model = Model()
    for document in documents:
        model.poll(document)
        assert model.poll(document) == document


@given(st.lists(entries(True), min_size=1, max_size=8, unique_by=lambda one: one.digest))
def test_moving_window_has_an_item_for_each_entry(history):
    """[SRC-070] Each document has the next entry and the one before it. Each entry has a date of its own."""
    history = [replace(one, words=one.words._replace(published_us=day)) for day, one in enumerate(history)]
    model = Model()
    model.poll(history[:2])
    for start in range(1, len(history)):
        former = model.poll(history[start : start + 2])
        assert former[0] == history[start] and former[1:] in ([], [None])
    assert list(model.items.values()) == history
