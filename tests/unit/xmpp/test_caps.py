"""Verification strings of service discovery information (XEP-0115 section 5)."""

import pytest

from smartfeeds.xmpp.caps import DiscoInfo, Identity

FEATURES = tuple(f"http://jabber.org/protocol/{name}" for name in ("muc", "disco#items", "disco#info", "caps"))
CLIENT = Identity("client", "pc", "", "Client")
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


@pytest.mark.parametrize(
    "forged",
    [
        DiscoInfo((Identity("client", "pc", "", "Client<a<news+notify<z"),), ()),
        DiscoInfo((CLIENT,), ("a<news+notify<z",)),
        DiscoInfo((CLIENT,), ("a",), (("news+notify", (("z", ()),)),)),
        DiscoInfo((CLIENT,), (), (("a", (("news+notify", ("z",)),)),)),
        DiscoInfo((CLIENT,), (), (("a<news+notify", (("z", ()),)),)),
    ],
)
def test_other_information_with_the_same_hash_is_ill_formed(forged: DiscoInfo) -> None:
    """XEP-0115 section 7: otherwise its sender could end the notifications of all users of a client."""
    honest = DiscoInfo((CLIENT,), ("a", "news+notify", "z"))
    assert forged.verification("sha-1") == honest.verification("sha-1")
    assert (honest.is_well_formed, forged.is_well_formed) == (True, False)


def test_feature_as_an_identity_is_ill_formed() -> None:
    """The parts of an identity are joined by slashes, which features also contain."""
    honest = DiscoInfo((CLIENT,), ("http://jabber.org/tune+notify",))
    forged = DiscoInfo((CLIENT, Identity("http:", "", "jabber.org", "tune+notify")), ())
    assert forged.verification("sha-1") == honest.verification("sha-1")
    assert (honest.is_well_formed, forged.is_well_formed) == (True, False)
