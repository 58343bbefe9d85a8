"""Every parser of the core takes any text, and writing and reading are inverse."""

from dataclasses import replace
from datetime import UTC, datetime
from random import Random
from typing import Any
from urllib.parse import urlencode

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from lxml import etree

from smartfeeds.core.filters import FILTERS, EntryMeta, LastChange, entry_facets
from smartfeeds.core.jid import parse_jid
from smartfeeds.core.model import NodeKind
from smartfeeds.core.options import OPTIONS, NodeOptions, OptionLimits
from smartfeeds.core.page import ResultSetRequest, plan
from smartfeeds.core.position import format_cursor, is_canonical, matches, parse_cursor, parse_position
from smartfeeds.core.suboptions import SUBSCRIBE_OPTIONS
from smartfeeds.core.suboptions import apply as apply_subscription
from smartfeeds.core.text import attribute, escape, is_xml_text, words
from smartfeeds.core.times import format_datetime, format_t, parse_datetime, parse_t, parse_time
from smartfeeds.core.view import (
    BARE,
    CREATED,
    PARAMETERS,
    SMART,
    Order,
    Traits,
    View,
    canonical,
    from_canonical,
    names_view,
    parse_view,
    shared_splits,
    split_name,
)
from smartfeeds.core.view import matches as in_view
from smartfeeds.errors import FeedError

TEXT = st.text(max_size=40)
# Texts that nearly are what the parsers read.
NEARLY = st.text(alphabet="0123456789abcdef._-:~cTZ+?=&%idtmeursxq @/", max_size=40)
ANY = TEXT | NEARLY
IDS = st.lists(st.text(min_size=1, max_size=8), min_size=1, max_size=6)
KEYS = st.integers(min_value=-(10**14), max_value=10**16)
VALUES = st.lists(ANY | st.sampled_from(["true", "0", "max", "open", "1", ""]), max_size=3).map(tuple)
NAMES = (
    st.sampled_from([f"pubsub#{var}" for var in (*OPTIONS, *SUBSCRIBE_OPTIONS, "digest", "body_xslt", "colour")]) | ANY
)
FORMS = st.dictionaries(NAMES, VALUES, max_size=4)
CHANGES = [change.value for change in LastChange]
FILTER_VALUES = {
    name: st.frozensets(st.sampled_from(CHANGES) if name == "kind" else TEXT, min_size=1, max_size=3)
    for name in FILTERS
}
VIEWS = st.builds(
    View,
    smart=st.just(True),
    order=st.sampled_from(Order),
    filters=st.fixed_dictionaries({}, optional=FILTER_VALUES).map(lambda filters: tuple(filters.items())),
)


@given(KEYS, IDS, st.sampled_from(Order))
def test_cursor_of_any_place_is_read_back_and_checks(key_us: int, ids: list[str], order: Order) -> None:
    """[SF-103] [SF-106] [SF-108] [xep-map 212]"""
    text = format_cursor(order, key_us, ids)
    cursor = parse_cursor(text)

    assert cursor is not None and is_canonical(text)
    assert (cursor.order, cursor.key_us, cursor.offset) == (order, key_us, len(ids) - 1)
    assert matches(cursor, ids) and matches(cursor, [*ids, "later"])
    assert not matches(cursor, ids[:-1])


@given(ANY)
def test_parsers_of_plain_texts_take_anything(text: str) -> None:
    """[SF-029]"""
    cursor = parse_cursor(text)
    assert is_canonical(text) <= (cursor is not None)
    for parse in (parse_t, parse_datetime, parse_time, parse_jid, words, is_xml_text):
        parse(text)


@given(ANY | NEARLY.map("cursor:".__add__) | TEXT.map("id:".__add__) | NEARLY.map("time:".__add__))
def test_position_of_any_text_is_a_position_or_a_feed_error(text: str) -> None:
    """[SF-025] [SF-029]"""
    for view in (BARE, SMART, CREATED):
        try:
            parse_position(text, view)
        except FeedError:
            continue


@given(ANY | st.lists(st.tuples(st.sampled_from([*PARAMETERS, "x"]), NEARLY)).map(lambda p: "&".join(map("=".join, p))))
def test_view_of_any_query_is_a_view_nothing_or_a_feed_error(query: str) -> None:
    """[SF-024] [xep-map 49]"""
    try:
        view = parse_view(query)
    except FeedError:
        return
    if view is not None:
        assert from_canonical(canonical(view)) == view


FIELDS = st.sampled_from(
    [
        *("order=created", "order=modified", "%6frder=created", ";order=created", "amp;order=created", "sync=true"),
        *("q=!", "q=tea", "kind=new", "kind=x", "author=a%26b", "author=", "lang=en;kind=new", "since=1"),
        *("x=1", "x", "a?b", ""),
    ]
)
MARKS = st.sampled_from(["&", "&amp;", ";", "&amp;;", "?"])


@given(st.sampled_from(["?", "%3F", "%3f", "?;", "?&", ""]), st.lists(st.tuples(FIELDS, MARKS), max_size=5))
def test_names_view_is_true_for_all_names_of_views(mark: str, fields: list[tuple[str, str]]) -> None:
    """[SF-087] [xep-map 51] One query is parsed; the answer covers all queries that the name can have."""
    name = f"news{mark}" + "".join(map("".join, fields))
    split = split_name(name)
    for _, query in [*shared_splits(name), *([] if split is None else [split])]:
        try:
            is_view = parse_view(query) is not None
        except FeedError:
            continue
        if is_view:
            assert names_view(name)


