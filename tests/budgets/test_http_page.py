"""The work of a page, a publish and an event over HTTP stays within its budget: calls, modules, statements.

Each limit is what a page takes now. A change that makes a page cheaper lowers it; one that makes it dearer needs a
reason.
"""

from pathlib import Path

import pytest

from budgets.support_http import ENTRY, Budget, PageWork, http_work

# For other versions of the libraries, and because the requests of a round may be read in several pieces.
MARGIN = 1.04
# One for each page, and five for each group of reads. The twenty pages of a round arrive in one to four groups, as the
# event loop happens to read them.
STATEMENTS = 1 + 5 * 4 / 20  # goal: 3, BEGIN and ROLLBACK included; and 30 modules


@pytest.mark.parametrize(
    ("accept", "budget"),
    [
        pytest.param("application/atom+xml", Budget(284, 606, 30, STATEMENTS), id="atom"),
        pytest.param("application/json", Budget(282, 606, 30, STATEMENTS), id="json"),
    ],
)
async def test_a_page_stays_within_its_budget(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, accept: str, budget: Budget
) -> None:
    async def work_in(folder: Path) -> PageWork:
        async with http_work(folder, monkeypatch) as work:
            return await work.of_page(accept)

    await budget.assert_holds(work_in, tmp_path, MARGIN)


_ENTRY_OF_NOBODY = ENTRY.replace("<author><name>Ann</name></author>", "")


@pytest.mark.needs("accounts", "authoring")
@pytest.mark.parametrize(
    ("media_type", "body", "budget"),
    [
        pytest.param("application/atom+xml", ENTRY, Budget(800, 663, 68, 20.0), id="atom"),
        pytest.param("application/atom+xml", _ENTRY_OF_NOBODY, Budget(811, 678, 68, 20.0), id="atom without an author"),
        pytest.param("text/plain", "Report {number}\n{text}", Budget(958, 826, 79, 20.0), id="text"),
    ],
)
async def test_a_publish_stays_within_its_budget(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, media_type: str, body: str, budget: Budget
) -> None:
    async def work_in(folder: Path) -> PageWork:
        async with http_work(folder, monkeypatch) as work:
            return await work.of_publishes(media_type, body)

    await budget.assert_holds(work_in, tmp_path, MARGIN)


async def test_an_item_on_event_streams_stays_within_its_budget(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def work_in(folder: Path) -> PageWork:
        async with http_work(folder, monkeypatch) as work:
            return await work.of_events()

    await Budget(1602, 1361, 50, 16).assert_holds(work_in, tmp_path, MARGIN)
