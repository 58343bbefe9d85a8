"""Addresses with characters that no URI has, from a poll to the documents that feed readers get."""

import json
import re
from dataclasses import replace
from html import escape

import pytest

from smartfeeds.features.documents.json_feed import write_json_feed
from smartfeeds.features.documents.rss092 import write_rss092
from smartfeeds.formats.atom_feed import FeedHead, write_feed
from smartfeeds.formats.entry import read_entry
from smartfeeds.formats.opml_items import write_items
from smartfeeds.formats.rss_writer import write_rss
from support.polling import NODE, PATH, running_polling
from support.world import OWNER

RAW = 'https://bücher.example/my song|[1] 100% "ä".mp3?a=1&b=%20#x y'
URI = "https://xn--bcher-kva.example/my%20song%7C%5B1%5D%20100%25%20%22%C3%A4%22.mp3?a=1&b=%20#x%20y"
HEAD = FeedHead("urn:x:feed", "Feed", 0, link=RAW)


@pytest.fixture
async def polling(world, site):
    async with running_polling(world, site) as running:
        yield running


def rss(raw):
    text = escape(raw)
    return f"""<rss version="2.0" xmlns:atom="http://www.w3.org/2005/Atom"><channel><title>x</title><item>
        <guid>1</guid><title>One</title><link>{text}</link><enclosure url="{text}" length="1" type="audio/mpeg"/>
        <atom:link rel="via" href="{text}"/></item></channel></rss>""".encode()


def atom(raw):
    text = escape(raw)
    return f"""<feed xmlns="http://www.w3.org/2005/Atom"><title>x</title><entry><id>urn:x:1</id><title>One</title>
        <link href="{text}"/><link rel="enclosure" href="{text}" type="audio/mpeg"/><link rel="via" href="{text}"/>
        <author><name>a</name><uri>{text}</uri></author></entry></feed>""".encode()


def json_feed(raw):
    attachments = [{"url": raw, "mime_type": "audio/mpeg"}]
    item = {"id": "1", "title": "One", "url": raw, "external_url": raw, "attachments": attachments}
    return json.dumps({"version": "https://jsonfeed.org/version/1.1", "title": "x", "items": [item]}).encode()


@pytest.mark.parametrize("write", [rss, atom, json_feed])
async def test_documents_have_uris(polling, world, write):
    """[SRC-055] Atom, RSS 2.0 and 0.92, JSON Feed and OPML. The next poll changes nothing."""
    polling.site.pages[PATH] = write(RAW)
    row = await polling.poll(await polling.add())
    (item,) = (await world.pull(NODE, actor=OWNER)).items
    addresses = re.findall(r' href="([^"]*)"', item.payload.decode())
    assert addresses.count(escape(URI)) == 3
    for data in (
        write_rss(HEAD, [item]).data,
        write_rss092(HEAD, [item]).data,
        b"".join(write_feed(HEAD, [item])),
        write_json_feed(HEAD, [read_entry(item)]).data,
        b"".join(write_items(HEAD, [item], [])),
    ):
        text = data.decode().replace('\\"', '"')
        assert escape(URI) in text or URI in text
        assert "my song" not in text and "bücher" not in text
    await polling.poll(row, 7_200)
    assert (await world.pull(NODE, actor=OWNER)).items == (item,)


async def test_raw_addresses_of_an_earlier_version_stay_until_the_entry_changes(polling, world):
    """[SRC-071] An update of the service is no change of an item."""
    polling.site.pages[PATH] = rss(RAW)
    row = await polling.poll(await polling.add())
    (item,) = (await world.pull(NODE, actor=OWNER)).items
    raw = item.payload.replace(escape(URI).encode(), escape(RAW).encode())
    await world.publish(item.id, raw.decode(), node=NODE, actor="feeds.example.org")
    (before,) = (await world.pull(NODE, actor=OWNER)).items
    await polling.poll(row, 7_200)
    assert (await world.pull(NODE, actor=OWNER)).items == (before,)
    head = replace(HEAD, for_readers=True)
    for data in (
        write_rss(head, [before]).data,
        b"".join(write_feed(head, [before])),
        b"".join(write_feed(HEAD, [before])),
    ):
        assert escape(URI).encode() in data and b"my song" not in data
