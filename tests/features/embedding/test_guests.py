"""Replies of guests: what they write, the tokens of their forms, and their entries."""

import pytest

from smartfeeds.core.model import Item
from smartfeeds.core.times import US_PER_S
from smartfeeds.errors import Condition, FeedError
from smartfeeds.features.embedding.guests import (
    LEAST_AGE_S,
    MAX_NAME,
    MAX_TEXT,
    MOST_AGE_S,
    RATE,
    GuestForms,
    GuestLimits,
    GuestReply,
    ReplyState,
    clean_name,
    clean_text,
    entry_of,
)
from smartfeeds.formats.entry import read_entry
from smartfeeds.formats.payload import accept_payload
from smartfeeds.formats.xml import Element


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("Mara", "Mara"),
        ("  Mara \t\n Lee ", "Mara Lee"),
        ("José", "José"),
        ("Jose\u0301", "José"),
        ("مريم", "مريم"),
        ("می\u200cخواهم", "می\u200cخواهم"),
        ("Mara\u202egnirts", "Maragnirts"),
        ("\u2066Ma\u2069ra\u200b\u00ad\ufeff", "Mara"),
        ("Ma\u0000ra\x1b[31m", "Mara[31m"),
        ("Ma\u2028ra", "Ma ra"),
        ("<b>Mara</b>", "<b>Mara</b>"),
        ("Alice (owner)", "Alice (owner)"),
        ("7", "7"),
        ("M" * MAX_NAME, "M" * MAX_NAME),
    ],
)
def test_name_is_one_line_without_characters_that_hide_or_turn_it(text: str, name: str) -> None:
    assert clean_name(text) == name


@pytest.mark.parametrize(
    "text",
    [
        *("", "  ", "\u200b", "\u202e\u2066", "...", "\u0301", "()", "🙂", "\ud800", "\ue000"),
        *("M" * (MAX_NAME + 1), " " * 100_000 + "Mara", "Mara" + "\u200b" * 10_000, "M" * 1_000_000),
        *("alice@example.org", "alice\uff20example.org", "xmpp:alice@example.org"),
    ],
)
def test_name_that_shows_nothing_or_is_an_address_or_too_long_is_refused(text: str) -> None:
    with pytest.raises(FeedError) as failure:
        clean_name(text)

    assert failure.value.condition is Condition.BAD_REQUEST


@pytest.mark.parametrize(
    ("text", "cleaned"),
    [
        (" Good\r\nmorning\r", "Good\nmorning"),
        ("\u202eevil\u202c \u2067x\u2069", "evil x"),
        ("a\u0000\x07b\u2028c", "abc"),
        ("👩\u200d👧", "👩\u200d👧"),
        ("<script>alert(1)</script>", "<script>alert(1)</script>"),
        ("x" * MAX_TEXT, "x" * MAX_TEXT),
    ],
)
def test_text_stays_what_was_read(text: str, cleaned: str) -> None:
    assert clean_text(text) == cleaned


@pytest.mark.parametrize("text", ["", " \n ", "\u202e", "\x00", "x" * (MAX_TEXT + 1), "\ud800", "a\ufffe"])
def test_text_that_is_empty_or_too_long_or_no_text_is_refused(text: str) -> None:
    with pytest.raises(FeedError) as failure:
        clean_text(text)

    assert failure.value.condition is Condition.BAD_REQUEST


def reply(name: str = "Mara", text: str = "Good morning", target: str = "") -> GuestReply:
    return GuestReply("0", 1, ReplyState.WAITING, name, text, target, 0, 0)


def stored(entry: Element) -> Item:
    """The item of an entry."""
    return Item(1, "a", 0, 0, bytes(accept_payload(entry)), "")


def test_entry_names_a_guest_and_no_account() -> None:
    """A guest who types the name of the owner is still a guest."""
    entry = read_entry(stored(entry_of(reply("<Alice>", "<b>x</b> https://spam.example\nline", "tag:blog.example:1"))))

    (author,) = entry.authors
    assert (author.name, author.uri, author.email) == ("<Alice> (guest)", "", "")
    assert entry.content is not None and not entry.title.is_markup and not entry.content.is_markup
    assert (entry.title.value, entry.content.value) == ("<b>x</b> https://spam.example", "line")
    assert entry.links == []
    assert [(each.ref, each.href) for each in entry.replies_to] == [("tag:blog.example:1", "")]


