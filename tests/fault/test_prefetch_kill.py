"""The service is killed in the middle of a download: the next process takes it up and serves the whole file."""

import asyncio
import signal
from pathlib import Path

import aiohttp
from aiohttp import web

from smartfeeds.features.polling.source import SourceSettings, new_source
from smartfeeds.features.polling.sources import add_source
from smartfeeds.features.prefetch import rows as enclosure_rows
from smartfeeds.features.prefetch.enclosure import Enclosure, EnclosureState
from smartfeeds.features.prefetch.enclosure_files import EnclosureFolder
from smartfeeds.local.process import free_port
from smartfeeds.store.base import WriteTx
from smartfeeds.store.file_folder import BUFFER_BYTES
from support.prefetching import podcast
from support.process import ServiceProcess
from support.service import stored_service
from support.waiting import HANG_S
from support.website import Site, running_site

DOMAIN = "feeds.example.org"
DATA = bytes(range(256)) * (BUFFER_BYTES * 3 // 256)
HALF = BUFFER_BYTES + 1_000
TAG = '"1"'


class Media:
    """An enclosure of which only a part is sent until `gate` is set. `asked` are the ranges of the requests."""

    def __init__(self) -> None:
        self.gate = asyncio.Event()
        self.asked: list[str] = []

    async def page(self, request: web.Request) -> web.StreamResponse:
        text = request.headers.get("Range", "")
        self.asked.append(text)
        start = int(text.removeprefix("bytes=").partition("-")[0] or 0)
        headers = {"Content-Type": "audio/mpeg", "ETag": TAG, "Content-Length": str(len(DATA) - start)}
        if text:
            headers["Content-Range"] = f"bytes {start}-{len(DATA) - 1}/{len(DATA)}"
        response = web.StreamResponse(status=206 if text else 200, headers=headers)
        await response.prepare(request)
        if not self.gate.is_set():
            await response.write(DATA[start : start + HALF])
            await self.gate.wait()
            return response
        await response.write(DATA[start:])
        return response


async def read_row(config: Path) -> Enclosure | None:
    """The only enclosure."""
    async with stored_service(config) as service:
        rows = await service.store.read(lambda tx: enclosure_rows.enclosures(tx, 0, 2))
    return rows[0] if rows else None


async def until_partial(folder: EnclosureFolder) -> None:
    """Returns when bytes of an enclosure are on the disk."""
    async with asyncio.timeout(HANG_S):
        while not any(path.stat().st_size for path in folder.path.glob("partial/*")):  # noqa: ASYNC110 - another process
            await asyncio.sleep(0.05)


async def until_arrived(config: Path) -> Enclosure:
    """Returns the enclosure when its file is complete."""
    async with asyncio.timeout(HANG_S):
        while True:
            row = await read_row(config)
            if row is not None and row.state is EnclosureState.ARRIVED:
                return row
            await asyncio.sleep(0.05)


async def test_killed_download_is_taken_up(tmp_path: Path) -> None:
    """[PRE-018] [PRE-027] [PRE-021] [RSS-035] Nothing is shown before the file is complete."""
    port, media, folder = free_port(), Media(), EnclosureFolder(tmp_path / "enclosures")
    url = f"http://127.0.0.1:{port}"
    config = tmp_path / "smartfeeds.toml"
    config.write_text(
        f'[component]\njid = "{DOMAIN}"\nsecret = "s"\nport = 1\n[store]\nurl = "sqlite:///{tmp_path}/feeds.db"\n'
        f'[http]\nlisten = "127.0.0.1:{port}"\nbase_url = "{url}"\n[sources]\nallowed_networks = ["127.0.0.0/8"]\n'
        f'[prefetch]\nfolder = "{folder.path}"\nwindows = ["always"]\n'
    )
    async with running_site() as site, aiohttp.ClientSession() as session, ServiceProcess(config) as service:
        site.pages |= {"/feed": podcast("a"), "/a.mp3": media.page}
        await prepare(config, site)
        await service.start()
        await ask(config)
        await until_partial(folder)
        await service.end(signal.SIGKILL)
        media.gate.set()
        row = await read_row(config)
        assert row is not None and row.state is EnclosureState.WAITING
        part_bytes = folder.part_bytes(row.digest)
        assert 0 < part_bytes < len(DATA)

        await service.start()
        async with asyncio.timeout(HANG_S):
            while (await fetched(session, f"{url}/healthz"))[0] != 200:  # noqa: ASYNC110 - another process
                await asyncio.sleep(0.05)
        row = await until_arrived(config)
        assert media.asked == ["", f"bytes={part_bytes}-"]
        assert await fetched(session, f"{url}/enclosures/podcast/{row.digest}.mp3") == (200, DATA)
        assert await service.end() == 0
    assert "Traceback" not in service.said


async def prepare(config: Path, site: Site) -> None:
    """A source with prefetch."""
    async with stored_service(config) as service:
        source = new_source("podcast", site.url("/feed"), 0, SourceSettings(prefetch=True))
        await service.write(lambda tx, context: add_source(tx, context, source))


async def ask(config: Path) -> None:
    """Makes the enclosure due now, once it is known: a window begins at a random time."""
    async with asyncio.timeout(HANG_S):
        while await read_row(config) is None:  # noqa: ASYNC110 - another process
            await asyncio.sleep(0.05)

    def change(tx: WriteTx) -> None:
        (row,) = enclosure_rows.enclosures(tx, 0, 2)  # the service may have begun to load it since
        enclosure_rows.put(tx, row._replace(asked_us=1))

    async with stored_service(config) as service:
        await service.store.write(change)


async def fetched(session: aiohttp.ClientSession, url: str) -> tuple[int, bytes]:
    """The status and the body at an address, (0, b"") if nothing listens there."""
    try:
        async with session.get(url) as answer:
            return answer.status, await answer.read()
    except aiohttp.ClientConnectionError:
        return 0, b""
