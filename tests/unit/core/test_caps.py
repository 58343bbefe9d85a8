"""Verification strings of service discovery information (XEP-0115 section 5)."""

import pytest

from smartfeeds.core.caps import DiscoInfo, Identity

FEATURES = tuple(f"http://jabber.org/protocol/{name}" for name in ("muc", "disco#items", "disco#info", "caps"))
FORM = (
    "urn:xmpp:dataforms:softwareinfo",
    (
        ("software_version", ("0.11",)),
        ("software", ("Psi",)),
        ("os_version", ("10.5.1",)),
        ("os", ("Mac",)),
        ("ip_version", ("ipv6", "ipv4")),
    ),
)


def test_verification_strings_of_the_examples() -> None:
    """XEP-0115 sections 5.2 and 5.3."""
    simple = DiscoInfo((Identity("client", "pc", "", "Exodus 0.9.1"),), FEATURES)
    assert simple.verification("sha-1") == "QgayPKawpkPSDYmwT/WM94uAlu0="
    identities = (Identity("client", "pc", "en", "Psi 0.11"), Identity("client", "pc", "el", "Ψ 0.11"))
    assert DiscoInfo(identities, FEATURES, (FORM,)).verification("sha-1") == "q07IKJEyjvHSyhy//CH0CxmKi8w="


def test_unknown_hash_functions_have_no_verification_string() -> None:
    assert DiscoInfo((), ()).verification("crc-32") is None
    assert DiscoInfo((), ()).verification("sha-256") is not None


@pytest.mark.parametrize(
    "info",
    [
        DiscoInfo((Identity("a", "b", "", "x"), Identity("a", "b", "", "y")), ()),
        DiscoInfo((), ("a", "a")),
        DiscoInfo((), (), (FORM, FORM)),
    ],
)
def test_repeated_parts_are_ill_formed(info: DiscoInfo) -> None:
    """XEP-0115 section 5.4."""
    assert not info.is_well_formed


def test_requested_nodes_are_features_that_end_with_notify() -> None:
    info = DiscoInfo((), ("+notify", "news", "news+notify", "a+notify+notify", "b+notifyx"))
    assert info.notified_nodes == ("news", "a+notify")
