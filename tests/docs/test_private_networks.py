"""Who may make the service request addresses in which networks: the table in docs/operator.md, and the code.

The tests read the source, so a client of another module without rows fails.
"""

import ast
import re
from pathlib import Path

import pytest

from smartfeeds.features.polling.source import Reach, Source, SourceSettings, new_source
from smartfeeds.features.prefetch.enclosure import Enclosure, EnclosureState
from smartfeeds.features.prefetch.queue import DueEnclosure

pytestmark = pytest.mark.needs("prefetch", "nno", "mirrors", "pages", "hub", "cloud", "webhook", "doctor", "demo")

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "component" / "smartfeeds"
PAGE = (ROOT / "docs" / "operator.md").read_text("utf-8")
CLIENTS = {"Fetcher", "CallbackClient"}
COMMANDS = {"what a command names: `import`, `nno`, `source check`"}
# The modules that make HTTP clients, and the rows of the table that are about their requests. No feature makes requests
# without one of these clients (`tests/unit/test_layers.py`). The demo has only servers of its own.
ROWS = {
    "features/polling/setup.py": {
        "feeds of sources and their older pages, hubs and clouds",
        "the same of sources that users have added",
        "the same of sources that come from a subscription list",
        "the feed of an address that somebody wants to follow",
        "the same for everybody else",
        # These use the clients of polls (`features/nno/setup.py`).
        "ESS files of `[[nno]]`",
        "feeds that ESS files name",
    },
    "features/mirrors/setup.py": {"feeds of mirrors, and their hubs"},
    "features/prefetch/setup.py": {"enclosures of sources"},
    "features/pages/setup.py": {"images of entries"},
    "features/callbacks/setup.py": {"callbacks of the hub and of the cloud"},
    "features/webhook/webhooks.py": {"webhooks"},
    "features/doctor/outside.py": {"this service itself, by `doctor`"},
    "features/polling/adding.py": COMMANDS,
    "features/nno/command.py": COMMANDS,
    "cli/fetching.py": COMMANDS,
    "features/demo/blog.py": set(),
}


def test_table_has_the_requests_of_all_clients() -> None:
    """A new client needs a row that says who chooses its addresses."""
    modules = {
        str(path.relative_to(PACKAGE))
        for path in PACKAGE.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in CLIENTS
    }
    section = PAGE.partition("\n## Allow requests to private networks\n")[2].partition("\n## ")[0]
    rows = [name for name in re.findall(r"(?m)^\| ([^|]+) \|", section) if name != "the service requests"]
    assert modules == ROWS.keys()
    assert set(rows) == set().union(*ROWS.values()) and len(rows) == len(set(rows))


def source_of(url: str, *, owner: str = "", list_no: int = 0, allow_private: bool = False) -> Source:
    """A source of an admin, of a user, or from a list."""
    return new_source("n", url, 0, SourceSettings(list_no=list_no, allow_private=allow_private), owner=owner)


@pytest.mark.parametrize(
    ("owner", "list_no", "allow_private", "reach"),
    [
        ("", 0, False, Reach.LISTED),
        ("", 0, True, Reach.EVERYWHERE),
        ("alice@example.org", 0, False, Reach.PUBLIC),
        ("", 7, False, Reach.PUBLIC),
        ("", 7, True, Reach.EVERYWHERE),
    ],
)
def test_networks_of_a_source(owner: str, list_no: int, allow_private: bool, reach: Reach) -> None:
    assert source_of("http://a/f", owner=owner, list_no=list_no, allow_private=allow_private).reach is reach


ADMIN = source_of("http://a:80/f")
USER = source_of("http://a/f", owner="alice@example.org")
PRIVATE = source_of("http://b/f", allow_private=True)


@pytest.mark.parametrize(
    ("url", "sources", "reach"),
    [
        ("http://a/x", [ADMIN], Reach.LISTED),
        ("http://A:80/x", [USER, ADMIN], Reach.LISTED),
        ("https://a/x", [ADMIN], Reach.PUBLIC),
        ("http://a:8080/x", [ADMIN], Reach.PUBLIC),
        ("http://b.a/x", [ADMIN], Reach.PUBLIC),
        ("http://a/x", [USER], Reach.PUBLIC),
        ("http://a/x", [USER, PRIVATE], Reach.PUBLIC),
        ("http://b/x", [ADMIN, PRIVATE], Reach.EVERYWHERE),
        ("http://a/x", [], Reach.PUBLIC),
    ],
)
def test_networks_of_an_enclosure(url: str, sources: list[Source], reach: Reach) -> None:
    """Those of the sources at its own host and port."""
    for sorted_sources in (sources, sources[::-1]):
        row = Enclosure(1, url, source_of(url).host, "", "", None, EnclosureState.WAITING, "", 0, 0)
        assert DueEnclosure(row, tuple(sorted_sources), 1, 1, "").reach is reach
