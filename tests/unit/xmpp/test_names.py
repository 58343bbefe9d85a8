"""The bound on the names that the process learns (xep-map 246; design section 3)."""

import random
from functools import cache

import pytest

from smartfeeds.xmpp import namespaces, vocabulary
from smartfeeds.xmpp.decode import ACTIONS
from smartfeeds.xmpp.names import BUDGET_BYTES, DOMAIN_SHARE, SENDER_SHARE, NameGuard, names_in
from smartfeeds.xmpp.parsing import NEW_NAMES, StanzaParser

HEADER = b"<s:stream xmlns='jabber:component:accept' xmlns:s='http://etherx.jabber.org/streams'>"
KNOWN = b"<iq id='k' from='a@b/c'><pubsub xmlns='http://jabber.org/protocol/pubsub'><publish node='n'/></pubsub></iq>"


def stanza(sender: str, first: int, names: int) -> bytes:
    """A stanza with new names."""
    inner = "".join(f"<n{number}/>" for number in range(first, first + names))
    return f"<iq id='f' from='{sender}'>{inner}</iq>".encode()


def always() -> float:
    """The chance with which each stanza is counted."""
    return 0.0


def seeded() -> NameGuard:
    return NameGuard(chance=random.Random(7).random)


def learnt_bytes(names: NameGuard, frames: list[bytes]) -> int:
    """What the parser would keep of these stanzas."""
    return len(b"".join(set().union(*(names_in(frame) for frame in frames if names.admits(frame)))))


def sent(names: NameGuard, sender: str, count: int, each: int, first: int = 0) -> list[bool]:
    """Whether each of `count` stanzas with `each` new names was admitted."""
    return [names.admits(stanza(sender, first + number * each, each)) for number in range(count)]


def test_names_flood_of_one_sender_costs_nobody_else() -> None:
    """[xep-map 246]"""
    names = NameGuard(budget_bytes=SENDER_SHARE * 60_000)
    parser = StanzaParser(HEADER, names)

    flood = [stanza("eve@elsewhere/1", number * 2_000, 2_000) for number in range(5)]
    cut = [[child.text for child in element if child.tag.endswith("}cut")] for element in parser.parse(flood)]

    assert cut == [[], [NEW_NAMES], [NEW_NAMES], [NEW_NAMES], [NEW_NAMES]]
    assert [len(element) for element in parser.parse([KNOWN])] == [1]
    assert names.admits(stanza("bob@elsewhere/1", 100_000, 1_000))
    assert not names.admits(stanza("eve@elsewhere/2", 200_000, 1_000)), "another resource is the same sender"
    assert not names.exhausted


def test_names_domain_has_a_share_too() -> None:
    names = NameGuard(budget_bytes=4_000_000, chance=always)
    admitted = [all(sent(names, f"u{user}@flood", 2, 1_000, 100_000 + user * 2_000)) for user in range(SENDER_SHARE)]

    assert admitted == sorted(admitted, reverse=True)
    assert SENDER_SHARE / DOMAIN_SHARE <= admitted.count(True) < SENDER_SHARE
    assert names.admits(stanza("alice@home", 9_000_000, 500))


def test_names_all_used_up_refuses_new_ones_and_admits_known_ones() -> None:
    names = NameGuard(budget_bytes=100_000)
    for number in range(SENDER_SHARE * 4):
        names.admits(stanza(f"u@d{number}", number * 1_000, 50) + b" " * 10_000)

    assert names.exhausted
    assert names.admits(stanza("alice@home", 0, 50))
    assert not names.admits(stanza("alice@home", 9_000_000, 1))


