"""Views of a feed: node names with parameters."""

import pytest

from smartfeeds.core.filters import (
    FILTERS,
    MAX_FILTER_BYTES,
    MAX_FILTER_VALUES,
    MAX_QUERY_WORDS,
    EntryMeta,
    LastChange,
    entry_facets,
    facet,
)
from smartfeeds.core.view import (
    BARE,
    CREATED,
    NO_TRAITS,
    RESERVED_PARAMETERS,
    SMART,
    Order,
    Traits,
    View,
    canonical,
    from_canonical,
    matches,
    names_view,
    parse_view,
    shared_splits,
    split_name,
    version_traits,
)
from smartfeeds.errors import Condition, FeedError

CONTENT = EntryMeta(frozenset({"Alice"}), frozenset({"News"}), frozenset({"tag:1", ""}), language="en-GB")


def smart(order: Order = Order.MODIFIED, **filters: set[str]) -> View:
    """A Smart view with these filters; an underscore stands for a hyphen."""
    named = {name.replace("_", "-"): frozenset(values) for name, values in filters.items()}
    return View(True, order, tuple((name, named[name]) for name in FILTERS if name in named))


@pytest.mark.parametrize(
    ("name", "split"),
    [
        ("comments", None),
        ("comments?order=created", ("comments", "order=created")),
        ("list?id=7&order=created", ("list", "id=7&order=created")),
        ("a?b?c", ("a", "b?c")),
        ("a?", ("a", "")),
        ("?order=created", None),
    ],
)
def test_split_name_splits_at_the_first_question_mark(name: str, split: tuple[str, str] | None) -> None:
    """[SF-086]"""
    assert split_name(name) == split


@pytest.mark.parametrize(
    ("name", "splits"),
    [
        ("comments?order=created", []),
        ("a&b", []),
        ("?a=1&b=2", []),
        ("list?id=7&order=created", [("list?id=7", "order=created")]),
        ("l?a&b&c", [("l?a&b", "c"), ("l?a", "b&c")]),
        ("x&y?a&", [("x&y?a", "")]),
    ],
)
def test_shared_splits_are_at_the_ampersands_of_the_query(name: str, splits: list[tuple[str, str]]) -> None:
    """[SF-087]"""
    assert shared_splits(name) == splits


def test_shared_splits_are_bounded() -> None:
    """[SF-087]: each is looked up."""
    splits = shared_splits("l?" + "&" * 1000)

    assert len(splits) == 64
    assert splits[0] == ("l?" + "&" * 999, "")


@pytest.mark.parametrize(
    ("query", "view"),
    [
        ("order=modified", SMART),
        ("order=created", CREATED),
        ("author=alice", smart(author={"alice"})),
        ("author=Alice&author=xmpp:bob@x", smart(author={"alice", "bob@x"})),
        ("category=%C3%89t%C3%A9", smart(category={"été"})),
        ("category=a+b", smart(category={"a b"})),
        ("in-reply-to=tag%3Ax%2C1", smart(in_reply_to={"tag:x,1"})),
        ("kind=new&kind=deleted", smart(kind={"new", "deleted"})),
        ("q=Hello+World", smart(q={"hello", "world"})),
        ("q=a&q=b", smart(q={"a", "b"})),
        ("lang=en-GB&lang=de", smart(lang={"en-gb", "de"})),
        ("q=", SMART),
        ("q=+", SMART),
        ("", SMART),
        ("order=created&q=x&author=a", smart(Order.CREATED, author={"a"}, q={"x"})),
    ],
)
def test_parse_view_reads_parameters_as_a_query_string(query: str, view: View) -> None:
    """[SF-014] [SF-015] [SF-024] [SF-086] [xep-map 49]"""
    assert parse_view(query) == view


@pytest.mark.parametrize(
    "query",
    [
        "order",
        "order=",
        "order=score",
        "order=created&order=created",
        "order=created;x",
        "Order=created",
        "order=Created",
        "colour=red",
        "author=",
        "author=%FF",
        "author=%20",
        "category=xmpp:",
        "author=a%00b",
        "&".join(f"author={n}" for n in range(MAX_FILTER_VALUES + 1)),
        "&".join(["q=a"] * 65),
        "kind=moved",
        "lang=",
        "lang=*",
        "lang=en_GB",
        "lang=xmpp:en",
        "lang=en-",
        "lang=Ko",
        "id=7",
    ],
)
def test_parse_view_of_an_unknown_parameter_or_value_gives_none(query: str) -> None:
    """[xep-map 53]"""
    assert parse_view(query) is None


