"""A damaged row of a source stops no others."""

import pytest

from smartfeeds.features.polling import push_rows as source_push_rows
from smartfeeds.features.polling import rows as source_rows
from smartfeeds.features.polling.push_links import PushTarget
from smartfeeds.features.polling.push_states import PushState, SourcePush
from smartfeeds.features.polling.source import PushKind, new_source
from smartfeeds.store.base import WriteTx
from support.component import Starter
from support.damaged_rows import NEVER_US, DamagedTable, check_damage
from support.web import WebStarter


def add_source(tx: WriteTx, name: str) -> None:
    source_rows.add(tx, new_source(name, f"https://{name}.example/", NEVER_US - 1))


def add_push(tx: WriteTx, name: str) -> None:
    url = f"https://{name}.example/"
    target = PushTarget(PushKind.HUB, url, url)
    source_push_rows.put(tx, SourcePush(0, 0, name, target, PushState.ACTIVE, NEVER_US - 1, 1, 1))


SOURCE = DamagedTable(
    "source",
    lambda tx: [source_rows.sources(tx, 0, 1), source_rows.due(tx, NEVER_US, 9), source_rows.states(tx)],
    add_source,
)
SOURCE_DAMAGES = [
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
]
SOURCE_PUSH = DamagedTable(
    "source_push",
    lambda tx: [
        source_push_rows.pushes(tx, 0, 1),
        source_push_rows.due(tx, NEVER_US, 9),
        source_push_rows.states(tx),
    ],
    add_push,
)
SOURCE_PUSH_DAMAGES = [
    ("state", "'activf'"),
    ("details", "'{'"),
    ("details", "'{}'"),
    ("details", """'{"target":3}'"""),
    ("token", "CAST(x'ff' AS TEXT), details = ''"),
]


@pytest.mark.parametrize(("column", "value"), SOURCE_DAMAGES)
async def test_damaged_source_stops_no_others(start: Starter, start_web: WebStarter, column: str, value: str) -> None:
    await check_damage(start, start_web, SOURCE, column, value)


@pytest.mark.parametrize(("column", "value"), SOURCE_PUSH_DAMAGES)
async def test_damaged_source_push_stops_no_others(
    start: Starter, start_web: WebStarter, column: str, value: str
) -> None:
    await check_damage(start, start_web, SOURCE_PUSH, column, value)
