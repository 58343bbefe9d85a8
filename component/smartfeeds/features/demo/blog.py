"""The blog of `demo serve`: a page that names its feed, the feed in RSS 2.0, and a page for each post.

The service follows it as any blog of another server. So that a new post arrives at once, the feed names an rssCloud
(RSS 2.0, `cloud`): the service registers there, and the blog calls it after each post. Posts and registrations are in
one file, so that the next start has them.
"""

import hmac
import json
import secrets
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass, field
from email.utils import formatdate
from html import escape
from http import HTTPStatus
from pathlib import Path
from typing import Final
from urllib.parse import urlencode

from aiohttp import web

from smartfeeds.core.ip_addresses import parse_networks
from smartfeeds.errors import ConfigError, LinkError
from smartfeeds.local.process import HOST
from smartfeeds.net.clients import CallbackClient

FILE: Final = "blog.json"
TITLE: Final = "Harbour Notes"
_MAX_TEXT: Final = 20_000
_MAX_READERS: Final = 20
_DAY_S: Final = 86_400
_RSS: Final = "application/rss+xml"
# Title, text and age in days of the posts that a new blog has.
_FIRST_POSTS: Final = (
    ("The lamp is back", "The keeper has cleaned all forty panes. Tonight at nine it turns again.", 9),
    ("Market on the quay", "Saturday from eight: smoked fish, rope, and the last of the plums.", 4),
    ("Storm warning", "Wind from the north-west, force nine. Double your lines.", 1),
)


@dataclass(frozen=True, slots=True)
class BlogPost:
    """A post. `at_s` is its time in seconds since the Unix epoch."""

    title: str
    text: str
    at_s: int


@dataclass(slots=True)
class BlogData:
    """The content of the file: the posts, oldest first, and the addresses that are called after each new one."""

    posts: list[BlogPost] = field(default_factory=list)
    readers: list[str] = field(default_factory=list)