@pytest.mark.parametrize("text", ["!!!", "%F0%9F%8E%89", "...+-+%22", "%CD%8F"])
def test_parse_view_of_a_search_without_words_is_a_bad_request(text: str) -> None:
    """Such a search must not select the whole feed."""
    with pytest.raises(FeedError) as caught:
        parse_view(f"order=created&q={text}")

    assert caught.value.condition is Condition.BAD_REQUEST
    assert parse_view(f"q={text}&q=word") == smart(q={"word"})


@pytest.mark.parametrize("name", sorted(RESERVED_PARAMETERS))
def test_parse_view_of_a_reserved_name_is_a_bad_request(name: str) -> None:
    """[SF-086] [A-25]: positions travel in the result set."""
    with pytest.raises(FeedError) as caught:
        parse_view(f"order=created&{name}=1")

    assert caught.value.condition is Condition.BAD_REQUEST


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("order=created&author=a", "author=a&order=created"),
        ("author=a&author=b", "author=b&author=a&author=A"),
        ("author=xmpp:a@x", "author=a%40x"),
        ("author=XMPP:a@x", "author=a%40x"),
        ("author=xmpp:xmpp:%20a@x", "author=a%40x"),
        ("q=b+a", "q=a&q=B"),
        ("author=a", "order=modified&author=a"),
    ],
)
def test_canonical_of_two_spellings_of_a_view_is_one_text(one: str, other: str) -> None:
    """[xep-map 49] [xep-map 115]"""
    first, second = parse_view(one), parse_view(other)

    assert first is not None and second is not None
    assert canonical(first) == canonical(second)


@pytest.mark.parametrize(
    "view",
    [
        BARE,
        SMART,
        CREATED,
        smart(
            Order.CREATED,
            author={"a&b=c", "é"},
            category={"x y", "%"},
            in_reply_to={"tag:1"},
            kind={change.value for change in LastChange},
            q={"w", "v"},
        ),
    ],
)
def test_from_canonical_is_the_inverse_of_canonical(view: View) -> None:
    assert from_canonical(canonical(view)) == view


def test_canonical_of_the_bare_node_is_empty_and_of_a_smart_view_spells_out_the_order() -> None:
    assert (canonical(BARE), canonical(SMART), canonical(CREATED)) == ("", "order=modified", "order=created")


def test_from_canonical_of_something_else_raises() -> None:
    with pytest.raises(ValueError):
        from_canonical("colour=red")


@pytest.mark.parametrize(
    ("view", "filtered"),
    [
        (BARE, False),
        (SMART, False),
        (CREATED, False),
        *[(view, True) for name in FILTERS if (view := parse_view(f"{name}=new"))],
    ],
)
def test_filtered_and_hidden_tombstones_of_a_view(view: View, filtered: bool) -> None:
    """[SF-015] [xep-map 159] [xep-map 160]"""
    assert view.filtered is filtered
    assert view.hides_tombstones is not view.smart


def test_facet_folds_case_blanks_and_the_scheme_of_an_address() -> None:
    assert facet("a", " xmpp:Alice@Example.org ") == "a:alice@example.org"


def test_entry_facets_hold_authors_categories_and_replies() -> None:
    assert entry_facets(CONTENT) == {"a:alice", "p:alice", "c:news", "r:tag:1", "l:en", "l:en-gb"}


def test_version_traits_add_publisher_and_kind_and_a_deleted_item_has_nothing_else() -> None:
    """[SF-013]"""
    content = Traits(frozenset({"c:news"}), frozenset({"word"}))

    edited = version_traits(content, "Bob@x", deleted=False, revision=2)
    deleted = version_traits(content, "Bob@x", deleted=True, revision=3)

    assert edited == Traits(frozenset({"c:news", "k:edited", "p:bob@x"}), frozenset({"word"}))
    assert deleted == Traits(frozenset({"k:deleted", "p:bob@x"}))
    assert version_traits(NO_TRAITS, "", deleted=False, revision=1) == Traits(frozenset({"k:new"}))


