"""Odd stanzas: each request gets exactly one answer, nothing else gets one, and the log has no traceback.

The fixture reports second answers, answers to nothing and internal errors (`support.component`).
"""

import asyncio
from collections.abc import Iterator
from xml.sax.saxutils import quoteattr

import pytest
from structlog.testing import capture_logs
from structlog.typing import EventDict

from support.component import ALICE, DOMAIN, NS, PS, Component, Element, entry

pytestmark = pytest.mark.shared

PING = "<ping xmlns='urn:xmpp:ping'/>"
VERSION = "<query xmlns='jabber:iq:version'/>"
INFO = "<query xmlns='http://jabber.org/protocol/disco#info'/>"
ITEMS = f"<pubsub xmlns='{PS}'><items node='news'/></pubsub>"
LONG = "n" * 40_000


@pytest.fixture
def logs() -> Iterator[list[EventDict]]:
    """What is logged. No entry may have a traceback."""
    with capture_logs() as entries:
        yield entries
    assert [event for event in entries if event.get("exc_info") or event["log_level"] in ("error", "critical")] == []


# Type, content, and the condition of the answer; empty for a result.
REQUESTS = {
    "no child": ("get", "", "bad-request"),
    "text alone": ("set", "text", "bad-request"),
    "library's before ours": ("get", PING + ITEMS, "bad-request"),
    "ours before library's": ("get", ITEMS + PING, "bad-request"),
    "two of the library": ("get", PING + VERSION, "bad-request"),
    "two pings": ("get", PING * 2, "bad-request"),
    "two of ours": ("set", ITEMS * 2, "bad-request"),
    "disco and ping": ("get", INFO + PING, "bad-request"),
    "ping and unknown": ("get", PING + "<x xmlns='urn:x'/>", "bad-request"),
    "unknown and ping": ("get", "<x xmlns='urn:x'/>" + PING, "bad-request"),
    "ping and error": ("get", PING + "<error type='cancel'/>", "bad-request"),
    "text and child": ("get", f"text{PING}text", ""),
    "ping set": ("set", PING, "service-unavailable"),
    "ping with content": ("get", "<ping xmlns='urn:xmpp:ping'><x/>text</ping>", ""),
    "ping with names beyond ascii": ("get", "<ping xmlns='urn:xmpp:ping' é='1'><ns:é xmlns:ns='urn:x'/></ping>", ""),
    "ping with a prefix beyond ascii": ("get", "<é:ping xmlns:é='urn:xmpp:ping'/>", ""),
    "version with content": ("get", "<query xmlns='jabber:iq:version'><name>日</name><日 xmlns='urn:x'/></query>", ""),
    "ping with long names": ("get", f"<ping xmlns='urn:xmpp:ping'><{LONG}/></ping>", ""),
    "unknown name": ("get", "<é xmlns='urn:x'/>", "service-unavailable"),
    "name beyond ascii": ("get", "<ns:é xmlns:ns='urn:x'/>", "service-unavailable"),
    "name in han": ("set", "<日本 xmlns='urn:x'/>", "service-unavailable"),
    "combining name": ("set", "<e\u0301 xmlns='urn:x'/>", "service-unavailable"),
    "name beyond the first plane": ("set", "<\U00020000 xmlns='urn:x'/>", "service-unavailable"),
    "namespace beyond ascii": ("get", "<ns:x xmlns:ns='urn:é'/>", "not-acceptable"),
    "ping beside a namespace beyond ascii": ("get", "<ping xmlns='urn:xmpp:ping' xmlns:ns='urn:é'/>", "not-acceptable"),
    "namespace that is no uri": ("get", "<x xmlns='not a uri %%% :'/>", None),
    "no namespace": ("get", "<x xmlns=''/>", None),
    "colon in a name": ("get", "<ns:a.b-c xmlns:ns='urn:x'/>", "service-unavailable"),
    "long name": ("get", f"<{LONG} xmlns='urn:x'/>", "service-unavailable"),
    "attribute beyond ascii": ("get", "<x xmlns='urn:x' ns:é='日' xmlns:ns='urn:n'/>", "service-unavailable"),
    "pubsub beside an attribute beyond ascii": ("get", f"<pubsub xmlns='{PS}' é='1'><items node='news'/></pubsub>", ""),
    "child of pubsub beyond ascii": ("get", f"<pubsub xmlns='{PS}'><é/></pubsub>", None),
    "stanza in a stanza": ("get", "<iq xmlns='jabber:component:accept' type='get'/>", "service-unavailable"),
    "unknown type": ("fetch", PING, "bad-request"),
    "type in other letters": ("GET", PING, "bad-request"),
    "type beyond ascii": ("gét", PING, "bad-request"),
    "empty type": ("", PING, "bad-request"),
}


@pytest.mark.parametrize(("kind", "content", "condition"), REQUESTS.values(), ids=REQUESTS)
@pytest.mark.parametrize("to", [DOMAIN, f"news@{DOMAIN}"])
async def test_request_has_one_answer(
    component: Component, logs: list[EventDict], kind: str, content: str, condition: str | None, to: str
) -> None:
    """RFC 6120 8.2.3 and 8.3.3.1: a request has one child, and one answer."""
    await component.create(ALICE, "news")
    answer = await component.ask(ALICE, kind, content, to)
    await component.settle()
    if condition is not None:
        errors = [error.tag.rpartition("}")[2] for error in answer.iterfind("c:error/st:*", NS)]
        assert errors[:1] == ([condition] if condition else []), errors


