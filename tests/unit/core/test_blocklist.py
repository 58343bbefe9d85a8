"""Spellings of an address that an entry of a block list must match."""

import pytest

from smartfeeds.core.blocklist import same_addresses
from smartfeeds.core.jid import Jid

LETTERS, ACE = "b\u00fccher.\u0440\u0444", "xn--bcher-kva.xn--p1ai"


@pytest.mark.parametrize("domain", [LETTERS, ACE, "b\u00fccher.xn--p1ai", "xn--bcher-kva.\u0440\u0444"])
def test_domain_has_one_entry_for_all_spellings(domain: str) -> None:
    """[OPS-061] A server can prove that it is either of them."""
    jids = same_addresses(Jid("eve", domain))

    assert jids[0] == Jid("eve", domain)
    assert {Jid("eve", LETTERS), Jid("eve", ACE)} <= set(jids)


@pytest.mark.parametrize("domain", ["example.org", "xn--", "xn--a", "xn--abc-", "xn--BCHER-kva", "x--n"])
def test_other_domains_have_one_spelling(domain: str) -> None:
    """[OPS-061]"""
    assert same_addresses(Jid("eve", domain)) == (Jid("eve", domain),)


def test_label_of_another_domain_is_no_spelling() -> None:
    """[OPS-061] These letters are normalised to others, which name another domain: it may be on the list of those who
    are admitted."""
    label = "xn--" + "B\u00dcCHER".encode("punycode").decode()
    assert same_addresses(Jid("eve", f"{label.lower()}.example")) == (Jid("eve", f"{label.lower()}.example"),)
