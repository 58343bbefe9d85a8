"""Requests of subscribers and checks of intent, over real sockets, on a clock that only the test moves."""

import asyncio
from dataclasses import replace

import pytest
from aiohttp import web
from structlog.testing import capture_logs

from smartfeeds.core.times import US_PER_S
from smartfeeds.core.token import TokenScope
from smartfeeds.features.accounts.tokens import add_token, new_token, revoke_token
from smartfeeds.features.callbacks import rows as callback_rows
from smartfeeds.features.callbacks.registrations import CallbackReader, due_callbacks, end_callbacks
from smartfeeds.features.callbacks.settings import WebhooksSettings
from smartfeeds.features.callbacks.targets import HOST_RATE
from smartfeeds.features.hub.protocol import HUB_TERMS, HubDialect, HubTerms
from smartfeeds.features.hub.requests import DENIED_US, drop_subscription
from smartfeeds.net.addresses import EVERYWHERE
from smartfeeds.net.clients import CallbackClient
from support.callbacks import SITE, HubBench, fixed
from support.waiting import until, wait_for
from support.website import Names
from support.world import ALICE, OWNER

# Nobody can subscribe.
FULL = WebhooksSettings.model_construct(subscriptions_per_feed=0)


async def end_due(bench: HubBench) -> None:
    """Runs the sweep that removes registrations whose time is over."""

    def work(tx, context):  # type: ignore[no-untyped-def]
        for step in due_callbacks(tx, context, 0)[0]:
            assert step is end_callbacks
            step(tx, context)

    await bench.world.service.write(work)


async def test_request_is_accepted_checked_and_active(bench: HubBench) -> None:
    """[WS-017] [WS-031] [WS-038] [SF-073] [SF-076] [SF-077]"""
    assert await bench.ask(bench.fields("reader")) == 202
    assert bench.subscribers.checks == {}
    await bench.check()

    (check,) = bench.subscribers.checks["reader"]
    assert check.pop("hub.challenge") == "challenge2"
    assert check == {"hub.mode": "subscribe", "hub.topic": f"{SITE}/feeds/news/", "hub.lease_seconds": "864000"}
    row = await bench.row()
    assert row.active and row.expires_us == bench.world.clock() + 864_000_000_000
    await bench.push("1")
    assert bench.subscribers.got("reader") == ["1"]


async def test_answer_does_not_depend_on_the_check(bench: HubBench) -> None:
    """[WS-017] [WS-036] [WS-039] A check that fails makes no subscription, and nothing is ever sent to it."""
    for name, answer in {
        "missing": fixed(404),
        "wrong": fixed(text="challenge"),
        "empty": fixed(),
        "moved": fixed(302, Location="/right"),
        "refused": fixed(403),
    }.items():
        bench.subscribers.confirm[name] = answer
        assert await bench.ask(bench.fields(name)) == 202
        await bench.check()
        assert await bench.rows() == []
    await bench.push("1")
    assert dict(bench.subscribers.pushes) == {}
    assert "right" not in bench.subscribers.checks


@pytest.mark.parametrize("text", ["{}\n", "{}x", " {}"])
async def test_body_must_be_the_challenge_alone(bench: HubBench, text: str) -> None:
    """[WS-034] The log says why."""

    async def answer(request: web.Request) -> web.Response:
        return web.Response(text=text.format(request.query["hub.challenge"]))

    bench.subscribers.confirm["reader"] = answer
    with capture_logs() as logs:
        assert await bench.ask(bench.fields("reader")) == 202
        await bench.check()
    assert await bench.rows() == []
    (log,) = [log for log in logs if log["event"] == "hub_question_asked"]
    assert log["outcome"] == "refused"
    assert log["reason"].startswith("the body has white space" if text != "{}x" else "the body is not the challenge")


async def test_any_status_of_success_confirms(bench: HubBench) -> None:
    """[WS-034]"""

    async def answer(request: web.Request) -> web.Response:
        return web.Response(status=206, text=request.query["hub.challenge"])

    bench.subscribers.confirm["reader"] = answer
    await bench.subscribe("reader")
    assert (await bench.row()).active


