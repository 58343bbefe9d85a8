"""Ad-hoc commands through the whole component (XEP-0050; xep-map C, P)."""

import asyncio
from xml.sax.saxutils import quoteattr

import pytest
from lxml import etree

from support.commands import GREET, GREET_TYPE, REFUSE, TABLE, TIME, WITH_TABLE
from support.component import (
    ALICE,
    BOB,
    DATA,
    DOMAIN,
    INFO,
    ITEMS,
    NS,
    STANZAS,
    Component,
    Element,
    Refusal,
    Starter,
    fields,
    ok,
    refusal,
    submit,
    text_of,
)

CMD = "http://jabber.org/protocol/commands"
CNS = {**NS, "cmd": CMD}
BAD_REQUEST = ("modify", "bad-request")


@pytest.fixture
async def commanding(start: Starter, monkeypatch: pytest.MonkeyPatch) -> Component:
    """A component with the commands of the tests."""
    monkeypatch.setattr("smartfeeds.app.lifecycle.xmpp_side", lambda: WITH_TABLE)
    return await start()


def command(form: str = "", **attributes: str) -> str:
    """A `<command/>`; attributes that are empty are left out."""
    told = "".join(f" {name}={quoteattr(value)}" for name, value in attributes.items() if value)
    return f"<command xmlns='{CMD}'{told}>{form}</command>"


async def send(
    component: Component, form: str = "", user: str = BOB, to: str = DOMAIN, node: str = GREET.node, **more: str
) -> Element:
    """The answer to a command."""
    return await component.ask(user, "set", command(form, node=node, **more), to)


def filled(step: int, **values: str) -> str:
    """The submitted form of a step."""
    return submit({"FORM_TYPE": [GREET_TYPE], "step": [str(step)], **{var: [value] for var, value in values.items()}})


def shown(answer: Element) -> Element:
    """The command of an answer, which has to be a result."""
    assert len(ok(answer)) == 1
    found = answer[0]
    assert found.tag == f"{{{CMD}}}command" and found.get("sessionid") and found.get("action") is None
    return found


def offered(answer: Element) -> tuple[str | None, list[str]]:
    """What execute means now, and the actions that are allowed."""
    (actions,) = shown(answer).iterfind("cmd:actions", CNS)
    return actions.get("execute"), [etree.QName(action).localname for action in actions]


def notes(answer: Element) -> list[tuple[str | None, str | None]]:
    """The notes of an answer."""
    return [(note.get("type"), note.text) for note in shown(answer).iterfind("cmd:note", CNS)]


def fault(answer: Element) -> tuple[str, ...]:
    """Type and condition of an error and, where there is one, the condition of XEP-0050 behind the text."""
    assert answer.get("type") == "error", text_of(answer)
    assert [etree.QName(child).localname for child in answer][-2:] in (["command", "error"], ["error"])
    names = [etree.QName(child) for child in answer[-1]]
    assert [name.namespace for name in names] in ([STANZAS] * 2, [STANZAS, STANZAS, CMD]), text_of(answer)
    assert names[1].localname == "text"
    return (str(answer[-1].get("type")), names[0].localname, *(name.localname for name in names[2:]))


# Discovery


async def test_commands_are_announced_and_listed(commanding: Component) -> None:
    """[xep-map 46]: at the address that was asked."""

    async def listed(user: str, to: str) -> list[tuple[str | None, ...]]:
        answer = ok(await commanding.ask(user, "get", f"<query xmlns='{ITEMS}' node='{CMD}'/>", to))
        assert answer[0].get("node") == CMD
        return [tuple(map(item.get, ("jid", "node", "name"))) for item in answer.iterfind("items:query/items:item", NS)]

    info = ok(await commanding.ask(BOB, "get", f"<query xmlns='{INFO}'/>"))
    assert info.find(f"info:query/info:feature[@var='{CMD}']", NS) is not None
    assert await listed(ALICE, DOMAIN) == [(DOMAIN, each.node, each.name) for each in TABLE.values()]
    place = f"bob@{DOMAIN}"
    assert await listed(BOB, place) == [(place, each.node, each.name) for each in TABLE.values()]


