"""The ad-hoc command `conflicts`: what it shows, what it asks of the service, and what it refuses (A-62)."""

import threading

import pytest

from smartfeeds.core.filters import EntryMeta
from smartfeeds.core.model import Item
from smartfeeds.core.page import ResultSetRequest
from smartfeeds.errors import Condition, FeedError
from smartfeeds.features.conflicts import adhoc as conflict_command
from smartfeeds.features.conflicts.adhoc import COMMANDS, LISTED
from smartfeeds.features.conflicts.requests import (
    ConflictedItem,
    ConflictList,
    ListConflicts,
    ResolveConflicts,
    ResolvedItem,
)
from smartfeeds.formats.atom import read_meta
from smartfeeds.service import requests as r
from smartfeeds.sync.record import Flag, HistoryRecord, Version
from smartfeeds.xmpp.command_sessions import CommandSessions
from smartfeeds.xmpp.commands import CommandNote, CommandReply, CommandRunner, table_of
from smartfeeds.xmpp.stanza_errors import CommandError, CommandFault
from unit.xmpp.wire import ACTOR, DATA, SERVICE, field, parse, submit

(CONFLICTS,) = COMMANDS
NODE = CONFLICTS.node

CMD = "http://jabber.org/protocol/commands"
HOUR_US = 1_304_942_400_000_000
ALICE, BOB = "feeds.a%2Falice@a", "feeds.b%2Fbob@b"
XD = {"x": DATA}


def version(by: str, title: str, *conflicts: Version, text: str = "", deleted: bool = False) -> Version:
    """A version of an item, as it is stored."""
    content = f"<content>{text}</content>" if text else ""
    payload = f"<entry xmlns='http://www.w3.org/2005/Atom'><title>{title}</title>{content}</entry>"
    flag = Flag.TRUE if deleted else Flag.ABSENT
    return Version("i", 2, (HistoryRecord(2, HOUR_US, by),), payload.encode(), flag, conflicts=conflicts)


def conflicted(item_id: str, found: Version, *, mark: str = "t") -> ConflictedItem:
    """An item in conflict, its tags counted from the winner on."""
    item = Item(1, item_id, HOUR_US, HOUR_US, found.payload, "alice@a")
    return ConflictedItem(item, found, tuple(f"{mark}{number}" for number in range(len(found.conflicts) + 1)))


TWO = conflicted("one", version(ALICE, "Tea &amp; milk", version(BOB, "Coffee", text="Black"), text="At <i>five</i>"))


class Shop:
    """A service with these conflicts in the node `n`, and the command over it."""

    def __init__(self, *entries: ConflictedItem, left: int = 0) -> None:
        self.entries = list(entries)
        self.left = left
        self.requests: list[r.Request] = []
        sessions = CommandSessions(key=b"key", now_us=lambda: HOUR_US, new_id=lambda: "fresh")
        self._commands = CommandRunner(table_of(CONFLICTS), self._handle, sessions)
        self._session = ""

    async def _handle(self, request: r.Request) -> object:
        self.requests.append(request)
        assert (request.actor, request.service) == (ACTOR, SERVICE)
        if isinstance(request, ListConflicts):
            if request.node != "n":
                raise FeedError(Condition.ITEM_NOT_FOUND, "no such node")
            return self._page(request)
        assert isinstance(request, ResolveConflicts)
        (entry,) = (entry for entry in self.entries if entry.item.id == request.item_id)
        return ResolvedItem(entry.item, self.left)

    def _page(self, request: ListConflicts) -> ConflictList:
        if request.item_id:
            return ConflictList("n", tuple(each for each in self.entries if each.item.id == request.item_id), None)
        assert request.page == ResultSetRequest(max=str(LISTED))
        return ConflictList("n", tuple(self.entries[:LISTED]), r.ResultSet(len(self.entries)))

    @property
    def resolutions(self) -> list[ResolveConflicts]:
        """What was asked to be settled."""
        return [request for request in self.requests if isinstance(request, ResolveConflicts)]

    async def begin(self) -> CommandReply:
        """The first form."""
        return await self._send("")

    async def answer(self, step: int, action: str = "", **values: str) -> CommandReply:
        """What follows the form of a step, filled in like this; a session is begun where there is none."""
        if not self._session:
            self._session = (await self.begin()).session
        form = submit(NODE, field("step", str(step)) + "".join(field(var, value) for var, value in values.items()))
        acting = f" action='{action}'" if action else ""
        return await self._send(f" sessionid='{self._session}'{acting}", form)

    async def _send(self, attributes: str, form: str = "") -> CommandReply:
        xml = f"<command xmlns='{CMD}' node='{NODE}'{attributes}>{form}</command>"
        return await self._commands.run(self._commands.read(parse(xml), ACTOR, SERVICE))


