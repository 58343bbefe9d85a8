"""A feed from memory with Starlette under uvicorn: `python rival.py PORT FILE.json`, in an environment of its own.

Fifty activities are kept as dictionaries and fifty entries as text, as such an application would have them; each page
is made when it is asked for.
"""

import json
import sys
from pathlib import Path

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

_FEED = (
    '<?xml version="1.0" encoding="utf-8"?><feed xmlns="http://www.w3.org/2005/Atom"><id>urn:x</id>'
    "<title>x</title><updated>2026-01-01T00:00:00Z</updated>{}</feed>"
)


def app(page: dict[str, object], entries: list[str]) -> Starlette:
    """Answers /page.json and /page.atom."""

    async def activities(request: Request) -> Response:
        return JSONResponse(page)

    async def feed(request: Request) -> Response:
        return Response(_FEED.format("".join(entries)), media_type="application/atom+xml")

    return Starlette(routes=[Route("/page.json", activities), Route("/page.atom", feed)])


if __name__ == "__main__":
    found = json.loads(Path(sys.argv[2]).read_text("utf-8"))
    texts = Path(sys.argv[2]).with_suffix(".atom").read_text("utf-8").split("<entry")[1:]
    whole = ["<entry" + text.removesuffix("</feed>") for text in texts]
    uvicorn.run(app(found, whole), host="127.0.0.1", port=int(sys.argv[1]), access_log=False, log_level="warning")
