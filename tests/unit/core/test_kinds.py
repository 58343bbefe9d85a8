"""The kind of a node from a form: a pure function of any values."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smartfeeds.core.kinds import GENERIC_REASONS, decide_kind
from smartfeeds.core.options import KIND, OPTIONS, PUBSUB, FormFields, NodeKind, NodeOptions, OptionLimits
from smartfeeds.errors import Condition, FeedError

FEED, GENERIC = NodeKind.FEED, NodeKind.GENERIC
LIMITS = OptionLimits(max_items=100)
TEXTS = st.sampled_from(["", "0", "1", "99", "100", "max", "true", "false", "generic", "feed", "urn:x", "١", "9" * 30])
FORMS = st.dictionaries(
    st.sampled_from([KIND, *(PUBSUB + name for name in OPTIONS), "max_items"]),
    st.lists(TEXTS | st.text(max_size=5), max_size=3).map(tuple),
)


@pytest.mark.parametrize(
    ("form", "foreign", "kind"),
    [
        ({}, False, FEED),
        ({}, True, GENERIC),
        ({KIND: ("feed",)}, True, FEED),
        ({KIND: ("",), "pubsub#max_items": ("1",)}, False, GENERIC),
        ({"pubsub#max_items": ("99",)}, False, GENERIC),
        ({"pubsub#max_items": ("100",)}, False, FEED),
        ({"pubsub#max_items": ("0",)}, False, FEED),
        ({"pubsub#max_items": ("99", "99")}, False, GENERIC),
        ({"max_items": ("1",)}, False, FEED),
        ({"pubsub#item_expire": ("1",)}, False, GENERIC),
        ({"pubsub#item_expire": ("",)}, False, FEED),
        ({"pubsub#persist_items": (" 0 ",)}, False, GENERIC),
        ({"pubsub#persist_items": ("maybe",)}, False, FEED),
        ({"pubsub#type": ("urn:xmpp:pubsub-social-feed:2",)}, False, FEED),
        ({"pubsub#type": ("urn:xmpp:pubsub-social-feedback",)}, False, GENERIC),
    ],
)
def test_decide_kind(form: FormFields, foreign: bool, kind: NodeKind) -> None:
    assert decide_kind(form, FEED, LIMITS, foreign=foreign) is kind
    assert decide_kind(form, GENERIC, LIMITS, foreign=foreign) is (FEED if KIND in form and form[KIND][0] else GENERIC)


@pytest.mark.parametrize("value", ["Feed", "collection", "x" * 10_000])
def test_decide_kind_of_an_unknown_kind_is_refused(value: str) -> None:
    with pytest.raises(FeedError) as caught:
        decide_kind({KIND: (value,)}, FEED, LIMITS)

    assert caught.value.condition is Condition.NOT_ACCEPTABLE
    assert len(caught.value.text) < 150


@given(FORMS)
def test_decide_kind_takes_any_form(form: FormFields) -> None:
    """Only the fields of the table decide, and the field of the kind before them."""
    form = {name: values for name, values in form.items() if name != KIND}

    assert decide_kind({**form, KIND: ("feed",)}, GENERIC, LIMITS) is FEED
    assert decide_kind(form, FEED, LIMITS) is FEED or not GENERIC_REASONS.keys().isdisjoint(form)
    assert decide_kind(form, GENERIC, LIMITS) is GENERIC


@given(FORMS)
def test_options_that_a_feed_accepts_never_make_a_generic_node(form: FormFields) -> None:
    """Except for the type, which is free text."""
    form = {name: values for name, values in form.items() if name not in (KIND, "pubsub#type")}
    try:
        NodeOptions(FEED).apply(form, LIMITS)
    except FeedError:
        return
    assert decide_kind(form, FEED, LIMITS) is FEED