async def test_each_check_has_its_own_challenge(bench: HubBench) -> None:
    """[WS-033]"""
    await bench.subscribe("reader")
    await bench.subscribe("reader")
    challenges = {check["hub.challenge"] for check in bench.subscribers.checks["reader"]}
    assert len(challenges) == 2


async def test_refusal_for_good_is_asked_once(bench: HubBench) -> None:
    """[WS-037]"""
    bench.subscribers.confirm["reader"] = fixed(404)
    await bench.ask(bench.fields("reader"))
    for _ in range(4):
        await bench.check()
        bench.world.clock.move(3_000)
    assert len(bench.subscribers.checks["reader"]) == 1


@pytest.mark.parametrize("status", [503, 500, 429])
async def test_check_without_an_answer_is_repeated_twice(bench: HubBench, status: int) -> None:
    """[WS-037]"""
    bench.subscribers.confirm["reader"] = fixed(status)
    await bench.ask(bench.fields("reader"))
    counts = []
    for pause_s in (0, 59, 1, 599, 1, 3_000):
        bench.world.clock.move(pause_s)
        await bench.check()
        counts.append(len(bench.subscribers.checks["reader"]))
    assert counts == [1, 1, 2, 2, 3, 3]
    assert await bench.rows() == []


async def test_check_that_succeeds_at_the_third_attempt_makes_a_subscription(bench: HubBench) -> None:
    """[WS-037]"""
    bench.subscribers.confirm["reader"] = fixed(503)
    await bench.ask(bench.fields("reader"))
    await bench.check()
    bench.world.clock.move(60)
    await bench.check()
    del bench.subscribers.confirm["reader"]
    bench.world.clock.move(600)
    await bench.check()
    assert (await bench.row()).active


async def test_lease_is_moved_into_the_permitted_range_and_told(bench: HubBench) -> None:
    """[WS-015] [WS-016]"""
    leases = {}
    for name, wish in {"a": "7200", "b": "1", "c": "999999999", "d": ""}.items():
        await bench.subscribe(name, lease_seconds=wish)
        leases[name] = bench.subscribers.checks[name][0]["hub.lease_seconds"]
    assert leases == {"a": "7200", "b": "3600", "c": "2592000", "d": "864000"}


async def test_verify_token_comes_back(bench: HubBench) -> None:
    """[WS-021] [A-21]"""
    await bench.subscribe("reader", verify="async", verify_token="t&k")
    assert bench.subscribers.checks["reader"][0]["hub.verify_token"] == "t&k"


async def test_caller_that_waits_gets_the_outcome_of_the_check(bench: HubBench) -> None:
    """[WS-018] [A-21]"""
    bench.subscribers.confirm |= {"wrong": fixed(text="x"), "missing": fixed(404), "broken": fixed(503)}
    statuses = {}
    for name in ("right", "wrong", "missing", "broken"):
        statuses[name] = await bench.ask(bench.fields(name, verify="sync"))
        if name != "right":
            assert bench.refused.startswith("the subscription was not confirmed: the ")
    assert statuses == {"right": 204, "wrong": 400, "missing": 400, "broken": 503}
    assert [row.url for row in await bench.rows()] == [bench.subscribers.url("right")]
    bench.world.clock.move(60)
    await bench.check()
    assert len(bench.subscribers.checks["broken"]) == 1
    await bench.push("1")
    assert bench.subscribers.got("right") == ["1"]


async def test_caller_that_does_not_wait_gets_its_answer_before_the_check(bench: HubBench) -> None:
    """[WS-019] [A-21]"""
    assert await bench.ask(bench.fields("reader", verify="async")) == 202
    assert "reader" not in bench.subscribers.checks
    await bench.check()
    assert len(bench.subscribers.checks["reader"]) == 1


