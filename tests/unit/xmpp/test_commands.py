"""Ad-hoc commands: what is read from a `<command/>`, which step runs, what is shown (XEP-0050)."""

from collections.abc import Mapping
from dataclasses import replace
from hashlib import blake2s

import pytest

from smartfeeds.core.jid import Jid
from smartfeeds.errors import Condition, FeedError, StoreError
from smartfeeds.service import requests as r
from smartfeeds.service.standing import Audience, Standing
from smartfeeds.xmpp.command_sessions import FORM_BYTES, SESSION_S, CommandSessions, StepForm, session_key
from smartfeeds.xmpp.commands import (
    Command,
    CommandList,
    CommandNote,
    CommandReply,
    CommandRunner,
    ListCommands,
    encode_command,
)
from smartfeeds.xmpp.disco import Disco, ServiceInfo
from smartfeeds.xmpp.side import XmppSide
from smartfeeds.xmpp.stanza_errors import CommandError, CommandFault, encode_error
from support.commands import GREET, REFUSE, TABLE, TIME
from support.commands import GREET_TYPE as TYPE
from unit.xmpp.wire import ACTOR, DATA, SERVICE, STANZAS, canonical, field, parse, submit

INFO = "http://jabber.org/protocol/disco#info"
ITEMS = "http://jabber.org/protocol/disco#items"
CMD = "http://jabber.org/protocol/commands"
NURSE = Jid("nurse", "capulet.lit", "kitchen")


class Desk:
    """The commands of the table in one process, with a clock that stands still."""

    def __init__(self, answer: object = None, *, remembered: int = 8) -> None:
        self.requests: list[r.Request] = []
        self.now_us = 1_767_225_600_000_000
        self.sessions = CommandSessions(
            key=b"key", now_us=lambda: self.now_us, new_id=self._new_id, remembered=remembered
        )
        self._commands = CommandRunner(TABLE, self._handle, self.sessions)
        self._answer = answer or r.NodeList((), None)
        self._made = 0

    def _new_id(self) -> str:
        self._made += 1
        return f"fresh-{self._made}"

    async def _handle(self, request: r.Request) -> object:
        self.requests.append(request)
        if isinstance(self._answer, Exception):
            raise self._answer
        return self._answer

    async def send(self, xml: str, actor: Jid = ACTOR, service: str = SERVICE) -> CommandReply:
        """The answer to a `<command/>`."""
        return await self._commands.run(self._commands.read(parse(xml), actor, service))

    async def begin(self, node: str = GREET.node, actor: Jid = ACTOR) -> str:
        """A session whose first form is shown."""
        return (await self.send(command(node=node), actor)).session

    async def answer(self, session: str, form: str = "", action: str = "", node: str = GREET.node) -> CommandReply:
        """The answer to a later step."""
        return await self.send(command(form, node=node, sessionid=session, action=action))


def command(form: str = "", **attributes: str) -> str:
    told = "".join(f" {name}='{value}'" for name, value in {"node": GREET.node, **attributes}.items() if value)
    return f"<command xmlns='{CMD}'{told}>{form}</command>"


def filled(step: int, **values: str) -> str:
    """A submitted form of a step of GREET."""
    return submit(TYPE, field("step", str(step)) + "".join(field(var, value) for var, value in values.items()))


async def refusal(desk: Desk, xml: str, actor: Jid = ACTOR, service: str = SERVICE) -> object:
    """The fault of a refused command, or its condition where there is none."""
    with pytest.raises(FeedError) as refused:
        await desk.send(xml, actor, service)
    assert refused.value.text, "every refusal says why"
    return refused.value.fault if isinstance(refused.value, CommandError) else refused.value.condition


# Steps