@pytest.mark.parametrize("each", [1, 10, 200, 600])
def test_names_flood_of_short_stanzas_is_bounded_however_it_is_timed(each: int) -> None:
    """Harmless stanzas between the others do not hide them [xep-map 246]."""
    names = seeded()
    harmless = b"<message from='eve@elsewhere/1'/>"
    frames = [
        frame
        for turn in range(30_000 // (63 * each) + 2)
        for frame in (*(stanza("eve@elsewhere", (turn * 63 + number) * each, each) for number in range(63)), harmless)
    ]

    assert learnt_bytes(names, frames) < 2 * BUDGET_BYTES // SENDER_SHARE
    assert names.admits(stanza("alice@elsewhere", 99_000_000, 5))


def test_names_pauses_after_a_refusal_open_nothing() -> None:
    """Who has used up a share brings no name past it, however many known ones come between [xep-map 246]."""
    names = seeded()
    learnt_bytes(names, [stanza("eve@elsewhere", number * 500, 500) for number in range(200)])

    for round_ in range(50):
        assert all(names.admits(b"<message from='eve@elsewhere/1'/>") for _ in range(600))
        assert not names.admits(stanza("eve@elsewhere", 9_000_000 + round_ * 600, 600))


def test_names_of_ever_new_senders_are_bounded_by_their_domain() -> None:
    """Many users with one short stanza each [xep-map 246]."""
    names = seeded()
    frames = [stanza(f"u{number}@flood", number * 200, 200) for number in range(4_000)]

    assert learnt_bytes(names, frames) < BUDGET_BYTES // DOMAIN_SHARE
    assert names.admits(stanza("alice@home", 99_000_000, 5))


def test_names_over_http_are_bounded_too() -> None:
    """The same share, whatever the way [xep-map 246]."""
    names = seeded()
    bodies = [f"<entry>{''.join(f'<n{n}/>' for n in range(i, i + 300))}</entry>" for i in range(0, 300_000, 300)]

    admitted = [body for body in bodies if names.admits_of("eve@elsewhere", body.encode())]

    assert sum(map(len, admitted)) < 2 * BUDGET_BYTES // SENDER_SHARE
    assert not names.admits(stanza("eve@elsewhere", 9_000_000, 600))


def test_names_of_one_short_stanza_do_not_use_up_a_share() -> None:
    """A sample may cost far more than its names, but its sender can still bring some."""
    names = NameGuard(chance=always)
    assert all(sent(names, "alice@home", 8, 40))
    assert all(sent(names, "alice@home", 8, 40, 1_000))


def test_names_ordinary_text_and_values_cost_nothing() -> None:
    names = NameGuard(budget_bytes=SENDER_SHARE * 2_000, chance=always)
    for number in range(1_000):
        assert names.admits(
            b"<iq from='a@b' id='%d'><x a='v%d'>text a%d=b c%d=\"d\" &lt;y%d</x></iq>" % ((number,) * 5)
        )


@pytest.mark.parametrize(
    "content", ["<x xmlns:p{} = 'urn:n'/>", "<x xmlns='urn:n:{}'/>", "<x p{}='1'/>", "<p:x{} xmlns:p='u'/>"]
)
def test_names_of_every_kind_count(content: str) -> None:
    names = NameGuard(budget_bytes=100_000, chance=always)
    last = True
    for number in range(400):
        last = names.admits(f"<iq from='a@b'>{content.format(number)}</iq>".encode()) and last

    assert not last


ATOM = "<entry xmlns='http://www.w3.org/2005/Atom' xml:lang='en'><id>i</id><title type='text'>t</title>%s</entry>"
RSM = "<set xmlns='http://jabber.org/protocol/rsm'>%s</set>"
ORDINARY = {
    "a reply": ATOM % "<in-reply-to xmlns='http://purl.org/syndication/thread/1.0' ref='r' href='h' type='t'/>",
    "a reply with a prefix": ATOM % "<thr:in-reply-to xmlns:thr='http://purl.org/syndication/thread/1.0' ref='r'/>",
    "a deletion": ATOM % "<sync xmlns='http://feedsync.org/2007/feedsync' deleted='true' id='i'/>",
    "people and links": ATOM
    % "<author><name>n</name><uri>u</uri><email>e</email></author><link rel='alternate' href='h' type='t' title='t'/>",
    "markup": ATOM
    % "<content type='xhtml'><div xmlns='http://www.w3.org/1999/xhtml'><p class='c'><a href='h'/></p></div></content>",
    "pages": "".join(RSM % f"<{name}/>" for name in ("max", "after", "before", "index")),
    "an order": "<order xmlns='urn:xmpp:order-by:1' by='creation' desc='true'/>",
    "a form": "<x xmlns='jabber:x:data' type='submit'><field var='v' type='hidden' label='l'><value/></field></x>",
    "a ping": "<ping xmlns='urn:xmpp:ping'/>",
    "a version": "<query xmlns='jabber:iq:version'/>",
    "discovery": "<query xmlns='http://jabber.org/protocol/disco#info' node='n'/>"
    "<query xmlns='http://jabber.org/protocol/disco#items' node='n'/>",
    "affiliations": "<affiliation jid='j' affiliation='a'/><subscription jid='j' subscription='s' node='n' subid='i'/>",
    "items": "<items node='n' max_items='3'><item id='i'/></items><retract node='n' notify='1'/>",
    "a bounce": "<error type='cancel' code='503' by='b'>"
    "<gone xmlns='urn:ietf:params:xml:ns:xmpp-stanzas'/><text xmlns='urn:ietf:params:xml:ns:xmpp-stanzas'/></error>",
}


@pytest.mark.parametrize("content", ORDINARY.values(), ids=ORDINARY)
def test_names_of_ordinary_stanzas_pass_when_nobody_may_bring_new_ones(content: str) -> None:
    """Whoever floods first shuts nobody out [xep-map 246]."""
    names = used_up()

    assert names.admits(f"<iq id='i' type='set' from='alice@flood/r' to='feeds' xml:lang='en'>{content}</iq>".encode())


@pytest.mark.parametrize("action", ACTIONS)
def test_names_of_every_request_pass_when_nobody_may_bring_new_ones(action: tuple[str, str]) -> None:
    """[xep-map 246]"""
    namespace, _, name = action[1][1:].partition("}")
    inner = f"<pubsub xmlns='{namespace}'><{name} node='n' jid='j'/></pubsub>"

    assert used_up().admits(f"<iq id='i' type='set' from='alice@flood/r' to='feeds'>{inner}</iq>".encode())


def test_names_namespaces_of_ours_are_ordinary() -> None:
    values = {value for name, value in vars(namespaces).items() if name.isupper()}

    assert values == {value for value in values if f"='{value}'".encode() in vocabulary.WRITTEN}


@cache
def used_up() -> NameGuard:
    """A guard after a flood by many users of one domain."""
    names = NameGuard(budget_bytes=100_000)
    for each in (50, 10, 1):
        for number in range(SENDER_SHARE * 4):
            names.admits(stanza(f"u{number}@flood", number * 1_000 + each * 1_000_000, each) + b" " * 10_000)
    assert not names.admits(stanza("alice@flood", 99_000_000, 1) + b" " * 10_000)
    return names
