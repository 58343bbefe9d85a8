"""The ad-hoc commands of the service, and commands for tests: of three steps, of one, and one that always refuses."""

from dataclasses import replace

from smartfeeds.app.sides import xmpp_side
from smartfeeds.errors import Condition, FeedError
from smartfeeds.service.requests import GetNodes, NodeList
from smartfeeds.xmpp.commands import Command, CommandForm, CommandNote, CommandResult, StepInput, table_of
from smartfeeds.xmpp.forms import FormField

GREET_TYPE = "urn:test#greet"


async def ask_name(ask: StepInput) -> CommandForm:
    known = ask.values.get("name", ("",))
    return CommandForm((FormField("name", "text-single", known, "Name", required=True),), "Greet", "Whom?")


async def ask_how(ask: StepInput) -> CommandForm:
    name = ask.one("name")
    how = FormField("how", "list-single", ("warmly",), "How", (("warmly", "With love"), ("coldly", "")))
    return CommandForm((FormField("name", "hidden", (name,)), how), notes=(CommandNote("Take care", "warn"),))


async def greet(ask: StepInput) -> CommandResult:
    await ask.answer(GetNodes(ask.actor, ask.service), NodeList)
    return CommandResult((CommandNote(f"{ask.one('name')} was greeted {ask.one('how')}"),))


async def show_time(_ask: StepInput) -> CommandResult:
    return CommandResult((), (FormField("time", "text-single", ("noon",), "Time"),))


async def refuse(_ask: StepInput) -> CommandResult:
    raise FeedError(Condition.CONFLICT, "read again")


GREET = Command("urn:test:greet", "Greet somebody", GREET_TYPE, (ask_name, ask_how, greet))
TIME = Command("urn:test:time", "What time it is", "urn:test#time", (show_time,))
REFUSE = Command("urn:test:refuse", "Refuse", "urn:test#refuse", (ask_name, refuse))
TABLE = table_of(GREET, TIME, REFUSE)
WITH_TABLE = replace(xmpp_side(), commands=tuple(TABLE.values()))
COMMANDS = table_of(*xmpp_side().commands)  # those of the service
# A walk through all of them: a source is polled after its pause, the creation of a node makes an owner of its creator,
# and a stop is cancelled at the end.
_LAST = ("#poll-source", "#remove-source", "#create-node", "#cancel-stop")
WALK = sorted(COMMANDS, key=lambda node: [node.endswith(name) for name in reversed(_LAST)])