async def test_command_runs_from_the_first_form_to_its_end() -> None:
    """XEP-0050 2.4.2: node and sessionid stay, the last form is to be completed [xep-map 240]."""
    desk = Desk()

    first = await desk.send(command())
    second = await desk.answer(first.session, filled(0, name="Nurse"))
    last = await desk.answer(first.session, filled(1, name="Nurse", how="coldly"))

    assert {shown.node for shown in (first, second, last)} == {GREET.node}
    assert {shown.session for shown in (first, second, last)} == {first.session}
    assert [(shown.status, shown.actions) for shown in (first, second, last)] == [
        ("executing", ("next",)),
        ("executing", ("prev", "complete")),
        ("completed", ()),
    ]
    assert last.notes == (CommandNote("Nurse was greeted coldly"),)
    assert desk.requests == [r.GetNodes(ACTOR, SERVICE)]


async def test_command_form_is_written_with_its_hidden_fields() -> None:
    """What later steps need comes back with the form: `step` and `name` are hidden."""
    desk = Desk()
    session = await desk.begin()

    shown = await desk.answer(session, filled(0, name="A &amp; B"))

    assert canonical(encode_command(shown)) == canonical(
        f"<command xmlns='{CMD}' node='{GREET.node}' sessionid='{session}' status='executing' xml:lang='en'>"
        "<actions execute='complete'><prev/><complete/></actions>"
        f"<x xmlns='{DATA}' type='form'><title>Greet somebody</title>"
        f"<field var='FORM_TYPE' type='hidden'><value>{TYPE}</value></field>"
        "<field var='step' type='hidden'><value>1</value></field>"
        "<field var='name' type='hidden'><value>A &amp; B</value></field>"
        "<field var='how' type='list-single' label='How'><value>warmly</value>"
        "<option label='With love'><value>warmly</value></option><option><value>coldly</value></option></field></x>"
        "<note type='warn'>Take care</note></command>"
    )


async def test_command_first_form_has_title_instructions_and_what_is_required() -> None:
    form = (await Desk().send(command())).form

    assert f"<x xmlns='{DATA}' type='form'><title>Greet</title><instructions>Whom?</instructions>" in form
    assert "<field var='name' type='text-single' label='Name'><required/><value></value></field>" in form


async def test_command_of_one_step_answers_at_once() -> None:
    """XEP-0050 2.4.1: a result, a session all the same, no actions."""
    shown = await Desk().send(command(node=TIME.node))

    assert canonical(encode_command(shown)) == canonical(
        f"<command xmlns='{CMD}' node='{TIME.node}' sessionid='{shown.session}' status='completed' xml:lang='en'>"
        f"<x xmlns='{DATA}' type='result'><field var='FORM_TYPE' type='hidden'><value>urn:test#time</value></field>"
        "<field var='time' type='text-single' label='Time'><value>noon</value></field></x></command>"
    )


@pytest.mark.parametrize("action", ["", "execute"])
async def test_command_action_may_be_left_out(action: str) -> None:
    """Execute is the default, and at each step it means the one that leads on (XEP-0050 3.4)."""
    desk = Desk()

    session = (await desk.send(command(action=action))).session
    second = await desk.answer(session, filled(0, name="Nurse"), action)
    last = await desk.answer(session, filled(1, name="Nurse", how="warmly"), action)

    assert (second.actions, last.status) == (("prev", "complete"), "completed")


async def test_command_begun_with_a_form_shows_its_values() -> None:
    assert "<value>Nurse</value>" in (await Desk().send(command(submit(TYPE, field("name", "Nurse"))))).form


async def test_command_status_actions_and_notes_of_a_requester_mean_nothing() -> None:
    """XEP-0050 4.1: the status is the responder's."""
    strange = "<actions execute='prev'><complete/></actions><note type='error'>no</note><x xmlns='urn:x'/>"

    shown = await Desk().send(command(strange, status="completed"))

    assert shown.status == "executing"


async def test_command_language_is_told_and_none_is_refused() -> None:
    shown = await Desk().send(command(**{"xml:lang": "de"}))

    assert parse(encode_command(shown)).get("{http://www.w3.org/XML/1998/namespace}lang") == "en"


