"""What operators ask over HTTP: /healthz, /readyz, /metrics."""

import re
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from smartfeeds.app.config import settings_of
from smartfeeds.app.lifecycle import App
from smartfeeds.errors import StoreError
from support.component import ALICE
from support.metrics import metric_names
from support.web import Got, Web, WebStarter

PROBLEM = "application/problem+json"


async def break_store(*_values: object, **_more: object) -> Any:
    """In the place of the store's `read`."""
    raise StoreError("the disk is gone: /var/lib/secret-place")


def value(metrics: Got, name: str) -> float:
    """What a metric without labels says."""
    found = re.search(rf"(?m)^{name} (\S+)$", metrics.text)
    assert found is not None, name
    return float(found[1])


async def test_healthz_says_ok(web: Web) -> None:
    """The process answers, whatever else does not work."""
    got = await web.get("/healthz")
    assert (got.status, got.text, got.header("Cache-Control")) == (200, "ok\n", "no-store")


async def test_readyz_is_200_when_everything_works(web: Web) -> None:
    got = await web.get("/readyz")
    assert (got.status, got.json) == (200, {"ready": True})


async def test_readyz_says_that_the_link_is_away(web: Web) -> None:
    """[design 5] 503, with the part and the reason; pulls are answered all the same."""
    await web.component.cut()
    got = await web.get("/readyz")
    assert (got.status, got.header("Content-Type")) == (503, PROBLEM)
    assert list(got.json["reasons"]) == ["link"]
    assert int(got.header("Retry-After")) > 0
    assert (await web.get("/healthz")).status == 200
    await web.component.link()
    assert (await web.get("/readyz")).status == 200


async def test_readyz_of_a_standby_needs_no_link(start_web: WebStarter) -> None:
    """[TOP-062] It serves HTTP while another process has the link."""
    web = await start_web(component={"link": "lease"})
    assert (await web.get("/readyz")).status == 200
    await web.component.cut()
    assert (await web.get("/readyz")).status == 200


async def test_readyz_of_a_process_for_http_needs_no_link(tmp_path: Path) -> None:
    """[TOP-062] [TOP-024] It has no secret either."""
    app = App(
        settings_of(
            component={"jid": "feeds.example.org", "link": "off"},
            store={"url": f"sqlite:///{tmp_path / 'feeds.db'}"},
            http={"listen": "127.0.0.1:0"},
        )
    )
    await app.start()
    try:
        assert app.site is not None
        async with (
            aiohttp.ClientSession() as session,
            session.get(f"http://127.0.0.1:{app.site.listener.port}/readyz") as answer,
        ):
            assert (answer.status, await answer.json()) == (200, {"ready": True})
    finally:
        await app.stop()


async def test_readyz_says_that_the_store_cannot_be_read(web: Web, monkeypatch: pytest.MonkeyPatch) -> None:
    """In words of ours: nothing of the machine goes out."""
    monkeypatch.setattr(web.component.app.service, "read", break_store)
    got = await web.get("/readyz")
    assert (got.status, got.json["reasons"]) == (503, {"store": "it cannot be read"})


async def test_readyz_says_that_a_store_does_not_answer(web: Web, monkeypatch: pytest.MonkeyPatch) -> None:
    """A store that hangs is one that cannot be read."""

    async def hang(*_values: object, **_more: object) -> Any:
        raise TimeoutError

    monkeypatch.setattr(web.component.app.service, "read", hang)
    assert list((await web.get("/readyz")).json["reasons"]) == ["store"]


async def test_readyz_says_that_a_part_has_ended(web: Web) -> None:
    web.component.app.tasks.failed = True
    assert list((await web.get("/readyz")).json["reasons"]) == ["process"]


@pytest.mark.parametrize("path", ["/healthz", "/readyz", "/metrics"])
async def test_only_get_and_head(web: Web, path: str) -> None:
    assert (await web.ask("HEAD", path)).status == 200
    refused = await web.ask("POST", path, b"x")
    assert (refused.status, refused.header("Allow")) == (405, "GET, HEAD, OPTIONS")


