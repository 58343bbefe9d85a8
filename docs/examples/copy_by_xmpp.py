"""Keeps a copy of a view of a feed in a SQLite file: a follower over XMPP (docs/uses.md).

Usage: copy_by_xmpp.py FEED FILE JID PASSWORD [HOST:PORT], for example
    copy_by_xmpp.py 'xmpp:feeds.example.org?;node=comments%3Fauthor=alice' alice.db bot@example.org PASSWORD
HOST:PORT is a server without TLS on the same machine.
"""

import sqlite3
import sys

from smartfeeds.client import ChangeKind, FollowError, connect_blocking

if not 5 <= len(sys.argv) <= 6:
    sys.exit("usage: copy_by_xmpp.py FEED FILE JID PASSWORD [HOST:PORT]")
feed, path, jid, password, *server = sys.argv[1:]
db = sqlite3.connect(path)
db.execute("CREATE TABLE IF NOT EXISTS items (id TEXT PRIMARY KEY, title TEXT)")
db.execute("CREATE TABLE IF NOT EXISTS place (cursor TEXT)")
since = next((cursor for (cursor,) in db.execute("SELECT cursor FROM place")), None)
start = {"since": since} if since else {"mirror": True}
options = {"server": server[0], "plaintext": True} if server else {}
try:
    with connect_blocking(jid, password, **options) as client:
        for change in client.follow(feed, **start):
            with db:  # the item and the place behind it are stored together
                if change.kind in (ChangeKind.DELETED, ChangeKind.LEFT):
                    db.execute("DELETE FROM items WHERE id = ?", (change.item_id,))
                    print("gone", change.item_id, flush=True)
                else:
                    db.execute("INSERT OR REPLACE INTO items VALUES (?, ?)", (change.item_id, change.title))
                    print("item", change.item_id, change.title, flush=True)
                db.execute("DELETE FROM place")
                db.execute("INSERT INTO place VALUES (?)", (change.position,))
except FollowError as error:
    sys.exit(f"copy_by_xmpp: {error}")
