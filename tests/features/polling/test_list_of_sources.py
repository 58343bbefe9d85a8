"""The sources as a list over HTTP."""

from typing import Any

from smartfeeds.core.token import TokenScope
from smartfeeds.features.polling import rows as source_rows
from smartfeeds.features.polling.polls import paused
from smartfeeds.features.polling.source import SourceSettings, new_source
from smartfeeds.formats.opml import read_outline
from smartfeeds.store.base import WriteTx
from support.bearer import bearer
from support.component import ALICE
from support.web import Web


async def make(web: Web, feeds: str) -> None:
    for name in feeds.split():
        await web.component.create(ALICE, name)


async def test_list_of_sources_names_what_others_may_follow(start_web: Any) -> None:
    """[SRC-083] [SRC-015] Sources of closed feeds, secret addresses and those of other lists are left out. The list of
    the feeds is another document."""
    web = await start_web()
    await make(web, "open")
    await web.component.create(ALICE, "closed", access_model="whitelist")

    def add(tx: WriteTx) -> None:
        for node, name, settings in (
            ("open", "feed", SourceSettings()),
            ("open", "login", SourceSettings(user="me", password="secret")),
            ("open", "key?key=1", SourceSettings()),
            ("open", "private", SourceSettings(allow_private=True)),
            ("open", "list", SourceSettings(is_list=True)),
            ("open", "listed", SourceSettings(list_no=7)),
            ("closed", "hidden", SourceSettings()),
        ):
            source_rows.add(tx, new_source(node, f"https://a.example/{name}", 0, settings))
        source_rows.add(tx, paused(new_source("open", "https://a.example/paused", 0), "the operator", 0))

    await web.component.app.service.store.write(add)

    async def addresses(path: str, **headers: str) -> list[str]:
        outlines = read_outline((await web.get(path, **headers)).body).outlines
        return [one.attributes.get("xmlUrl", "") for one in outlines]

    token = await bearer(web, ALICE, TokenScope.READ)
    assert await addresses("/feeds.opml") == [f"{web.origin}/feeds/open.rss"]
    assert await addresses("/feeds.opml?sources=true") == ["https://a.example/feed"]
    everything = await addresses("/feeds.opml?sources=true", Authorization=token)
    assert everything == ["https://a.example/hidden", "https://a.example/feed"]
    assert (await web.get("/feeds.opml?sources=no")).status == 400
    assert (await web.get("/feeds.json?sources=true")).status == 400
