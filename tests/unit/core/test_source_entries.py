"""Which item an entry of a source is, whatever a feed does to its ids and links."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from smartfeeds.core.source_entries import EntryKey, SourceEntry, assign_items, link_key


def assign(document, known=()):
    return assign_items([EntryKey(*key) for key in document], known, lambda key: "|".join(key))


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
