"""The examples of XEP-0060 (version 1.30.0) as rows: a request, its response, and the notifications that it causes.

The numbers are those of the examples in the XEP. `stage` prepares the nodes that the rows use, with the people of the
XEP. Every number of a section has a row, a test elsewhere that covers it, or the reason why the service never sends it.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest
from lxml import etree

from support.component import (
    NS,
    OWNER,
    PS,
    Component,
    Element,
    Refusal,
    Starter,
    bare,
    form,
    ok,
    refusal,
    submit,
    text_of,
)

HAMLET = "hamlet@denmark.lit/elsinore"
FRANCISCO = "francisco@denmark.lit/barracks"
BERNARDO = "bernardo@denmark.lit/watch"
POLONIUS = "polonius@denmark.lit/arras"
BARD = "bard@shakespeare.lit/globe"
TESTS = Path(__file__).parent.parent
NODE = "princely_musings"
IDS = ("368866411b877c30064a5f62b917cffe", "4e30f35051b7b8b42abe083742187228", "ae890ac52d0df67ed7cfdf51b644e901")
NOT_FOUND = Refusal("cancel", "item-not-found")
FORBIDDEN = Refusal("auth", "forbidden")
NO_NODE = Refusal("modify", "bad-request", "nodeid-required")
CLOSED = Refusal("cancel", "not-allowed", "closed-node")
PRESENCE = Refusal("auth", "not-authorized", "presence-subscription-required")
NOT_PERSISTENT = Refusal("cancel", "feature-not-implemented", "unsupported", "persistent-items")

# Why the service sends none of these responses.
SUBIDS = "one subscription of a JID to a node has no SubID (decision X3)"
SERVED = "the service supports the feature"
ROSTER = "a component cannot read roster groups"
PAYMENT = "the service knows no payment"
OPTIONAL = "no subscription requires its options"


def ps(inner: str) -> str:
    """A `<pubsub/>`."""
    return f"<pubsub xmlns='{PS}'>{inner}</pubsub>"


def own(inner: str) -> str:
    """A `<pubsub/>` of the owner."""
    return f"<pubsub xmlns='{OWNER}'>{inner}</pubsub>"


@dataclass(frozen=True, slots=True)
class Example:
    """A row. `answer` is the content of the result, or the error, or both for a request that is partly refused.

    `events` has the `<event/>` of the one message that each address receives. In an expected element "..." stands for
    further children, and the value "*" of an attribute for any value.
    """

    numbers: tuple[int, ...]
    request: str
    answer: str | Refusal | tuple[str, Refusal] = ""
    user: str = FRANCISCO
    kind: str = "set"
    events: Mapping[str, str] | None = None

    def __str__(self) -> str:
        return "-".join(map(str, self.numbers))

    @property
    def is_question(self) -> bool:
        """Whether the request changes nothing."""
        return (self.kind == "get" or isinstance(self.answer, Refusal)) and not self.events


def examples(rows: Sequence[Example]) -> pytest.MarkDecorator:
    """Runs a test for all rows that change nothing, and a test for each other row."""
    cases = [[row] for row in rows if not row.is_question]
    questions = [row for row in rows if row.is_question]
    return pytest.mark.parametrize("rows", [questions, *cases], ids=["questions", *(str(row) for (row,) in cases)])


async def stage(start: Starter) -> Component:
    """A component with the nodes that the rows name. Francisco is subscribed to the first, and waits for another."""
    component = await start(pubsub={"creators": ["denmark.lit"], "contacts": ["nobody.lit"]})
    for node, options in {
        NODE: {"title": "Princely Musings"},
        "authorize": {"access_model": "authorize"},
        "empty": {},
        "full": {"max_items": "1", "publish_node_full": "reject"},
        "last": {"send_last_published_item": "on_sub"},
        "notified": {"notify_config": "1", "notify_retract": "1", "deliver_payloads": "0"},
        "outcast": {},
        "presence": {"access_model": "presence"},
        "transient": {"persist_items": "0", "deliver_payloads": "0"},
        "unsubscribable": {"subscribe": "0"},
        "whitelist": {"access_model": "whitelist"},
    }.items():
        await component.create(HAMLET, node, **options)
    await component.create(HAMLET, "moved")
    moved = "<delete node='moved'><redirect uri='xmpp:feeds.example.org?;node=some-other-node'/></delete>"
    ok(await component.owner_set(HAMLET, moved))
    for item_id in IDS:
        await component.publish(HAMLET, NODE, item_id)
        component.clock.advance(1)
    for node in ("full", "last", "notified"):
        await component.publish(HAMLET, node, IDS[0])
    await component.affiliate(HAMLET, "outcast", FRANCISCO, "outcast")
    await component.affiliate(HAMLET, NODE, POLONIUS, "member")
    for user, node in ((FRANCISCO, NODE), (POLONIUS, NODE), (FRANCISCO, "notified"), (FRANCISCO, "authorize")):
        await component.subscribe(user, node)
    for user in (HAMLET, FRANCISCO, POLONIUS):
        await component.events(bare(user))
    return component


async def play(component: Component, rows: Iterable[Example]) -> None:
    """Sends the requests of rows and compares what follows."""
    for example in rows:
        try:
            await _play(component, example)
        except AssertionError as error:
            error.add_note(f"example {example} of XEP-0060")
            raise


async def _play(component: Component, example: Example) -> None:
    answer = await component.ask(example.user, example.kind, example.request)
    if isinstance(example.answer, Refusal):
        assert refusal(answer) == example.answer
        assert len(answer) == 1, text_of(answer)
    elif isinstance(example.answer, tuple):
        content, error = example.answer
        assert refusal(answer) == error
        assert_like(answer[0], content)
    elif example.answer:
        assert len(ok(answer)) == 1, text_of(answer)
        assert_like(answer[0], example.answer)
    else:
        assert len(ok(answer)) == 0, text_of(answer)
    for address, event in (example.events or {}).items():
        messages = await component.events(address)
        assert len(messages) == 1, [text_of(message) for message in messages]
        (element,) = messages[0].iterfind("ev:event", NS)
        assert_like(element, f"<event xmlns='{NS['ev']}'>{event}</event>")


def assert_like(element: Element, expected: str) -> None:
    """Fails unless an element has the shape of an expected one."""
    assert _is_like(element, etree.fromstring(expected)), f"{text_of(element)}\nis not like\n{expected}"


def _is_like(element: Element, expected: Element) -> bool:
    values = {name: element.get(name) if value == "*" else value for name, value in expected.attrib.items()}
    texts = [expected.text or "", *(child.tail or "" for child in expected)]
    children = iter(element)
    if element.tag != expected.tag or dict(element.attrib) != values or None in values.values():
        return False
    if "..." in "".join(texts):
        # The children that are named must be there, in this order.
        return all(any(_is_like(child, pattern) for child in children) for pattern in expected)
    same = len(element) == len(expected) and all(map(_is_like, children, expected))
    return same and (element.text or "").strip() == (expected.text or "").strip()


def assert_complete(
    first: int, last: int, rows: Iterable[Example], elsewhere: Mapping[int, str], never: Mapping[int, str]
) -> None:
    """Fails unless every example of a section has a row, a test elsewhere that exists, or a reason."""
    played = {number for row in rows for number in row.numbers}
    for number, place in elsewhere.items():
        name, _, test = place.partition("::")
        assert f"def {test}(" in (TESTS / name).read_text(), (number, place)
    numbers = [*played, *elsewhere, *never]
    assert sorted(numbers) == list(range(first, last + 1))


def config(**options: str | list[str]) -> str:
    """A submitted configuration form."""
    return form(f"{PS}#node_config", **options)


def sub_options(**options: str | list[str]) -> str:
    """A submitted form of subscription options, with `show-values` as in the XEP."""
    values = {f"pubsub#{name}": [value] if isinstance(value, str) else value for name, value in options.items()}
    presence = {"pubsub#show-values": ["chat", "online", "away"]}
    return submit({"FORM_TYPE": [f"{PS}#subscribe_options"]} | values | presence)


def form_of(form_type: str, kind: str) -> str:
    """The beginning of a data form of this type."""
    return (
        f"<x xmlns='jabber:x:data' type='{kind}'>"
        f"<field var='FORM_TYPE' type='hidden'><value>{PS}#{form_type}</value></field>...</x>"
    )


def item(item_id: str) -> str:
    """An item of Hamlet with some payload, as expected."""
    return f"<item id='{item_id}' publisher='hamlet@denmark.lit'>...</item>"
