"""A service with a damaged row: it starts, its lists leave the row out, and the log names it."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from structlog.testing import capture_logs

from smartfeeds.store import rows
from smartfeeds.store.base import ReadTx, WriteTx
from support.component import ALICE, CAROL, ITEMS, Component, Starter, bare, ok, text_of
from support.web import WebStarter

NEVER_US = 2**62
PATHS = ("/", "/feeds", "/feeds/good.atom", "/feeds.opml", "/feeds.nno", "/search?q=two", "/metrics")


@dataclass(frozen=True, slots=True)
class DamagedTable:
    """A table in which the first of two rows is damaged.

    `add` stores a row with a name, bad or good, with which the service does nothing by itself. `read` returns all
    rows. `first` is the condition of the row that is damaged. Statements do not select a row at all whose damaged
    column is `unseen`.
    """

    name: str
    read: Callable[[ReadTx], object]
    add: Callable[[WriteTx, str], None] = lambda _tx, _name: None
    first: str = ""
    unseen: str = ""


async def prepare(component: Component, table: DamagedTable) -> None:
    """Stores two nodes, and two rows of a table."""
    for node in ("bad", "good"):
        await component.create(ALICE, node)
        await component.subscribe(CAROL, node)
        await component.affiliate(ALICE, node, "bad@example.org", "member")
        await component.affiliate(ALICE, node, "good@example.org", "member")
        await component.publish(ALICE, node, "one")

    def fill(tx: WriteTx) -> None:
        for name in ("bad", "good"):
            table.add(tx, name)

    await component.app.service.store.write(fill)


async def check_damage(
    start: Starter, start_web: WebStarter, table: DamagedTable, column: str, value: str, **settings: dict[str, Any]
) -> None:
    """Damages a row of a table, and asserts that it stops no others. The settings are those of the next start."""
    web = await start_web()
    component = web.component
    await prepare(component, table)
    statuses = {path: (await web.get(path)).status for path in PATHS}  # 404 without the feature of the path
    assert statuses["/feeds/good.atom"] == statuses["/metrics"] == 200
    first = table.first or f"rowid = (SELECT min(rowid) FROM {table.name})"

    def damage(tx: WriteTx) -> None:
        tx.db.run("PRAGMA ignore_check_constraints = ON")  # a disk checks nothing
        tx.db.run(f"UPDATE {table.name} SET {column} = {value} WHERE {first}")

    await component.app.service.store.write(damage)
    await start.stop(component)
    rows._log_damaged_row.cache_clear()
    with capture_logs() as logs:
        web = await start_web(**settings)
        component = web.component
        await component.publish(ALICE, "good", "two")
        await component.next_event(bare(CAROL))
        for user in (ALICE, CAROL):
            nodes = text_of(ok(await component.ask(user, "get", f"<query xmlns='{ITEMS}'/>")))
            assert "'good'" in nodes.replace('"', "'")
            ok(await component.get(user, "<affiliations/>"))
            ok(await component.get(user, "<subscriptions/>"))
        assert {path: (await web.get(path)).status for path in PATHS} == statuses
        for _ in range(2):
            listed = repr(await component.app.service.store.read(table.read))
            listed_by_writer = repr(await component.app.service.write(lambda tx, _context: table.read(tx)))
    # Readers get U+FFFD in place of what is no UTF-8.
    assert "good" in listed and ("bad" not in listed or "\ufffd" in listed)
    assert "good" in listed_by_writer and "bad" not in listed_by_writer
    named = [log["table"] for log in logs if log["event"] == "row_damaged"]
    assert set(named) == (set() if column == table.unseen else {table.name})
    assert not [log for log in logs if "exc_info" in log]
