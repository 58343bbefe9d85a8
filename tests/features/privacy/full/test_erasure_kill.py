"""An erasure is killed in the middle of a transaction, and continues when the command is repeated."""

import os
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from smartfeeds.core.jid import parse_jid
from smartfeeds.service import requests as r
from smartfeeds.service.context import Context
from smartfeeds.service.publishing import publish
from smartfeeds.store.base import WriteTx
from support.shell import shell_in, write
from support.world import draft, entry

JID = "zoe.distinctive@people.example.net"
DOMAIN = "feeds.example.org"
ITEMS = 12
# The command, in a process that ends while the transaction for the seventh item is open.
KILLED = """
import os, signal, sys
from smartfeeds.cli import main
from smartfeeds.features.privacy import erasing
erasing.ITEM_CHUNK = 2
erase, items = erasing.erase_item, []
def erase_item(tx, context, node, item, person):
    items.append(item.id)
    result = erase(tx, context, node, item, person)
    if len(items) == 7:
        tx.settle()
        os.kill(os.getpid(), signal.SIGKILL)
    return result
erasing.erase_item = erase_item
sys.argv = ["smartfeeds", "gdpr", "erase", "{jid}", "--yes"]
main()
"""


def publish_all(tx: WriteTx, context: Context) -> None:
    """Items of the person."""
    actor = parse_jid(JID)
    assert actor is not None
    for number in range(ITEMS):
        publish(tx, context, r.Publish(actor, DOMAIN, "news", f"i{number}", draft(entry(f"{number} of {JID}"))))


def test_killed_erasure_is_completed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """[OPS-025] SIGKILL between the write of an item and its commit. The person stays blocked, and nothing is lost or
    done twice."""
    run = shell_in(tmp_path, monkeypatch)
    run("init", DOMAIN)
    run("node", "create", "news")
    run("node", "allow", "news", JID, "--as", "publisher")
    write(publish_all)
    component = Path(__file__).parents[2] / "component"
    environment = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "PYTHONPATH": str(component)}

    killed = subprocess.run(
        [sys.executable, "-c", KILLED.format(jid=JID)], env=environment, capture_output=True, timeout=60, check=False
    )

    assert killed.returncode == -signal.SIGKILL, killed.stderr
    (database,) = tmp_path.rglob("*.db")
    with closing(sqlite3.connect(database)) as connection:
        place, jid = connection.execute("SELECT place, jid FROM erasure").fetchone()
        erased = connection.execute("SELECT count(*) FROM item WHERE publisher = ''").fetchone()[0]
    assert (place, jid, erased) == (6, JID, 6)

    result = run("gdpr", "erase", JID, "--yes")

    assert f"items-erased: {ITEMS}" in result.stdout
    assert "phase: done" in run("gdpr", "status", JID).stdout
    with closing(sqlite3.connect(database)) as connection:
        rows = connection.execute("SELECT change, revision, publisher FROM item").fetchall()
    assert rows == [(2, 2, "")] * ITEMS
    assert not any(JID.encode() in path.read_bytes() for path in database.parent.glob(f"{database.name}*"))
