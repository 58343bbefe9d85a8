"""Memory that a burst has freed is returned to the system."""

import asyncio
import ctypes

import pytest

from smartfeeds.cli import run

BLOCKS = 4_000
BLOCK_BYTES = 20_000


class EndError(Exception):
    """The last pause."""


async def test_freed_memory_is_returned_after_a_burst() -> None:
    """A block at the end of the heap keeps glibc from returning the free ones below it."""
    libc = ctypes.CDLL(None)
    libc.malloc.argtypes, libc.malloc.restype = [ctypes.c_size_t], ctypes.c_void_p
    libc.free.argtypes = [ctypes.c_void_p]
    if not hasattr(libc, "malloc_trim"):
        pytest.fail("the tests run with glibc")
    sizes: list[int] = []
    last: list[int] = []

    async def sleep(_seconds: float) -> None:
        sizes.append(run._resident_bytes())
        if len(sizes) == 1:
            blocks = [libc.malloc(BLOCK_BYTES) for _ in range(BLOCKS)]
            for block in blocks:
                ctypes.memset(block, 1, BLOCK_BYTES)
            last.append(blocks.pop())
            for block in blocks:
                libc.free(block)
            sizes.append(run._resident_bytes())
        else:
            raise EndError

    with pytest.raises(EndError):
        await asyncio.wait_for(run._return_memory(sleep), 30)
    libc.free(last[0])
    before, burst, after = sizes
    assert burst - before > run.GROWTH_BYTES
    assert after - before < run.GROWTH_BYTES