async def test_command_nodes_say_what_they_are(commanding: Component) -> None:
    """XEP-0050 2.2 [xep-map 239]"""

    async def info(node: str) -> Element:
        return await commanding.ask(BOB, "get", f"<query xmlns='{INFO}' node='{node}'/>")

    (kind,) = ok(await info(CMD)).iterfind("info:query/info:identity", NS)
    assert dict(kind.attrib) == {"category": "automation", "type": "command-list"}
    found = ok(await info(GREET.node))
    (kind,) = found.iterfind("info:query/info:identity", NS)
    assert dict(kind.attrib) == {"category": "automation", "type": "command-node", "name": GREET.name}
    assert {CMD, DATA} <= {feature.get("var") for feature in found.iterfind("info:query/info:feature", NS)}


# Running


async def test_command_of_several_steps(commanding: Component) -> None:
    """XEP-0050 2.4.2: forms, back and forth, to the end; at whichever address of ours it began [xep-map 12]."""
    place = f"bob@{DOMAIN}/x"

    async def go(form: str = "", **more: str) -> Element:
        return await send(commanding, form, to=place, **more)

    first = await go()
    session = str(shown(first).get("sessionid"))
    second = await go(filled(0, name="Carol"), sessionid=session, action="next")
    back = await go(sessionid=session, action="prev")
    await go(filled(0, name="Dave"), sessionid=session)
    last = await go(filled(1, name="Dave", how="coldly"), sessionid=session, action="complete")

    assert [shown(answer).get("status") for answer in (first, second, back, last)] == ["executing"] * 3 + ["completed"]
    assert {shown(answer).get("sessionid") for answer in (second, back, last)} == {session}
    assert [offered(answer) for answer in (first, second, back)] == [
        ("next", ["next"]),
        ("complete", ["prev", "complete"]),
        ("next", ["next"]),
    ]
    assert fields(second) == {"FORM_TYPE": [GREET_TYPE], "step": ["1"], "name": ["Carol"], "how": ["warmly"]}
    assert fields(back)["name"] == ["Carol"]
    assert notes(second) == [("warn", "Take care")]
    assert notes(last) == [("info", "Dave was greeted coldly")]
    assert shown(last).find("x:x", NS) is None


async def test_command_of_one_step_answers_at_once(commanding: Component) -> None:
    """XEP-0050 2.4.1"""
    answer = await send(commanding, node=TIME.node, action="execute")

    assert shown(answer).get("status") == "completed"
    assert fields(answer) == {"FORM_TYPE": ["urn:test#time"], "time": ["noon"]}
    assert shown(answer).find("cmd:actions", CNS) is None


@pytest.mark.parametrize("steps", [0, 1, 2])
async def test_command_is_cancelled_at_every_step(commanding: Component, steps: int) -> None:
    """[xep-map 240]; what is over has expired [xep-map 239]."""
    session = str(shown(await send(commanding)).get("sessionid"))
    for step in range(steps - 1):
        await send(commanding, filled(step, name="Carol"), sessionid=session)
    form = filled(steps - 1, name="Carol", how="coldly") if steps else ""

    answer = await send(commanding, form, sessionid=session, action="cancel")
    again = await send(commanding, form, sessionid=session, action="cancel")

    assert dict(shown(answer).attrib).items() >= {"status": "canceled", "node": GREET.node}.items()
    assert len(shown(answer)) == 0
    assert fault(again) == ("cancel", "not-allowed", "session-expired")


