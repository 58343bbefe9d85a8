"""Keeps a copy of a view of a feed in a SQLite file: a WebSub subscriber that closes its own gaps (docs/uses.md).

Usage: copy_by_websub.py FEED FILE CALLBACK, for example
    copy_by_websub.py 'https://feeds.example.org/feeds/comments/?author=alice' alice.db http://reader.example:9000/alice
"""

import asyncio
import hmac
import secrets
import sqlite3
import sys
from urllib.parse import urlsplit

import aiohttp
from aiohttp import web
from lxml import etree

ATOM, FO = "{http://www.w3.org/2005/Atom}", "{http://fanout.org/protocol/atom}"
DELETED = "{http://feedsync.org/2007/feedsync}sync[@deleted='true']"
LEFT = "{urn:smartfeeds:0}left"
TYPE = "application/atom+xml"
LEASE_S = 86_400
CHECK_S = 5  # after its check a hub needs a moment to begin the subscription


class Copy:
    def __init__(self, feed, path, session):
        self.feed, self.session, self.lock = feed, session, asyncio.Lock()
        self.db = sqlite3.connect(path)
        self.db.execute("CREATE TABLE IF NOT EXISTS items (id TEXT PRIMARY KEY, title TEXT)")
        self.db.execute("CREATE TABLE IF NOT EXISTS place (cursor TEXT)")

    @property
    def cursor(self):
        return next((cursor for (cursor,) in self.db.execute("SELECT cursor FROM place")), None)

    def store(self, document):
        """Stores a page or a delivery, with the cursor behind it, in one transaction. Returns its number of items."""
        entries = document.findall(f"{ATOM}entry")
        with self.db:
            for entry in entries:
                item_id, title = entry.findtext(f"{FO}id"), entry.findtext(f"{ATOM}title")
                if entry.find(DELETED) is not None or entry.find(LEFT) is not None:
                    self.db.execute("DELETE FROM items WHERE id = ?", (item_id,))
                    print("gone", item_id, flush=True)
                else:
                    self.db.execute("INSERT OR REPLACE INTO items VALUES (?, ?)", (item_id, title))
                    print("item", item_id, title, flush=True)
            if entries:
                self.db.execute("DELETE FROM place")
                self.db.execute("INSERT INTO place VALUES (?)", (document.findtext(f"{FO}last_cursor"),))
        return len(entries)

    async def pull(self):
        """Requests everything behind the own cursor, at first from the beginning."""
        more = True
        while more:
            since = f"cursor:{self.cursor}" if self.cursor else "time:0"
            query = {"since": since, "timeout": "0"}
            async with self.session.get(self.feed, params=query, headers={"Accept": TYPE}) as answer:
                answer.raise_for_status()
                more = self.store(etree.fromstring(await answer.read())) > 0

    async def take(self, document):
        """A delivery says which cursor is before its items: if that is not the own one, something is missing."""
        async with self.lock:
            if document.findtext(f"{FO}prev_cursor") == self.cursor:
                self.store(document)
            else:
                print("gap", flush=True)
                await self.pull()


async def main(feed, path, callback):
    secret = secrets.token_urlsafe(32)
    async with aiohttp.ClientSession() as session:
        copy = Copy(feed, path, session)
        async with session.get(feed, params={"max": "1", "timeout": "0"}, headers={"Accept": TYPE}) as answer:
            answer.raise_for_status()
            hub, topic = answer.links["hub"]["url"], answer.links["self"]["url"]

        async def check(request):
            query = request.query
            if query.get("hub.mode") == "denied":
                print("denied", query.get("hub.reason", ""), file=sys.stderr, flush=True)
                return web.Response()
            if query.get("hub.topic") != str(topic):
                raise web.HTTPNotFound
            return web.Response(text=query["hub.challenge"])

        async def receive(request):
            body = await request.read()
            method, _, signature = request.headers.get("X-Hub-Signature", "").partition("=")
            if method not in ("sha1", "sha256", "sha384", "sha512"):
                raise web.HTTPForbidden
            if not hmac.compare_digest(hmac.new(secret.encode(), body, method).hexdigest(), signature):
                raise web.HTTPForbidden
            await copy.take(etree.fromstring(body))
            return web.Response(status=204)

        address = urlsplit(callback)
        app = web.Application(client_max_size=2_000_000)
        app.router.add_get(address.path, check)
        app.router.add_post(address.path, receive)
        runner = web.AppRunner(app)
        await runner.setup()
        await web.TCPSite(runner, port=address.port).start()
        while True:
            form = {"hub.mode": "subscribe", "hub.topic": str(topic), "hub.callback": callback, "hub.secret": secret}
            async with session.post(hub, data={**form, "hub.lease_seconds": str(LEASE_S)}) as answer:
                answer.raise_for_status()
            # The second pull gets what was published before the hub has begun the subscription.
            for pause_s in (CHECK_S, LEASE_S / 2):
                async with copy.lock:
                    await copy.pull()
                print("in step", flush=True)
                await asyncio.sleep(pause_s)


if len(sys.argv) != 4:
    sys.exit("usage: copy_by_websub.py FEED FILE CALLBACK")
asyncio.run(main(*sys.argv[1:]))
