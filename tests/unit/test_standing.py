"""What a test that hangs shows of its tasks (support/standing.py)."""

import asyncio

from support.standing import standing_tasks
from support.waiting import wait_for


async def test_every_line_at_which_a_task_stands_is_shown() -> None:
    begun = asyncio.Event()

    async def inner() -> None:
        begun.set()
        await asyncio.Event().wait()

    async def outer() -> None:
        await inner()

    task = asyncio.create_task(outer(), name="the hanging one")
    await wait_for(begun.wait(), "the task")
    (shown,) = [text for text in standing_tasks().split("\n\n") if "the hanging one" in text]
    task.cancel()

    name, *lines = shown[shown.index("the hanging one") :].split("\n  ")
    assert name == "the hanging one"
    assert [line.rpartition(".")[2] for line in lines] == ["outer", "inner", "wait"]
    assert all(line.partition(":")[0].endswith(".py") for line in lines)
