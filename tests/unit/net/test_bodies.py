"""Bodies of answers: what is compressed, cut off, or too large."""

import asyncio
import gzip
import tracemalloc
import zlib
from functools import partial
from itertools import pairwise

import pytest

from smartfeeds.net.bodies import Body, BodyError

# Without the time of day in it.
packed = partial(gzip.compress, mtime=0)
TEXT = b"hello world " * 100


def bare(data):
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    return packer.compress(data) + packer.flush()


async def feed(body, data, step):
    for at in range(0, len(data), step):
        await body.feed(data[at : at + step])
    return body.whole()


def read(encoding, data, limit=10_000, step=7):
    return asyncio.run(feed(Body(encoding, limit), data, step))


@pytest.mark.parametrize("step", [1, 7, 100_000])
@pytest.mark.parametrize(
    ("encoding", "data"),
    [
        ("", TEXT),
        ("identity", TEXT),
        ("none", TEXT),
        ("UTF-8", TEXT),
        ("binary", TEXT),
        ("identity, gzip", packed(TEXT)),
        ("gzip,utf-8", packed(TEXT)),
        ("gzip", packed(TEXT)),
        ("X-GZIP", packed(TEXT)),
        ("deflate", zlib.compress(TEXT)),
        ("gzip", packed(TEXT[:500]) + packed(TEXT[500:])),
        ("deflate", bare(TEXT)),
        ("gzip", packed(TEXT) + b"\0\0rubbish"),
        ("gzip", packed(TEXT) + b"rubbish" + packed(TEXT)),
        ("gzip", packed(TEXT) + bytes(512)),
        ("gzip", packed(TEXT[:500]) + bytes(512) + packed(TEXT[500:])),
    ],
    ids=[
        "none",
        "identity",
        "the word none",
        "a charset",
        "binary",
        "identity before gzip",
        "a charset behind gzip",
        "gzip",
        "x-gzip",
        "zlib",
        "two members",
        "deflate without header",
        "zeros and rubbish behind",
        "rubbish behind",
        "zeros behind",
        "zeros between",
    ],
)
def test_body_comes_out_whatever_pieces_it_came_in(encoding, data, step):
    assert read(encoding, data, step=step) == TEXT


@pytest.mark.parametrize("level", range(1, 10))
@pytest.mark.parametrize("data", [b"x", TEXT, bytes(1_000_000), bytes(range(256)) * 100], ids=len)
def test_compressed_body_of_any_level_comes_out(level, data):
    """Some servers take the name "deflate" literally and send no header."""
    without_header = zlib.compressobj(level, zlib.DEFLATED, -15)
    deflated = without_header.compress(data) + without_header.flush()
    for body in (deflated, zlib.compress(data, level), gzip.compress(data, level)):
        assert read("deflate", body, limit=1_000_000, step=100_000) == data


@pytest.mark.parametrize("encoding", ["", "gzip", "deflate"])
def test_empty_body_is_empty(encoding):
    assert read(encoding, b"") == b""


@pytest.mark.parametrize("encoding", ["", "gzip"])
def test_body_of_exactly_the_limit_is_taken_and_one_byte_more_is_not(encoding):
    def pack(data):
        return packed(data) if encoding else data

    assert read(encoding, pack(b"x" * 1000), limit=1000) == b"x" * 1000
    with pytest.raises(BodyError, match="larger than 1000 bytes"):
        read(encoding, pack(b"x" * 1001), limit=1000)


def test_bomb_is_stopped_before_it_fills_the_memory():
    """200 MB in 200 kB, in one piece."""
    bomb = packed(b"\0" * 200_000_000, 9)
    tracemalloc.start()
    try:
        with pytest.raises(BodyError, match="larger"):
            read("gzip", bomb, limit=1_000_000, step=len(bomb))
        assert tracemalloc.get_traced_memory()[1] < 5_000_000
    finally:
        tracemalloc.stop()


async def test_other_tasks_run_while_a_small_response_becomes_large():
    """64 kB that become 64 MB, in one piece."""
    body, written_bytes = Body("gzip", 64_000_000), [0]

    async def watch():
        while True:
            written_bytes.append(body._body.tell())
            await asyncio.sleep(0)

    watcher = asyncio.create_task(watch())
    assert len(await feed(body, packed(bytes(64_000_000), 9), step=100_000)) == 64_000_000
    watcher.cancel()
    written_bytes.append(64_000_000)
    assert max(after - before for before, after in pairwise(written_bytes)) <= 256 * 1024


async def test_body_is_handed_over_without_a_copy():
    body = Body("gzip", 10_000_000)
    data = packed(bytes(10_000_000), 9)
    tracemalloc.start()
    try:
        await body.feed(data)
        tracemalloc.reset_peak()
        assert len(body.whole()) == 10_000_000
        assert tracemalloc.get_traced_memory()[1] < 13_000_000
    finally:
        tracemalloc.stop()


def test_compressed_data_that_never_becomes_anything_is_stopped():
    """Empty members, one behind the other, count as they are."""
    with pytest.raises(BodyError, match="larger"):
        read("gzip", packed(b"") * 100, limit=1_000)


def test_body_of_very_many_members_is_refused():
    """Each member costs a copy of the rest of the data."""
    assert read("gzip", packed(b"x") * 1_000, limit=100_000, step=100_000) == b"x" * 1_000
    with pytest.raises(BodyError, match="more than 1000 gzip members"):
        read("gzip", packed(b"x") * 1_001, limit=100_000, step=100_000)


@pytest.mark.parametrize(
    ("encoding", "data", "reason"),
    [
        ("gzip", b"hello world, not compressed", "not the compressed data"),
        ("gzip", packed(TEXT)[:-9], "cut off"),
        ("gzip", packed(TEXT)[:1], "cut off"),
        ("gzip", packed(TEXT) + packed(TEXT)[:-9], "cut off"),
        ("gzip", packed(TEXT) + packed(TEXT)[:1], "cut off"),
        ("gzip", packed(TEXT) + packed(TEXT)[:-8] + bytes(8), "not the compressed data"),
        ("gzip", packed(TEXT) + packed(TEXT)[:10] + b"\xff" * 40, "not the compressed data"),
        ("br", b"", "not asked for"),
        ("gzip, gzip", b"", "not asked for"),
        ("utf-8, zstd", b"", r"not asked for \(zstd\)"),
    ],
    ids=[
        "plain",
        "half",
        "first byte",
        "half of the second member",
        "first byte of the second member",
        "wrong checksum of the second member",
        "damaged second member",
        "br",
        "twice",
        "zstd",
    ],
)
def test_body_that_cannot_be_read_says_why(encoding, data, reason):
    with pytest.raises(BodyError, match=reason):
        read(encoding, data, step=1_000)


def test_compressed_data_that_breaks_off_into_something_else_is_refused():
    data = bytearray(packed(bytes(range(256)) * 20))
    data[40:60] = b"\xff" * 20
    with pytest.raises(BodyError):
        read("gzip", bytes(data))
