"""Addresses on real servers: what they deliver to one account is one user here, and nothing else is."""

from xml.sax.saxutils import quoteattr

from smartfeeds.core.jid import parse_jid
from support.client import ClientFactory
from support.servers import TestServer

ACCOUNT = "strasse-fi-σίσυφοσ"
SPELLINGS = [
    "strasse-fi-σίσυφοσ@localhost",
    "Strasse-FI-Σίσυφοσ@LOCALHOST",
    "Straße-ﬁ-ΣΊΣΥΦΟΣ@localhost",
    "STRASSE-fi-σίσυφος@ｌｏｃａｌｈｏｓｔ",
    "stra\u00adsse-fi-σι\u0301συφοσ@localhost",
    "ｓｔｒａｓｓｅ-fi-σίσυφοσ@localhost",
    "strasse-fi-σισυφοσ@localhost",
    "strase-fi-σίσυφοσ@localhost",
    "strasse-fı-σίσυφοσ@localhost",
    "strasse-fi-σίσυφοσ\u200e@localhost",
    "strasse-fi-σίσυφοσ\u2028@localhost",
    "strаsse-fi-σίσυφοσ@localhost",
]


async def test_spellings_of_one_address_are_one_user(server: TestServer, client: ClientFactory) -> None:
    """[xep-map 20] Both servers apply the stringprep profiles of RFC 6122."""
    alice, other = await client(server, "alice"), await client(server, ACCOUNT)

    await other.settle()  # its presence has to be there first
    for spelling in SPELLINGS:
        alice.send_raw(f"<message type='chat' to={quoteattr(spelling)}><body>{spelling}</body></message>")
    await alice.settle()
    await other.settle()

    delivered = {message.findtext("{jabber:client}body", "") for message in other.messages}
    account = parse_jid(other.bare)
    assert account is not None
    same = {spelling for spelling in SPELLINGS if (jid := parse_jid(spelling)) is not None and jid.bare == account}
    assert delivered == same
    assert len(same) == 6


DOMAINS = [
    "bücher.localhost",
    "BÜCHER.localhost",
    "bu\u0308cher.localhost",
    "xn--bcher-kva.localhost",
    "XN--BCHER-KVA.localhost",
    "straße.localhost",
    "xn--strae-oqa.localhost",
    "ﬁ.localhost",
]


async def test_a_label_and_u_label_of_a_domain_are_two_domains(prosody: TestServer, client: ClientFactory) -> None:
    """[xep-map 20] Servers apply Nameprep and no ToASCII, and so does the service.

    Prosody writes the domain of a bounce as it compares it. ejabberd shows it in its log only.
    """
    alice = await client(prosody, "alice")

    for domain in DOMAINS:
        address = quoteattr(f"x@{domain}")
        alice.send_raw(f"<message type='chat' to={address}><body>x</body></message>")
    bounces = [await alice.next_message() for _ in DOMAINS]

    assert {bounce.get("type") for bounce in bounces} == {"error"}
    found = {str(bounce.get("from")).partition("@")[2] for bounce in bounces}
    assert found == {jid.domain for domain in DOMAINS if (jid := parse_jid(f"x@{domain}")) is not None}
    assert len(found) == 5