PLAIN = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
PLAIN |= st.tuples(st.sampled_from(["xmpp:", " ", "XMPP:", "xmpp:xmpp: "]), PLAIN).map("".join)
PAIRS = st.lists(
    st.tuples(st.sampled_from(["author", "category", "in-reply-to", "q"]), PLAIN)
    | st.tuples(st.just("kind"), st.sampled_from(CHANGES)),
    max_size=6,
)


@given(PAIRS, st.sampled_from(Order), st.randoms(use_true_random=False))
def test_canonical_text_of_a_view_is_one_whatever_the_order_of_its_parameters(
    pairs: list[tuple[str, str]], order: Order, random: Random
) -> None:
    """[xep-map 49] [xep-map 115]"""
    pairs = [*pairs, ("order", order.value)]
    shuffled = pairs[:]
    random.shuffle(shuffled)
    try:
        view = parse_view(urlencode(pairs))
    except FeedError:
        assert not words(" ".join(value for name, value in pairs if name == "q"))
        with pytest.raises(FeedError):
            parse_view(urlencode(shuffled))
        return

    assert view == parse_view(urlencode(shuffled))
    if view is None:
        assert any(
            not value.strip() or value.strip().lower().startswith("xmpp:") or "\0" in value for _, value in pairs
        )
        return
    assert view.order is order
    assert canonical(view) == canonical(from_canonical(canonical(view)))
    assert from_canonical(canonical(view)) == view


@given(VIEWS, st.frozensets(TEXT, max_size=4), st.frozensets(TEXT, max_size=4), st.sampled_from(LastChange))
def test_filter_of_a_view_never_takes_in_more_than_the_view_without_one_of_its_filters(
    view: View, people: frozenset[str], found: frozenset[str], change: LastChange
) -> None:
    """[SF-015]"""
    version = Traits(entry_facets(EntryMeta(people, found, people)) | {f"k:{change.value}"}, found)
    if in_view(view, version, publishers=True):
        for left_out in view.filters:
            fewer = tuple(one for one in view.filters if one != left_out)
            assert in_view(replace(view, filters=fewer), version, publishers=True)


@given(KEYS)
def test_time_is_read_back_from_t_and_sorts_like_its_number(time_us: int) -> None:
    """[SF-104]"""
    text = format_t(time_us)
    assert parse_t(text) == parse_time(text) == time_us
    assert not ("." in text and text.endswith("0"))


@given(st.datetimes(min_value=datetime(1, 1, 2), max_value=datetime(9999, 12, 30)))  # noqa: DTZ001
def test_time_is_read_back_from_a_datetime(moment: datetime) -> None:
    """[xep-map 32]"""
    time_us = (moment.replace(tzinfo=UTC) - datetime(1970, 1, 1, tzinfo=UTC)).total_seconds()
    assume(abs(time_us) < 2**40)
    exact = round(time_us * 1_000_000)
    assert parse_datetime(format_datetime(exact)) == exact


@given(st.text(max_size=60))
def test_text_is_refused_or_comes_back_from_a_parser(text: str) -> None:
    """[xep-map 55]"""
    if is_xml_text(text):
        element = etree.fromstring(f"<a b='{attribute(text)}'>{escape(text)}</a>")
        assert (element.get("b"), element.text or "") == (text, text)


@given(ANY)
def test_jid_in_its_compared_form_is_itself(text: str) -> None:
    """[xep-map 20]"""
    found = parse_jid(text)
    if found is not None and is_xml_text(str(found)):
        assert parse_jid(str(found)) == found


@given(st.sampled_from(NodeKind), FORMS)
def test_options_of_any_form_are_applied_or_refused_and_stay_so(kind: NodeKind, submitted: dict[str, Any]) -> None:
    """[xep-map 67]"""
    limits = OptionLimits()
    try:
        options = NodeOptions(kind).apply(submitted, limits)
    except FeedError:
        return
    again = {f"pubsub#{var}": values for var, values in options.stored.items()}
    assert options.apply(again, limits) == options
    assert options.unmet(again, limits) is None


@given(st.sampled_from(NodeKind), FORMS)
def test_subscription_options_of_any_form_are_applied_or_refused(kind: NodeKind, submitted: dict[str, Any]) -> None:
    """[xep-map 127]"""
    try:
        options = apply_subscription(kind, {}, submitted, 0)
    except FeedError:
        return
    assert set(options) <= set(SUBSCRIBE_OPTIONS)


MAYBE = st.none() | st.sampled_from(["", "0", "1", "7", "999", "-1", "x"])


@given(st.none() | st.builds(ResultSetRequest, MAYBE, MAYBE, MAYBE, MAYBE), MAYBE, st.booleans())
def test_plan_of_any_request_is_bounded_or_a_feed_error(
    request: ResultSetRequest | None, max_items: str | None, descending: bool
) -> None:
    """[xep-map 200] [xep-map 201]"""
    try:
        made = plan(request, max_items, page_default=50, page_max=100, descending=descending)
    except FeedError:
        return
    assert 0 <= made.limit <= 100 and made.offset >= 0 and made.descending is descending