def fields_of(shown: CommandReply) -> dict[str, tuple[str, list[str]]]:
    """Type and values of the named fields of a form."""
    return {
        str(each.get("var")): (str(each.get("type")), [str(value.text) for value in each.iterfind("x:value", XD)])
        for each in parse(shown.form).iterfind("x:field[@var]", XD)
        if each.get("var") not in ("FORM_TYPE", "step")
    }


def choices_of(shown: CommandReply, var: str) -> dict[str, str | None]:
    """The values to choose from, with their labels."""
    options = parse(shown.form).iterfind(f"x:field[@var='{var}']/x:option", XD)
    return {str(option.findtext("x:value", namespaces=XD)): option.get("label") for option in options}


def texts_of(shown: CommandReply) -> list[str | None]:
    """What is there for reading."""
    texts = parse(shown.form).iterfind("x:field[@type='fixed']", XD)
    return [each.findtext("x:value", namespaces=XD) for each in texts]


async def test_conflicts_are_shown_and_settled() -> None:
    """From the node to the item to the version: who, when, what; the winner first [A-62]."""
    shop = Shop(TWO)

    first = await shop.begin()
    items = await shop.answer(0, node="n")
    versions = await shop.answer(1, node="n", item="one")
    done = await shop.answer(2, "complete", node="n", item="one", tags="t0 t1", keep="t1")

    assert fields_of(first) == {"node": ("text-single", [])}
    assert fields_of(items) == {"node": ("hidden", ["n"]), "item": ("list-single", ["one"])}
    assert choices_of(items, "item") == {"one": "Tea & milk (one): 1 conflict"}
    assert fields_of(versions) == {
        "node": ("hidden", ["n"]),
        "item": ("hidden", ["one"]),
        "tags": ("hidden", ["t0 t1"]),
        "keep": ("list-single", ["t0"]),
        "text": ("text-multi", []),
    }
    assert choices_of(versions, "keep") == {
        "t0": "feeds.a/alice@a, 2011-05-09T12:00:00Z, Tea & milk",
        "t1": "feeds.b/bob@b, 2011-05-09T12:00:00Z, Coffee",
    }
    assert texts_of(versions) == [
        "feeds.a/alice@a, 2011-05-09T12:00:00Z, Tea & milk\nAt five",
        "feeds.b/bob@b, 2011-05-09T12:00:00Z, Coffee\nBlack",
    ]
    assert shop.resolutions == [ResolveConflicts(ACTOR, SERVICE, "n", "one", "t1", ("t1",), ("t0", "t1"))]
    assert (done.status, done.form) == ("completed", "")
    assert done.notes == (CommandNote("Resolved 1 conflict of Tea & milk (one)."),)


