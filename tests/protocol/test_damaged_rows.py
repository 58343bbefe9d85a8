"""A damaged row stops no others: the service starts, lists leave the row out, and the log names it.

The tests of features do the same with their tables.
"""

import pytest

from support.component import Starter
from support.damaged_rows import DamagedTable, check_damage
from support.web import WebStarter

NODE = DamagedTable(
    "node",
    lambda tx: [tx.nodes("", 9), tx.listed_nodes("x", "", 9), tx.changed_nodes(None, 9)],
    first="node_no = 1",
)
NODE_DAMAGES = [
    ("name", "'b' || char(1) || 'd'"),
    ("kind", "'fee'"),
    pytest.param("state", "'live ', listed = 1", marks=pytest.mark.needs("pages")),  # lists do not select it
    ("creator", "'a' || char(31)"),
    ("creator", "CAST(x'61ff' AS TEXT)"),
    ("options", "''"),
    ("options", "'[]'"),
    ("options", "CAST(x'7bff' AS TEXT)"),
]
AFFILIATION = DamagedTable("affiliation", lambda tx: tx.affiliations(1), first="node_no = 1 AND jid LIKE 'bad%'")
AFFILIATION_DAMAGES = [("affiliation", "'membex'"), ("affiliation", "''"), ("affiliation", "CAST(x'ff' AS TEXT)")]


@pytest.mark.parametrize(("column", "value"), NODE_DAMAGES)
async def test_damaged_node_stops_no_others(start: Starter, start_web: WebStarter, column: str, value: str) -> None:
    await check_damage(start, start_web, NODE, column, value)


@pytest.mark.parametrize(("column", "value"), AFFILIATION_DAMAGES)
async def test_damaged_affiliation_stops_no_others(
    start: Starter, start_web: WebStarter, column: str, value: str
) -> None:
    await check_damage(start, start_web, AFFILIATION, column, value)
