"""Commands for the tests of ad-hoc commands: of three steps, of one, and one that always refuses."""

from smartfeeds.errors import Condition, FeedError
from smartfeeds.service import requests as r
from smartfeeds.xmpp.commands import Ask, Command, Finished, Note, Severity, Stage, table_of
from smartfeeds.xmpp.forms import Field

GREET_TYPE = "urn:test#greet"


async def ask_name(ask: Ask) -> Stage:
    known = ask.values.get("name", ("",))
    return Stage((Field("name", "text-single", known, "Name", required=True),), "Greet", "Whom?")


async def ask_how(ask: Ask) -> Stage:
    name = ask.one("name")
    how = Field("how", "list-single", ("warmly",), "How", (("warmly", "With love"), ("coldly", "")))
    return Stage((Field("name", "hidden", (name,)), how), notes=(Note("Take care", Severity.WARN),))


async def greet(ask: Ask) -> Finished:
    await ask.answer(r.GetNodes(ask.actor, ask.service), r.NodeList)
    return Finished((Note(f"{ask.one('name')} was greeted {ask.one('how')}"),))


async def show_time(_ask: Ask) -> Finished:
    return Finished((), (Field("time", "text-single", ("noon",), "Time"),))


async def refuse(_ask: Ask) -> Finished:
    raise FeedError(Condition.CONFLICT, "read again")


GREET = Command("urn:test:greet", "Greet somebody", GREET_TYPE, (ask_name, ask_how, greet))
TIME = Command("urn:test:time", "What time it is", "urn:test#time", (show_time,))
REFUSE = Command("urn:test:refuse", "Refuse", "urn:test#refuse", (ask_name, refuse))
TABLE = table_of(GREET, TIME, REFUSE)