async def test_conflicts_are_read_beside_the_event_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever versions say, and however many there are, others wait for no parser."""
    threads = []

    def read(payload: bytes) -> EntryMeta:
        threads.append(threading.current_thread())
        return read_meta(payload)

    monkeypatch.setattr(conflict_command, "read_meta", read)
    shop, counts = Shop(TWO), []
    for step, values in enumerate(({}, {"item": "one"}, {"item": "one", "tags": "t0 t1", "keep": "t0"})):
        await shop.answer(step, node="n", **values)
        counts.append(len(threads))

    assert counts == [1, 3, 4]
    assert threading.main_thread() not in threads


async def test_conflicts_of_a_node_without_any_are_none() -> None:
    done = await Shop().answer(0, node="n")

    assert (done.status, done.notes) == ("completed", (CommandNote("No item of n has a conflict."),))


async def test_conflicts_that_are_left_are_told() -> None:
    done = await Shop(TWO, left=2).answer(2, node="n", item="one", tags="t0 t1", keep="t0")

    assert done.notes[1:] == (CommandNote("2 conflicts left.", "warn"),)


async def test_conflicts_deleted_and_nameless_versions_are_shown_as_they_are() -> None:
    """A tombstone has neither title nor text; a version may have no endpoint or no time (FS-037)."""
    nobody = version("", "No name")._replace(history=(HistoryRecord(2, None, "x"),))
    by_nobody = version("", "Also")._replace(history=(HistoryRecord(2, HOUR_US, ""),))
    shop = Shop(conflicted("one", version(ALICE, "", nobody, by_nobody, deleted=True)))

    items, versions = await shop.answer(0, node="n"), await shop.answer(1, node="n", item="one")

    assert choices_of(items, "item") == {"one": "(no title) (one): 2 conflicts"}
    assert list(choices_of(versions, "keep").values()) == [
        "feeds.a/alice@a, 2011-05-09T12:00:00Z, deleted",
        "x, No name",
        "nobody known, 2011-05-09T12:00:00Z, Also",
    ]


async def test_conflicts_long_texts_are_cut() -> None:
    """Ids stay whole where they are values."""
    entry = conflicted("i" * 500, version("b" * 500, "t" * 500, version(BOB, "x"), text="w" * 5_000))
    shop = Shop(entry)

    items, versions = await shop.answer(0, node="n"), await shop.answer(1, node="n", item="i" * 500)

    assert choices_of(items, "item") == {"i" * 500: f"{'t' * 99}… ({'i' * 99}…): 1 conflict"}
    assert texts_of(versions)[0] == f"{'b' * 99}…, 2011-05-09T12:00:00Z, {'t' * 99}…\n{'w' * 299}…"


async def test_conflicts_of_many_items_are_listed_in_part_and_found_all() -> None:
    shop = Shop(*(conflicted(f"i{number}", TWO.version) for number in range(2 * LISTED + 1)))

    items = await shop.answer(0, node="n")
    last = await shop.answer(1, node="n", item=f"i{2 * LISTED}")

    assert list(choices_of(items, "item")) == [f"i{number}" for number in range(LISTED)]
    assert items.notes == (
        CommandNote(f"The list shows {LISTED} of {2 * LISTED + 1} items; resolve some to see the others."),
    )
    assert last.status == "executing"


async def test_conflicts_of_one_item_that_are_too_many_are_settled_in_parts() -> None:
    """Nobody decides about what they have not seen; that it is there is known all the same."""
    many = tuple(version(f"b{number}", "x") for number in range(LISTED + 5))
    shop = Shop(conflicted("one", version(ALICE, "y", *many)))

    versions = await shop.answer(1, node="n", item="one")
    tags = fields_of(versions)["tags"][1][0]
    with pytest.raises(CommandError, match="one of the versions shown"):
        await shop.answer(2, node="n", item="one", tags=tags, keep=f"t{LISTED}")
    await shop.answer(2, node="n", item="one", tags=tags, keep="t3")

    assert list(choices_of(versions, "keep")) == [f"t{number}" for number in range(LISTED)]
    assert len(texts_of(versions)) == LISTED
    assert versions.notes == (CommandNote("6 versions not shown. They stay in conflict, except your own."),)
    (asked,) = shop.resolutions
    assert asked.decided == tuple(f"t{number}" for number in range(1, LISTED))
    assert asked.seen == tuple(f"t{number}" for number in range(LISTED + 6))


async def test_conflicts_form_goes_back_to_the_items() -> None:
    """With and without the form."""
    shop = Shop(TWO)
    await shop.answer(1, node="n", item="one")

    back = await shop.answer(2, "prev", node="n", item="one", tags="t0 t1", keep="t1")
    first = await shop.answer(1, "prev", node="n")

    assert choices_of(back, "item").keys() == {"one"}
    assert fields_of(first) == {"node": ("text-single", ["n"])}


WRONG = {
    "keep of nothing": {"tags": "t0 t1", "keep": "t2"},
    "keep of a part": {"tags": "t0 t1", "keep": "t"},
    "no keep": {"tags": "t0 t1"},
    "no tags": {"keep": "t0"},
    "empty tags": {"tags": " ", "keep": "t0"},
    "huge tags": {"tags": "t0 " * 5_000, "keep": "t0"},
    "huge item": {"tags": "t0 t1", "keep": "t0", "item": "i" * 2_000},
    "no item": {"tags": "t0 t1", "keep": "t0", "item": ""},
    "no node": {"tags": "t0 t1", "keep": "t0", "node": ""},
}


@pytest.mark.parametrize("values", WRONG.values(), ids=WRONG.keys())
async def test_conflicts_form_that_cannot_be_used_is_refused(values: dict[str, str]) -> None:
    shop = Shop(TWO)

    with pytest.raises(CommandError) as refused:
        await shop.answer(2, **{"node": "n", "item": "one", **values})

    assert refused.value.fault is CommandFault.BAD_PAYLOAD
    assert shop.requests == []


async def test_conflicts_of_no_node_and_no_item_are_not_found() -> None:
    shop = Shop(TWO)
    for step, values in ((0, {"node": "m"}), (1, {"node": "m", "item": "one"}), (1, {"node": "n", "item": "two"})):
        with pytest.raises(FeedError) as refused:
            await shop.answer(step, **values)
        assert refused.value.condition is Condition.ITEM_NOT_FOUND


@pytest.mark.parametrize("step", [0, 1, 2])
async def test_conflicts_are_left_alone_when_cancelled(step: int) -> None:
    """[xep-map 240]"""
    shop = Shop(TWO)

    done = await shop.answer(step, "cancel", node="n", item="one", tags="t0 t1", keep="t1")

    assert (done.status, shop.requests) == ("canceled", [])
