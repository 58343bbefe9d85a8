"""The spellings in which a text names a person."""

from urllib.parse import quote

import pytest

from smartfeeds.core.jid import parse_jid
from smartfeeds.core.person import Person
from smartfeeds.errors import ConfigError
from smartfeeds.service.syncing import endpoint

BOB = Person("bob@example.org")


@pytest.mark.parametrize(
    "text",
    [
        "bob@example.org",
        "Bob@Example.ORG/phone",
        "xmpp:bob@example.org?;node=blog",
        quote("bob@example.org", safe=""),
        quote(quote("xmpp:bob@example.org", safe=""), safe=""),
        "bob\\40example.org@gateway.example",
        "bob@example.org-1",
        "mail bob@example.org.",
        "bob@example.org.png",
        "/feeds/bob@example.org.atom?max=5",
    ],
)
def test_spellings_name_the_person(text: str) -> None:
    """[OPS-004] A JID, an address with it, its percent-encodings, its escaped form, and names of files."""
    assert BOB.is_in(text)
    assert BOB.is_in(text.encode())
    assert not BOB.is_in(BOB.replaced(text, "feeds.example.org"))


@pytest.mark.parametrize(
    "text",
    [
        "kbob@example.org",
        "bob@example.org.uk",
        "bob@example.organic",
        "rob@example.org",
        "bob at example.org",
        "\u00e9bob@example.org",
        "feeds.example%2F%C3%A9bob@example.org",
        quote(quote("feeds.example/\u00e9bob@example.org", safe=""), safe=""),
        quote("x+bob@example.org", safe=""),
        "feeds.example%2Fbob@example.org%C3%A9.net",
        "bob@example.org-sales.net",
    ],
)
def test_other_addresses_do_not(text: str) -> None:
    """[OPS-004] The rows of a namesake must stay."""
    assert not BOB.is_in(text)
    assert BOB.replaced(text, "x") == text


# Local parts may contain signs that separate an address from the text around it (RFC 7622 section 3.3.1).
NAMESAKES = [
    "x!bob@example.org",
    "x=bob@example.org",
    "\u00e9bob@example.org",
    "x%21bob@example.org",
    "x%2fbob@example.org",
    "?bob@example.org",
    "bob@example.org-sales.net",
    "bob@example.org.md",
]


@pytest.mark.parametrize("jid", NAMESAKES)
@pytest.mark.parametrize("encodings", [0, 1])
def test_namesakes_keep_their_endpoints(jid: str, encodings: int) -> None:
    """[OPS-023] The endpoint of another person is never that of this person, also encoded once more on the way."""
    assert parse_jid(jid) is not None
    by = endpoint("feeds.example", jid)
    for _ in range(encodings):
        by = quote(by, safe="")

    assert not BOB.is_endpoint(by)
    assert Person(jid).is_endpoint(by)
    assert not BOB.has_address(jid)


@pytest.mark.parametrize(
    "by",
    [
        endpoint("feeds.example", "bob@example.org"),
        quote(endpoint("feeds.example", "bob@example.org/phone"), safe=""),
        "feeds.example/Bob@example.org",
        "bob@example.org",
        "xmpp:bob@example.org?;node=blog",
        "gateway.example%2Fbob%5C40example.org@gateway.example",
        "Bob <bob@example.org>",
    ],
)
def test_endpoints_of_the_person(by: str) -> None:
    """[OPS-023] Endpoints of this service, and those that other services write."""
    assert BOB.is_endpoint(by)


def test_letters_beyond_ascii() -> None:
    """[OPS-004] The text that searches use first must be a part of each spelling."""
    person = Person("zo\u00eb@example.org")

    assert person.hint == ""
    assert person.is_in(f"urn:{quote(person.jid, safe='')}")


@pytest.mark.parametrize("text", ["example.org", "bob@example.org/phone", "@", ""])
def test_a_person_is_a_bare_jid(text: str) -> None:
    with pytest.raises(ConfigError, match="bare JID of a person"):
        Person(text)


ALICE = Person("alice@users.test")
# What stands before and behind the address, in ids, addresses and texts.
CERTAIN = [
    "alice@users.test",
    "ALICE@Users.TEST",
    "alice@users.test/phone",
    "xmpp:alice@users.test?;node=blog",
    "mailto:alice@users.test",
    "Alice <alice@users.test>",
    "&lt;alice@users.test&gt;",
    "tag:x.example,2026:alice@users.test",
    "urn:x:alice@users.test:1",
    "a/alice@users.test/b",
    "a,alice@users.test;b",
    "id=alice@users.test&x=1",
    "alice@users.test-1",
    "alice@users.test.png",
    "alice@users.test.",
    "alice%40users.test",
    "x%2Falice%40users.test%2F1",
    quote(quote("x/alice@users.test/1", safe=""), safe=""),
    "alice\\40users.test@gateway.example",
]
JOINED = [
    *(f"{text}alice@users.test" for text in ("post_", "post-", "post.", "post+", "_", "-", "1_", "2026-11-")),
    *(f"alice@users.test{text}" for text in ("_1", "_", "_post", ".1", ".2026", "_a-b")),
    "post%5Falice%40users.test",
    "post%2Dalice%40users.test",
    "post%252Dalice%2540users.test",
    "post_ALICE@USERS.TEST",
    "tag:x.example,2026:post_alice@users.test/1",
    "alice@users.test%5F1",
]
OTHERS = [
    *(f"{text}alice@users.test" for text in ("m", "1", "\u00e9", "post_m", "%C3%A9")),
    *(f"alice@users.test{text}" for text in (".example", "s", "1", "-sales.net", "_sales.net", ".1.net", "%2Eexample")),
    "alice@user.test",
    "alice.users.test",
]


@pytest.mark.parametrize("text", CERTAIN)
def test_address_that_stands_alone_names_the_person(text: str) -> None:
    """[OPS-004]"""
    assert ALICE.is_in(text) and ALICE.may_be_in(text)
    assert ALICE.is_in(text.encode()) and ALICE.may_be_in(text.encode())


@pytest.mark.parametrize("text", JOINED)
def test_address_that_is_joined_to_other_text_may_be_that_of_somebody_else(text: str) -> None:
    """[OPS-004] [OPS-022] `post_alice@users.test` may be Alice's address behind a word, or that of `post_alice`."""
    assert ALICE.may_be_in(text) and ALICE.may_be_in(text.encode())
    assert not ALICE.is_in(text)
    assert ALICE.replaced(text, "x") == text


@pytest.mark.parametrize("text", OTHERS)
def test_letters_digits_and_labels_continue_an_address(text: str) -> None:
    """[OPS-004]"""
    assert not ALICE.may_be_in(text)
    assert not ALICE.is_in(text)


@pytest.mark.parametrize("text", ["alice@host-1", "post_alice@host", "alice@host_1"])
def test_domain_of_one_label_may_be_joined_too(text: str) -> None:
    """[OPS-004] A hyphen continues such a domain."""
    person = Person("alice@host")

    assert person.may_be_in(text) and not person.is_in(text)
    assert not person.may_be_in("alice@host-1.example") and not person.may_be_in("malice@host")
