"""What aiohttp does at most: `python -m bench.bare PORT FILE...` answers each FILE's bytes at its name, or 304."""

import asyncio
import sys
from pathlib import Path

from aiohttp import web

TYPES = {".json": "application/json; charset=utf-8", ".atom": "application/atom+xml; charset=utf-8"}
ETAG = 'W/"1"'


async def main(port: int, files: list[Path]) -> None:
    """Serves until it is ended."""
    prepared = {f"/{file.name}": (file.read_bytes(), TYPES[file.suffix]) for file in files}

    async def answer(request: web.BaseRequest) -> web.Response:
        body, media_type = prepared[request.path]
        if request.headers.get("If-None-Match") == ETAG:
            return web.Response(status=304, headers={"ETag": ETAG})
        return web.Response(body=body, headers={"Content-Type": media_type, "ETag": ETAG})

    server = web.Server(answer, access_log=None)
    listening = await asyncio.get_running_loop().create_server(server, "127.0.0.1", port)
    async with listening:
        await listening.serve_forever()


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]), [Path(name) for name in sys.argv[2:]]))
