"""docs/administration.md names every ad-hoc command of the table, with its node and its audience."""

import re
from pathlib import Path

from smartfeeds.cli import main
from smartfeeds.features.administration import adhoc_users as admin_users
from smartfeeds.features.administration import process as admin_process
from smartfeeds.service import work as admin_work
from smartfeeds.xmpp.command_fields import JIDS
from smartfeeds.xmpp.command_lists import PAGE_ROWS
from support.commands import COMMANDS
from support.routes import TABLE
from support.shell import commands

PAGE = (Path(__file__).parents[2] / "docs" / "administration.md").read_text("utf-8")


def test_page_has_every_command_in_the_order_of_the_table() -> None:
    rows = re.findall(r"(?m)^\| ([^|]+) \| `([^`]+#[^`]+)` \| ([^|]+) \| [^|]+ \|$", PAGE)

    assert sorted(rows) == sorted((each.name, each.node, each.audience.value) for each in COMMANDS.values())


def test_page_has_the_bounds_of_the_program() -> None:
    assert f"pages of {PAGE_ROWS} entries" in PAGE
    assert f"up to {JIDS} JIDs" in PAGE
    assert f"up to {admin_work.WORK_SHOWN} entries" in PAGE
    assert f"the oldest {admin_users.MOST_ITEMS:,} at most" in PAGE
    assert f"sends {admin_process.ANNOUNCE_BATCH} messages and then pauses for a second" in PAGE
    assert admin_process.ANNOUNCE_PAUSE_S == 1.0
    assert f"up to {admin_process.MAX_TEXT_BYTES:,} bytes" in PAGE


def test_page_names_the_same_tasks_in_other_ways() -> None:
    """[OPS-068] Every name in the table exists. Other commands exist for chat clients only."""
    rows = re.findall(r"(?m)^\| ([a-z ,]*) \| ((?:`[a-z-]+`(?:, )?)+) \|([^|]*)\|([^|]*)\|$", PAGE)
    chat, command_line, http = (
        [name for row in rows for name in re.findall(r"`([^`]+)`", row[column])] for column in (1, 2, 3)
    )

    project = {node.rpartition("#")[2] for node in COMMANDS if node.startswith("urn:smartfeeds:")}
    assert set(chat) <= project
    in_one_way = {"log-level", "cancel-stop", "list-work"}
    assert project - set(chat) == in_one_way
    assert {f"smartfeeds {name}" for name in command_line} <= set(commands(main))
    assert set(http) <= {route.operation.name for route in TABLE}
