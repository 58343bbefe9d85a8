"""A pull that is held until an item comes stays within its budget: calls, modules of the package, statements.

Each limit is what one more held pull takes now for an item that is published in its feed. A change that makes a pull
cheaper lowers it; one that makes it dearer needs a reason.
"""

from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from budgets.support_held import HeldWork
from budgets.support_http import DOMAIN, OWNER, Budget, HttpWork, PageWork, http_work
from smartfeeds.service.requests import CreateNode

MARGIN = 1.03  # for other versions of the libraries


async def of_another_feed(work: HttpWork) -> PageWork:
    await work.app.service.handle(CreateNode(OWNER, DOMAIN, "other"))
    return await HeldWork(work, lambda number: f"max={number + 1}", "other").of_unanswered()


async def alike(work: HttpWork) -> PageWork:
    """Its request included, as for `different`."""
    return await HeldWork(work, lambda _number: "max=50").of_answered()


async def different(work: HttpWork) -> PageWork:
    return await HeldWork(work, lambda number: f"max={number + 1}").of_answered()


async def without_the_item(work: HttpWork) -> PageWork:
    """Different views that the item is not in. Its pull waits on."""
    return await HeldWork(work, lambda number: f"category=c{number}").of_unanswered()


# Of 22 pulls, compared with two. What several pulls share is a part of a statement for each.
BUDGETS = {
    of_another_feed: Budget(0, 0, 0, 0.0),
    alike: Budget(171, 98, 11, 0.0),
    different: Budget(482, 331, 32, 3.0),
    without_the_item: Budget(295, 209, 30, 7.0),
}


@pytest.mark.parametrize(("measure", "budget"), [pytest.param(*row, id=row[0].__name__) for row in BUDGETS.items()])
async def test_held_pull_stays_within_its_budget(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    measure: Callable[[HttpWork], Awaitable[PageWork]],
    budget: Budget,
) -> None:
    async def work_in(folder: Path) -> PageWork:
        async with http_work(folder, monkeypatch) as work:
            return await measure(work)

    await budget.assert_holds(work_in, tmp_path, MARGIN)