@pytest.mark.parametrize(
    ("target", "href"),
    [
        ("https://blog.example/1?a=b#c", "https://blog.example/1?a=b#c"),
        ("javascript:alert(1)", ""),
        ("https://", ""),
        ("https://blog.example/ javascript:x", ""),
    ],
)
def test_only_a_web_address_becomes_a_link(target: str, href: str) -> None:
    entry = read_entry(stored(entry_of(reply(target=target))))

    assert [(each.ref, each.href) for each in entry.replies_to] == [(target, href)]


WORDS = ("Mara", "Good morning")  # what a guest writes


class Clock:
    """A clock that stands still."""

    now_us = 1_700_000_000 * US_PER_S

    def __call__(self) -> int:
        return self.now_us

    def advance(self, seconds: float) -> None:
        self.now_us += int(seconds * US_PER_S)


def test_token_is_valid_for_its_form_after_some_seconds_and_for_a_day() -> None:
    clock = Clock()
    forms = GuestForms(b"key", clock)
    token = forms.token(7, "a")
    with pytest.raises(FeedError, match="very fast"):
        forms.reply_id(token, 7, "a", *WORDS)
    clock.advance(LEAST_AGE_S)
    reply_id = forms.reply_id(token, 7, "a", *WORDS)
    clock.advance(MOST_AGE_S - LEAST_AGE_S)
    assert forms.reply_id(token, 7, "a", *WORDS) == reply_id

    clock.advance(1)
    with pytest.raises(FeedError, match="too old"):
        forms.reply_id(token, 7, "a", *WORDS)


def test_one_form_with_other_words_is_another_reply() -> None:
    clock = Clock()
    forms = GuestForms(b"key", clock)
    token, other = forms.token(7, "a"), forms.token(7, "a")
    clock.advance(60)

    written = [(token, *WORDS), (token, "Mara", "Good evening"), (token, "Maria", WORDS[1]), (other, *WORDS)]
    written += [(token, "Mara Good", "morning"), (token, "Mara", "Good\nmorning")]
    ids = {forms.reply_id(form, 7, "a", name, text) for form, name, text in written}
    assert len(ids) == len(written)
    assert {forms.reply_id(form, 7, "a", name, text) for form, name, text in written} == ids


@pytest.mark.parametrize(
    ("node_no", "target", "key"), [(8, "a", b"key"), (7, "b", b"key"), (7, "", b"key"), (7, "a", b"other")]
)
def test_token_of_another_form_is_refused(node_no: int, target: str, key: bytes) -> None:
    clock = Clock()
    token = GuestForms(b"key", clock).token(7, "a")
    clock.advance(60)

    with pytest.raises(FeedError, match="too old"):
        GuestForms(key, clock).reply_id(token, node_no, target, *WORDS)


def test_changed_token_is_refused() -> None:
    clock = Clock()
    forms = GuestForms(b"key", clock)
    token = forms.token(7, "a")
    clock.advance(60)
    made, nonce, signature = token.split("-")

    changed = (
        *("", "-", token.upper(), f"{token} ", f"{token}\n", token[:-1], "\ud800", "0" * 100_000),
        f"{int(made) + 30}-{nonce}-{signature}",
        f"{int(made) - 30}-{nonce}-{signature}",
        f"{made}-{nonce[:-1]}{'0' if nonce[-1] != '0' else '1'}-{signature}",
        f"9{'9' * 11}-{nonce}-{signature}",
    )
    for text in changed:
        with pytest.raises(FeedError):
            forms.reply_id(text, 7, "a", *WORDS)
    assert len({forms.token(7, "a") for _ in range(100)}) == 100
    assert b"key".decode() not in repr(forms)


def test_rate_is_that_of_a_network() -> None:
    """A guest who chooses another host part of an IPv6 address may send no more than before."""
    clock = Clock()
    limits = GuestLimits(clock)
    for number in range(int(RATE.burst)):
        limits.check(f"2001:db8::{number}")
    with pytest.raises(FeedError) as failure:
        limits.check("2001:db8::ffff:1")
    assert failure.value.condition is Condition.BUSY
    limits.check("2001:db8:0:1::1")
    limits.check("192.0.2.1")

    clock.advance(1 / RATE.per_s)
    limits.check("2001:db8::1")
