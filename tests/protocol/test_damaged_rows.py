"""A damaged row of any table stops no others: the service starts, lists leave the row out, and the log names it."""

from collections.abc import Callable

import pytest
from structlog.testing import capture_logs

from smartfeeds.features.bot import rows as chat_rows
from smartfeeds.features.bot.chat import ChatRow
from smartfeeds.features.callbacks import cloud_protocol as rsscloud
from smartfeeds.features.callbacks import rows as callback_rows
from smartfeeds.features.callbacks.registration import Callback
from smartfeeds.features.cloud.requests import CLOUD
from smartfeeds.features.hub import protocol as websub
from smartfeeds.features.hub.requests import HUB
from smartfeeds.features.mirrors import rows as stored_mirrors
from smartfeeds.features.mirrors.mirror import Direction, Mirror, MirrorRow, MirrorState
from smartfeeds.features.polling import push_rows as source_push_rows
from smartfeeds.features.polling import rows as source_rows
from smartfeeds.features.polling.push_states import PushState, SourcePush
from smartfeeds.features.polling.push_targets import PushTarget
from smartfeeds.features.polling.source import PushKind, new_source
from smartfeeds.store import rows
from smartfeeds.store.base import ReadTx, WriteTx
from support.component import ALICE, CAROL, ITEMS, Component, Starter, bare, ok, text_of
from support.web import WebStarter

NEVER_US = 2**62
TERMS = websub.dump_terms(websub.HubTerms(".atom", "", websub.HubDialect.WEBSUB, ""))
CLOUD_TERMS = rsscloud.dump_terms(rsscloud.CloudTerms(".rss", "", "https://x.example/feeds/n.rss"))
DAMAGES = {
    "node": [
        ("name", "'b' || char(1) || 'd'"),
        ("kind", "'fee'"),
        ("state", "'live ', listed = 1"),
        ("creator", "'a' || char(31)"),
        ("creator", "CAST(x'61ff' AS TEXT)"),
        ("options", "''"),
        ("options", "'[]'"),
        ("options", "CAST(x'7bff' AS TEXT)"),
    ],
    "affiliation": [("affiliation", "'membex'"), ("affiliation", "''"), ("affiliation", "CAST(x'ff' AS TEXT)")],
    "source": [
        ("state", "'pollet'"),
        ("url", "'http://[::1'"),
        ("url", "'http://x.example:99999/'"),
        ("url", "url || char(8)"),
        ("node", "CAST(x'ff' AS TEXT)"),
        ("settings", "'{'"),
        ("settings", "'[1]'"),
        ("settings", """'{"every_t":1}'"""),
        ("progress", "''"),
        ("progress", """'{"validators":{"x":1}}'"""),
        ("progress", """'{"push":"hud"}'"""),
    ],
    "source_push": [
        ("state", "'activf'"),
        ("details", "'{'"),
        ("details", "'{}'"),
        ("details", """'{"target":3}'"""),
        ("token", "CAST(x'ff' AS TEXT), details = ''"),
    ],
    "mirror": [("settings", "'{'"), ("settings", "'{}'"), ("state", "'[]'"), ("state", """'{"inn":{}}'""")],
    "callback": [
        ("kind", "'hud'"),
        ("settings", "'', active = 1"),
        ("settings", "'{}'"),
        ("question", "'{', due_us = 1"),
        ("url", "'https://bad.example/', kind = 'cloud'"),
    ],
    "chat": [("settings", "'{'"), ("settings", "'{}'"), ("settings", """'{"quiet":7}'""")],
}
FIRST = {"node": "node_no = 1", "affiliation": "node_no = 1 AND jid LIKE 'bad%'", "mirror": "name = 'bad'"}
READS: dict[str, Callable[[ReadTx], object]] = {
    "node": lambda tx: [
        tx.nodes("", 9),
        tx.listed_nodes("x", "", 9),
        tx.changed_nodes(None, 9),
    ],
    "affiliation": lambda tx: tx.affiliations(1),
    "source": lambda tx: [source_rows.sources(tx, 0, 1), source_rows.due(tx, NEVER_US, 9), source_rows.states(tx)],
    "source_push": lambda tx: [
        source_push_rows.pushes(tx, 0, 1),
        source_push_rows.due(tx, NEVER_US, 9),
        source_push_rows.states(tx),
    ],
    "mirror": lambda tx: stored_mirrors.mirrors(tx),
    "callback": lambda tx: [
        *(callback_rows.callbacks(tx, kind, 0, 1) for kind in (HUB, CLOUD)),
        *(callback_rows.due(tx, kind, NEVER_US, 1) for kind in (HUB, CLOUD)),
    ],
    "chat": lambda tx: chat_rows.rooms(tx),
}