@pytest.mark.parametrize(
    ("query", "change", "inside"),
    [
        ("order=modified", LastChange.DELETED, True),
        ("author=alice", LastChange.NEW, True),
        ("author=bob", LastChange.NEW, False),
        ("author=bob&author=alice", LastChange.NEW, True),
        ("author=alice&category=news", LastChange.NEW, True),
        ("author=alice&category=old", LastChange.NEW, False),
        ("in-reply-to=tag:1", LastChange.NEW, True),
        ("in-reply-to=tag:2", LastChange.NEW, False),
        ("kind=new", LastChange.NEW, True),
        ("kind=new", LastChange.EDITED, False),
        ("kind=edited&kind=deleted", LastChange.DELETED, True),
        ("lang=en", LastChange.NEW, True),
        ("lang=EN-gb", LastChange.EDITED, True),
        ("lang=en-us", LastChange.NEW, False),
        ("lang=e", LastChange.NEW, False),
        ("lang=de&lang=en&author=alice&q=hello", LastChange.NEW, True),
        ("q=Hello", LastChange.NEW, True),
        ("q=hello+world", LastChange.NEW, True),
        ("q=hello+moon", LastChange.NEW, False),
        ("q=", LastChange.NEW, True),
    ],
)
def test_matches_ands_filters_and_ors_the_values_of_one(query: str, change: LastChange, inside: bool) -> None:
    """[SF-015]"""
    view = parse_view(query)
    assert view is not None
    version = Traits(entry_facets(CONTENT) | {f"k:{change.value}"}, frozenset({"hello", "world"}))

    assert matches(view, version, publishers=True) is inside


@pytest.mark.parametrize(("publishers", "inside"), [(True, True), (False, False)])
def test_matches_a_publisher_as_author_only_where_the_node_shows_it(publishers: bool, inside: bool) -> None:
    """[SF-015]"""
    view = parse_view("author=bob%40x")
    assert view is not None

    published = version_traits(NO_TRAITS, "bob@x", deleted=False, revision=1)
    written = Traits(entry_facets(EntryMeta(frozenset({"bob@x"}))))

    assert matches(view, published, publishers=publishers) is inside
    assert matches(view, written, publishers=publishers)


def test_parse_view_takes_a_bounded_number_of_words() -> None:
    """[A-24]: each word is a look-up of its own."""
    assert parse_view("q=" + "+".join(f"w{n}" for n in range(MAX_QUERY_WORDS))) is not None
    assert parse_view("q=" + "+".join(f"w{n}" for n in range(MAX_QUERY_WORDS + 1))) is None


@pytest.mark.parametrize("name", FILTERS)
def test_filter_reads_a_bounded_number_of_bytes(name: str) -> None:
    """[A-24] In all wires: the row of the table has the limit."""
    row = FILTERS[name]
    for values in (["x" * (MAX_FILTER_BYTES + 1)], ["\ufdfa" * 171] * 17, ["\ud800" * MAX_FILTER_BYTES]):
        with pytest.raises(FeedError, match=f"the limit is {MAX_FILTER_BYTES}"):
            row.read(values)
    value = row.schema.get("items", row.schema).get("enum", ["new"])[0]
    assert row.read([value] * 32) == {value}
    assert row.read(["new"] * 33) is None and row.read(["n\0ew"]) is None


def test_canonical_text_of_a_search_can_be_read_again() -> None:
    """[xep-map 115] One character can become six; a text that would be too long afterwards is refused at once."""
    node_name = parse_view("q=" + "\u3316" * 340)
    assert node_name is not None and len(canonical(node_name)) > 1_023
    assert from_canonical(canonical(node_name)) == node_name
    with pytest.raises(FeedError, match="the limit"):
        parse_view("q=" + "\u3316" * 2_000)


def test_canonical_text_is_a_query_string_without_ambiguous_characters() -> None:
    """[xep-map 115] Everything but letters, digits and `_.-~` is percent-encoded, slashes too."""
    view = smart(author={"a/b"}, category={"c&d=e"})

    assert canonical(view) == "author=a%2Fb&category=c%26d%3De&order=modified"


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("news?order=created", True),
        ("news?x=1&order=created", True),
        ("a?b?c&order=created", True),
        ("news", False),
        ("news?x=1", False),
        ("?order=created", False),
        ("news?since=1", True),
        ("news?since=1&x=1", False),
        ("news?q=!", True),
        ("news?", True),
        ("news?;order=created", True),
        ("news%3forder%3Dcreated", True),
        ("news%3fx%3D1", False),
    ],
)
def test_names_view_is_true_for_each_name_that_a_feed_could_have_as_a_view(name: str, expected: bool) -> None:
    """[SF-087] The base may have a query string of its own. A reserved parameter belongs to views too (A-25)."""
    assert names_view(name) is expected
