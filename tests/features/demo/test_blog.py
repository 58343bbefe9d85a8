"""The blog of the demonstration, over real sockets."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp
import pytest
from aiohttp import web

from smartfeeds.app.formats import read_document
from smartfeeds.errors import ConfigError, LinkError
from smartfeeds.features.demo.blog import Blog, publish_post
from smartfeeds.formats.atom import read_meta
from smartfeeds.formats.autodiscovery import links_of
from smartfeeds.local.process import free_port

SECRET = "hush"


@asynccontextmanager
async def blog_in(folder: Path, port: int = 0) -> AsyncIterator[Blog]:
    blog = Blog(folder, port or free_port(), SECRET)
    async with blog.serving():
        yield blog


@pytest.fixture
async def blog(tmp_path: Path) -> AsyncIterator[Blog]:
    async with blog_in(tmp_path) as made:
        yield made


@pytest.fixture
async def session() -> AsyncIterator[aiohttp.ClientSession]:
    async with aiohttp.ClientSession() as made:
        yield made


class Reader:
    """A program that registers at the cloud. `repeats` says whether it repeats challenges."""

    def __init__(self) -> None:
        self.port = free_port()
        self.repeats = True
        self.told: list[str] = []

    @asynccontextmanager
    async def serving(self) -> AsyncIterator["Reader"]:
        app = web.Application()
        app.add_routes([web.get("/push", self._challenge), web.post("/push", self._tell)])
        runner = web.AppRunner(app)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", self.port).start()
        try:
            yield self
        finally:
            await runner.cleanup()

    async def _challenge(self, request: web.Request) -> web.Response:
        return web.Response(text=request.query["challenge"] if self.repeats else "no")

    async def _tell(self, request: web.Request) -> web.Response:
        self.told.append(str((await request.post())["url"]))
        return web.Response()

    async def register(self, blog: Blog, session: aiohttp.ClientSession, **changes: str) -> str:
        form = {"notifyProcedure": "", "protocol": "http-post", "port": str(self.port), "path": "/push"}
        form |= {"url1": f"{blog.url}feed.xml", **changes}
        async with session.post(f"{blog.url}cloud", data=form) as answer:
            return await answer.text()


async def feed_of(blog: Blog, session: aiohttp.ClientSession) -> bytes:
    async with session.get(f"{blog.url}feed.xml") as answer:
        assert answer.content_type == "application/rss+xml"
        return await answer.read()


async def test_page_names_the_feed_and_the_feed_has_the_posts(blog: Blog, session: aiohttp.ClientSession) -> None:
    async with session.get(blog.url) as answer:
        page = await answer.read()
    (link,) = links_of(page, blog.url)
    document = read_document(await feed_of(blog, session))

    assert link.href == f"{blog.url}feed.xml"
    assert (document.title, len(document.items), document.warnings) == ("Harbour Notes", 3, ())


async def test_post_is_on_its_page_and_in_the_feed(blog: Blog, session: aiohttp.ClientSession) -> None:
    """Its text is text, whatever it has."""
    address = await publish_post(blog.url, SECRET, "<b>Tea</b> & more", "1 < 2 </description>")
    async with session.get(address) as answer:
        page = await answer.text()
        assert answer.headers["Content-Security-Policy"] == "default-src 'none'"
    document = read_document(await feed_of(blog, session))

    assert "&lt;b&gt;Tea&lt;/b&gt; &amp; more" in page and "1 &lt; 2 &lt;/description&gt;" in page
    assert len(document.items) == 4 and b"<b>" not in document.items[0].payload
    assert read_meta(document.items[0].payload).text.endswith("1 < 2 </description>")


async def test_only_the_owner_of_the_folder_publishes(blog: Blog, session: aiohttp.ClientSession) -> None:
    """A page of another site can send a form to this machine, but no such header."""
    with pytest.raises(LinkError, match="answered 403"):
        await publish_post(blog.url, "wrong", "Tea", "")
    async with session.post(f"{blog.url}posts", json={"title": "x", "text": "y"}) as answer:
        assert answer.status == 403
    assert len(read_document(await feed_of(blog, session)).items) == 3


async def test_unknown_post_is_not_found(blog: Blog, session: aiohttp.ClientSession) -> None:
    async with session.get(f"{blog.url}posts/99") as answer:
        assert answer.status == 404


async def test_registered_readers_are_told_of_each_post(tmp_path: Path, session: aiohttp.ClientSession) -> None:
    """Also after the next start: a service registers once a day. The first call comes with the registration, for a post
    that was written since the feed was read."""
    port = free_port()
    async with Reader().serving() as reader:
        async with blog_in(tmp_path, port) as blog:
            assert 'success="true"' in await reader.register(blog, session)
            assert len(reader.told) == 1
            assert 'success="true"' in await reader.register(blog, session)
            await publish_post(blog.url, SECRET, "One", "")
        async with blog_in(tmp_path, port) as blog:
            await publish_post(blog.url, SECRET, "Two", "")
            assert reader.told == [f"{blog.url}feed.xml"] * 3
            assert len(read_document(await feed_of(blog, session)).items) == 5


async def test_reader_must_repeat_a_challenge(blog: Blog, session: aiohttp.ClientSession) -> None:
    async with Reader().serving() as reader:
        reader.repeats = False
        assert 'success="false"' in await reader.register(blog, session)
        for changes in ({"port": "x"}, {"path": "push"}, {"path": "@evil.example/"}, {"url1": "http://other.example/"}):
            assert 'success="false"' in await reader.register(blog, session, **changes)
        await publish_post(blog.url, SECRET, "One", "")
        assert reader.told == []


async def test_port_in_use_and_a_broken_file_are_explained(blog: Blog, tmp_path: Path) -> None:
    port = int(blog.url.rpartition(":")[2].strip("/"))
    with pytest.raises(LinkError, match=f"cannot bind {blog.url}"):
        async with blog_in(tmp_path / "other", port):
            pass
    (tmp_path / "blog.json").write_text(json.dumps({"posts": [1]}))
    with pytest.raises(ConfigError, match="is not valid; remove it"):
        Blog(tmp_path, port, SECRET)