@pytest.mark.parametrize("kind", ["submit", "cancel"])
async def test_command_form_of_type_cancel_counts_as_submitted(kind: str) -> None:
    """XEP-0050 3.5.1."""
    desk = Desk()
    session = await desk.begin()
    form = submit(TYPE, field("step", "0") + field("name", "Nurse"), kind=kind)

    assert (await desk.answer(session, form)).actions == ("prev", "complete")


async def test_command_any_process_answers_any_step() -> None:
    """Nothing is remembered that a step needs."""
    session = await Desk().begin()

    second = await Desk().answer(session, filled(0, name="Nurse"), "next")
    last = await Desk().answer(session, filled(1, name="Nurse", how="warmly"), "complete")

    assert (second.session, last.session) == (session, session)
    assert last.notes == (CommandNote("Nurse was greeted warmly"),)


# Back and away


@pytest.mark.parametrize("same_process", [True, False])
async def test_command_goes_back_with_its_form(same_process: bool) -> None:
    """XEP-0050 2.4.2: the form before, with what was filled in."""
    desk = Desk()
    session = await desk.begin()
    await desk.answer(session, filled(0, name="Nurse"))

    shown = await (desk if same_process else Desk()).answer(session, filled(1, name="Nurse"), "prev")

    assert shown.actions == ("next",)
    assert "<value>Nurse</value>" in shown.form


async def test_command_goes_back_without_its_form() -> None:
    """As the example of XEP-0050 does; the process that showed it knows which form it was."""
    desk = Desk()
    session = await desk.begin()
    await desk.answer(session, filled(0, name="Nurse"))

    assert "<value>Nurse</value>" in (await desk.answer(session, action="prev")).form


async def test_command_without_its_form_in_another_process_has_to_send_it() -> None:
    session = await Desk().begin()

    assert await refusal(Desk(), command(sessionid=session, action="next")) is CommandFault.BAD_PAYLOAD


@pytest.mark.parametrize("forms", [(), (0,), (0, 1)], ids=["before the form", "first form", "second form"])
async def test_command_is_cancelled_at_every_step(forms: tuple[int, ...]) -> None:
    """[xep-map 240]: status canceled, and nothing was done."""
    desk = Desk()
    session = await desk.begin()
    for step in forms[:-1]:
        await desk.answer(session, filled(step, name="Nurse"))
    form = filled(forms[-1], name="Nurse", how="coldly") if forms else ""

    shown = await desk.answer(session, form, "cancel")

    assert shown == CommandReply(GREET.node, session, "canceled")
    assert desk.requests == []
    assert canonical(encode_command(shown)) == canonical(
        f"<command xmlns='{CMD}' node='{GREET.node}' sessionid='{session}' status='canceled' xml:lang='en'/>"
    )


@pytest.mark.parametrize("action", ["", "next", "prev", "complete", "cancel"])
@pytest.mark.parametrize("ending", ["cancel", "complete"])
async def test_command_that_is_over_has_expired(ending: str, action: str) -> None:
    """[xep-map 239]: not-allowed with session-expired."""
    desk = Desk()
    session = await desk.begin()
    await desk.answer(session, filled(1, name="Nurse", how="coldly"), ending)
    done = list(desk.requests)

    again = command(filled(1, name="Nurse", how="coldly"), sessionid=session, action=action)

    assert await refusal(desk, again) is CommandFault.SESSION_EXPIRED
    assert desk.requests == done


async def test_command_session_has_an_end() -> None:
    """[xep-map 239]: a dialog may lie open for a day."""
    desk = Desk()
    session = await desk.begin()
    desk.now_us += SESSION_S * 1_000_000
    assert (await desk.answer(session, filled(0, name="Nurse"))).status == "executing"
    desk.now_us += 1_000_000

    assert await refusal(desk, command(filled(0, name="N"), sessionid=session)) is CommandFault.SESSION_EXPIRED


# Refusals


