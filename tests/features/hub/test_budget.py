"""A delivery of the hub stays within its budget: calls, modules of the package, SQL statements.

The limit is what one more callback takes now for an item, from the publish to the stored mark and result, over a new
connection. A change that makes it cheaper lowers the limit; one that makes it dearer needs a reason.
"""

from pathlib import Path

import pytest

from budgets.support_callbacks import Subscription, callback_work
from budgets.support_http import Budget, PageWork
from smartfeeds.features.hub.hub import Hub

MARGIN = 1.03  # for other versions of the libraries


def at_hub(feed: str, host: str, port: int) -> Subscription:
    form = {"mode": "subscribe", "topic": f"{feed}/", "callback": f"http://{host}:{port}/push", "verify": "sync"}
    return Subscription("/hub", {f"hub.{name}": value for name, value in form.items()})


async def test_delivery_of_the_hub_stays_within_its_budget(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def work_in(folder: Path) -> PageWork:
        async with callback_work(folder, monkeypatch, Hub) as work:
            return await work.of_delivery(at_hub)

    await Budget(736, 363, 35, 3).assert_holds(work_in, tmp_path, MARGIN)
