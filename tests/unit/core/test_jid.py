"""Addresses."""

import re

import pytest

from smartfeeds.core.jid import JID_PATTERN, Jid, parse_jid
from smartfeeds.core.stringprep import nodeprep, resourceprep


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("example.org", Jid("", "example.org")),
        ("Alice@Example.ORG", Jid("alice", "example.org")),
        ("alice@example.org/Home", Jid("alice", "example.org", "Home")),
        ("alice@example.org/a@b/c d", Jid("alice", "example.org", "a@b/c d")),
        ("example.org/x", Jid("", "example.org", "x")),
        ("example.org.", Jid("", "example.org")),
        ("[::1]", Jid("", "[::1]")),
        ("ÉLAN@例え.jp", Jid("élan", "例え.jp")),
        ("e\u0301lan@x", Jid("élan", "x")),
        ("a" * 1023 + "@x", Jid("a" * 1023, "x")),
        # What Prosody 0.12 (ICU) and ejabberd 23.01 make of these.
        ("Straße@MÜNCHEN.example", Jid("strasse", "münchen.example")),
        ("ΣΊΣΥΦΟΣ@x", Jid("σίσυφοσ", "x")),
        ("σίσυφος@x", Jid("σίσυφοσ", "x")),
        ("İstanbul@x", Jid("i\u0307stanbul", "x")),
        ("ﬁn@x", Jid("fin", "x")),
        ("Ａｌｉｃｅ@ｅｘａｍｐｌｅ.org", Jid("alice", "example.org")),
        *((f"ban@evil{dot}example", Jid("ban", "evil.example")) for dot in "\u3002\uff0e\uff61"),
        *((f"ban@evil.example{dot}", Jid("ban", "evil.example")) for dot in "\u3002\uff0e\uff61"),
        ("so\u00adft@x", Jid("soft", "x")),
        ("אב@x", Jid("אב", "x")),
        ("x@x/Büro\u00a0２", Jid("x", "x", "Büro 2")),
        ("x@x/ß", Jid("x", "x", "ß")),
        ("x@xn--strae-oqa.example", Jid("x", "xn--strae-oqa.example")),
        # Only Prosody accepts what Unicode 3.2 does not have.
        ("\u10a0@x/📱", Jid("\u10a0", "x", "📱")),
        ("\u04c0@x", Jid("\u04c0", "x")),
        ("\u023d@x", Jid("\u023d", "x")),
    ],
)
def test_parse_jid_gives_the_compared_form(text: str, expected: Jid) -> None:
    """[xep-map 20] [xep-map 21]"""
    assert parse_jid(text) == expected
    assert parse_jid(str(expected)) == expected
    assert re.fullmatch(JID_PATTERN, text) is not None


@pytest.mark.parametrize(
    "text",
    [
        *("", "@", "@x", "a@", "a@/r", "x/", "/r", ".", "a@b@c"),
        # Empty labels.
        *("a@x..", "a@.x", "a@x..y", "a@x\u3002.", "a@x.\uff0e", "a@x.\u00ad."),
        *("a b@x", "a@x y", "a<b@x", "a'@x", "a@x\0", "a@x/\x07"),
        *("a" * 1024 + "@x", "é" * 512 + "@x", "x" * 1024, "x/" + "r" * 1024),
        # Too long before the soft hyphens are removed, as in Prosody: the cost of preparing grows with the text.
        *("a\u00ad" * 600 + "@x", "x@" + "a\u00ad" * 600, "x/" + "r\u00ad" * 600),
        # Prohibited and bidirectional texts, and what becomes an "@" or a "/" or nothing.
        *("a\u2028@x", "a\ue000@x", "a\u200e@x", "aא@x", "א1@x", "א\u05b0@x", "\ud800@x", "x@x/\x7fé"),
        *("a＠b@x", "a@b＠c", "a／b@x", "a@b／c", "a\u3000b@x", "\u00ad@x", "x@\u00ad", "x@x/\u00ad"),
    ],
)
def test_parse_jid_of_a_malformed_address_gives_none(text: str) -> None:
    """[xep-map 20]"""
    assert parse_jid(text) is None


@pytest.mark.parametrize("text", ["", "@x", "a@", "x/", "/r", "a@b@c", "a b@x", "a<b@x", "a'@x", "a@x\0", "a@x/\x07"])
def test_pattern_of_schemas_excludes_what_no_address_has(text: str) -> None:
    """[xep-map 20] Delimiters, spaces and control characters; stringprep rejects other texts that match."""
    assert re.fullmatch(JID_PATTERN, text) is None


def test_bare_drops_only_the_resource() -> None:
    """[xep-map 84]"""
    full = Jid("alice", "example.org", "home")
    bare = Jid("alice", "example.org")

    assert full.bare == bare
    assert bare.bare is bare
    assert (str(full), str(bare), str(Jid("", "x", "r"))) == ("alice@example.org/home", "alice@example.org", "x/r")


@pytest.mark.parametrize("character", [chr(code) for code in range(0x80)], ids=ascii)
def test_ascii_is_read_without_the_tables_as_the_profiles_read_it(character: str) -> None:
    """[xep-map 20] A letter before it makes the character a part of the local part, or of the resource."""
    text = f"X{character}x"
    local, resource = parse_jid(f"{text}@y"), parse_jid(f"y/{text}")

    assert (None if local is None or local.resource else local.local) == nodeprep(text)
    assert (None if resource is None else resource.resource) == resourceprep(text)