async def test_feed_of_the_topic_must_be_that_of_the_hub(bench: HubBench) -> None:
    """[WS-007] [A-22]"""
    await bench.world.create("plans")
    assert await bench.ask(bench.fields("reader", "/feeds/plans/"), feed="news") == 400
    assert bench.refused == "hub.topic is another feed than that of this hub"
    assert await bench.ask(bench.fields("reader", "/feeds/plans/"), feed="plans") == 202


async def test_missing_and_closed_feeds_get_the_same_answer(bench: HubBench) -> None:
    """[WS-007] [WS-028]"""
    await bench.world.create("closed", access_model="whitelist")
    await bench.world.create("generic", kind="generic")
    texts = set()
    for name in ("missing", "closed", "generic"):
        assert await bench.ask(bench.fields("reader", f"/feeds/{name}/")) == 400
        texts.add(bench.refused)
    assert texts == {"hub.topic is not a feed of this service, or it is closed to you"}
    assert await bench.ask(bench.fields("reader", "https://other.example/feeds/news/")) == 400
    assert bench.refused.startswith("hub.topic is not an address of this service")


async def test_spellings_of_a_topic_are_subscriptions_of_one_feed(bench: HubBench) -> None:
    """[WS-008] [WS-038] Each check has the spelling of its request."""
    spellings = [
        f"{SITE}/feeds/news/",
        "https://feeds.example/feeds/news/",
        "http://FEEDS.example:80/feeds/news/",
        f"{SITE}/feeds/%6Eews/",
        f"{SITE}/feeds/news",
    ]
    for topic in spellings:
        await bench.subscribe("reader", topic)
        bench.world.clock.move(60)
    assert [check["hub.topic"] for check in bench.subscribers.checks["reader"]] == spellings
    await bench.push("1")
    assert bench.subscribers.got("reader") == ["1"] * 5


async def test_callback_of_our_own_is_refused(bench: HubBench) -> None:
    """[WS-050]"""
    assert await bench.ask(bench.fields(f"{SITE}/hub")) == 400
    assert bench.refused == "hub.callback is an address of this service"


async def test_callback_and_topic_together_are_the_key(bench: HubBench) -> None:
    """[WS-025]"""
    await bench.subscribe("first")
    await bench.subscribe("second")
    await bench.push("1")
    assert (bench.subscribers.got("first"), bench.subscribers.got("second")) == (["1"], ["1"])


async def test_renewal_replaces_lease_secret_and_dialect_after_its_check(bench: HubBench) -> None:
    """[WS-024] [WS-041] One row, one delivery, and the mark stays."""
    await bench.subscribe("reader", secret="old")
    bench.world.clock.move(3_600)
    bench.subscribers.receive["reader"] = fixed(503)
    await bench.push("1")
    assert await bench.ask(bench.fields("reader", secret="new", verify="async", lease_seconds="7200")) == 202
    row = await bench.row()
    assert HUB_TERMS.read(row.settings).secret == "old"
    del bench.subscribers.receive["reader"]
    await bench.check()
    renewed = await bench.row()
    assert renewed.callback_no == row.callback_no
    assert HUB_TERMS.read(renewed.settings) == HubTerms("", "", HubDialect.PUBSUBHUBBUB, "new")
    assert renewed.expires_us == bench.world.clock() + 7_200_000_000
    assert bench.subscribers.got("reader") == ["1"]


async def test_subscriber_that_asks_after_each_push_makes_nothing_grow(bench: HubBench) -> None:
    """[WS-041] Prosody 0.12 does so."""
    for item_id in "123":
        await bench.subscribe("reader", verify="async", secret="s")
        await bench.push(item_id)
        bench.world.clock.move(60)
    assert bench.subscribers.got("reader") == ["1", "2", "3"]
    assert len(await bench.rows()) == 1