async def test_command_goes_on_after_a_restart(start: Starter, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is kept that a step needs; only going back without the form needs the process that showed it."""
    monkeypatch.setattr("smartfeeds.app.lifecycle.xmpp_side", lambda: WITH_TABLE)
    component = await start()
    session = str(shown(await send(component)).get("sessionid"))
    component = await start.again(component)

    second = await send(component, filled(0, name="Carol"), sessionid=session)
    component = await start.again(component)
    unknown = await send(component, sessionid=session, action="prev")
    last = await send(component, filled(1, name="Carol", how="warmly"), sessionid=session)

    assert fault(unknown) == (*BAD_REQUEST, "bad-payload"), "the form was not sent along"
    assert (shown(second).get("status"), shown(last).get("status")) == ("executing", "completed")


async def test_command_session_ends_after_a_day(commanding: Component) -> None:
    """[xep-map 239]"""
    session = str(shown(await send(commanding)).get("sessionid"))
    commanding.clock.advance(86_401)

    answer = await send(commanding, filled(0, name="Carol"), sessionid=session)

    assert fault(answer) == ("cancel", "not-allowed", "session-expired")


# Refusals


async def test_command_that_is_not_there(commanding: Component) -> None:
    """[xep-map 239]"""
    assert fault(await send(commanding, node="urn:test:none")) == ("cancel", "item-not-found")
    assert fault(await send(commanding, node="n" * 50_000)) == ("cancel", "item-not-found")
    assert fault(await commanding.ask(BOB, "set", command())) == BAD_REQUEST


async def test_command_is_no_question(commanding: Component) -> None:
    """XEP-0050 2.4: of type set [xep-map 13]."""
    assert refusal(await commanding.ask(BOB, "get", command(node=GREET.node))) == Refusal(
        "cancel", "service-unavailable"
    )


@pytest.mark.parametrize(
    ("action", "expected"),
    [
        ("dance", "malformed-action"),
        ("prev", "bad-action"),
        ("complete", "bad-action"),
    ],
)
async def test_command_action_that_cannot_be(commanding: Component, action: str, expected: str) -> None:
    """XEP-0050 4.4; the session goes on."""
    session = str(shown(await send(commanding)).get("sessionid"))

    answer = await send(commanding, filled(0, name="Carol"), sessionid=session, action=action)

    assert fault(answer) == (*BAD_REQUEST, expected)
    assert offered(await send(commanding, filled(0, name="Carol"), sessionid=session))[0] == "complete"


@pytest.mark.parametrize("action", ["", "next", "prev", "complete", "cancel"])
async def test_command_session_of_nobody_or_somebody_else(commanding: Component, action: str) -> None:
    """[xep-map 239]"""
    session = str(shown(await send(commanding)).get("sessionid"))
    bad = (*BAD_REQUEST, "bad-sessionid")

    assert fault(await send(commanding, sessionid="nobody's", action=action)) == bad
    assert fault(await send(commanding, sessionid="s" * 20_000, action=action)) == bad
    assert fault(await send(commanding, filled(0, name="x"), sessionid=session, user=ALICE, action=action)) == bad
    assert fault(await send(commanding, filled(0, name="x"), node=REFUSE.node, sessionid=session, action=action)) == bad


@pytest.mark.parametrize(
    "form",
    [
        "",
        "<x xmlns='jabber:x:data' type='result'/>",
        "<x xmlns='jabber:x:data' type='submit'/>",
        filled(0),
        filled(0, name="n" * 2_000),
        filled(7, name="Carol"),
        filled(0, name="Carol") * 2,
        submit({"FORM_TYPE": ["urn:other"], "step": ["0"], "name": ["Carol"]}),
        submit({"step": ["0"], "name": [f"n{number}" for number in range(2_000)]}),
        submit({f"f{number}": ["v"] for number in range(1_000)}),
    ],
    ids=["no form", "result", "empty", "field missing", "too long", "step", "two", "FORM_TYPE", "values", "fields"],
)
async def test_command_form_that_cannot_be_used(start: Starter, monkeypatch: pytest.MonkeyPatch, form: str) -> None:
    """XEP-0050 4.4: bad-payload. The session was begun before a restart, so its form is not known."""
    monkeypatch.setattr("smartfeeds.app.lifecycle.xmpp_side", lambda: WITH_TABLE)
    before = await start()
    session = str(shown(await send(before)).get("sessionid"))
    component = await start.again(before)

    assert fault(await send(component, form, sessionid=session)) == (*BAD_REQUEST, "bad-payload")


async def test_command_refused_by_its_step(commanding: Component) -> None:
    """The condition is the step's, and the person may go on from the form."""
    session = str(shown(await send(commanding, node=REFUSE.node)).get("sessionid"))
    form = submit({"step": ["0"], "name": ["x"]})

    for _ in range(2):
        answer = await send(commanding, form, node=REFUSE.node, sessionid=session, action="complete")
        assert fault(answer) == ("cancel", "conflict")


async def test_commands_of_many_do_not_mix(commanding: Component) -> None:
    """Sessions run side by side."""

    async def greet(number: int) -> list[tuple[str | None, str | None]]:
        user = f"u{number}@example.org/x"
        session = str(shown(await send(commanding, user=user)).get("sessionid"))
        await send(commanding, filled(0, name=user), user, sessionid=session)
        return notes(await send(commanding, filled(1, name=user, how="warmly"), user, sessionid=session))

    found = await asyncio.gather(*map(greet, range(50)))

    assert found == [[("info", f"u{number}@example.org/x was greeted warmly")] for number in range(50)]
