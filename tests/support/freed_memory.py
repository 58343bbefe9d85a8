"""Frees a burst of memory in this process, and prints what it holds before, after the burst, and after the return.

Run by tests/unit/test_freed_memory.py in a process of its own: `python -m support.freed_memory`. glibc would take the
blocks from free memory of other tests, and keep it.
"""

import asyncio
import ctypes
import json

from smartfeeds.cli import run

BLOCKS = 4_000
BLOCK_BYTES = 20_000


class EndError(Exception):
    """The last pause."""


async def burst() -> list[int]:
    """The resident bytes. A block at the end of the heap keeps glibc from returning the free ones below it."""
    libc = ctypes.CDLL(None)
    libc.malloc.argtypes, libc.malloc.restype = [ctypes.c_size_t], ctypes.c_void_p
    libc.free.argtypes = [ctypes.c_void_p]
    sizes: list[int] = []

    async def sleep(_seconds: float) -> None:
        sizes.append(run._resident_bytes())
        if len(sizes) > 1:
            raise EndError
        blocks = [libc.malloc(BLOCK_BYTES) for _ in range(BLOCKS)]
        for block in blocks:
            ctypes.memset(block, 1, BLOCK_BYTES)
        for block in blocks[:-1]:
            libc.free(block)
        sizes.append(run._resident_bytes())

    try:
        await run._return_memory(sleep)
    except EndError:
        return sizes
    raise AssertionError("it returned memory for ever")


if __name__ == "__main__":
    print(json.dumps(asyncio.run(burst())))