@pytest.mark.parametrize("answer", [fixed(404), fixed(text="x")])
async def test_failed_renewal_changes_nothing(bench: HubBench, answer) -> None:  # type: ignore[no-untyped-def]
    """[WS-036]"""
    await bench.subscribe("reader", secret="old")
    before = await bench.row()
    bench.subscribers.confirm["reader"] = answer
    await bench.ask(bench.fields("reader", secret="new"))
    await bench.check()
    assert await bench.row() == replace(before, due_us=None, question="")
    await bench.push("1")
    assert bench.subscribers.got("reader") == ["1"]


async def test_newer_request_takes_the_place_of_an_older_one(bench: HubBench) -> None:
    """[WS-042] Even while the check of the older one is under way."""
    gate, asked = asyncio.Event(), asyncio.Event()

    async def slow(request: web.Request) -> web.Response:
        asked.set()
        await gate.wait()
        return web.Response(text=request.query["hub.challenge"])

    bench.subscribers.confirm["reader"] = slow
    await bench.ask(bench.fields("reader", secret="first"))
    await bench.hub.questions.start_due()
    await asked.wait()
    await bench.ask(bench.fields("reader", secret="second"))
    await bench.hub.questions.start_due()
    assert len(bench.subscribers.checks["reader"]) == 1
    gate.set()
    await bench.hub.questions.idle()
    assert not (await bench.row()).active
    await bench.check()
    assert HUB_TERMS.read((await bench.row()).settings).secret == "second"
    assert len(bench.subscribers.checks["reader"]) == 2


async def test_checks_of_one_host_are_bounded(bench: HubBench) -> None:
    """[WS-043] The others wait; another host is not late."""
    bench.settings = WebhooksSettings(requests_per_minute=1_000)
    bench.make()
    await bench.hub.start()
    for number in range(30):
        assert await bench.ask(bench.fields(f"reader{number}")) == 202
    await bench.ask(bench.fields(bench.subscribers.url("other", host="127.0.0.2")))
    for _ in range(10):
        await bench.check()
    assert len(bench.subscribers.raw_checks) == 6
    assert "other" in bench.subscribers.checks
    bench.world.clock.move(60)
    for _ in range(10):
        await bench.check()
    assert len(bench.subscribers.raw_checks) == 11


async def test_questions_that_wait_for_their_host_are_neither_written_nor_lost(bench: HubBench) -> None:
    """[WS-043] [WS-047] A feed with many callbacks of one host is deleted: five are told each minute, without a write
    for those that wait."""
    bench.settings = WebhooksSettings(requests_per_minute=1_000)
    bench.make()
    await bench.hub.start()
    for number in range(150):
        assert await bench.ask(bench.fields(f"reader{number}")) == 202
    before = await bench.rows()
    await bench.check()
    later = await bench.rows()
    assert sum(row.active for row in later) == 5
    assert [row for row in later if not row.active] == [row for row in before if row.callback_no > 5]
    await bench.ask(bench.fields(bench.subscribers.url("other", host="127.0.0.2")))
    await bench.check()
    assert "other" in bench.subscribers.checks
    assert len(bench.subscribers.raw_checks) == 6
    # A host may have 10,000 subscriptions, and all may be denied together.
    assert 10_000 / HOST_RATE.per_s * US_PER_S < DENIED_US


async def test_checks_of_one_address_with_many_names_are_bounded(bench: HubBench) -> None:
    """[WS-043] Anybody can give one machine any number of names, and send requests from many networks."""
    async with CallbackClient(EVERYWHERE, resolver=Names("127.0.0.1")) as bench.client:
        bench.make()
        await bench.hub.start()
        for number in range(100):
            callback = bench.subscribers.url("reader", host=f"name{number}.example")
            assert await bench.ask(bench.fields(callback), address=f"192.0.2.{number}") == 202
        for _ in range(5):
            await bench.check()
        assert len(bench.subscribers.raw_checks) == 30
        bench.world.clock.move(60)
        for _ in range(5):
            await bench.check()
        assert len(bench.subscribers.raw_checks) == 60


