"""A publisher with the hub of Flask-WebSub. It reads commands as lines, and prints what happens as JSON lines.

Usage: python flask_hub.py PORT. A line publishes an entry with this title, and the hub delivers the whole feed. It ends
with its input.
"""

import json
import logging
import os
import sys
import tempfile
import threading
import time
from socket import create_connection

from celery import Celery
from flask import Flask, Response, request
from flask_websub.hub import Hub, SQLite3HubStorage

port = int(sys.argv[1])
origin = f"http://127.0.0.1:{port}"
topic = f"{origin}/feed"
titles = ["zero"]
logging.getLogger("werkzeug").setLevel(logging.ERROR)
app = Flask(__name__)
celery = Celery("hub", broker="memory://")
celery.conf.task_always_eager = True
hub = Hub(SQLite3HubStorage(f"{tempfile.mkdtemp()}/hub.sqlite3"), celery, BACKOFF_BASE=0.1)
app.register_blueprint(hub.build_blueprint(url_prefix="/hub"))


def say(event: str, **more: object) -> None:
    """Prints a line."""
    print(json.dumps({"event": event, **more}), flush=True)


@hub.register_validator
def on_request(callback_url: str, topic_url: str, lease_seconds: int, secret: str, _hook: object) -> str | None:
    """A request, before the check."""
    say("request", callback=callback_url, topic=topic_url, lease=lease_seconds, secret=bool(secret))
    return None if topic_url == topic else "this hub has another topic"


@app.get("/feed")
def feed() -> Response:
    """The feed; its requests are told, except those of the hub itself."""
    if "smartfeeds" in request.headers.get("User-Agent", ""):
        say("poll")
    entries = "".join(
        f"<entry><id>urn:x:{title}</id><title>{title}</title><updated>2026-01-01T00:00:{number:02}Z</updated></entry>"
        for number, title in enumerate(titles)
    )
    body = f"<feed xmlns='http://www.w3.org/2005/Atom'><id>urn:x:flask</id><title>Flask</title>{entries}</feed>"
    links = f'<{origin}/hub>; rel="hub", <{topic}>; rel="self"'
    return Response(body, content_type="application/atom+xml", headers={"Link": links})


threading.Thread(target=lambda: app.run(host="127.0.0.1", port=port, threaded=True), daemon=True).start()
while True:
    try:
        create_connection(("127.0.0.1", port)).close()
        break
    except ConnectionError:
        time.sleep(0.02)
say("listening")
for line in sys.stdin:
    titles.append(line.strip())
    with app.app_context():
        hub.send_change_notification.delay(topic)
    say("published", title=titles[-1])
os._exit(0)
