"""The stacks of tasks, for the report of a test that hangs."""

import asyncio
import gc
from collections.abc import Iterator
from typing import Any


def standing_tasks() -> str:
    """The tasks of this process that have not ended, each with the lines of its coroutines from the outermost one."""
    # `asyncio.all_tasks` needs the loop, which the report of a test cannot reach.
    tasks = [each for each in gc.get_objects() if isinstance(each, asyncio.Task) and not each.done()]
    return "\n\n".join("\n  ".join([task.get_name(), *_lines(task.get_coro())]) for task in tasks)


def _lines(waiting: Any) -> Iterator[str]:
    while waiting is not None:
        for kind in ("cr", "gi", "ag"):
            if (frame := getattr(waiting, f"{kind}_frame", None)) is not None:
                yield f"{frame.f_code.co_filename}:{frame.f_lineno} {frame.f_code.co_qualname}"
                waiting = getattr(waiting, "gi_yieldfrom" if kind == "gi" else f"{kind}_await")
                break
        else:
            return