def fill(tx: WriteTx, table: str) -> None:
    """Two rows of a table. The first one will be damaged. The service does nothing with them by itself."""
    for number, name in enumerate(("bad", "good"), 1):
        url = f"https://{name}.example/"
        if table == "source":
            source_rows.add(tx, new_source(name, url, NEVER_US - 1))
        elif table == "source_push":
            target = PushTarget(PushKind.HUB, url, url)
            source_push_rows.put(tx, SourcePush(0, 0, name, target, PushState.ACTIVE, NEVER_US - 1, 1, 1))
        elif table == "mirror":
            stored_mirrors.put(
                tx,
                MirrorRow(
                    Mirror(name, "nowhere", f"xmpp:{name}.example?;node=n", Direction.OUT),
                    False,
                    {Direction.OUT: MirrorState()},
                ),
            )
        elif table == "callback":
            settings = {"settings": TERMS, "due_us": NEVER_US - 1}
            callback_rows.put(tx, Callback(HUB.name, 9, url, f"t{number}", name, 1, NEVER_US, **settings))  # type: ignore[arg-type]
        elif table == "chat":
            chat_rows.put(tx, ChatRow(f"{name}@rooms.example.org", True))


async def stored(start: Starter, table: str) -> Component:
    """A service with two nodes, and rows of a table."""
    component = await start()
    for node in ("bad", "good"):
        await component.create(ALICE, node)
        await component.subscribe(CAROL, node)
        await component.affiliate(ALICE, node, "bad@example.org", "member")
        await component.affiliate(ALICE, node, "good@example.org", "member")
        await component.publish(ALICE, node, "one")
    await component.app.service.store.write(lambda tx: fill(tx, table))
    return component


@pytest.mark.parametrize(
    ("table", "column", "value"), [(table, *damage) for table, damages in DAMAGES.items() for damage in damages]
)
async def test_damaged_row_stops_no_others(
    start: Starter, start_web: WebStarter, table: str, column: str, value: str
) -> None:
    component = await stored(start, table)
    first = FIRST.get(table, f"rowid = (SELECT min(rowid) FROM {table})" if table != "chat" else "jid LIKE 'bad%'")

    def damage(tx: WriteTx) -> None:
        tx.db.run("PRAGMA ignore_check_constraints = ON")  # a disk checks nothing
        tx.db.run(f"UPDATE {table} SET {column} = {value} WHERE {first}")

    await component.app.service.store.write(damage)
    await start.stop(component)
    rows._log_damaged_row.cache_clear()
    with capture_logs() as logs:
        web = await start_web(bot={"enabled": False})
        component = web.component
        await component.publish(ALICE, "good", "two")
        await component.next_event(bare(CAROL))
        for user in (ALICE, CAROL):
            assert "'good'" in text_of(ok(await component.ask(user, "get", f"<query xmlns='{ITEMS}'/>"))).replace(
                '"', "'"
            )
            ok(await component.get(user, "<affiliations/>"))
            ok(await component.get(user, "<subscriptions/>"))
        for path in ("/", "/feeds", "/feeds/good.atom", "/feeds.opml", "/feeds.nno", "/search?q=two", "/metrics"):
            assert (await web.get(path)).status < 400, path
        for _ in range(2):
            listed = repr(await component.app.service.store.read(READS[table]))
            listed_by_writer = repr(await component.app.service.write(lambda tx, _context: READS[table](tx)))
    # Readers get U+FFFD in place of what is no UTF-8.
    assert "good" in listed and ("bad" not in listed or "\ufffd" in listed)
    assert "good" in listed_by_writer and "bad" not in listed_by_writer
    named = [log["table"] for log in logs if log["event"] == "row_damaged"]
    assert set(named) == ({table} if (table, column) not in UNSEEN else set())
    assert not [log for log in logs if "exc_info" in log]


# Statements do not select these rows at all.
UNSEEN = {("callback", "kind")}