async def test_silent_callbacks_do_not_delay_the_check_of_another_one(bench: HubBench) -> None:
    """[WS-035] [WS-043] Requests of strangers from several networks, all with a callback that does not answer."""
    gate = asyncio.Event()

    async def silent(_request: web.Request) -> web.Response:
        await gate.wait()
        return web.Response(status=404)

    bench.subscribers.confirm["silent"] = silent
    for number in range(60):
        callback = bench.subscribers.url("silent", f"?{number}", host=f"127.0.2.{number // 2 + 1}")
        await bench.ask(bench.fields(callback), address=f"192.0.2.{number % 3}")
    await bench.ask(bench.fields("good"))
    await bench.hub.questions.start_due()
    await until(lambda: "good" in bench.subscribers.checks, "the check of the good subscriber")
    gate.set()
    await bench.hub.questions.idle()


async def test_end_of_a_subscription_is_checked_too(bench: HubBench) -> None:
    """[WS-044] [A-21]"""
    await bench.subscribe("reader")
    bench.subscribers.confirm["reader"] = fixed(404)
    assert await bench.ask(bench.fields("reader", mode="unsubscribe")) == 202
    await bench.check()
    await bench.push("1")
    assert bench.subscribers.got("reader") == ["1"]
    del bench.subscribers.confirm["reader"]
    assert await bench.ask(bench.fields("reader", mode="unsubscribe")) == 202
    await bench.push("2")
    assert bench.subscribers.got("reader") == ["2"]
    await bench.check()
    assert "hub.lease_seconds" not in bench.subscribers.checks["reader"][-1]
    await bench.push("3")
    assert bench.subscribers.got("reader") == []
    assert await bench.rows() == []


async def test_end_of_what_does_not_exist_is_not_checked(bench: HubBench) -> None:
    """[WS-045] The answer is the same as for a subscription that exists."""
    assert await bench.ask(bench.fields("reader", mode="unsubscribe")) == 202
    assert await bench.ask(bench.fields("reader", mode="unsubscribe", verify="sync")) == 204
    await bench.check()
    assert bench.subscribers.raw_checks == []


async def test_requests_of_one_address_are_bounded(bench: HubBench) -> None:
    """[WS-027]"""
    bench.settings = WebhooksSettings(requests_per_minute=3)
    bench.make()
    await bench.hub.start()
    statuses = [await bench.ask(bench.fields("reader"), address="2001:db8::1") for _ in range(3)]
    statuses.append(await bench.ask(bench.fields("reader"), address="2001:db8::2"))
    assert (statuses, bench.refused) == ([202, 202, 202, 429], "more than 3 requests in a minute")
    assert await bench.ask(bench.fields("reader"), address="192.0.2.9") == 202
    bench.world.clock.move(20)
    assert await bench.ask(bench.fields("reader"), address="2001:db8::1") == 202


@pytest.mark.parametrize(
    ("keys", "status", "text"),
    [
        ({"subscriptions_per_feed": 3}, 429, "this feed has 3 subscriptions, which is the limit"),
        ({"subscriptions_per_host": 3}, 429, "127.0.0.1 has 3 subscriptions, which is the limit"),
        ({"subscriptions": 3}, 503, "this service has 3 subscriptions, which is the limit"),
    ],
)
async def test_subscriptions_are_bounded(bench: HubBench, keys: dict[str, int], status: int, text: str) -> None:
    """[WS-027] A renewal needs no room."""
    bench.settings = WebhooksSettings.model_validate(keys)
    bench.make()
    await bench.hub.start()
    for name in "abc":
        await bench.subscribe(name)
    assert (await bench.ask(bench.fields("d")), bench.refused) == (status, text)
    assert await bench.ask(bench.fields("a")) == 202


async def test_request_that_cannot_be_served_any_more_is_denied_in_place_of_the_check(bench: HubBench) -> None:
    """[WS-048]"""
    await bench.ask(bench.fields("limit"))
    bench.settings = FULL
    bench.make()
    await bench.hub.start()
    await bench.check()
    (denial,) = bench.subscribers.checks["limit"]
    assert denial == {
        "hub.mode": "denied",
        "hub.topic": f"{SITE}/feeds/news/",
        "hub.reason": "this feed has 1 subscriptions, which is the limit",
    }
    assert await bench.rows() == []


