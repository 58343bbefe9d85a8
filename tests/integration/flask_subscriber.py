"""The subscriber of Flask-WebSub: finds the hub of a topic, subscribes, prints what happens as JSON lines.

Usage: python flask_subscriber.py PORT TOPIC. It ends with its input.
"""

import json
import logging
import os
import sys
import tempfile
import threading

from flask import Flask
from flask_websub.subscriber import SQLite3SubscriberStorage, SQLite3TempSubscriberStorage, Subscriber, discover

port, topic = int(sys.argv[1]), sys.argv[2]
logging.getLogger("werkzeug").setLevel(logging.ERROR)
folder = tempfile.mkdtemp()
app = Flask(__name__)
app.config["SERVER_NAME"] = f"127.0.0.1:{port}"
subscriber = Subscriber(
    SQLite3SubscriberStorage(f"{folder}/one.sqlite3"), SQLite3TempSubscriberStorage(f"{folder}/two.sqlite3")
)
app.register_blueprint(subscriber.build_blueprint(url_prefix="/callbacks"))


def say(event: str, **more: object) -> None:
    """Prints a line."""
    print(json.dumps({"event": event, **more}), flush=True)


@subscriber.add_success_handler
def on_success(topic_url: str, _callback_id: str, mode: str) -> None:
    """The hub has confirmed."""
    say(f"success_{mode}", topic=topic_url)


@subscriber.add_error_handler
def on_error(topic_url: str, _callback_id: str, message: str) -> None:
    """The hub has refused."""
    say("error", topic=topic_url, text=str(message))


@subscriber.add_listener
def on_topic_change(topic_url: str, _callback_id: str, body: bytes) -> None:
    """A delivery."""
    say("listener", topic=topic_url, body=body.decode())


def serve() -> None:
    """Takes checks and deliveries."""
    app.run(host="127.0.0.1", port=port, threaded=True)


threading.Thread(target=serve, daemon=True).start()
with app.app_context():
    subscriber.subscribe(**discover(topic))
sys.stdin.read()
os._exit(0)