async def test_command_unknown_node_is_not_found() -> None:
    """[xep-map 239]"""
    assert await refusal(Desk(), command(node="urn:test:none")) is Condition.ITEM_NOT_FOUND
    assert await refusal(Desk(), f"<command xmlns='{CMD}' node=''/>") is Condition.ITEM_NOT_FOUND
    assert await refusal(Desk(), command(node="n" * 100_000)) is Condition.ITEM_NOT_FOUND


async def test_command_without_node_is_refused() -> None:
    assert await refusal(Desk(), f"<command xmlns='{CMD}'/>") is Condition.BAD_REQUEST


@pytest.mark.parametrize("action", ["dance", "EXECUTE", " "])
async def test_command_unknown_action_is_malformed(action: str) -> None:
    """XEP-0050 4.4."""
    desk = Desk()
    session = await desk.begin()

    assert await refusal(desk, command(action=action)) is CommandFault.MALFORMED_ACTION
    assert await refusal(desk, command(sessionid=session, action=action)) is CommandFault.MALFORMED_ACTION
    assert await refusal(desk, f"<command xmlns='{CMD}' node='{GREET.node}' action=''/>") is (
        CommandFault.MALFORMED_ACTION
    )


@pytest.mark.parametrize(("step", "action"), [(0, "prev"), (0, "complete"), (1, "next")])
async def test_command_action_that_was_not_offered_is_refused(step: int, action: str) -> None:
    """XEP-0050 4.4: bad-action, which tells what could be done."""
    desk = Desk()
    session = await desk.begin()

    with pytest.raises(CommandError) as refused:
        await desk.answer(session, filled(step, name="Nurse", how="coldly"), action)

    assert refused.value.fault is CommandFault.BAD_ACTION
    assert (
        refused.value.text
        == ("this form allows the actions next or cancel", "this form allows the actions prev or complete or cancel")[
            step
        ]
    )
    assert desk.requests == []


@pytest.mark.parametrize("action", ["next", "prev", "complete", "cancel"])
async def test_command_without_a_session_can_only_begin(action: str) -> None:
    """[xep-map 239]"""
    assert await refusal(Desk(), command(filled(0, name="Nurse"), action=action)) is CommandFault.BAD_SESSIONID


async def test_command_session_of_a_distant_time_has_expired() -> None:
    """The clock of another process may be ahead, but not by more than a session lasts."""
    desk = Desk()
    desk.now_us += SESSION_S * 1_000_000
    near = await desk.begin()
    desk.now_us += 1_000_000
    far = await desk.begin()
    desk.now_us -= (SESSION_S + 1) * 1_000_000

    assert (await desk.answer(near, filled(0, name="Nurse"))).status == "executing"
    assert await refusal(desk, command(filled(0, name="N"), sessionid=far)) is CommandFault.SESSION_EXPIRED


@pytest.mark.parametrize("start", ["6955b900-fresh-1", f"6955b900-{'x' * 64}", "ffffffffff-1"])
async def test_command_session_cannot_be_computed_without_the_key(start: str) -> None:
    """Nobody can fill the cache with ids of their own [xep-map 239]."""
    holder = (ACTOR.bare_text, SERVICE, GREET.node)
    desk = Desk()
    stranger = CommandSessions(key=b"", now_us=lambda: desk.now_us, new_id=lambda: "fresh-1")
    digest = blake2s("\n".join((start, *holder)).encode(), digest_size=8).hexdigest()

    for session in (f"{start}-{digest}", stranger.begin(*holder)):
        assert await refusal(desk, command(sessionid=session, action="cancel")) is CommandFault.BAD_SESSIONID
    assert len(desk.sessions) == 0


@pytest.mark.parametrize("middle", ["x" * 65, "x" * 100_000, "a b", "\u00e9", ""])
def test_session_of_another_form_is_refused_with_the_right_digest(middle: str) -> None:
    """A process without these limits may have the key, such as one of an earlier version."""
    sessions = CommandSessions(key=b"key", now_us=lambda: 0, new_id=lambda: middle)

    with pytest.raises(CommandError) as refused:
        sessions.check(sessions.begin("nurse@capulet.lit"), "nurse@capulet.lit")
    assert refused.value.fault is CommandFault.BAD_SESSIONID