async def test_caller_that_waits_is_refused_when_its_request_cannot_be_served(bench: HubBench) -> None:
    """[WS-048]"""
    request = bench.ask(bench.fields("reader", verify="sync"))
    bench.hub.questions._settings = FULL
    assert await request == 400
    assert bench.refused.endswith("this feed has 1 subscriptions, which is the limit")


async def token_of(bench: HubBench, jid: str = OWNER, feed: str = "closed") -> CallbackReader:
    token, _ = new_token(jid, TokenScope.READ, feed, "")
    await bench.world.service.write(lambda tx, context: add_token(tx, context, token, None))
    return CallbackReader(jid, token.token_id)


async def test_closed_feed_needs_a_token_and_ends_with_it(bench: HubBench) -> None:
    """[WS-028] [WS-047] The subscription is of the JID of the token."""
    await bench.world.create("closed", access_model="whitelist")
    reader = await token_of(bench)
    assert await bench.ask(bench.fields("reader", "/feeds/closed/"), reader=await token_of(bench, ALICE)) == 400
    await bench.subscribe("reader", "/feeds/closed/", reader=reader)
    assert (await bench.row()).reader == OWNER
    await bench.world.publish("1", node="closed")
    await bench.quiet()
    assert bench.subscribers.got("reader") == ["1"]

    await bench.world.service.write(lambda tx, context: revoke_token(tx, context, reader.token_id))
    await bench.world.publish("2", node="closed")
    await bench.quiet()
    await bench.check()
    assert bench.subscribers.got("reader") == []
    denial = bench.subscribers.checks["reader"][-1]
    assert (denial["hub.mode"], denial["hub.reason"]) == ("denied", "the token was withdrawn or has expired")
    assert await bench.rows() == []


async def test_feed_that_is_closed_ends_the_subscriptions_of_strangers(bench: HubBench) -> None:
    """[WS-047]"""
    await bench.subscribe("reader")
    await bench.world.configure(node="news", access_model="whitelist")
    await bench.push("1")
    await bench.check()
    assert bench.subscribers.got("reader") == []
    assert bench.subscribers.checks["reader"][-1]["hub.mode"] == "denied"


async def test_deleted_feed_is_told_to_each_callback_once(bench: HubBench) -> None:
    """[WS-047] The answer does not matter."""
    await bench.subscribe("first")
    await bench.subscribe("second")
    bench.subscribers.confirm["first"] = fixed(404)
    await bench.world.delete(node="news")
    await bench.quiet()
    await bench.check()
    for name in ("first", "second"):
        denials = [check for check in bench.subscribers.checks[name] if check["hub.mode"] == "denied"]
        assert denials == [
            {"hub.mode": "denied", "hub.topic": f"{SITE}/feeds/news/", "hub.reason": "the feed was deleted"}
        ]
    assert await bench.rows() == []


async def test_denial_that_does_not_arrive_is_repeated_twice(bench: HubBench) -> None:
    """[WS-047] (WD-14)"""
    await bench.subscribe("reader")
    await bench.world.delete(node="news")
    await bench.quiet()
    row = await bench.row()
    port, bench.subscribers.port = bench.subscribers.port, 1
    await bench.world.store.write(lambda tx: callback_rows.put(tx, replace(row, url=bench.subscribers.url("reader"))))
    for pause_s in (0, 60):
        bench.world.clock.move(pause_s)
        await bench.check()
        assert len(await bench.rows()) == 1
    bench.world.clock.move(600)
    await bench.check()
    assert await bench.rows() == []
    bench.subscribers.port = port


