"""A notification of the cloud stays within its budget: calls, modules of the package, SQL statements.

The limit is what one more callback takes now for an item, from the publish to the stored mark and result, over a new
connection. A change that makes it cheaper lowers the limit; one that makes it dearer needs a reason.
"""

from pathlib import Path

import pytest

from budgets.support_callbacks import Subscription, callback_work
from budgets.support_http import Budget, PageWork
from smartfeeds.features.cloud.cloud import CloudServer

MARGIN = 1.03  # for other versions of the libraries


def at_cloud(feed: str, host: str, port: int) -> Subscription:
    form = {"port": str(port), "path": "/ping", "protocol": "http-post", "url1": f"{feed}.rss", "domain": host}
    return Subscription("/rsscloud/pleaseNotify", {"notifyProcedure": "", **form})


async def test_notification_of_the_cloud_stays_within_its_budget(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def work_in(folder: Path) -> PageWork:
        async with callback_work(folder, monkeypatch, CloudServer) as work:
            return await work.of_delivery(at_cloud)

    await Budget(743, 428, 40, 5).assert_holds(work_in, tmp_path, MARGIN)
