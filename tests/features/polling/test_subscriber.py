"""Sources that follow WebSub hubs: discovery, requests, checks, pushes and faults, over real sockets."""

import asyncio
import gzip
from dataclasses import replace

import pytest
from aiohttp import web
from structlog.testing import capture_logs

from smartfeeds.app.lifecycle import App
from smartfeeds.core.times import US_PER_S, format_datetime
from smartfeeds.features.polling import rows as source_rows
from smartfeeds.features.polling.http import PUSHES_AT_ONCE
from smartfeeds.features.polling.push_inbox import PUSH_BYTES, PushInbox
from smartfeeds.features.polling.push_links import MAX_TARGETS
from smartfeeds.features.polling.push_states import PushState
from smartfeeds.features.polling.source import PushKind, SourceState
from smartfeeds.features.polling.source_push import FORGOTTEN_S
from support.component import settings
from support.polling import NODE, PATH, atom
from support.pushing import DAY_S, HUB, running_pushing, signature
from support.waiting import until, wait_for

HOUR_S = 3_600


@pytest.fixture
async def pushing(world, site):
    async with running_pushing(world, site) as running:
        yield running


def feed(site, *titles, hub=HUB, topic=PATH, **options):
    """A document that names its hub and itself."""
    links = f'<link rel="hub" href="{site.url(hub)}"/><link rel="self" href="{site.url(topic)}"/>'
    return atom(*titles, inner=links, **options)


def entry(clock, title, body="", later_s=0, **links):
    """A document of one entry, as a hub pushes it."""
    updated = format_datetime(clock() + later_s * US_PER_S)
    inner = "".join(
        f"<fo:{name} xmlns:fo='http://fanout.org/protocol/atom'>{text}</fo:{name}>" for name, text in links.items()
    )
    return (
        f'<feed xmlns="http://www.w3.org/2005/Atom"><id>urn:x:blog</id><title>A blog</title>{inner}'
        f"<entry><id>urn:x:{title}</id><title>{title}</title><summary>{body}</summary><updated>{updated}</updated></entry></feed>"
    ).encode()


async def test_request_has_all_fields_in_a_form(pushing, site):
    """[WS-096] [WS-100] [WS-101] [WS-103] [WS-104] [WS-111] The topic is what the document calls itself."""
    site.pages[PATH], site.pages[HUB] = feed(site, "a", topic="/other"), pushing.hub
    await pushing.polling.poll(await pushing.polling.add())
    await pushing.look()

    push = await pushing.push()
    assert pushing.requests == [
        {
            "hub.mode": "subscribe",
            "hub.topic": site.url("/other"),
            "hub.callback": f"http://reader.example/push/{push.token}",
            "hub.verify": "async",
            "hub.lease_seconds": "864000",
            "hub.secret": push.secret,
        }
    ]
    hub = next(request for request in site.asked if request.path == HUB)
    assert hub.content_type == "application/x-www-form-urlencoded"
    assert push.state is PushState.ASKED and push.due_us == pushing.world.clock() + 6 * HOUR_S * US_PER_S
    assert push.secret not in repr(push) and push.token not in repr(push)


@pytest.mark.parametrize("status", [200, 202, 204])
async def test_check_begins_the_subscription(pushing, site, status):
    """[WS-104] [WS-108] [WS-112] websub.rocks 100 to 104: any 2xx; the lease of the check counts, not the wish."""
    pushing.hub_answer = web.Response(status=status)
    site.pages[PATH], site.pages[HUB] = feed(site, "a"), pushing.hub
    await pushing.polling.poll(await pushing.polling.add())
    await pushing.look()
    got = await pushing.check(await pushing.push(), lease="7200")

    assert (got.status, got.body) == (200, b"c1")
    assert got.headers["Content-Type"].startswith("text/plain")
    assert got.headers["X-Content-Type-Options"] == "nosniff"
    push = await pushing.push()
    assert push.state is PushState.ACTIVE and push.ends_us == pushing.world.clock() + 7_200 * US_PER_S


@pytest.mark.parametrize(("lease", "seconds"), [("", DAY_S), ("7200", 7_200), ("99999999", 14 * DAY_S)])
async def test_lease_of_the_check(pushing, site, lease, seconds):
    """[WS-112] Missing: a day; more than 14 days: 14 days."""
    push = await pushing.follow(feed(site, "a"))
    await pushing.check(push, lease=lease)
    assert (await pushing.push()).ends_us == pushing.world.clock() + seconds * US_PER_S


@pytest.mark.parametrize(
    "query",
    [
        {"hub_topic": "http://other.example/"},
        {"hub_mode": "unsubscribe"},
        {"hub_mode": "publish"},
        {"hub_challenge": ""},
        {"hub_challenge": "c" * 1_025},
    ],
)
async def test_other_checks_get_404(pushing, site, query):
    """[WS-109] [WS-113] websub.rocks 205; also a stranger's unsubscription."""
    push = await pushing.follow(feed(site, "a"))
    got = await pushing.check(push, **query)
    assert got.status == 404 and b"c1" not in got.body
    assert await pushing.push() == push