def test_session_with_long_hidden_fields_is_not_cached() -> None:
    """Clients return the hidden fields, so the cache is only for those that go back without them."""
    sessions = CommandSessions(key=b"key", now_us=lambda: 0, new_id=lambda: "fresh")
    session = sessions.begin("nurse@capulet.lit")
    longest = StepForm(0, {"ab": ("x" * (FORM_BYTES - 3), "y")})

    sessions.remember(session, longest)
    assert sessions.check(session, "nurse@capulet.lit") == longest
    sessions.remember(session, StepForm(1, {"ab": ("x" * FORM_BYTES,)}))

    assert sessions.check(session, "nurse@capulet.lit") is None
    assert len(sessions) == 0


def test_session_key_is_the_same_in_all_processes_of_a_service() -> None:
    key = session_key("secret", "feeds.example")
    session_key.cache_clear()

    assert session_key("secret", "feeds.example") == key
    assert len({key, session_key("other", "feeds.example"), session_key("secret", "news.example")}) == 3


SESSIONS = {
    "empty": "",
    "of the requester": "client-made",
    "no time": "-fresh-1-0123456789abcdef",
    "huge time": f"{'f' * 1000}-fresh-1-0123456789abcdef",
    "wrong digest": "6955b900-fresh-1-0123456789abcdef",
    "huge": "x" * 100_000,
    "markup": "&lt;a&gt;&apos;",
}


@pytest.mark.parametrize("action", ["", "next", "cancel"])
@pytest.mark.parametrize("session", SESSIONS.values(), ids=SESSIONS.keys())
async def test_command_unknown_session_is_refused(session: str, action: str) -> None:
    """[xep-map 239]: bad-request with bad-sessionid."""
    told = f" action='{action}'" if action else ""
    xml = f"<command xmlns='{CMD}' node='{GREET.node}' sessionid='{session}'{told}/>"

    assert await refusal(Desk(), xml) is CommandFault.BAD_SESSIONID


async def test_command_session_is_of_one_person_one_address_and_one_command() -> None:
    """XEP-0050 3.3; the person may have another resource meanwhile."""
    desk = Desk()
    session = await desk.begin()
    form = filled(0, name="Nurse")

    assert await refusal(desk, command(form, sessionid=session), NURSE) is CommandFault.BAD_SESSIONID
    assert await refusal(desk, command(form, sessionid=session), service="n@feeds.example") is (
        CommandFault.BAD_SESSIONID
    )
    assert await refusal(desk, command(sessionid=session, node=TIME.node)) is CommandFault.BAD_SESSIONID
    moved = Jid(ACTOR.local, ACTOR.domain, "garden")
    assert (await desk.send(command(form, sessionid=session), moved)).status == "executing"


FORMS = {
    "type form": submit(TYPE, field("step", "0"), kind="form"),
    "type result": submit(TYPE, field("step", "0"), kind="result"),
    "unknown type": submit(TYPE, field("step", "0"), kind="dance"),
    "another FORM_TYPE": submit("urn:other", field("step", "0") + field("name", "Nurse")),
    "two forms": filled(0, name="Nurse") * 2,
    "no step": submit(TYPE, field("name", "Nurse")),
    "no value of step": submit(TYPE, "<field var='step'/>" + field("name", "Nurse")),
    "two steps": submit(TYPE, field("step", "0", "1") + field("name", "Nurse")),
    "a step twice": submit(TYPE, field("step", "0") * 2 + field("name", "Nurse")),
    "last step": filled(2, name="Nurse", how="coldly"),
    "negative step": filled(-1, name="Nurse"),
    "step in words": submit(TYPE, field("step", "nought") + field("name", "Nurse")),
    "huge step": submit(TYPE, field("step", "9" * 10_000) + field("name", "Nurse")),
    "spelt another way": submit(TYPE, field("step", "00") + field("name", "Nurse")),
    "no field": filled(0),
    "empty field": filled(0, name=""),
    "two values": submit(TYPE, field("step", "0") + field("name", "Nurse", "Friar")),
    "huge value": filled(0, name="n" * 100_000),
    "empty form": f"<x xmlns='{DATA}' type='submit'/>",
}


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS.keys())
async def test_command_form_that_cannot_be_used_is_refused(form: str) -> None:
    """XEP-0050 4.4: bad-payload; the form can then be sent again."""
    desk = Desk()
    session = await desk.begin()

    assert await refusal(desk, command(form, sessionid=session)) is CommandFault.BAD_PAYLOAD
    assert (await desk.answer(session, filled(0, name="Nurse"))).status == "executing"


