"""A client that is not slixmpp: xmpp.js subscribes, publishes, is pushed to, and pulls page by page."""

import asyncio
import json
import shutil
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from smartfeeds.app.config import settings_of
from smartfeeds.app.lifecycle import App
from support.servers import SECRET, TestServer

DEADLINE_S = 50.0
SCRIPT = Path(__file__).parent / "js" / "client.js"


@pytest.fixture
async def service(server: TestServer, tmp_path: Path) -> AsyncIterator[str]:
    """The component online on a real server; its name."""
    name = server.take_name()
    app = App(
        settings_of(
            component={"jid": name, "secret": SECRET, "port": server.component_port},
            store={"url": f"sqlite:///{tmp_path}/feeds.db"},
        )
    )
    await app.start()
    await asyncio.wait_for(app.online.wait(), DEADLINE_S)
    yield name
    await app.stop()


async def run_script(wanted: dict[str, Any]) -> dict[str, Any]:
    node = shutil.which("node")
    assert node, "node is missing: apt-get install nodejs npm"
    assert (SCRIPT.parent / "node_modules").is_dir(), "tools/setup test-all installs what the script needs"
    process = await asyncio.create_subprocess_exec(
        node, str(SCRIPT), json.dumps(wanted), stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE
    )
    out, err = await asyncio.wait_for(process.communicate(), DEADLINE_S)
    assert process.returncode == 0, err.decode()
    answer: dict[str, Any] = json.loads(out)
    return answer


async def test_xmpp_js_subscribes_publishes_is_pushed_to_and_pulls(server: TestServer, service: str) -> None:
    """[SF-003] [SF-035] [SF-044] The feed as a JavaScript library sees it."""
    account = await asyncio.to_thread(server.server.account, "js")
    entries = [{"id": f"e{number}", "title": f"Title {number} <&>"} for number in range(5)]

    answer = await run_script(
        {
            "port": server.client_port,
            "domain": "localhost",
            "username": "js",
            "password": account.password,
            "service": service,
            "node": "news?order=modified",
            "base": "news",
            "create": True,
            "publish": entries,
            "pageSize": 2,
        }
    )

    assert answer["subscription"] == {"subscription": "subscribed", "jid": account.jid, "node": "news?order=modified"}
    assert answer["published"] == [entry["id"] for entry in entries]
    pushes = answer["pushes"]
    assert [push["items"] for push in pushes] == [[entry] for entry in entries]
    assert [push["headers"]["TotalItems"] for push in pushes] == ["1", "2", "3", "4", "5"]
    cursors = [push["headers"]["LastCursor"] for push in pushes]
    assert [push["headers"].get("PreviousCursor") for push in pushes[1:]] == cursors[:-1]
    pages = answer["pages"]
    assert [len(page["items"]) for page in pages] == [2, 2, 1]
    assert [item for page in pages for item in page["items"]] == entries
    assert {page["set"]["count"] for page in pages} == {5}
    assert pages[-1]["set"]["last"] == f"cursor:{cursors[-1]}"
