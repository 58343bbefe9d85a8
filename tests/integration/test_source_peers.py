"""Sources and hubs that are not ours, each as a process: Flask-WebSub."""

import asyncio
from pathlib import Path

from smartfeeds.core.times import US_PER_S
from smartfeeds.features.polling.push_states import LEASE_WISH_S
from smartfeeds.local.process import free_port
from support.following import COPY, LOOPBACK, follower
from support.lines import PEERS, running
from support.waiting import waiting
from support.web import WebStarter

FLASK = Path(__file__).parent / "flask_hub.py"


async def test_hub_of_flask_websub_pushes_into_a_node(start_web: WebStarter) -> None:
    """[WS-100] [WS-108] [WS-115] [WS-123] [WS-129] A whole feed comes with sha512; a forgery is refused; a renewal."""
    assert PEERS.exists(), "tools/setup test-all installs Flask-WebSub"
    port, feed_port = free_port(), free_port()
    web = await start_web(
        http={"listen": f"127.0.0.1:{port}", "base_url": f"http://127.0.0.1:{port}"},
        sources={**LOOPBACK, "secret_over_http": True},
    )
    async with running(str(PEERS), str(FLASK), str(feed_port)) as flask:
        await flask.event("listening")
        copy = await follower(web, f"http://127.0.0.1:{feed_port}/feed")
        push = await copy.follow()
        await flask.event("poll")
        request = await flask.event("request")
        assert (request["lease"], request["secret"]) == (LEASE_WISH_S, True)
        assert request["callback"] == f"http://127.0.0.1:{port}/push/{push.token}"

        flask.write("one")
        # No poll is between the two events: the item came by the push.
        assert (await flask.event("published"))["title"] == "one"
        await copy.has("one")
        assert await copy.titles() == ["zero", "one"]

        headers = {"Content_Type": "application/atom+xml", "X_Hub_Signature": f"sha512={'0' * 128}"}
        body = b"<feed xmlns='http://www.w3.org/2005/Atom'><entry><id>urn:x:bad</id><title>bad</title></entry></feed>"
        got = await web.ask("POST", f"/push/{push.token}", body, **headers)
        assert got.status == 403

        before = await copy.push()
        assert before.due_us is not None and before.ends_us is not None
        web.component.clock.now_us = before.due_us
        await copy.look()
        again = await flask.event("request")
        assert again == request
        async with waiting("the longer lease of the subscription"):
            while (await copy.push()).ends_us == before.ends_us:  # noqa: ASYNC110 - the hub checks in a thread
                await asyncio.sleep(0.01)
        assert (await copy.push()).ends_us == before.due_us + LEASE_WISH_S * US_PER_S
        flask.write("two")
        await flask.event("published")
        await copy.has("two")
        assert await copy.titles() == ["zero", "one", "two"]
        assert (await web.get(f"/feeds/{COPY}.atom")).text.count("<entry") == 3
