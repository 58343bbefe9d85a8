"""The page on XMPP names what the program has."""

import re
from pathlib import Path

from smartfeeds.core.access import RIGHTS, Access
from smartfeeds.core.model import Affiliation
from smartfeeds.core.options import OPTIONS, REFUSED, NodeKind, NodeOptions

PAGE = (Path(__file__).parents[2] / "docs" / "xmpp.md").read_text("utf-8")


def test_table_has_every_node_option_and_no_other() -> None:
    table = PAGE.partition("\n### 2.1 Node options\n")[2].partition("\n| field |")[2].partition("\n\n")[0]
    columns = [row.split("|")[1] for row in table.splitlines()[2:]]

    named = [name for column in columns for name in re.findall(r"`(\w+)`", column)]
    assert sorted(named) == sorted({*OPTIONS, *REFUSED})


def test_table_of_writers_has_the_rights_of_each_affiliation() -> None:
    words = {True: "yes", False: "no", None: "if `publish_model` lets them"}
    rows = {}
    for affiliation, rights in RIGHTS.items():
        access = Access(affiliation, NodeOptions(NodeKind.FEED))
        others = access.may_overwrite(own=False), access.may_retract(own=True), access.may_retract(own=False)
        rows[affiliation] = [words[each] for each in (rights.publish, *others)]
    table = PAGE.partition("\n| user | publish |")[2].partition("\n\n")[0]
    documented = {}
    for row in table.splitlines()[2:]:
        name, *cells = (cell.strip() for cell in row.strip("|").split("|"))
        for word in name.replace("and everybody else", "none").split(", "):
            documented[Affiliation(word)] = cells
    assert documented == rows
