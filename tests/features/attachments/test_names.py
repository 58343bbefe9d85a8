"""Names of attachment nodes, and the reactions that are counted (XEP-0470)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smartfeeds.core.attachment_names import (
    ATTACHMENTS,
    SUMMARY,
    AttachmentTarget,
    attachment_names,
    canonical_name,
    is_reserved,
    summary_name,
    target_node,
    target_of,
)
from smartfeeds.features.attachments.requests import MAX_REACTIONS, countable_reactions

DOMAIN = "feeds.example"
NAMES = st.text(st.characters(blacklist_categories=("Cs",)), min_size=1, max_size=40)


@given(NAMES, NAMES)
def test_target_is_read_from_the_name_it_was_written_to(node: str, item_id: str) -> None:
    target = AttachmentTarget(DOMAIN, node, item_id)

    assert target_of(target.name) == target
    assert canonical_name(target.name) == target.name
    assert is_reserved(target.name, DOMAIN) and not is_reserved(target.name, "other.example")
    assert target_node(target.name, DOMAIN) == target_node(summary_name(node), DOMAIN) == node


@given(NAMES, NAMES, NAMES)
def test_names_of_the_attachments_of_a_node_are_in_one_range(node: str, item_id: str, other: str) -> None:
    first, last = attachment_names(DOMAIN, node)

    assert first < AttachmentTarget(DOMAIN, node, item_id).name < last
    assert (first < AttachmentTarget(DOMAIN, other, item_id).name < last) is (other == node)


@given(st.text(max_size=80))
def test_any_text_behind_the_prefix_is_a_target_or_none(text: str) -> None:
    for name in (text, f"{ATTACHMENTS}/{text}", f"{ATTACHMENTS}/xmpp:{text}", f"{SUMMARY}/{text}"):
        target = target_of(name)
        assert target is None or target_of(target.name) == target
        is_reserved(name, DOMAIN)


@pytest.mark.parametrize(
    "name",
    [
        "",
        "urn:xmpp:microblog:0",
        ATTACHMENTS,
        f"{ATTACHMENTS}/xmpp:{DOMAIN}",
        f"{ATTACHMENTS}/xmpp:{DOMAIN}?;node=a",
        f"{ATTACHMENTS}/xmpp:{DOMAIN}?;node=;item=b",
        f"{ATTACHMENTS}/xmpp:{DOMAIN}?;node=a;item=",
        f"{ATTACHMENTS}/xmpp:{DOMAIN}?;item=b;node=a",
        f"{ATTACHMENTS}/xmpp:@@?;node=a;item=b",
        f"{ATTACHMENTS}/xmpp:{DOMAIN}?;node=a;item={'&' * 400}",
    ],
)
def test_other_names_have_no_target(name: str) -> None:
    assert target_of(name) is None
    assert canonical_name(name) == name


@pytest.mark.parametrize(
    ("texts", "counted"),
    [
        (["👍", " 👍 ", "🎉"], ["👍", "🎉"]),
        (["", " ", "ok", "ü", "中", "👍 👍", "\u202e", "a" * 17, "👍" * 17], []),
        (["👨‍👩‍👧", "❤️", "1️⃣", "+1"], ["👨‍👩‍👧", "❤️", "1️⃣", "+1"]),
    ],
)
def test_reactions_are_short_and_have_no_letters(texts: list[str], counted: list[str]) -> None:
    assert countable_reactions(texts) == counted


def test_reactions_of_one_attachment_are_bounded() -> None:
    assert len(countable_reactions(chr(0x1F300 + number) for number in range(100))) == MAX_REACTIONS
