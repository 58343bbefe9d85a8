"""docs/administration.md names every ad-hoc command of the table, with its node and its audience."""

import re
from pathlib import Path

from smartfeeds.service import admin_process
from smartfeeds.xmpp.command_fields import JIDS
from smartfeeds.xmpp.command_lists import PAGE_ROWS
from smartfeeds.xmpp.command_table import COMMANDS

PAGE = (Path(__file__).parents[2] / "docs" / "administration.md").read_text("utf-8")


def test_page_has_every_command_in_the_order_of_the_table() -> None:
    rows = re.findall(r"(?m)^\| ([^|]+) \| `([^`]+#[^`]+)` \| ([^|]+) \| [^|]+ \|$", PAGE)

    assert rows == [(each.name, each.node, each.audience.value) for each in COMMANDS.values()]


def test_page_has_the_bounds_of_the_program() -> None:
    assert f"pages of {PAGE_ROWS} entries" in PAGE
    assert f"up to {JIDS} JIDs" in PAGE
    assert f"sends {admin_process.ANNOUNCE_BATCH} messages and then pauses for a second" in PAGE
    assert admin_process.ANNOUNCE_PAUSE_S == 1.0
    assert f"up to {admin_process.MAX_TEXT_BYTES:,} bytes" in PAGE