async def test_feed_of_the_same_name_is_another_feed(bench: HubBench) -> None:
    """A subscription of the former feed is not one of the new feed."""
    await bench.subscribe("reader")
    await bench.world.delete(node="news")
    await bench.world.create("news")
    await bench.push("1")
    assert bench.subscribers.got("reader") == []
    await bench.subscribe("reader")
    await bench.push("2")
    assert bench.subscribers.got("reader") == ["2"]
    assert len(await bench.rows()) == 1


async def test_operator_ends_a_subscription(bench: HubBench) -> None:
    """[WS-047] [WS-077]"""
    await bench.subscribe("reader")
    number = (await bench.row()).callback_no
    await bench.world.service.write(lambda tx, context: drop_subscription(tx, context, number))
    await bench.push("1")
    await bench.check()
    assert bench.subscribers.got("reader") == []
    assert "the operator of this service" in bench.subscribers.checks["reader"][-1]["hub.reason"]


async def test_subscription_ends_with_its_lease(bench: HubBench) -> None:
    """[WS-046] One second before the end an item is delivered, at the end no more."""
    await bench.subscribe("reader", lease_seconds="3600")
    bench.world.clock.move(3_598)
    await bench.push("1")
    assert bench.subscribers.got("reader") == ["1"]
    bench.world.clock.move(1)
    await bench.push("2")
    assert bench.subscribers.got("reader") == []
    await end_due(bench)
    assert await bench.rows() == []
    assert len(bench.subscribers.checks["reader"]) == 1


async def test_renewal_that_is_checked_at_the_end_of_the_lease_still_counts(bench: HubBench) -> None:
    """[WS-041] [WS-046]"""
    await bench.subscribe("reader", lease_seconds="3600")
    bench.subscribers.confirm["reader"] = fixed(503)
    bench.world.clock.move(3_599)
    await bench.ask(bench.fields("reader"))
    await bench.check()
    bench.world.clock.move(2)
    await end_due(bench)
    del bench.subscribers.confirm["reader"]
    bench.world.clock.move(60)
    await bench.check()
    assert (await bench.row()).active
    await bench.push("1")
    assert bench.subscribers.got("reader") == ["1"]


async def test_request_that_nobody_confirmed_is_forgotten(bench: HubBench) -> None:
    await bench.ask(bench.fields("reader", verify="async"))
    bench.world.clock.move(3_601)
    await end_due(bench)
    assert await bench.rows() == []


async def test_subscriptions_and_questions_survive_a_restart(bench: HubBench) -> None:
    """[WS-051]"""
    await bench.subscribe("reader")
    await bench.ask(bench.fields("pending"))
    await bench.restart()
    await bench.check()
    assert len(bench.subscribers.checks["pending"]) == 1
    await bench.push("1")
    assert (bench.subscribers.got("reader"), bench.subscribers.got("pending")) == (["1"], ["1"])


async def test_secrets_are_not_in_the_log(bench: HubBench) -> None:
    """[WS-076] Neither are the addresses of callbacks, which subscribers keep unguessable."""
    bench.subscribers.statuses["5tV0k"] = [500]
    with capture_logs() as logs:
        await bench.subscribe("5tV0k", secret="s3cret", verify="async", verify_token="t0ken")
        await bench.push("1")
        await bench.fire(10)
        await bench.ask(bench.fields("5tV0k", mode="unsubscribe"))
        await bench.check()
    text = repr(logs)
    assert "delivery_failing" in text
    assert all(secret not in text for secret in ("s3cret", "5tV0k", "t0ken"))


@pytest.mark.parametrize("later", range(4))
async def test_questions_end_when_the_service_stops(bench: HubBench, later: int) -> None:
    """Also if the end comes together with news, at whatever step of the event loop."""
    running = asyncio.create_task(bench.hub.run())
    await until(lambda: bench.hub.questions._news._waiters, "the questions to wait")
    bench.hub.questions.wake()
    for _step in range(later):  # each step is a case
        await asyncio.sleep(0)
    running.cancel()
    await wait_for(asyncio.wait({running}), "the end of the questions")