async def test_unknown_path_gets_404(pushing, site):
    """[WS-109] [WS-118] [WS-120] [WS-121] Nothing redirects, with a slash at the end or without."""
    push = await pushing.follow(feed(site, "a"))
    topic = push.target.topic
    for mode in ("subscribe", "denied"):
        got = await pushing.get("/push/nothing", hub_mode=mode, hub_topic=topic, hub_challenge="c")
        assert got.status == 404
    assert (await pushing.post("/push/nothing", b"x")).status == 404
    for path in (pushing.path(push), f"{pushing.path(push)}/"):
        assert (await pushing.post(path, b"")).status in (202, 403, 404)
    assert (await pushing.push()).state is PushState.ACTIVE


async def test_check_may_normalise_the_topic(pushing, site):
    """[WS-110]"""
    push = await pushing.follow(feed(site, "a", topic="/%7ealice/feed"))
    assert (await pushing.check(push, hub_topic=site.url("/~alice/feed/"))).status == 200
    assert (await pushing.check(push, hub_topic=site.url("/~bob/feed"))).status == 404


async def test_check_may_come_before_the_answer_of_the_hub(pushing, site):
    """[WS-108] A hub of PubSubHubbub 0.3 may check at once."""

    async def hub(_request):
        await pushing.check(await pushing.push())
        return web.Response(status=204)

    site.pages[PATH], site.pages[HUB] = feed(site, "a"), hub
    await pushing.polling.poll(await pushing.polling.add())
    await pushing.look()
    push = await pushing.push()
    assert push.state is PushState.ACTIVE and push.asked_us is None


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
async def test_redirects_of_a_hub_keep_the_request(pushing, site, status):
    """[WS-105] [WS-106] websub.rocks 203 and 204: permanent ones are remembered, and 301 is none for a hub."""
    site.pages[PATH] = feed(site, "a")
    site.pages[HUB] = web.Response(status=status, headers={"Location": "/moved"})
    site.pages["/moved"] = pushing.hub
    await pushing.polling.poll(await pushing.polling.add())
    await pushing.look()

    assert [form["hub.mode"] for form in pushing.requests] == ["subscribe"]
    push = await pushing.push()
    assert push.address == site.url("/moved" if status == 308 else HUB)


async def test_more_than_three_redirects_fail(pushing, site):
    """[WS-105] [WS-107]"""
    site.pages[PATH] = feed(site, "a")
    site.pages[HUB] = web.Response(status=307, headers={"Location": HUB})
    await pushing.polling.poll(await pushing.polling.add())
    await pushing.look()
    assert site.paths.count(HUB) == 4
    assert (await pushing.push()).state is PushState.REFUSED


@pytest.mark.parametrize(
    ("answer", "pause_s"),
    [
        (web.Response(status=400, text="no\n such\ttopic" + "x" * 400), DAY_S),
        (web.Response(status=429), HOUR_S),
        (web.Response(status=503), HOUR_S),
        (web.Response(status=503, headers={"Retry-After": "120"}), 120),
    ],
)
async def test_refused_request_is_repeated_later(pushing, site, answer, pause_s):
    """[WS-107]"""
    pushing.hub_answer = answer
    site.pages[PATH], site.pages[HUB] = feed(site, "a"), pushing.hub
    await pushing.polling.poll(await pushing.polling.add())
    await pushing.look()
    push = await pushing.push()
    assert push.state is PushState.REFUSED and push.due_us == pushing.world.clock() + pause_s * US_PER_S
    if answer.status == 400:
        assert push.reason.startswith("the hub answered 400: no such topicxx") and len(push.reason) == 300
    await pushing.look(pause_s)
    assert len(pushing.requests) == 2


