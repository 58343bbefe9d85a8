"""Conditions as stanza errors (RFC 6120 8.3; XEP-0060)."""

import pytest
from lxml import etree

from smartfeeds.errors import Condition, FeedError, unsupported
from smartfeeds.service.requests import SetSubscribeOptions, Unsubscribe
from smartfeeds.xmpp.stanza_errors import STANZA_ERRORS, encode_error
from unit.xmpp.wire import ERR, STANZAS, canonical

# The error types of xep-map 1.1, as the examples of XEP-0060 have them, and RFC 6120 8.3.3 for the others.
TYPES = {
    "bad-request": "modify",
    "conflict": "cancel",
    "feature-not-implemented": "cancel",
    "forbidden": "auth",
    "gone": "modify",
    "internal-server-error": "cancel",
    "item-not-found": "cancel",
    "jid-malformed": "modify",
    "not-acceptable": "modify",
    "not-allowed": "cancel",
    "not-authorized": "auth",
    "policy-violation": "wait",
    "resource-constraint": "wait",
    "service-unavailable": "cancel",
    "unexpected-request": "cancel",
}


@pytest.mark.parametrize("condition", Condition)
def test_stanza_errors_every_condition_has_its_type_and_order(condition: Condition) -> None:
    """The defined condition first, then the text, then the pubsub condition [xep-map 17] [xep-map 18]."""
    error = etree.fromstring(encode_error(FeedError(condition, "a <text> & more", feature="x")))
    row = STANZA_ERRORS[condition]

    assert error.get("type") == TYPES[row.condition]
    assert [child.tag for child in error] == [
        f"{{{STANZAS}}}{row.condition}",
        f"{{{STANZAS}}}text",
        *([f"{{{ERR}}}{row.detail}"] if row.detail else []),
    ]
    assert error[1].text == "a <text> & more"


def test_stanza_errors_unsupported_names_the_feature() -> None:
    """[xep-map 19]"""
    assert canonical(encode_error(unsupported("config-node"))) == canonical(
        f"<error type='cancel'><feature-not-implemented xmlns='{STANZAS}'/>"
        f"<unsupported xmlns='{ERR}' feature='config-node'/></error>"
    )


def test_stanza_errors_new_address_that_no_stanza_can_contain_is_left_out() -> None:
    gone = FeedError(Condition.GONE, uri="xmpp:x@y?;node=\x07")

    assert canonical(encode_error(gone)) == canonical(f"<error type='modify'><gone xmlns='{STANZAS}'/></error>")


def test_stanza_errors_reader_who_is_not_subscribed_is_not_authorized() -> None:
    row = STANZA_ERRORS[Condition.NOT_SUBSCRIBED_READER]

    assert (row.type, row.condition, row.detail) == ("auth", "not-authorized", "not-subscribed")


@pytest.mark.parametrize(("request_type", "kind"), [(SetSubscribeOptions, "modify"), (Unsubscribe, "cancel")])
def test_stanza_errors_not_subscribed_depends_on_the_request(request_type: type, kind: str) -> None:
    """XEP-0060 6.3.4.2 and 6.2.3.2 [xep-map 18]."""
    error = etree.fromstring(encode_error(FeedError(Condition.NOT_SUBSCRIBED), request_type))

    assert error.get("type") == kind


def test_stanza_errors_text_that_xml_cannot_carry_is_left_out() -> None:
    error = etree.fromstring(encode_error(FeedError(Condition.BAD_REQUEST, "bell \x07")))

    assert [child.tag for child in error] == [f"{{{STANZAS}}}bad-request"]
