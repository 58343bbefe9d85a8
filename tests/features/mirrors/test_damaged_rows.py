"""Damaged rows of mirrors are found."""

import pytest

from smartfeeds.features.mirrors import MIRRORS
from smartfeeds.features.mirrors import rows as stored_mirrors
from smartfeeds.features.mirrors.mirror import MIRROR_SETTINGS, Direction, Mirror, MirrorRow, MirrorState
from smartfeeds.store.base import WriteTx
from smartfeeds.store.rows import DAMAGES
from support.component import Starter
from support.damaged_rows import DamagedTable, check_damage
from support.web import WebStarter


def test_damaged_row_of_a_mirror_is_found() -> None:
    (reader,) = MIRRORS.row_readers()
    reader.read(("copy", 0, MIRROR_SETTINGS.write(Mirror("copy", "news", "https://b.example/")), "{}"))
    with pytest.raises(DAMAGES):
        reader.read(("copy", 0, "", "{}"))


def add_mirror(tx: WriteTx, name: str) -> None:
    mirror = Mirror(name, "nowhere", f"xmpp:{name}.example?;node=n", Direction.OUT)
    stored_mirrors.put(tx, MirrorRow(mirror, False, {Direction.OUT: MirrorState()}))


MIRROR = DamagedTable("mirror", stored_mirrors.mirrors, add_mirror, first="name = 'bad'")
MIRROR_DAMAGES = [("settings", "'{'"), ("settings", "'{}'"), ("state", "'[]'"), ("state", """'{"inn":{}}'""")]


@pytest.mark.parametrize(("column", "value"), MIRROR_DAMAGES)
async def test_damaged_mirror_stops_no_others(start: Starter, start_web: WebStarter, column: str, value: str) -> None:
    await check_damage(start, start_web, MIRROR, column, value)