async def test_command_value_may_have_the_bytes_it_may_have() -> None:
    desk = Desk()
    session = await desk.begin()

    assert (await desk.answer(session, filled(0, name="ü" * 511 + "n"))).status == "executing"
    assert await refusal(desk, command(filled(0, name="ü" * 512), sessionid=session)) is CommandFault.BAD_PAYLOAD


@pytest.mark.parametrize("failure", [FeedError(Condition.FORBIDDEN, "not you"), StoreError("full")])
async def test_command_refused_by_the_service_can_be_sent_again(failure: Exception) -> None:
    """What the service says is what the peer hears, and the session is not over."""
    desk = Desk(failure)
    session = await desk.begin()
    form = filled(1, name="Nurse", how="coldly")

    for _ in range(2):
        with pytest.raises(type(failure)) as refused:
            await desk.answer(session, form)
        assert refused.value is failure


async def test_command_refused_by_its_step_keeps_the_condition() -> None:
    desk = Desk()
    session = await desk.begin(REFUSE.node)
    form = submit("urn:test#refuse", field("step", "0") + field("name", "x"))

    assert await refusal(desk, command(form, node=REFUSE.node, sessionid=session)) is Condition.CONFLICT


async def test_command_answer_of_another_kind_is_a_mistake_of_ours() -> None:
    desk = Desk(r.EmptyResult())
    session = await desk.begin()

    with pytest.raises(TypeError, match="GetNodes was answered with EmptyResult"):
        await desk.answer(session, filled(1, name="Nurse", how="coldly"))


# Memory


async def test_sessions_remember_no_more_than_they_may() -> None:
    desk = Desk(remembered=3)
    sessions = [await desk.begin() for _ in range(5)]

    assert len(desk.sessions) == 3
    assert await refusal(desk, command(sessionid=sessions[1], action="next")) is CommandFault.BAD_PAYLOAD
    assert (await desk.answer(sessions[1], filled(0, name="Nurse"))).status == "executing"
    assert len(desk.sessions) == 3


async def test_sessions_in_use_are_remembered_longest() -> None:
    desk = Desk(remembered=2)
    first = await desk.begin()
    await desk.begin()
    await desk.answer(first, filled(0, name="Nurse"))
    await desk.begin()

    assert (await desk.answer(first, action="prev")).actions == ("next",)


async def test_sessions_remember_what_was_shown_and_not_what_was_sent() -> None:
    """Else a peer could fill the memory with fields that nobody asked for."""
    desk = Desk()
    session = await desk.begin()
    await desk.answer(session, submit(TYPE, field("step", "0") + field("name", "Nurse") + field("more", "x" * 10_000)))

    shown = desk.sessions.check(session, ACTOR.bare_text, SERVICE, GREET.node)

    assert shown is not None and shown.hidden == {"name": ("Nurse",)}


async def test_sessions_are_told_apart() -> None:
    """XEP-0050 3.3: more than one of the same command at a time, each with an id of its own."""
    desk = Desk()
    first, second = await desk.begin(), await desk.begin()
    await desk.answer(first, action="cancel")

    assert first != second
    assert (await desk.answer(second, filled(0, name="Nurse"))).status == "executing"


