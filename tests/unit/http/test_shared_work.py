"""Work that is done once for all who ask for it at the same moment."""

import asyncio

import pytest

from smartfeeds.http.shared_work import SharedWork


class Works:
    """Works that end when they are let."""

    def __init__(self) -> None:
        self.begun: asyncio.Queue[asyncio.Future[int]] = asyncio.Queue()
        self.shared: SharedWork[str, str, int] = SharedWork(self._work)

    async def _work(self, _key: str, _asker: str) -> int:
        end: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        self.begun.put_nowait(end)
        return await end

    def ask(self, key: str = "a") -> asyncio.Task[int]:
        return asyncio.create_task(self.shared.get(key, "somebody"))


async def test_sharing_those_who_come_while_a_work_runs_share_the_next_one() -> None:
    """Nobody gets what was found out before he asked."""
    works = Works()
    early = works.ask()
    first = await works.begun.get()
    late = [works.ask(), works.ask(), works.ask()]
    await asyncio.sleep(0)
    first.set_result(1)
    assert await early == 1
    second = await works.begun.get()
    second.set_result(2)
    assert await asyncio.gather(*late) == [2, 2, 2]
    assert works.begun.empty()


async def test_sharing_different_works_do_not_wait_for_each_other() -> None:
    """Each key runs by itself."""
    works = Works()
    one, other = works.ask("a"), works.ask("b")
    first, second = await works.begun.get(), await works.begun.get()
    second.set_result(2)
    assert await other == 2
    first.set_result(1)
    assert await one == 1


async def test_sharing_a_failure_is_told_to_all_and_the_next_one_begins_anew() -> None:
    """Nothing is kept of a work that has ended."""
    works = Works()
    asked = [works.ask(), works.ask(), works.ask()]
    for reason in ("of one", "of two"):
        (await works.begun.get()).set_exception(ValueError(reason))
    reasons = [str(found) for found in await asyncio.gather(*asked, return_exceptions=True)]
    assert reasons == ["of one", "of two", "of two"]
    again = works.ask()
    (await works.begun.get()).set_result(3)
    assert await again == 3


@pytest.mark.parametrize("goes", [0, 1])
async def test_sharing_who_goes_takes_nothing_from_the_others(goes: int) -> None:
    """Also the one for whom the work was begun, and the first of those who wait for the next one."""
    works = Works()
    asked = [works.ask(), works.ask(), works.ask()]
    first = await works.begun.get()
    await asyncio.sleep(0)
    gone = asked.pop(goes)
    gone.cancel()
    with pytest.raises(asyncio.CancelledError):
        await gone
    if goes:
        first.set_result(3)
    (await works.begun.get()).set_result(4)
    assert await asyncio.gather(*asked) == ([3, 4] if goes else [4, 4])
    assert works.begun.empty()