class Blog:
    """The blog in `folder`, at a port of the loopback interface. `secret` is for publishing (`publish_post`)."""

    def __init__(self, folder: Path, port: int, secret: str) -> None:
        self.url = f"http://{HOST}:{port}/"
        self._port = port
        self._secret = secret
        self._path = folder / FILE
        self._data = self._load()
        self._client = CallbackClient(parse_networks((HOST,)))
        self._app = web.Application(client_max_size=4 * _MAX_TEXT)
        self._app.add_routes(
            [
                web.get("/", self._front),
                web.get("/feed.xml", self._feed),
                web.get(r"/posts/{number:\d{1,6}}", self._post),
                web.post("/posts", self._publish),
                web.post("/cloud", self._register),
            ]
        )

    @asynccontextmanager
    async def serving(self) -> AsyncIterator[None]:
        """Serves the blog until the block ends. Raises LinkError if its port is in use."""
        runner = web.AppRunner(self._app, access_log=None)
        await runner.setup()
        try:
            async with self._client:
                try:
                    await web.TCPSite(runner, HOST, self._port).start()
                except OSError as error:
                    raise LinkError(
                        f"the blog of the demonstration: cannot bind {self.url}: {error.strerror}"
                    ) from None
                yield
        finally:
            await runner.cleanup()

    # The file.

    def _load(self) -> BlogData:
        try:
            stored = json.loads(self._path.read_text())
            return BlogData([BlogPost(**post) for post in stored["posts"]], list(stored["readers"]))
        except FileNotFoundError:
            now_s = int(time.time())
            return BlogData([BlogPost(title, text, now_s - days * _DAY_S) for title, text, days in _FIRST_POSTS])
        except (OSError, ValueError, TypeError, KeyError):
            raise ConfigError(f"{self._path} is not valid; remove it to start the blog anew") from None

    def _save(self) -> None:
        partial = self._path.with_suffix(".new")
        partial.write_text(json.dumps(asdict(self._data)))
        partial.replace(self._path)

    # Reading.

    async def _front(self, _request: web.Request) -> web.Response:
        posts = "".join(
            f'<li><a href="/posts/{number}">{escape(post.title)}</a></li>'
            for number, post in reversed(list(enumerate(self._data.posts)))
        )
        return self._page(TITLE, f"<ul>{posts}</ul>")

    async def _post(self, request: web.Request) -> web.Response:
        number = int(request.match_info["number"])
        if number >= len(self._data.posts):
            raise web.HTTPNotFound
        post = self._data.posts[number]
        return self._page(post.title, f'<p>{escape(post.text)}</p><p><a href="/">{TITLE}</a></p>')

    def _page(self, title: str, content: str) -> web.Response:
        link = f'<link rel="alternate" type="{_RSS}" title="{TITLE}" href="/feed.xml">'
        head = f'<meta charset="utf-8"><title>{escape(title)}</title>{link}'
        text = (
            f'<!DOCTYPE html><html lang="en"><head>{head}</head><body><h1>{escape(title)}</h1>{content}</body></html>'
        )
        headers = {"Content-Security-Policy": "default-src 'none'", "X-Content-Type-Options": "nosniff"}
        return web.Response(text=text, content_type="text/html", headers=headers)

    async def _feed(self, _request: web.Request) -> web.Response:
        items = "".join(
            f"<item><title>{escape(post.title)}</title><link>{self.url}posts/{number}</link>"
            f"<guid>{self.url}posts/{number}</guid><pubDate>{formatdate(post.at_s, usegmt=True)}</pubDate>"
            f"<description>{escape(escape(post.text))}</description></item>"
            for number, post in reversed(list(enumerate(self._data.posts)))
        )
        cloud = f'<cloud domain="{HOST}" port="{self._port}" path="/cloud" registerProcedure="" protocol="http-post"/>'
        channel = f"<title>{TITLE}</title><link>{self.url}</link><description>A blog of smartfeeds demo</description>"
        text = (
            f'<?xml version="1.0" encoding="utf-8"?><rss version="2.0"><channel>{channel}{cloud}{items}</channel></rss>'
        )
        return web.Response(body=text.encode(), content_type=_RSS)

    # Writing.

    async def _publish(self, request: web.Request) -> web.Response:
        # A page of another site can send a form here, but not this header.
        given = request.headers.get("Authorization", "")
        if not hmac.compare_digest(given.encode(), f"Bearer {self._secret}".encode()):
            raise web.HTTPForbidden
        post = await request.json()
        self._data.posts.append(BlogPost(post["title"], post["text"], int(time.time())))
        self._save()
        for reader in self._data.readers:
            await self._call(reader)
        return web.Response(text=f"{self.url}posts/{len(self._data.posts) - 1}")

    async def _call(self, reader: str) -> None:
        body = urlencode({"url": f"{self.url}feed.xml"}).encode()
        await self._client.post(reader, body, {"Content-Type": "application/x-www-form-urlencoded"})

    async def _register(self, request: web.Request) -> web.Response:
        """Registers a path of a program on this machine. The program must repeat a challenge first."""
        fields = await request.post()
        port, path = str(fields.get("port", "")), str(fields.get("path", ""))
        feed = f"{self.url}feed.xml"
        if not (port.isdecimal() and path.startswith("/")) or fields.get("url1") != feed:
            return _cloud_answer("port, path or url1 is not valid")
        reader, challenge = f"http://{HOST}:{int(port)}{path}", secrets.token_hex(16)
        answer = await self._client.get(f"{reader}?{urlencode({'url': feed, 'challenge': challenge})}")
        if not answer.succeeded or answer.body.decode("utf-8", "replace") != challenge:
            return _cloud_answer(f"{reader} did not repeat the challenge")
        if reader not in self._data.readers:
            self._data.readers = [*self._data.readers, reader][-_MAX_READERS:]
            self._save()
            # There may be a post since the program has read the feed, which named this cloud.
            await self._call(reader)
        return _cloud_answer()


def _cloud_answer(refusal: str = "") -> web.Response:
    message = escape(refusal or "Registered.")
    text = f'<?xml version="1.0"?><notifyResult success="{"false" if refusal else "true"}" msg="{message}"/>'
    return web.Response(text=text, content_type="text/xml")


async def publish_post(url: str, secret: str, title: str, text: str) -> str:
    """Publishes a post on the blog at this address, and returns the address of the post. Raises LinkError."""
    async with CallbackClient(parse_networks((HOST,))) as client:
        body = json.dumps({"title": title, "text": text}).encode()
        headers = {"Authorization": f"Bearer {secret}", "Content-Type": "application/json"}
        answer = await client.post(f"{url}posts", body, headers, max_bytes=1_024)
    if answer.status != HTTPStatus.OK:
        raise LinkError(f"the blog {url} {answer.outcome}")
    return answer.body.decode()