# Errors and discovery

ERRORS = {
    CommandFault.MALFORMED_ACTION: ("modify", "bad-request"),
    CommandFault.BAD_ACTION: ("modify", "bad-request"),
    CommandFault.BAD_PAYLOAD: ("modify", "bad-request"),
    CommandFault.BAD_SESSIONID: ("modify", "bad-request"),
    CommandFault.SESSION_EXPIRED: ("cancel", "not-allowed"),
}


@pytest.mark.parametrize("fault", CommandFault)
def test_command_fault_stands_behind_its_condition(fault: CommandFault) -> None:
    """The table of XEP-0050 4.4 [xep-map 239]."""
    kind, condition = ERRORS[fault]

    assert canonical(encode_error(CommandError(fault, "a <text>"))) == canonical(
        f"<error type='{kind}'><{condition} xmlns='{STANZAS}'/><text xmlns='{STANZAS}'>a &lt;text></text>"
        f"<{fault.value} xmlns='{CMD}'/></error>"
    )


def discover(query: str, table: Mapping[str, Command] = TABLE, service: str = SERVICE) -> str:
    """The answer to a discovery query, which needs no service."""
    answer = Disco(ServiceInfo(SERVICE), XmppSide(commands=tuple(table.values()))).read(parse(query), ACTOR, service)
    assert isinstance(answer, bytes)
    return canonical(answer)


async def test_discovery_lists_the_commands() -> None:
    """[xep-map 46]: at the address that was asked, those that the requester may run."""
    place = f"n@{SERVICE}"
    items = "".join(f"<item jid='{place}' node='{each.node}' name='{each.name}'/>" for each in (GREET, TIME, REFUSE))
    disco = Disco(ServiceInfo(SERVICE), XmppSide(commands=tuple(TABLE.values())))

    async def handle(_request: r.Request) -> Standing:
        return Standing(admin=False, owner=False, publisher=False, creator=False, restarts=False)

    sessions = CommandSessions(key=b"key", now_us=lambda: 0, new_id=lambda: "fresh")
    secret = replace(TIME, node="urn:test:secret", audience=Audience.ADMINS)
    commands = CommandRunner({**TABLE, secret.node: secret}, handle, sessions)

    request = disco.read(parse(f"<query xmlns='{ITEMS}' node='{CMD}'/>"), ACTOR, place)
    assert isinstance(request, ListCommands)
    assert canonical(disco.encoders[CommandList](await commands.list_commands(request), place)) == canonical(
        f"<query xmlns='{ITEMS}' node='{CMD}'>{items}</query>"
    )


def test_discovery_of_the_list_says_what_it_is() -> None:
    """XEP-0050 2.2."""
    assert discover(f"<query xmlns='{INFO}' node='{CMD}'/>") == canonical(
        f"<query xmlns='{INFO}' node='{CMD}'><identity category='automation' type='command-list'/>"
        f"<feature var='{INFO}'/></query>"
    )


def test_discovery_of_a_command_says_what_it_is() -> None:
    """XEP-0050 2.2: identity, commands and forms; it has no items."""
    assert discover(f"<query xmlns='{INFO}' node='{GREET.node}'/>") == canonical(
        f"<query xmlns='{INFO}' node='{GREET.node}'>"
        "<identity category='automation' type='command-node' name='Greet somebody'/>"
        f"<feature var='{INFO}'/><feature var='{CMD}'/><feature var='{DATA}'/></query>"
    )
    assert discover(f"<query xmlns='{ITEMS}' node='{GREET.node}'/>") == canonical(
        f"<query xmlns='{ITEMS}' node='{GREET.node}'/>"
    )


@pytest.mark.parametrize("table", [TABLE, {}])
def test_discovery_announces_commands_while_there_are_any(table: Mapping[str, Command]) -> None:
    """XEP-0050 2.1."""
    assert (f'<feature var="{CMD}"' in discover(f"<query xmlns='{INFO}'/>", table=table)) is bool(table)
