"""The spellings in which a text names a person."""

from urllib.parse import quote

import pytest

from smartfeeds.core.person import Person
from smartfeeds.errors import ConfigError

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
    "text", ["kbob@example.org", "bob@example.org.uk", "bob@example.organic", "rob@example.org", "bob at example.org"]
)
def test_other_addresses_do_not(text: str) -> None:
    """[OPS-004] The rows of a namesake must stay."""
    assert not BOB.is_in(text)
    assert BOB.replaced(text, "x") == text


def test_letters_beyond_ascii() -> None:
    """[OPS-004] The text that searches use first must be a part of each spelling."""
    person = Person("zo\u00eb@example.org")

    assert person.hint == ""
    assert person.is_in(f"urn:{quote(person.jid, safe='')}")


@pytest.mark.parametrize("text", ["example.org", "bob@example.org/phone", "@", ""])
def test_a_person_is_a_bare_jid(text: str) -> None:
    with pytest.raises(ConfigError, match="bare JID of a person"):
        Person(text)
