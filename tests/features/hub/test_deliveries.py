"""Deliveries of the hub: documents, order, retries and their end, over real sockets on a clock of the test."""

import asyncio
import hashlib
import hmac
import re
from itertools import pairwise

import pytest
from aiohttp import web
from structlog.testing import capture_logs

from smartfeeds.core.consumers import Failure
from smartfeeds.features.callbacks import rows as callback_rows
from smartfeeds.features.callbacks.settings import WebhooksSettings
from smartfeeds.features.hub import documents
from smartfeeds.features.hub.hub import PAUSES, RETRIES
from smartfeeds.telemetry import metrics_text
from support.callbacks import ATOM, SITE, HubBench, Push, fixed, running_hub
from support.golden import GOLDEN
from support.waiting import until
from support.world import World


async def test_delivery_is_a_feed_with_cursors(bench: HubBench) -> None:
    """[WS-052] [WS-053] [WS-054] [WS-056] [SF-042] [SF-044] [SF-078] [SF-079] [SF-080] [SF-081] [SF-082]"""
    await bench.push("1")
    callback = bench.subscribers.url("reader", "?a=%2F&b")
    await bench.subscribe(callback)
    await bench.push("2")
    (push,) = bench.subscribers.pushes["reader"]

    assert push.path_qs == "/reader?a=%2F&b"
    assert push.headers["Content-Type"] == "application/atom+xml; charset=utf-8"
    link = f'<{SITE}/feeds/news/hub/>; rel="hub", <{SITE}/feeds/news/>; rel="self"'
    assert push.headers["Link"] == link
    assert (push.ids, push.text("fo:total")) == ("2", "2")
    previous, last = push.text("fo:prev_cursor"), push.text("fo:last_cursor")
    pull = await bench.world.pull("news?order=modified", max=9)
    assert (pull.first, pull.last) == (f"cursor:{previous}", f"cursor:{last}")
    assert push.links("next") == [] and push.links("self") == [f"{SITE}/feeds/news/"]
    assert push.links("hub") == [f"{SITE}/feeds/news/hub/"]
    assert push.text("a:id") == f"{SITE}/feeds/news/"


async def test_delivery_has_the_form_of_the_golden_values(bench: HubBench) -> None:
    """[WS-054] [WS-056] Header and elements of the golden push, whose feed is comments in created order."""
    (golden,) = GOLDEN["http"]["push"]
    await bench.push("p q")
    await bench.subscribe("reader", "/feeds/news/?order=created")
    await bench.push("r")
    (push,) = bench.subscribers.pushes["reader"]
    address = re.compile(r"http://feeds\.example/[^>]*/")
    assert address.sub("/", push.headers["Link"]) == address.sub("/", golden["link"])
    assert push.headers["Content-Type"] == golden["content_type"]
    expected = Push("", {}, golden["body"].encode()).root
    names = {node.tag for node in expected if node.tag != f"{ATOM}entry"}
    assert names <= {node.tag for node in push.root}


async def test_old_items_are_not_delivered(bench: HubBench) -> None:
    """[WS-039] [WS-040] Also not those that were published before the check had passed."""
    await bench.push("1 2")
    await bench.ask(bench.fields("reader"))
    await bench.push("3")
    await bench.check()
    assert bench.subscribers.got("reader") == []
    await bench.push("4")
    assert bench.subscribers.got("reader") == ["4"]


async def test_changes_during_a_slow_delivery_come_in_one_document_in_order(bench: HubBench) -> None:
    """[WS-058] [SF-039] The chain of the cursors has no gap."""
    gate = bench.subscribers.silence("reader")
    await bench.subscribe("reader")
    ids = " ".join(str(number) for number in range(150))
    await bench.publish("first")
    await bench.subscribers.began.wait()
    await bench.publish(ids)
    del bench.subscribers.receive["reader"]
    gate.set()
    await bench.quiet()
    await bench.fire(10)
    pushes = bench.subscribers.pushes["reader"]
    assert " ".join(push.ids for push in pushes) == f"first {ids}"
    assert [len(push.ids.split()) for push in pushes] == [100, 51]
    for one, other in pairwise(pushes):
        assert other.text("fo:prev_cursor") == one.text("fo:last_cursor")


