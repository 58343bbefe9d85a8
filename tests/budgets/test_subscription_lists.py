"""The work of a feed in an uploaded list stays within its budget, however long the list is.

The limits are what a feed takes now. All feeds are on one host, as those of a hosting service are. A change that makes
a feed cheaper lowers them; one that makes it dearer needs a reason.
"""

from pathlib import Path

import pytest

from budgets.support_http import DOMAIN, OWNER, Budget, PageWork, counting, http_work
from smartfeeds.features.polling.follower import AddressFollower, FollowList
from support.outlines import opml

pytestmark = pytest.mark.needs("polling")
BUDGET = Budget(645, 773, 45, 29.1)
MARGIN = 1.03  # for other versions of the libraries


@pytest.mark.parametrize("feeds", [100, 900])
async def test_feed_of_a_list_stays_within_its_budget(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, feeds: int
) -> None:
    """[SRC-083]"""

    async def work_in(folder: Path) -> PageWork:
        async with http_work(folder, monkeypatch, pubsub={"admins": [OWNER.bare_text]}) as work:
            follower = work.app.parts.get(AddressFollower)

            async def follow(host: str, feeds: int) -> None:
                document = opml(*(f'<outline xmlUrl="https://{host}/{number}.xml"/>' for number in range(feeds)))
                assert len((await follower.follow_list(FollowList(OWNER, DOMAIN, document))).added) == feeds

            await follow("a.example", 10)  # what is imported and cached at the first use is not counted
            async with counting(work.connections) as counts:
                await follow("b.example", feeds)
            return PageWork.of(counts(), feeds)

    await BUDGET.assert_holds(work_in, tmp_path, MARGIN)