async def test_metrics_are_all_there(web: Web) -> None:
    """Every metric of the table, with those of HTTP read at this moment."""
    await web.component.create(ALICE, "notes", access_model="open")
    await web.component.publish(ALICE, "notes", "a")
    for _ in range(3):
        await web.get("/feeds/notes/")
    got = await web.get("/metrics")
    assert got.header("Content-Type").startswith("text/plain; version=0.0.4")
    told = set(re.findall(r"(?m)^# TYPE (\S+) ", got.text))
    assert set(metric_names()) <= told
    assert value(got, "smartfeeds_http_connections") == 1
    assert value(got, "smartfeeds_http_kept_replies_total") == 2
    assert value(got, "smartfeeds_http_held") == 0
    assert 'smartfeeds_requests_total{operation="http_feed",outcome="ok"}' in got.text
    assert "notes" not in got.text and "127.0.0.1" not in got.text


async def test_metrics_count_what_is_held_and_what_cannot_be_read(web: Web) -> None:
    await web.component.create(ALICE, "notes", access_model="open")
    async with web.session.get(f"{web.origin}/feeds/notes/", headers={"Accept": "text/event-stream"}) as stream:
        assert stream.status == 200
        await web.holding(1)
        assert value(await web.get("/metrics"), "smartfeeds_http_held") == 1


# http.metrics_from, http.proxies, headers of the request, the answer
READERS: dict[str, tuple[list[str], list[str], dict[str, str], int]] = {
    "loopback": (["127.0.0.0/8"], [], {}, 200),
    "somebody else": (["10.0.0.0/8"], [], {}, 403),
    "nobody": ([], [], {}, 403),
    "a proxy that is not configured": (["127.0.0.0/8"], [], {"X-Forwarded-For": "203.0.113.9"}, 403),
    "one that claims to be loopback": (["127.0.0.0/8"], [], {"X-Forwarded-For": "127.0.0.1"}, 403),
    "Forwarded of one that is not configured": (["127.0.0.0/8"], [], {"Forwarded": "for=127.0.0.1"}, 403),
    "X-Real-IP of one that is not configured": (["127.0.0.0/8"], [], {"X-Real-IP": "127.0.0.1"}, 403),
    "Via of one that is not configured": (["127.0.0.0/8"], [], {"Via": "1.1 front"}, 403),
    "X-Forwarded-Host of one that is not configured": (["127.0.0.0/8"], [], {"X-Forwarded-Host": "a.example"}, 403),
    "a stranger behind a proxy": (["127.0.0.0/8"], ["127.0.0.1"], {"X-Forwarded-For": "203.0.113.9"}, 403),
    "a reader behind a proxy": (["203.0.113.0/24"], ["127.0.0.1"], {"X-Forwarded-For": "203.0.113.9"}, 200),
    "an address that the client wrote itself": (
        ["127.0.0.0/8", "10.9.9.9"],
        ["127.0.0.1"],
        {"X-Forwarded-For": "10.9.9.9, 203.0.113.9"},
        403,
    ),
    "an unknown client behind a proxy": (["127.0.0.0/8"], ["127.0.0.1"], {"Forwarded": "for=unknown"}, 403),
    "a Forwarded that the proxy let through": (
        ["127.0.0.0/8", "10.9.9.9"],
        ["127.0.0.1"],
        {"Forwarded": "for=10.9.9.9", "X-Forwarded-For": "203.0.113.9"},
        403,
    ),
    "an X-Forwarded-For that the proxy let through": (
        ["127.0.0.0/8", "10.9.9.9"],
        ["127.0.0.1"],
        {"Forwarded": "for=203.0.113.9", "X-Forwarded-For": "10.9.9.9"},
        403,
    ),
    "both, of one mind": (
        ["203.0.113.9"],
        ["127.0.0.1"],
        {"Forwarded": 'for="203.0.113.9:443"', "X-Forwarded-For": "203.0.113.9"},
        200,
    ),
}


@pytest.mark.parametrize("case", READERS)
async def test_metrics_are_for_those_who_may(start_web: Any, case: str) -> None:
    """[design 5] The client's own address decides, as far as anybody can be believed about it."""
    metrics_from, proxies, headers, status = READERS[case]
    web = await start_web(http={"metrics_from": metrics_from, "proxies": proxies})
    got = await web.get("/metrics", **{name.replace("-", "_"): text for name, text in headers.items()})
    assert got.status == status
    if status != 200:
        assert got.header("Content-Type") == PROBLEM
        assert b"smartfeeds_" not in got.body