async def test_document_is_bounded_in_bytes(bench: HubBench, monkeypatch: pytest.MonkeyPatch) -> None:
    """[WS-058]"""
    monkeypatch.setattr(documents, "DOCUMENT_BYTES", 1_000)
    bench.subscribers.statuses["reader"] = [503]
    await bench.subscribe("reader")
    await bench.push("1 2 3 4 5 6 7 8 9", content="x" * 200)
    await bench.fire(10)
    pushes = bench.subscribers.pushes["reader"]
    assert " ".join(push.ids for push in pushes) == "1 2 3 4 5 6 7 8 9"
    assert len(pushes) > 2
    for one, other in pairwise(pushes):
        assert other.text("fo:prev_cursor") == one.text("fo:last_cursor")


async def test_item_above_the_bound_is_delivered_alone(bench: HubBench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(documents, "DOCUMENT_BYTES", 10)
    await bench.subscribe("reader")
    await bench.push("1 2")
    assert bench.subscribers.got("reader") == ["1", "2"]


async def test_subscriptions_do_not_wait_for_each_other(bench: HubBench) -> None:
    """[WS-059] [WS-072] One dead, 99 good. At most four deliveries go to one host at once."""
    gate = asyncio.Event()
    running = most = 0

    async def dead(_request: web.Request) -> web.Response:
        nonlocal running, most
        running += 1
        most = max(most, running)
        await gate.wait()
        running -= 1
        return web.Response(status=503)

    bench.settings = WebhooksSettings(requests_per_minute=1_000)
    bench.make()
    await bench.hub.start()
    for number in range(99):
        await bench.subscribe(bench.subscribers.url(f"good{number}", host=f"127.0.0.{number + 10}"))
        bench.world.clock.move(1)
    for number in range(8):
        bench.subscribers.receive[f"dead{number}"] = dead
        bench.world.clock.move(60)
        await bench.subscribe(f"dead{number}")
    await bench.publish("1")
    await until(lambda: sum(map(len, bench.subscribers.pushes.values())) >= 99, "the deliveries of the good hosts")
    assert (running, most) == (4, 4)
    gate.set()
    await bench.quiet()
    assert most == 4


async def test_slow_host_does_not_delay_another_one(bench: HubBench) -> None:
    """[WS-072] Many subscriptions of one slow host wait for each other only."""
    gate = asyncio.Event()
    bench.settings = WebhooksSettings(requests_per_minute=1_000)
    bench.make()
    await bench.hub.start()
    for number in range(30):
        bench.subscribers.silence(f"slow{number}", gate, 204)
        await bench.subscribe(f"slow{number}")
        bench.world.clock.move(60)
    await bench.subscribe(bench.subscribers.url("other", host="127.0.0.2"))
    await bench.publish("1")
    await bench.subscribers.arrived.wait()
    assert bench.subscribers.got("other") == ["1"]
    gate.set()
    await bench.quiet()
    assert all(bench.subscribers.tries[f"slow{number}"] == 1 for number in range(30))


async def test_failed_delivery_is_repeated_once_and_in_order(bench: HubBench) -> None:
    """[WS-060] [SF-040] [A-30] 503 twice, then 200."""
    bench.subscribers.statuses["reader"] = [503, 503]
    await bench.subscribe("reader")
    await bench.push("1")
    await bench.push("2")
    assert bench.timers.planned == [5.0]
    await bench.fire(5)
    assert bench.timers.planned == [30.0]
    await bench.fire(30)
    assert bench.subscribers.got("reader") == ["1 2"]
    assert bench.subscribers.tries["reader"] == 3
    assert await bench.failure() is None


def test_pauses_are_those_of_the_rule() -> None:
    """[WS-060] With a spread of a fifth."""
    assert [PAUSES.pause_s(count, 0.5) for count in range(1, 7)] == [5, 30, 120, 600, 1_800, 3_600]
    assert [PAUSES.pause_s(1, jitter) for jitter in (0.0, 1.0)] == [4.0, 6.0]
    assert RETRIES == 6
    assert [PAUSES.pause_s(count, 0.5) for count in (7, 18, 19, 500)] == [300, 300, 3_600, 3_600]


async def test_dead_callback_loses_its_backlog_and_keeps_its_subscription(bench: HubBench) -> None:
    """[WS-060] [SF-041] [A-30] The next delivery shows the gap."""
    await bench.subscribe("reader")
    await bench.push("0")
    (first,) = bench.subscribers.pushes.pop("reader")
    bench.subscribers.receive["reader"] = fixed(500)
    await bench.push("1 2")
    with capture_logs() as logs:
        for pause_s in (5, 30, 120, 600, 1_800, 3_600):
            await bench.fire(pause_s)
        assert bench.subscribers.tries["reader"] == 1 + 7
        await bench.push("3")
        await bench.fire(300)
    assert bench.subscribers.tries["reader"] == 9
    # Operators read once that a callback is dead; its further failures are for the debug log.
    levels = [log["log_level"] for log in logs if log["event"] == "backlog_dropped"]
    assert levels == ["warning", "debug"]
    assert (await bench.row()).active
    # The pause ends without an attempt, because nothing is left to deliver.
    await bench.fire(300)
    assert bench.subscribers.tries["reader"] == 9
    failure = await bench.failure()
    assert isinstance(failure, Failure) and failure.count == 8

    del bench.subscribers.receive["reader"]
    await bench.push("4")
    (push,) = bench.subscribers.pushes["reader"]
    assert push.ids == "4"
    assert push.text("fo:prev_cursor") != first.text("fo:last_cursor")
    assert await bench.failure() is None


async def test_dead_callback_gets_one_attempt_for_a_new_item_at_most_every_five_minutes(bench: HubBench) -> None:
    """[WS-060]"""
    bench.subscribers.receive["reader"] = fixed(500)
    await bench.subscribe("reader")
    await bench.push("1")
    for pause_s in (5, 30, 120, 600, 1_800, 3_600):
        await bench.fire(pause_s)
    tries = bench.subscribers.tries["reader"]
    await bench.push("2")
    assert bench.subscribers.tries["reader"] == tries
    await bench.fire(300)
    assert bench.subscribers.tries["reader"] == tries + 1
    await bench.fire(300)
    assert bench.subscribers.tries["reader"] == tries + 1
    await bench.push("3")
    assert bench.subscribers.tries["reader"] == tries + 2


@pytest.mark.parametrize("status", [400, 403, 404, 413, 500, 501])
async def test_no_status_but_410_is_final(bench: HubBench, status: int) -> None:
    """[WS-061]"""
    bench.subscribers.statuses["reader"] = [status]
    await bench.subscribe("reader")
    await bench.push("1")
    await bench.fire(5)
    assert bench.subscribers.got("reader") == ["1"]


async def test_410_ends_the_subscription_without_a_denial(bench: HubBench) -> None:
    """[WS-062]"""
    bench.subscribers.statuses["reader"] = [410]
    await bench.subscribe("reader")
    await bench.push("1")
    assert await bench.rows() == []
    await bench.check()
    assert len(bench.subscribers.checks["reader"]) == 1
    assert await bench.world.store.read(lambda tx: tx.behind()) == []


async def test_redirect_is_a_failure(bench: HubBench) -> None:
    """[WS-063] (WD-9)"""
    bench.subscribers.receive["reader"] = fixed(301, Location="/other")
    await bench.subscribe("reader")
    await bench.push("1")
    assert bench.subscribers.tries == {"reader": 1}
    failure = await bench.failure()
    assert failure is not None and failure.error == "answered 301"


@pytest.mark.parametrize(
    ("status", "header", "pause_s"),
    [(503, "20", 20.0), (429, "20", 20.0), (503, "86400", 3_600.0), (503, "1", 4.0), (500, "20", 5.0)],
)
async def test_pause_that_the_callback_asks_for_is_respected(
    bench: HubBench, status: int, header: str, pause_s: float
) -> None:
    """[WS-064] At most one hour, and never shorter than our own pause."""
    bench.subscribers.receive["reader"] = fixed(status, Retry_After=header)
    await bench.subscribe("reader")
    await bench.push("1")
    assert bench.timers.planned == [pause_s]


async def test_signature_is_that_of_the_bytes_that_arrive(bench: HubBench) -> None:
    """[WS-066] [WS-067] [A-21] sha1 for PubSubHubbub 0.3, else sha256; none without a secret."""
    await bench.subscribe("plain")
    await bench.subscribe("empty", secret="")
    await bench.subscribe("new", secret="s3crét")
    await bench.subscribe("old", secret="s3crét", verify="async")
    await bench.push("1")
    for name, method in (("new", "sha256"), ("old", "sha1")):
        (push,) = bench.subscribers.pushes[name]
        digest = hmac.new("s3crét".encode(), push.body, getattr(hashlib, method)).hexdigest()
        assert push.headers["X-Hub-Signature"] == f"{method}={digest}"
    for name in ("plain", "empty"):
        assert "X-Hub-Signature" not in bench.subscribers.pushes[name][0].headers


async def test_operator_may_force_a_method(bench: HubBench) -> None:
    """[WS-067]"""
    bench.settings = WebhooksSettings(signature="sha512")
    bench.make()
    await bench.hub.start()
    await bench.subscribe("reader", secret="s", verify="async")
    await bench.push("1")
    assert bench.subscribers.pushes["reader"][0].headers["X-Hub-Signature"].startswith("sha512=")


async def test_body_has_no_content_coding_and_no_traces(bench: HubBench) -> None:
    """[WS-068] [WS-069]"""
    await bench.subscribe("reader")
    await bench.push("1")
    headers = bench.subscribers.pushes["reader"][0].headers
    assert {"Content-Encoding", "Transfer-Encoding", "Referer", "Cookie"}.isdisjoint(headers)
    assert headers["User-Agent"].startswith("smartfeeds/")
    assert int(headers["Content-Length"]) == len(bench.subscribers.pushes["reader"][0].body)


async def test_document_is_written_once_for_all_at_one_mark(bench: HubBench) -> None:
    """[WS-070] A thousand subscriptions in two views, one publish: two documents."""
    from smartfeeds.core.view import Order
    from smartfeeds.features.callbacks.registration import Callback
    from smartfeeds.features.hub.protocol import HUB_TERMS, HubTerms
    from smartfeeds.features.hub.requests import HUB
    from smartfeeds.service.consumers import add_consumer

    def fill(tx):  # type: ignore[no-untyped-def]
        for number in range(1_000):
            view = ("", "atom")[number % 2]
            url = bench.subscribers.url(f"r{number}", host=f"127.0.{number // 250}.{number % 250 + 1}")
            row = callback_rows.put(
                tx,
                Callback(
                    HUB.name,
                    1,
                    url,
                    f"{SITE}/feeds/news/",
                    f"127.0.{number // 250}.{number % 250 + 1}",
                    0,
                    bench.world.clock() + 10**12,
                    active=True,
                    settings=HUB_TERMS.write(HubTerms(view, "")),
                ),
            )
            add_consumer(tx, row.consumer, Order.MODIFIED)

    await bench.world.store.write(fill)
    await bench.restart()
    await bench.dispatcher.idle()  # the new process looks at what each of them lacks: nothing yet
    before = bench.hub.documents.written
    await bench.push("1")
    assert sum(map(len, bench.subscribers.pushes.values())) == 1_000
    assert bench.hub.documents.written == before + 2
    bodies = {push.body for pushes in bench.subscribers.pushes.values() for push in pushes}
    assert len(bodies) == 2


async def test_backlog_is_bounded_by_its_length(bench: HubBench) -> None:
    """[WS-071]"""
    bench.subscribers.statuses["reader"] = [503, 503]
    await bench.subscribe("reader")
    await bench.push("0")
    await bench.publish(" ".join(str(number) for number in range(1, 1_001)))
    await bench.fire(5)
    assert (bench.subscribers.tries["reader"], bench.timers.planned) == (2, [30.0])
    await bench.push("last")
    await bench.fire(30)
    assert bench.subscribers.got("reader") == ["last"]


async def test_backlog_is_bounded_by_its_age(bench: HubBench) -> None:
    """[WS-071]"""
    bench.subscribers.statuses["reader"] = [503, 503]
    await bench.subscribe("reader")
    await bench.push("old")
    bench.timers.waiting.clear()
    bench.world.clock.move(86_400)
    await bench.restart()
    await bench.fire(5)
    assert bench.subscribers.tries["reader"] == 2
    await bench.fire(3_600)
    await bench.push("new")
    assert bench.subscribers.got("reader") == ["new"]


async def test_edits_are_deliveries_unless_the_view_is_in_created_order(bench: HubBench) -> None:
    """[WS-009] [WS-073] [SF-038] [SF-075]"""
    await bench.subscribe("all")
    await bench.subscribe("new", "/feeds/news/?order=created")
    await bench.push("1")
    await bench.push("1")
    assert bench.subscribers.got("all") == ["1", "1"]
    assert bench.subscribers.got("new") == ["1"]


async def test_deleted_items_are_told_as_a_pull_tells_them(bench: HubBench) -> None:
    """[WS-074] The base URL shows them, the document of the bare node does not."""
    await bench.subscribe("base")
    await bench.subscribe("document", "/feeds/news.atom")
    await bench.push("1 2")
    for name in ("base", "document"):
        bench.subscribers.got(name)
    await bench.world.retract("1", node="news")
    await bench.quiet()
    assert bench.subscribers.got("base") == ["-1"]
    assert bench.subscribers.got("document") == []
    await bench.push("3")
    assert bench.subscribers.got("document") == ["3"]


async def test_filtered_view_gets_its_items_and_learns_what_leaves_it(bench: HubBench) -> None:
    """[WS-056] Its cursors and its total are those of the view."""
    await bench.subscribe("reader", "/feeds/news/?category=x")
    await bench.push("1", category="x")
    await bench.push("2", category="y")
    await bench.push("3", category="x")
    first, second = bench.subscribers.pushes.pop("reader")
    assert (first.ids, second.ids) == ("1", "3")
    assert second.text("fo:prev_cursor") == first.text("fo:last_cursor")
    assert second.text("fo:total") == "2"
    await bench.push("1", category="y")
    assert bench.subscribers.got("reader") == ["~1"]


async def test_items_that_the_view_lacks_are_no_success(bench: HubBench) -> None:
    """[WS-060] A dead callback stays dead although its view passes items of others."""
    bench.subscribers.receive["reader"] = fixed(500)
    await bench.subscribe("reader", "/feeds/news/?category=x")
    await bench.push("1", category="x")
    for pause_s in (5, 30, 120, 600, 1_800, 3_600, 300):
        await bench.fire(pause_s)
    await bench.push("2", category="y")
    failure = await bench.failure()
    assert failure is not None and failure.count == 7


@pytest.mark.parametrize(
    ("topic", "media_type"),
    [
        ("/feeds/news.atom", "application/atom+xml; charset=utf-8"),
        ("/feeds/news.rss", "application/rss+xml; charset=utf-8"),
        pytest.param(
            "/feeds/news.jsonfeed", "application/feed+json; charset=utf-8", marks=pytest.mark.needs("documents")
        ),
    ],
)
async def test_documents_are_delivered_in_their_own_format(bench: HubBench, topic: str, media_type: str) -> None:
    """[WS-053] [WS-055] [A-23] (WD-11)"""
    await bench.subscribe("reader", topic)
    await bench.push("1")
    (push,) = bench.subscribers.pushes["reader"]
    assert push.headers["Content-Type"] == media_type
    assert push.headers["Link"].endswith(f'<{SITE}{topic}>; rel="self"')
    assert f"{SITE}{topic}".encode() in push.body and f"{SITE}/feeds/news/hub/".encode() in push.body


async def test_kill_between_delivery_and_mark_repeats_the_delivery_in_order(bench: HubBench) -> None:
    """[WS-051] At least once, and nothing is lost."""
    await bench.subscribe("reader")
    await bench.push("1")
    await bench.dispatcher.save_marks()
    await bench.push("2")
    await bench.restart(crash=True)
    await bench.quiet()
    await bench.push("3")
    assert bench.subscribers.got("reader") == ["1", "2", "2", "3"]


async def test_kill_before_the_answer_delivers_again(bench: HubBench) -> None:
    """[WS-051]"""
    gate = bench.subscribers.silence("reader")
    await bench.subscribe("reader")
    await bench.publish("1")
    await bench.subscribers.began.wait()
    del bench.subscribers.receive["reader"]
    await bench.restart(crash=True)
    await bench.quiet()
    assert bench.subscribers.got("reader") == ["1"]
    gate.set()


async def test_failures_survive_a_restart(bench: HubBench) -> None:
    """[WS-051] [WS-060]"""
    bench.subscribers.receive["reader"] = fixed(500)
    await bench.subscribe("reader")
    await bench.push("1")
    await bench.fire(5)
    await bench.restart()
    failure = await bench.failure()
    assert failure is not None and failure.count == 2
    assert bench.timers.planned == [30.0]


async def test_last_delivery_and_backlog_are_shown_to_the_operator(bench: HubBench) -> None:
    """[WS-077]"""
    from smartfeeds.features.hub.requests import SubscriptionPhase, hub_statuses

    bench.subscribers.statuses["reader"] = [503]
    await bench.subscribe("reader", verify="async")
    await bench.ask(bench.fields("pending"))
    await bench.push("1 2")
    await bench.hub.results.aclose()
    await bench.dispatcher.save_marks()
    active, pending = await bench.world.service.read(lambda tx, context: hub_statuses(tx, context, 0, 9))
    assert (active.phase, active.node, active.dialect, active.waiting) == (
        SubscriptionPhase.RETRYING,
        "news",
        "0.3",
        2,
    )
    assert active.lag_us == 2_000_000 and active.callback.result == "answered 503"
    assert active.callback.tried_us is not None
    assert (pending.phase, pending.waiting) == (SubscriptionPhase.CHECKING, 0)


async def test_metrics_count_deliveries_and_subscriptions(bench: HubBench) -> None:
    """[WS-077]"""
    bench.subscribers.statuses["reader"] = [503]
    await bench.subscribe("reader", verify="async")
    await bench.push("1")
    (reading,) = bench.hub.readings()
    assert (reading.dialect, reading.count) == ("0.3", 1)
    assert b'smartfeeds_callback_seconds_count{kind="hub",result="5xx"}' in metrics_text()
    (lane,) = bench.dispatcher.readings()
    assert (lane.kind, lane.failed, lane.retrying) == ("hub", 1, 1)
    bench.world.clock.move(WebhooksSettings().lease_default_s)
    assert bench.hub.readings() == ()


async def test_deliveries_of_a_store_with_threads_are_the_same(world_on_disk: World) -> None:
    await world_on_disk.create("news")
    async with running_hub(world_on_disk) as bench:
        await bench.subscribe("reader", "/feeds/news/?category=x")
        await bench.push("1 2", category="x")
        await bench.restart()
        await bench.push("3", category="x")
        assert " ".join(bench.subscribers.got("reader")) == "1 2 3"
        await bench.ask(bench.fields("reader", "/feeds/news/?category=x", mode="unsubscribe"))
        bench.world.clock.move(60)
        await bench.check()
        assert await bench.rows() == []


async def test_publish_does_not_wait_for_subscribers(bench: HubBench) -> None:
    """[WS-088] The publish returns while the delivery to a silent callback still runs."""
    gate = bench.subscribers.silence("reader")
    await bench.subscribe("reader")
    await bench.publish("1")
    await bench.subscribers.began.wait()
    await bench.publish("2 3")
    assert (await bench.world.pull("news?order=modified")).ids == "1 2 3"
    assert bench.dispatcher.busy
    gate.set()


@pytest.mark.parametrize("topic", ["/feeds/news/?sync=true", "/feeds/news.atom?sync=true"])
async def test_view_with_sync_data_has_them(bench: HubBench, topic: str) -> None:
    await bench.subscribe("reader", topic)
    await bench.push("1")
    (push,) = bench.subscribers.pushes["reader"]
    assert push.ids == "1" and b"sx:history" in push.body
    assert push.links("self") == [f"{SITE}{topic}"]
