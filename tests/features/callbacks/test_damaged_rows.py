"""A damaged row of a callback stops no others."""

import pytest

from smartfeeds.features.callbacks import rows as callback_rows
from smartfeeds.features.callbacks.registration import Callback
from smartfeeds.features.cloud.requests import CLOUD
from smartfeeds.features.hub import protocol as websub
from smartfeeds.features.hub.requests import HUB
from smartfeeds.store.base import WriteTx
from support.component import Starter
from support.damaged_rows import NEVER_US, DamagedTable, check_damage
from support.web import WebStarter

TERMS = websub.HUB_TERMS.write(websub.HubTerms(".atom", "", websub.HubDialect.WEBSUB, ""))


def add_callback(tx: WriteTx, name: str) -> None:
    settings = {"settings": TERMS, "due_us": NEVER_US - 1}
    url, token = f"https://{name}.example/", f"t-{name}"
    callback_rows.put(tx, Callback(HUB.name, 9, url, token, name, 1, NEVER_US, **settings))  # type: ignore[arg-type]


CALLBACK = DamagedTable(
    "callback",
    lambda tx: [
        *(callback_rows.callbacks(tx, kind, 0, 1) for kind in (HUB, CLOUD)),
        *(callback_rows.due(tx, kind, NEVER_US, 1) for kind in (HUB, CLOUD)),
    ],
    add_callback,
    unseen="kind",
)
CALLBACK_DAMAGES = [
    ("kind", "'hud'"),
    ("settings", "'', active = 1"),
    ("settings", "'{}'"),
    ("question", "'{', due_us = 1"),
    ("url", "'https://bad.example/', kind = 'cloud'"),
]


@pytest.mark.parametrize(("column", "value"), CALLBACK_DAMAGES)
async def test_damaged_callback_stops_no_others(start: Starter, start_web: WebStarter, column: str, value: str) -> None:
    await check_damage(start, start_web, CALLBACK, column, value)