@pytest.mark.parametrize(
    "attributes",
    ["xml:lang='x' ", "xml:lang='' ", f"xml:lang='{'q' * 3_000}' ", "xml:lang='de' é='1' ", "x:é='1' xmlns:x='urn:x' "],
)
async def test_request_with_odd_attributes_has_one_answer(
    component: Component, logs: list[EventDict], attributes: str
) -> None:
    for content in (PING, VERSION, INFO):
        stanza_id = f"q{len(component._asked)}"
        component._asked[stanza_id] = (ALICE, DOMAIN)
        component._answers[stanza_id] = answer = _future()
        await component.send(
            f"<iq {attributes}type='get' id='{stanza_id}' from={quoteattr(ALICE)} to='{DOMAIN}'>{content}</iq>"
        )
        await component.settle()
        assert answer.result().get("type") == "result"


def _future() -> "asyncio.Future[Element]":
    return asyncio.get_running_loop().create_future()


@pytest.mark.parametrize(
    "stanza",
    [
        "<iq type='result'{}/>",
        f"<iq type='result'{{}}>{PING}{ITEMS}</iq>",
        f"<iq type='result'{{}}>{VERSION}</iq>",
        "<iq type='error'{}/>",
        f"<iq type='error'{{}}>{PING}</iq>",
        "<iq type='error'{}><error/></iq>",
        "<iq type='result'{}><é xmlns='urn:日'/></iq>",
        f"<message{{}}>{PING}{VERSION}<event xmlns='{PS}#event'/><body>x</body></message>",
        "<message{}><ns:é xmlns:ns='urn:x'/><日 xmlns='urn:x'/></message>",
        "<message type='error'{}/>",
        "<message type='é'{}><body>x</body></message>",
        f"<presence{{}}>{PING}<é xmlns='urn:x'/><c xmlns='http://jabber.org/protocol/caps'/></presence>",
        "<presence type='é'{}/>",
        "<presence type='error'{}/>",
        "<é{}/>",
        "<x xmlns='urn:é'{}/>",
    ],
)
async def test_stanza_that_asks_nothing_has_no_answer(component: Component, logs: list[EventDict], stanza: str) -> None:
    """The fixture reports an answer to nothing."""
    await component.send(stanza.format(f" id='x' from={quoteattr(ALICE)} to='{DOMAIN}'"))
    assert await component.events(ALICE) == []


@pytest.mark.parametrize("name", ["ns:é", "ns:日本", "ns:e\u0301", "ns:\U00020000", "é:x"])
async def test_payload_with_names_beyond_ascii_is_stored_and_returned(component: Component, name: str) -> None:
    prefix = name.partition(":")[0]
    payload = f"<{name} xmlns:{prefix}='urn:x' {prefix}:ü='1'><{prefix}:ö/></{name}>"
    await component.create(ALICE, "plain")
    await component.publish(ALICE, "plain", "one", entry("one", payload))
    answer = await component.get(ALICE, "<items node='plain'/>")
    found = answer.find(f".//{{urn:x}}{name.partition(':')[2]}")
    assert found is not None and found.get("{urn:x}ü") == "1"


SPELLINGS = {
    "domain": (DOMAIN.upper(), DOMAIN),
    "one letter": (DOMAIN.capitalize(), DOMAIN),
    "node": (f"news@{DOMAIN.upper()}", f"news@{DOMAIN}"),
    "resource": (f"{DOMAIN.upper()}/x", f"{DOMAIN}/x"),
    "node and resource": (f"news@{DOMAIN.upper()}/X", f"news@{DOMAIN}/X"),
}


@pytest.mark.parametrize(
    ("kind", "content"),
    [
        ("get", PING),
        ("get", VERSION),
        ("get", INFO),
        ("get", ITEMS),
        ("get", "<x xmlns='urn:x'/>"),
        ("get", PING * 2),
        ("set", PING),
        ("fetch", PING),
        ("get", f"<x xmlns='{'u' * 60_000}'/>"),
    ],
)
@pytest.mark.parametrize(("to", "answered_from"), SPELLINGS.values(), ids=SPELLINGS)
async def test_answer_comes_from_the_address_as_the_component_spells_it(
    component: Component, kind: str, content: str, to: str, answered_from: str
) -> None:
    """[xep-map 7] Some servers end the link for a `from` of another domain (XEP-0114 section 3)."""
    await component.create(ALICE, "news")
    stanza_id = f"q{len(component._asked)}"
    component._asked[stanza_id] = (ALICE, answered_from)
    component._answers[stanza_id] = answer = _future()
    await component.send(
        f"<iq type='{kind}' id='{stanza_id}' from={quoteattr(ALICE)} to={quoteattr(to)}>{content}</iq>"
    )
    await component.settle()
    assert answer.done()
