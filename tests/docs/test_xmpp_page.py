"""The page on XMPP names what the program has."""

import re
from pathlib import Path

from smartfeeds.core.options import OPTIONS, REFUSED

PAGE = (Path(__file__).parents[2] / "docs" / "xmpp.md").read_text("utf-8")


def test_table_has_every_node_option_and_no_other() -> None:
    table = PAGE.partition("\n### 2.1 Node options\n")[2].partition("\n| field |")[2].partition("\n\n")[0]
    columns = [row.split("|")[1] for row in table.splitlines()[2:]]

    named = [name for column in columns for name in re.findall(r"`(\w+)`", column)]
    assert sorted(named) == sorted({*OPTIONS, *REFUSED})