async def test_pauses_double_up_to_a_day(pushing, site):
    """[WS-107]"""
    pushing.hub_answer = web.Response(status=500)
    site.pages[PATH], site.pages[HUB] = feed(site, "a"), pushing.hub
    await pushing.polling.poll(await pushing.polling.add())
    pauses = []
    for _try in range(7):
        await pushing.look()
        pauses.append(((await pushing.push()).due_us - pushing.world.clock()) // US_PER_S // HOUR_S)
        pushing.world.clock.move(pauses[-1] * HOUR_S)
    assert pauses == [1, 2, 4, 8, 16, 24, 24]


async def test_unchecked_request_fails_after_six_hours(pushing, site):
    """[WS-104]"""
    site.pages[PATH], site.pages[HUB] = feed(site, "a"), pushing.hub
    await pushing.polling.poll(await pushing.polling.add())
    await pushing.look()
    await pushing.look(6 * HOUR_S)
    push = await pushing.push()
    assert (push.state, push.reason) == (PushState.REFUSED, "the hub has not checked the request")
    assert (await pushing.check(push)).status == 404


async def test_second_hub_is_tried_when_the_first_is_dead(pushing, site):
    """[WS-099]"""
    links = f'<link rel="hub" href="{site.url("/dead")}"/>'
    document = feed(site, "a").replace(b'<link rel="hub"', links.encode() + b'<link rel="hub"', 1)
    site.pages[PATH], site.pages[HUB] = document, pushing.hub
    await pushing.polling.poll(await pushing.polling.add())
    await pushing.look()
    assert pushing.requests == [] and (await pushing.push()).state is PushState.REFUSED
    await pushing.look(60)
    assert len(pushing.requests) == 1 and (await pushing.push()).target.url == site.url(HUB)


async def test_hub_in_a_private_network_is_refused(pushing, site):
    """[WS-138]"""
    pushing.subscriber._clients = pushing.subscriber._clients._replace(listed=pushing.subscriber._clients.private)
    site.pages[PATH], site.pages[HUB] = feed(site, "a"), pushing.hub
    await pushing.polling.poll(await pushing.polling.add())
    await pushing.look()
    push = await pushing.push()
    assert pushing.requests == [] and push.state is PushState.REFUSED
    assert "sources.allowed_networks" in push.reason


async def test_own_hub_is_not_used(pushing, site):
    """[WS-140]"""
    site.pages[PATH] = feed(site, "a").replace(site.url(HUB).encode(), b"http://reader.example/hub")
    await pushing.polling.poll(await pushing.polling.add())
    assert await pushing.pushes() == []


async def test_topic_on_another_host_stays_a_topic(pushing, site):
    """[WS-097] The address of the source does not change."""
    document = feed(site, "a").replace(site.url(PATH).encode(), b"http://other.example/feed")
    push = await pushing.follow(document)
    assert push.target.topic == "http://other.example/feed"
    assert (await pushing.source()).url == site.url(PATH)


@pytest.mark.parametrize("status", [301, 302])
async def test_links_of_the_final_answer_count(pushing, site, status):
    """[WS-098] websub.rocks 201 and 202; without a link to itself the final address is the topic [WS-096]."""
    document = atom("a", inner=f'<link rel="hub" href="{site.url(HUB)}"/>')
    site.pages["/final"] = document
    push = await pushing.follow(web.Response(status=status, headers={"Location": "/final"}))
    assert push.target.topic == site.url("/final")


async def test_without_public_address_no_hub_is_used(pushing, site, world):
    """[WS-102]"""
    pushing.polling.poller._new_key = None
    site.pages[PATH], site.pages[HUB] = feed(site, "a"), pushing.hub
    await pushing.polling.poll(await pushing.polling.add())
    await pushing.look()
    assert await pushing.pushes() == [] and pushing.requests == []


@pytest.mark.parametrize(("base_url", "tells"), [("", True), ("http://reader.example", False)])
async def test_start_without_public_address_says_that_hubs_are_not_used(tmp_path, base_url, tells):
    """[WS-102] Sources are polled; no task asks hubs, and nothing can be pushed."""
    http = {"listen": "127.0.0.1:0", "base_url": base_url}
    app = App(settings(1, f"sqlite:///{tmp_path}/x.db", component={"link": "off"}, http=http))
    with capture_logs() as logs:
        await app.start()
    await app.stop()
    assert ("source_push_off" in [line["event"] for line in logs]) is tells
    assert (app.parts.find(PushInbox) is None) is tells
    names = [name for running in app._running for name, _work in (*running.duties, *running.tasks)]
    assert "sources" in names and ("hubs of sources" not in names) is tells
    assert ("pushes of sources" not in names) is tells


async def test_metrics_count_subscriptions_by_state(pushing, site, world):
    """[WS-141] The counts are read from the store every minute."""
    await pushing.follow(feed(site, "a"))
    await pushing.look(60.0)
    assert {reading.state: reading.subscriptions for reading in pushing.subscriber.readings()} == {
        state.value: int(state is PushState.ACTIVE) for state in PushState
    }


async def test_counts_end_with_the_run(pushing, site):
    """[OPS-085] Another process counts from then on, and a dashboard adds the numbers of all processes."""
    await pushing.follow(feed(site, "a"))
    subscriber, asleep = pushing.subscriber, asyncio.Event()

    async def sleep(_seconds):
        asleep.set()
        await asyncio.Event().wait()

    subscriber._tools = replace(subscriber._tools, sleep=sleep)
    pushing.world.clock.move(60.0)
    running = asyncio.create_task(subscriber.run())
    await wait_for(asleep.wait(), "the pause of the subscriber")
    assert sum(reading.subscriptions for reading in subscriber.readings()) == 1

    running.cancel()
    await asyncio.gather(running, return_exceptions=True)

    assert not any(reading.subscriptions for reading in subscriber.readings())


async def test_no_secret_without_tls(world, site):
    """[WS-103] [WS-139] [WS-127] An unsigned push over http is a hint, and leads to a poll."""
    async with running_pushing(world, site, secret_over_http=False) as pushing:
        push = await pushing.follow(feed(site, "a"))
        assert "hub.secret" not in pushing.requests[0]
        source = await pushing.source()
        got = await pushing.deliver(push, entry(world.clock, "forged"))
        assert got.status == 202 and await pushing.titles() == ["a"]
        assert (await pushing.source()).due_us == source.polled_us + 60 * US_PER_S
        assert (await pushing.source()).progress.push is PushKind.HUB


async def test_unsigned_push_to_an_https_callback_is_taken(world, site):
    """[WS-103] The hub has no TLS, so it gets no secret; the path is only known to it."""
    async with running_pushing(world, site, secret_over_http=False, tls=True) as pushing:
        push = await pushing.follow(feed(site, "a"))
        assert not push.has_secret
        await pushing.deliver(push, entry(world.clock, "b"))
        assert await pushing.titles() == ["a", "b"]


async def test_push_is_answered_before_it_is_read(pushing, site, world):
    """[WS-119] websub.rocks 300"""
    push = await pushing.follow(feed(site, "a"))
    body = entry(world.clock, "b")
    got = await pushing.post(pushing.path(push), body, X_Hub_Signature=signature(push.secret, body))
    assert got.status == 202 and await pushing.titles() == ["a"]
    await pushing.inbox.settle()
    assert await pushing.titles() == ["a", "b"]
    assert (await pushing.push()).pending_us is None


async def test_poll_and_push_at_once_make_no_doubles(pushing, site, world):
    """[SRC-076] Both bring the same new item; each import is one transaction."""
    push = await pushing.follow(feed(site, "a"))
    body = entry(world.clock, "b")
    site.pages[PATH] = body
    world.clock.move(DAY_S)
    source, requests = await pushing.source(), len(site.paths)
    polls = [pushing.polling.poller.poll(source) for _ in range(2)]
    again = pushing.post(pushing.path(push), body, X_Hub_Signature=signature(push.secret, body))
    await asyncio.gather(*polls, again, pushing.deliver(push, body))
    await pushing.inbox.settle()
    assert PATH in site.paths[requests:]
    assert await pushing.titles() == ["a", "b"]
    assert (await world.node(NODE)).total == 2


@pytest.mark.parametrize("method", ["sha1", "sha256", "sha384", "sha512"])
async def test_signature_of_each_method(pushing, site, world, method):
    """[WS-123] Hex digits in either case."""
    push = await pushing.follow(feed(site, "a"))
    body = entry(world.clock, "b")
    name, _, digits = signature(push.secret, body, method).partition("=")
    assert (await pushing.deliver(push, body, X_Hub_Signature=f"{name}={digits.upper()}")).status == 202
    assert await pushing.titles() == ["a", "b"]


@pytest.mark.parametrize("header", [None, "", "sha256=", "sha256=00", "md5=00", "sha256=\u00e9", "=", "sha1"])
async def test_push_without_right_signature_is_refused(pushing, site, world, header):
    """[WS-123] [WS-124] websub.rocks 301 and 302"""
    push = await pushing.follow(feed(site, "a"))
    headers = {} if header is None else {"X_Hub_Signature": header}
    got = await pushing.post(pushing.path(push), entry(world.clock, "forged"), **headers)
    await pushing.inbox.settle()
    assert got.status == 403 and await pushing.titles() == ["a"]
    assert (await pushing.push()).forgeries == 1


async def test_ten_forgeries_begin_a_new_subscription(pushing, site, world):
    """[WS-124] With another path and secret."""
    push = await pushing.follow(feed(site, "a"))
    for _time in range(10):
        await pushing.post(pushing.path(push), b"forged", X_Hub_Signature="sha1=00")
    old, new = await pushing.pushes()
    assert (old.state, new.state) == (PushState.LEAVING, PushState.PLANNED)
    assert new.token != old.token and new.secret != old.secret
    assert (await pushing.source()).due_us <= world.clock() + 60 * US_PER_S


async def test_path_alone_tells_the_feed(pushing, site, world):
    """[WS-122]"""
    push = await pushing.follow(feed(site, "a"))
    await pushing.deliver(push, entry(world.clock, "b"), Link='<http://other.example/>; rel="self"')
    assert await pushing.titles() == ["a", "b"]


async def test_push_in_gzip(pushing, site, world):
    """[WS-126] [WS-127] The signature is over the bytes as they came; the type is a hint."""
    push = await pushing.follow(feed(site, "a"))
    body = gzip.compress(entry(world.clock, "b"))
    await pushing.deliver(push, body, Content_Encoding="gzip", Content_Type="text/plain")
    assert await pushing.titles() == ["a", "b"]


@pytest.mark.parametrize("body", [b"", b" \n", b"not a feed"])
async def test_push_without_content_is_a_hint(pushing, site, world, body):
    """[WS-127]"""
    push = await pushing.follow(feed(site, "a"))
    assert (await pushing.deliver(push, body)).status == 202
    source = await pushing.source()
    assert source.due_us == source.polled_us + 60 * US_PER_S


async def test_too_large_push_is_refused(pushing, site):
    """[WS-125]"""
    push = await pushing.follow(feed(site, "a"))
    got = await pushing.post(pushing.path(push), b"x" * 10_000_001)
    assert got.status == 413 and (await pushing.push()).forgeries == 0


async def test_push_removes_nothing(pushing, site, world):
    """[WS-128] Items and data of the feed that it leaves out stay."""
    push = await pushing.follow(feed(site, "b", "a"))
    before = await world.node("news")
    await pushing.deliver(push, entry(world.clock, "c").replace(b"<title>A blog</title>", b"<title/>"))
    assert await pushing.titles() == ["a", "b", "c"]
    assert (await world.node("news")).options == before.options


async def test_item_by_poll_and_by_push_is_one_item(pushing, site, world):
    """[WS-129] The same payload is no modification."""
    push = await pushing.follow(feed(site, "a"))
    document = feed(site, "b", "a", every_s=0)
    await pushing.deliver(push, document.replace(b"<title>A blog</title>", b"<title>A blog (hub)</title>"))
    modified = (await world.node("news")).last_modified_us
    site.pages[PATH] = document
    await pushing.polling.poll(await pushing.source(), HOUR_S)
    assert await pushing.titles() == ["a", "b"] and (await world.node("news")).last_modified_us == modified


async def test_late_repetition_does_not_undo_a_newer_version(pushing, site, world):
    """[WS-130]"""
    push = await pushing.follow(feed(site, "a"))
    old, new = (entry(world.clock, "b", body, later) for body, later in (("old", 0), ("new", 10)))
    await pushing.deliver(push, new)
    await pushing.deliver(push, old)
    page = await world.pull("news", max=10)
    assert [b"new" in item.payload for item in page.items] == [False, True]


async def test_entries_of_other_topics_are_left_out(pushing, site, world):
    """[WS-131]"""
    push = await pushing.follow(feed(site, "a"))
    source = '<source><link rel="self" href="{}"/></source></entry>'
    mine, other = (entry(world.clock, name) for name in ("mine", "other"))
    mine = mine.replace(b"</entry>", source.format(site.url(PATH)).encode())
    other = other.replace(b"</entry>", source.format("http://other.example/").encode())
    body = mine.replace(b"</feed>", other[other.index(b"<entry>") :])
    await pushing.deliver(push, body)
    assert await pushing.titles() == ["a", "mine"]


async def test_gap_in_the_chain_is_closed_by_one_pull(pushing, site, world):
    """[WS-132] [SF-044]"""
    push = await pushing.follow(feed(site, "a"))
    await pushing.deliver(push, entry(world.clock, "b", prev_cursor="c0", last_cursor="c1"))
    site.asked.clear()
    pulled, last = entry(world.clock, "c", last_cursor="c3"), entry(world.clock, "d", later_s=1)
    site.pages[PATH] = pulled.replace(b"</feed>", last[last.index(b"<entry>") :])
    await pushing.deliver(push, entry(world.clock, "d", later_s=1, prev_cursor="c2", last_cursor="c3"))

    assert site.paths == [f"{PATH}?since=cursor:c1&timeout=0"]
    assert await pushing.titles() == ["a", "b", "c", "d"]
    assert (await pushing.push()).cursor == "c3"
    site.asked.clear()
    await pushing.deliver(push, entry(world.clock, "e", prev_cursor="c3", last_cursor="c4"))
    assert site.paths == [] and (await pushing.titles())[-1] == "e"


async def test_renewal_keeps_path_and_secret(pushing, site, world):
    """[WS-115] [WD-12] At 70 to 80 % of the lease; pushes are taken until it has been checked."""
    push = await pushing.follow(feed(site, "a"))
    assert 0.7 <= (push.due_us - world.clock()) / (864_000 * US_PER_S) <= 0.8
    await pushing.look((push.due_us - world.clock()) / US_PER_S)
    assert pushing.requests[0] == pushing.requests[1]
    assert (await pushing.deliver(push, entry(world.clock, "b"))).status == 202
    assert await pushing.titles() == ["a", "b"]
    await pushing.check(push)
    renewed = await pushing.push()
    assert renewed.ends_us == world.clock() + 864_000 * US_PER_S and renewed.token == push.token


async def test_lease_that_is_not_renewed_ends(pushing, site, world):
    """[WS-116] Six hours after its end the feed is polled as before; a day later the hub is asked again."""
    push = await pushing.follow(feed(site, "a"))
    await pushing.deliver(push, entry(world.clock, "b"))
    await pushing.look((push.ends_us - world.clock()) / US_PER_S + 6 * HOUR_S - 1)
    assert (await pushing.push()).state is PushState.ACTIVE
    await pushing.look(1)
    ended, source = await pushing.push(), await pushing.source()
    assert (ended.state, ended.reason) == (PushState.REFUSED, "the lease ended and was not renewed")
    assert source.progress.push is PushKind.NONE and source.due_us <= world.clock() + DAY_S * US_PER_S
    count = len(pushing.requests)
    await pushing.look(DAY_S)
    assert len(pushing.requests) == count + 1


@pytest.mark.parametrize("is_active", [False, True])
async def test_denial_ends_the_subscription(pushing, site, world, is_active):
    """[WS-117] In waiting and in running state; not before a day again."""
    site.pages[PATH], site.pages[HUB] = feed(site, "a"), pushing.hub
    await pushing.polling.poll(await pushing.polling.add())
    await pushing.look()
    if is_active:
        await pushing.check(await pushing.push())
    got = await pushing.check(await pushing.push(), "denied", hub_reason="go away")
    push = await pushing.push()
    assert got.status == 200
    assert (push.state, push.reason) == (PushState.REFUSED, "the hub denied it: go away")
    assert push.due_us == world.clock() + DAY_S * US_PER_S


async def test_polls_are_rare_after_the_first_push(pushing, site, world):
    """[WS-133]"""
    push = await pushing.follow(feed(site, "a"))
    source = await pushing.polling.poll(await pushing.source(), HOUR_S)
    assert source.due_us < world.clock() + 13 * HOUR_S * US_PER_S
    await pushing.deliver(push, entry(world.clock, "b"))
    source = await pushing.polling.poll(await pushing.source(), HOUR_S)
    assert 20 * HOUR_S < (source.due_us - world.clock()) / US_PER_S < 28 * HOUR_S


async def test_three_missed_changes_begin_a_new_subscription(pushing, site, world):
    """[WS-134] Found by a poll, and more than 15 minutes old; a push starts the count again."""
    push = await pushing.follow(feed(site, "a"))
    await pushing.deliver(push, entry(world.clock, "b"))

    async def publish(name):
        site.pages[PATH] = entry(world.clock, name).replace(
            b"<entry>", feed(site).partition(b"</title>")[2][:-7] + b"<entry>"
        )
        await pushing.polling.poll(await pushing.source(), 16 * 60)

    await publish("m1")
    assert (await pushing.push()).misses == 1
    await pushing.deliver(push, entry(world.clock, "c"))
    assert (await pushing.push()).misses == 0
    for name in ("m2", "m3", "m4"):
        await publish(name)
    old, new = await pushing.pushes()
    assert (old.state, new.state) == (PushState.LEAVING, PushState.PLANNED)
    assert (await pushing.source()).progress.push is PushKind.NONE and new.token != old.token


async def test_recent_change_is_no_miss(pushing, site, world):
    """[WS-134] The push may still come."""
    await pushing.follow(feed(site, "a"))
    site.pages[PATH] = entry(world.clock, "b").replace(
        b"<entry>", feed(site).partition(b"</title>")[2][:-7] + b"<entry>"
    )
    await pushing.polling.poll(await pushing.source(), 14 * 60)
    assert (await pushing.push()).misses == 0


async def test_hub_that_is_no_longer_named_is_left(pushing, site, world):
    """[WS-135] At the second poll."""
    await pushing.follow(feed(site, "a"))
    site.pages[PATH] = atom("a")
    await pushing.polling.poll(await pushing.source(), HOUR_S)
    assert (await pushing.push()).state is PushState.ACTIVE
    await pushing.polling.poll(await pushing.source(), HOUR_S)
    await pushing.look()
    assert pushing.requests[-1]["hub.mode"] == "unsubscribe" and "hub.secret" not in pushing.requests[-1]


async def test_change_of_the_hub(pushing, site):
    """[WS-135] The new one is asked first; the old one is left when the new one has checked."""
    old = await pushing.follow(feed(site, "a"))
    site.pages[PATH], site.pages["/hub2"] = feed(site, "a", hub="/hub2"), pushing.hub
    for _poll in range(3):
        await pushing.polling.poll(await pushing.source(), HOUR_S)
    await pushing.look()
    assert [push.state for push in await pushing.pushes()] == [PushState.ACTIVE, PushState.ASKED]
    await pushing.check(await pushing.push())
    await pushing.look()
    assert [form["hub.mode"] for form in pushing.requests] == ["subscribe", "subscribe", "unsubscribe"]
    assert site.paths[-1] == HUB and old.token in pushing.requests[-1]["hub.callback"]


async def test_new_hub_has_to_push_before_polls_are_rare(pushing, site, world):
    """[WS-133] [WS-135] The old hub has pushed, and the new one has not yet."""
    old = await pushing.follow(feed(site, "a"))
    await pushing.deliver(old, entry(world.clock, "b"))
    assert (await pushing.source()).progress.push is PushKind.HUB
    site.pages[PATH], site.pages["/hub2"] = feed(site, "a", hub="/hub2"), pushing.hub
    await pushing.polling.poll(await pushing.source(), HOUR_S)
    await pushing.look()
    await pushing.check(await pushing.push())
    source = await pushing.source()
    assert source.progress.push is PushKind.NONE and source.due_us <= world.clock() + HOUR_S * US_PER_S


async def test_feed_that_names_another_hub_at_each_poll_has_one_subscription_that_waits(pushing, site):
    """[WS-135]"""
    await pushing.follow(feed(site, "a"))
    for number in range(20):
        site.pages[f"/hub{number}"] = pushing.hub
        site.pages[PATH] = feed(site, "a", hub=f"/hub{number}")
        await pushing.polling.poll(await pushing.source(), HOUR_S)
        await pushing.look()
    assert [push.state for push in await pushing.pushes()] == [PushState.ACTIVE, PushState.ASKED]


async def test_subscriptions_that_are_over_are_bounded(pushing, site):
    """[WS-135] Each new hub checks, and the feed names the next one."""
    await pushing.follow(feed(site, "a"))
    for number in range(20):
        site.pages[f"/hub{number}"] = pushing.hub
        site.pages[PATH] = feed(site, "a", hub=f"/hub{number}")
        await pushing.polling.poll(await pushing.source(), HOUR_S)
        await pushing.look()
        left = await pushing.push()
        await pushing.check(left)
        await pushing.look()
        for push in await pushing.pushes():
            if push.state is PushState.LEAVING:
                await pushing.check(push, "unsubscribe")
    assert len(await pushing.pushes()) <= MAX_TARGETS + 2


async def test_removed_source_unsubscribes(pushing, site, world):
    """[WS-136] [WS-114] [WS-121] The check is confirmed after the removal, whatever lease it names; then 410."""
    push = await pushing.follow(feed(site, "a"))
    source = await pushing.source()
    await world.store.write(lambda tx: source_rows.remove(tx, source.source_no))
    await pushing.look(60)
    assert pushing.requests[-1]["hub.mode"] == "unsubscribe"
    assert (await pushing.check(push, "subscribe")).status == 404
    assert (await pushing.check(push, "unsubscribe", lease="5")).status == 200
    assert (await pushing.push()).state is PushState.ENDED
    assert (await pushing.deliver(push, entry(world.clock, "b"))).status == 410
    await pushing.look(30 * DAY_S)
    assert await pushing.pushes() == []


async def test_paused_source_is_left(pushing, site, world):
    """[WS-136]"""
    push = await pushing.follow(feed(site, "a"))
    source = await pushing.source()
    await world.store.write(lambda tx: source_rows.put(tx, replace(source, state=SourceState.PAUSED, due_us=None)))
    await pushing.look(60)
    assert pushing.requests[-1]["hub.mode"] == "unsubscribe"
    assert (await pushing.deliver(push, entry(world.clock, "b"))).status == 410


async def test_requests_to_a_hub_are_spaced(pushing, site):
    """[WS-137] One at a time, a second apart."""
    site.pages[HUB] = pushing.hub
    for number in range(5):
        site.pages[f"/{number}"] = feed(site, "a", topic=f"/{number}")
        await pushing.polling.poll(await pushing.polling.add(f"/{number}", f"node{number}"))
    pushing.slept.clear()
    await pushing.look()
    assert len(pushing.requests) == 5 and pushing.slept == [1.0] * 5


async def test_start_spreads_what_is_overdue(pushing, site, world):
    """[WS-137]"""
    site.pages[HUB] = pushing.hub
    for number in range(5):
        site.pages[f"/{number}"] = feed(site, "a", topic=f"/{number}")
        await pushing.polling.poll(await pushing.polling.add(f"/{number}", f"node{number}"))
    world.clock.move(DAY_S)
    await pushing.subscriber.look()
    times = sorted(push.due_us - world.clock() for push in await pushing.pushes())
    assert times[0] >= 0 and times[-1] <= 600 * US_PER_S and len(set(times)) == 5


async def test_push_that_a_crash_loses_is_polled(pushing, site, world):
    """[WS-119] The mark is stored before the response."""
    push = await pushing.follow(feed(site, "a"))
    body = entry(world.clock, "b")
    await pushing.post(pushing.path(push), body, X_Hub_Signature=signature(push.secret, body))
    assert (await pushing.push()).pending_us == world.clock()
    pushing.subscriber._began = False
    await pushing.look()
    source = await pushing.source()
    assert source.due_us == source.polled_us + 60 * US_PER_S and (await pushing.push()).pending_us is None


async def test_push_that_another_process_has_lost_is_polled(pushing, site, world):
    """[WS-119] [TOP-045] This process runs on, so it cannot know that another one has ended. A push that is stored soon
    is left alone."""
    push = await pushing.follow(feed(site, "a"))
    await pushing.look()
    body = entry(world.clock, "b")
    await pushing.post(pushing.path(push), body, X_Hub_Signature=signature(push.secret, body))
    world.clock.move(61)
    await pushing.look()
    assert (await pushing.push()).pending_us is not None
    world.clock.move(FORGOTTEN_S)
    await pushing.look()
    source = await pushing.source()
    assert (await pushing.push()).pending_us is None
    assert source.due_us <= world.clock() + 60 * US_PER_S


async def test_push_that_cannot_be_read_for_any_reason_is_polled(pushing, site, world, monkeypatch):
    """[WS-119] A fault of this service in the document of a stranger."""
    push = await pushing.follow(feed(site, "a"))

    def fail(*_arguments):
        raise ValueError

    monkeypatch.setattr("smartfeeds.features.polling.push_inbox.read_push", fail)
    await pushing.deliver(push, entry(world.clock, "b"))
    source = await pushing.source()
    assert (await pushing.push()).pending_us is None and source.due_us == source.polled_us + 60 * US_PER_S


async def test_unsigned_push_is_taken_while_a_secret_is_only_asked_for(world, site):
    """[WS-115] [WS-124] The lease that runs has no secret; the request to renew it has one."""
    async with running_pushing(world, site, secret_over_http=False, tls=True) as pushing:
        push = await pushing.follow(feed(site, "a"))
        await pushing.change(asks_secret=True)
        await pushing.deliver(push, entry(world.clock, "b"))
        assert await pushing.titles() == ["a", "b"]
        await pushing.check(push)
        push = await pushing.push()
        assert push.has_secret
        assert (await pushing.deliver(push, entry(world.clock, "c"), X_Hub_Signature="")).status == 403


async def test_gap_on_another_host_is_closed_without_the_password(pushing, site, world):
    """[SRC-015] [WS-132] The document chooses the address of its topic."""
    links = f'<link rel="hub" href="{site.url(HUB)}"/><link rel="self" href="{site.url("/elsewhere", "localhost")}"/>'
    push = await pushing.follow(atom("a", inner=links), user="me", password="secret")
    assert site.asked[0].headers["Authorization"].startswith("Basic ")
    await pushing.deliver(push, entry(world.clock, "b", prev_cursor="c0", last_cursor="c1"))
    site.pages["/elsewhere"] = entry(world.clock, "c", last_cursor="c2")
    await pushing.deliver(push, entry(world.clock, "d", prev_cursor="c2", last_cursor="c3"))
    assert await pushing.titles() == ["a", "b", "c", "d"]
    assert {one.headers.get("Authorization") for one in site.asked if one.path == "/elsewhere"} == {None}


async def test_pushes_that_come_together_do_not_share_the_room(pushing, site, world, monkeypatch):
    """[WS-119]"""
    body = entry(world.clock, "b")
    monkeypatch.setattr("smartfeeds.features.polling.push_inbox.SOURCE_BYTES", len(body) + PUSH_BYTES)
    push = await pushing.follow(feed(site, "a"))
    headers = {"X_Hub_Signature": signature(push.secret, body)}
    answers = await asyncio.gather(*(pushing.post(pushing.path(push), body, **headers) for _ in range(4)))
    assert sorted(answer.status for answer in answers) == [202, 503, 503, 503]


async def test_push_whose_subscription_ends_meanwhile_takes_no_room(pushing, site, world, monkeypatch):
    """[WS-119] What is not stored for later does not count: the room is for one push."""
    body = entry(world.clock, "b")
    monkeypatch.setattr("smartfeeds.features.polling.push_inbox.SOURCE_BYTES", len(body) + PUSH_BYTES)
    push = await pushing.follow(feed(site, "a"))
    with monkeypatch.context() as ended:
        ended.setattr("smartfeeds.features.polling.push_inbox.take_push", lambda *_args, **_options: None)
        for _ in range(3):
            assert (await pushing.deliver(push, body)).status == 410
    assert await pushing.titles() == ["a"]
    assert (await pushing.deliver(push, body)).status == 202
    assert await pushing.titles() == ["a", "b"]


async def test_answer_that_nothing_changed_keeps_the_subscription(pushing, site, world):
    """[WS-135] A 304 has no document, so it does not say that the feed has no hub any more."""
    await pushing.follow(web.Response(body=feed(site, "a"), headers={"ETag": '"1"'}))
    site.pages[PATH] = web.Response(status=304)
    for _ in range(3):
        assert (await pushing.polling.poll(await pushing.source(), HOUR_S)).state is SourceState.POLLED
        await pushing.look()
    assert [one["hub.mode"] for one in pushing.requests] == ["subscribe"]
    assert (await pushing.push()).state is PushState.ACTIVE


async def test_full_inbox_refuses(pushing, site, world, monkeypatch):
    """[WS-119] The hub repeats the push."""
    monkeypatch.setattr("smartfeeds.features.polling.push_inbox.WAITING_BYTES", 10)
    push = await pushing.follow(feed(site, "a"))
    got = await pushing.deliver(push, entry(world.clock, "b"))
    assert got.status == 503 and got.headers["Retry-After"] == "60"


async def test_one_source_cannot_fill_the_inbox(pushing, site, world, monkeypatch):
    """[WS-119] The limit of one source is below that of all."""
    body = entry(world.clock, "b")
    monkeypatch.setattr("smartfeeds.features.polling.push_inbox.SOURCE_BYTES", len(body) + PUSH_BYTES)
    push = await pushing.follow(feed(site, "a"))
    headers = {"X_Hub_Signature": signature(push.secret, body)}
    assert (await pushing.post(pushing.path(push), body, **headers)).status == 202
    assert (await pushing.post(pushing.path(push), body, **headers)).status == 503
    await pushing.inbox.settle()
    assert (await pushing.post(pushing.path(push), body, **headers)).status == 202


async def test_silent_server_of_one_source_does_not_delay_the_pushes_of_another(pushing, site, world):
    """A gap is closed over requests to the server of the source, which may be silent."""
    cursors = '<fo:last_cursor xmlns:fo="http://fanout.org/protocol/atom">{}</fo:last_cursor>'
    page = atom("a", inner=f'<link rel="hub" href="{site.url(HUB)}"/>' + cursors.format("1_1_1"))
    slow = await pushing.follow(page)
    gate, asked = asyncio.Event(), asyncio.Event()

    async def silent(_request):
        asked.set()
        await gate.wait()
        return web.Response(body=page)

    site.pages[PATH] = silent
    site.pages["/good"] = feed(site, "c", topic="/good")
    await pushing.polling.world.create("other")
    await pushing.polling.poll(await pushing.polling.add("/good", "other", host="localhost"))
    await pushing.look()
    good = await pushing.push()
    await pushing.check(good)
    running = asyncio.create_task(pushing.inbox.run())
    behind = entry(world.clock, "b", prev_cursor="9_9_9", last_cursor="9_9_10")
    await pushing.post(pushing.path(slow), behind, X_Hub_Signature=signature(slow.secret, behind))
    await asked.wait()
    body = entry(world.clock, "d")
    await pushing.post(pushing.path(good), body, X_Hub_Signature=signature(good.secret, body))
    await until(lambda: pushing.inbox._waiting.keys() == {slow.source_no}, "the push to be stored")
    assert "d" in await pushing.polling.titles("other")
    gate.set()
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)


