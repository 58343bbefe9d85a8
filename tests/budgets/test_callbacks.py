"""A delivery to a callback stays within its budget: Python calls, modules of the package, SQL statements.

Each limit is what one more callback takes now for an item, from the publish to the stored mark and result, over a new
connection. A change that makes a delivery cheaper lowers it; one that makes it dearer needs a reason.
"""

from pathlib import Path

import pytest

from budgets.support_callbacks import Subscription, callback_work
from budgets.support_http import Budget

MARGIN = 1.03  # for other versions of the libraries


def at_hub(feed: str, host: str, port: int) -> Subscription:
    form = {"mode": "subscribe", "topic": f"{feed}/", "callback": f"http://{host}:{port}/push", "verify": "sync"}
    return Subscription("/hub", {f"hub.{name}": value for name, value in form.items()})


def at_cloud(feed: str, host: str, port: int) -> Subscription:
    form = {"port": str(port), "path": "/ping", "protocol": "http-post", "url1": f"{feed}.rss", "domain": host}
    return Subscription("/rsscloud/pleaseNotify", {"notifyProcedure": "", **form})


@pytest.mark.needs("hub")
async def test_delivery_of_the_hub_stays_within_its_budget(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from smartfeeds.features.hub.hub import Hub

    async with callback_work(tmp_path, monkeypatch, Hub) as work:
        found = await work.of_delivery(at_hub)
    Budget(729, 350, 35, 3).assert_holds(found, MARGIN)


@pytest.mark.needs("cloud")
async def test_notification_of_the_cloud_stays_within_its_budget(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from smartfeeds.features.cloud.cloud import CloudServer

    async with callback_work(tmp_path, monkeypatch, CloudServer) as work:
        found = await work.of_delivery(at_cloud)
    Budget(743, 428, 40, 5).assert_holds(found, MARGIN)