async def test_many_signatures_of_a_push_are_not_all_computed(pushing, site, world):
    """[WS-123] Each takes some 20 ms for the largest body."""
    push = await pushing.follow(feed(site, "a"))
    body = entry(world.clock, "b")
    wrong = [f"sha512={number:0128x}" for number in range(4)]
    genuine = signature(push.secret, body)
    assert (await pushing.deliver(push, body, X_Hub_Signature=",".join([*wrong, genuine]))).status == 403
    assert (await pushing.deliver(push, body, X_Hub_Signature=",".join([*wrong[:3], genuine]))).status == 202


async def test_bodies_that_are_received_for_a_path_are_bounded(pushing, site):
    """[WS-119] A hub that sends many slow pushes at a time does not fill the memory."""
    push = await pushing.follow(feed(site, "a"))
    head = f"POST {pushing.path(push)} HTTP/1.1\r\nHost: x\r\nContent-Length: 9000000\r\n\r\n".encode()
    writers = []
    for _ in range(PUSHES_AT_ONCE):
        _, writer = await asyncio.open_connection("127.0.0.1", pushing.port)
        writer.write(head + b"x")
        writers.append(writer)

    async def is_refused() -> bool:
        return (await pushing.post(pushing.path(push), b"")).status == 503

    async def is_accepted() -> bool:
        return not await is_refused()

    await until(is_refused, "the refusal of a push")
    for writer in writers:
        writer.close()
    await until(is_accepted, "the end of the slow pushes")
