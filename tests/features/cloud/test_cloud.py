"""The cloud: registrations, checks of callbacks, and notifications, over real sockets on a clock of the test."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from urllib.parse import parse_qs

import pytest
from aiohttp import web
from aiohttp.abc import AbstractResolver

from smartfeeds.delivery.dispatcher import Dispatcher
from smartfeeds.delivery.timing import DeliveryTiming
from smartfeeds.errors import FeedError
from smartfeeds.features.callbacks import rows as callback_rows
from smartfeeds.features.callbacks import soap, xml_rpc
from smartfeeds.features.callbacks.cloud_protocol import LIFE_S, CloudRequestError, check_request
from smartfeeds.features.callbacks.registration import Callback
from smartfeeds.features.callbacks.registrations import due_callbacks
from smartfeeds.features.callbacks.remote_calls import read_message
from smartfeeds.features.callbacks.settings import WebhooksSettings
from smartfeeds.features.callbacks.tools import CallbackTools
from smartfeeds.features.cloud.cloud import CloudServer
from smartfeeds.features.cloud.requests import CLOUD
from smartfeeds.net.addresses import EVERYWHERE
from smartfeeds.net.callbacks import TOTAL_S
from smartfeeds.net.clients import CallbackClient
from support.golden import GOLDEN
from support.sqlite_memory import SqliteMemoryStore
from support.timers import Timers
from support.waiting import until
from support.website import Names
from support.world import World, running_world

SITE = "http://feeds.example"
NEWS = f"{SITE}/feeds/news.rss"
PEER = "127.0.0.1"
Answer = Callable[[web.Request], web.StreamResponse]
SIGNALLING = xml_rpc.write_result("sNaN").replace(b"string>", b"bigdecimal>")  # to compare it raises
TRUE = {"http-post": b"", "xml-rpc": xml_rpc.write_result(True), "soap": soap.write_result("n", True, "urn:x")}


@dataclass
class Workstations:
    """Callbacks by path: the bodies that each got, and the answers of each, which are used up but for the last."""

    port: int = 0
    calls: list[tuple[str, bytes]] = field(default_factory=list)
    challenges: list[str] = field(default_factory=list)
    answers: dict[str, list[web.Response]] = field(default_factory=dict)
    gate: asyncio.Event | None = None
    began: asyncio.Event = field(default_factory=asyncio.Event)
    proof: Callable[[web.Request], web.Response] | None = None

    def got(self, path: str = "/n") -> list[bytes]:
        """The bodies since the last call."""
        got = [body for one, body in self.calls if one == path]
        self.calls = [call for call in self.calls if call[0] != path]
        return got

    def urls(self, path: str = "/n") -> list[str]:
        """The URLs of the forms since the last call."""
        return [parse_qs(body.decode())["url"][0] for body in self.got(path)]

    async def handle(self, request: web.Request) -> web.StreamResponse:
        if request.method == "GET":
            self.challenges.append(request.raw_path)
            return self.proof(request) if self.proof else web.Response(text=request.query.get("challenge", ""))
        self.calls.append((request.path, await request.read()))
        self.began.set()
        if self.gate is not None:
            await self.gate.wait()
        answers = self.answers.get(request.path, [])
        answer = answers.pop(0) if len(answers) > 1 else answers[0] if answers else web.Response()
        return web.Response(status=answer.status, body=answer.body, headers=answer.headers)


@dataclass
class Bench:
    """A cloud over a world with the feed news."""

    world: World
    stations: Workstations
    client: CallbackClient
    settings: WebhooksSettings = field(default_factory=WebhooksSettings)
    timers: Timers = field(default_factory=Timers)

    def make(self, *, check_s: float = TOTAL_S, **keys: object) -> None:
        """A cloud that begins with what is in the store."""
        self.settings = WebhooksSettings.model_validate({**self.settings.model_dump(), **keys})
        self.dispatcher = Dispatcher(self.world.service, DeliveryTiming(self.world.clock, lambda: 0.5, self.timers))
        tools = CallbackTools(
            self.world.service,
            self.client,
            self.dispatcher,
            self.settings,
            SITE,
            self.world.clock,
            lambda: "hX3mW9tQ2zB7",
        )
        self.cloud = CloudServer(tools, check_s=check_s)
        self.world.service._on_change = self.dispatcher.wake

    async def restart(self, *, check_s: float = TOTAL_S, **keys: object) -> None:
        await self.stop()
        self.timers.waiting.clear()
        self.make(check_s=check_s, **keys)
        await self.cloud.start()

    async def stop(self) -> None:
        await self.dispatcher.stop()
        await self.cloud.results.aclose()

    async def ask(
        self,
        *urls: str,
        path: str = "/n",
        protocol: str = "http-post",
        procedure: str = "n",
        domain: str = "",
        peer: str = PEER,
        port: int = 0,
    ) -> str:
        """A registration: "" for success, else why it is refused."""
        request = check_request(procedure, port or self.stations.port, path, protocol, urls or (NEWS,), domain)
        try:
            text = await self.cloud.register(request, peer)
        except CloudRequestError as error:
            return str(error)
        assert text == "Registered. Ask again within 25 hours, best after 24."
        await self.quiet()
        return ""

    async def register(self, *urls: str, **more: str) -> None:
        """A registration that succeeds; its test call is forgotten."""
        assert await self.ask(*urls, **more) == ""  # type: ignore[arg-type]
        self.stations.calls.clear()

    async def quiet(self) -> None:
        await self.dispatcher.idle()

    async def publish(self, ids: str, node: str = "news", **parts: str) -> None:
        for item_id in ids.split():
            await self.world.publish(item_id, node=node, **parts)
            self.world.clock.move(1)

    async def push(self, ids: str, node: str = "news", **parts: str) -> None:
        """Publishes items and waits for the notifications."""
        await self.publish(ids, node, **parts)
        await self.quiet()

    async def fire(self, seconds: float) -> None:
        """Lets a pause pass."""
        self.world.clock.move(seconds)
        self.timers.fire(longest=seconds)
        await self.quiet()

    async def rows(self) -> list[Callback]:
        return await self.world.store.read(lambda tx: callback_rows.callbacks(tx, CLOUD, 0, 1_000))


@asynccontextmanager
async def running_bench(client: CallbackClient) -> AsyncIterator[Bench]:
    stations = Workstations()
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", stations.handle)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0)
    await runner.setup()
    site = web.TCPSite(runner, "0.0.0.0", 0)
    await site.start()
    stations.port = runner.addresses[0][1]
    async with client, running_world(SqliteMemoryStore()) as world:
        await world.create("news")
        bench = Bench(world, stations, client)
        bench.make()
        await bench.cloud.start()
        yield bench
        await bench.stop()
    await runner.cleanup()


@pytest.fixture
async def bench() -> AsyncIterator[Bench]:
    async with running_bench(CallbackClient(EVERYWHERE)) as made:
        yield made


def named(*addresses: str) -> CallbackClient:
    resolver: AbstractResolver = Names(*addresses)
    return CallbackClient(EVERYWHERE, resolver=resolver)


# Registrations.


async def test_registration_makes_one_test_call_and_each_change_one_notification(bench: Bench) -> None:
    """[RC-031] [RC-041] [RSS-021] [RSS-023] [RSS-030] [A-132] The URL comes back as it was registered."""
    spelling = f"{SITE.upper().replace('HTTP', 'http')}:80/feeds/%6Eews.rss"
    assert await bench.ask(spelling) == ""
    assert bench.stations.urls() == [spelling]
    await bench.push("1")
    assert bench.stations.urls() == [spelling]
    await bench.push("1")
    assert bench.stations.urls() == [spelling]
    await bench.world.retract("1", node="news")
    await bench.quiet()
    assert bench.stations.urls() == [spelling]


@pytest.mark.parametrize("protocol", ["http-post", "xml-rpc", "soap"])
async def test_notification_in_the_protocol_of_the_registration(bench: Bench, protocol: str) -> None:
    """[RC-023] [RC-045] [RC-046] [RC-048] [RSS-025]"""
    bench.stations.answers["/n"] = [web.Response(body=TRUE[protocol])]
    await bench.register(protocol=protocol, procedure="a.b")
    await bench.push("1")
    (body,) = bench.stations.got()
    if protocol == "http-post":
        assert body == b"url=http%3A%2F%2Ffeeds.example%2Ffeeds%2Fnews.rss"
        return
    read = xml_rpc.read_call if protocol == "xml-rpc" else soap.read_call
    call = read(read_message(body))
    assert (call.name, call.parameters) == ("a.b" if protocol == "xml-rpc" else "b", (NEWS,))


@pytest.mark.parametrize(
    ("protocol", "answer", "reason"),
    [
        ("http-post", web.Response(status=500), "answered 500"),
        ("http-post", web.Response(status=302, headers={"Location": "/m"}), "answered 302"),
        ("xml-rpc", web.Response(body=xml_rpc.write_result(False)), "answered false"),
        ("xml-rpc", web.Response(body=b"ok"), "gave no proper answer"),
        ("xml-rpc", web.Response(body=SIGNALLING), "gave no proper answer"),
        ("soap", web.Response(body=soap.write_result("n", False, "urn:x")), "answered false"),
        ("soap", web.Response(status=500, body=TRUE["soap"]), "answered 500"),
    ],
)
async def test_failed_test_call_refuses(bench: Bench, protocol: str, answer: web.Response, reason: str) -> None:
    """[RC-031] [RC-044] [RSS-024] [RSS-029] [A-132] The text names the address that was tried; nothing is stored."""
    bench.stations.answers["/n"] = [answer]
    refusal = await bench.ask(protocol=protocol)
    assert refusal.startswith(f"the check of http://127.0.0.1:{bench.stations.port}/n failed: {reason}")
    assert await bench.rows() == []
    assert len(bench.stations.calls) == 1


async def test_silent_callback_is_refused_after_the_time_of_a_check(bench: Bench) -> None:
    """[RC-034] [RC-044] [A-131] The answer to the registration waits for the check, at most 10 seconds."""
    assert bench.cloud._check_s == 10
    await bench.restart(check_s=0.05)
    bench.stations.gate = asyncio.Event()
    assert "did not answer within 0.05 seconds" in await bench.ask()
    assert await bench.rows() == []
    bench.stations.gate.set()


@pytest.mark.parametrize(
    "urls",
    [
        (NEWS, f"{SITE}/feeds/none.rss"),
        (f"{SITE}/feeds/closed.rss",),
        ("http://other.example/rss.xml",),
        (f"{SITE}/feeds/",),
        (f"{SITE}/feeds/news/?since=time:x",),
        (NEWS, "no url"),
    ],
)
async def test_all_feeds_of_a_list_or_none(bench: Bench, urls: tuple[str, ...]) -> None:
    """[RC-025] [RC-032] [RSS-022] [A-134] A closed feed has the text of one that does not exist; no call is made."""
    await bench.world.create("closed", access_model="whitelist")
    assert await bench.ask(*urls) == f"{urls[-1]} is not a feed of this server."
    assert await bench.rows() == [] and bench.stations.calls == []


@pytest.mark.parametrize(
    "tail",
    [
        *("news/", "news.atom", "news.opml", "news/?order=created", "news.rss"),
        pytest.param("news.rss092", marks=pytest.mark.needs("documents")),
    ],
)
async def test_any_document_of_a_feed_can_be_registered(bench: Bench, tail: str) -> None:
    """[RC-025] A notification has no content, so the cloud knows more documents than the hub pushes."""
    url = f"{SITE}/feeds/{tail}"
    await bench.register(url)
    await bench.push("1")
    assert bench.stations.urls() == [url]


async def test_test_call_is_made_once_for_a_list(bench: Bench) -> None:
    """[RC-033] With the first URL."""
    await bench.world.create("talk")
    talk = f"{SITE}/feeds/talk.rss"
    assert await bench.ask(talk, NEWS) == ""
    assert bench.stations.urls() == [talk]
    await bench.push("1")
    await bench.push("1", node="talk")
    assert bench.stations.urls() == [NEWS, talk]


async def test_same_registration_renews(bench: Bench) -> None:
    """[RC-036] [RC-050] [A-135] Other spellings of the feed are the same registration."""
    await bench.register()
    (former,) = await bench.rows()
    bench.world.clock.move(3_600)
    await bench.register(NEWS.replace("http:", "https:"), NEWS)
    (row,) = await bench.rows()
    assert row.callback_no == former.callback_no
    assert row.expires_us == former.expires_us + 3_600_000_000
    await bench.push("1")
    assert bench.stations.urls() == [NEWS.replace("http:", "https:")]


@pytest.mark.parametrize("golden", GOLDEN["rsscloud"]["expiry"])
async def test_expiry_of_the_golden_values(bench: Bench, golden: dict[str, int | bool]) -> None:
    """[RC-050] [RSS-026] [A-135] 90,000 seconds from the last registration, also before the sweep."""
    assert GOLDEN["rsscloud"]["lifetime_s"] == LIFE_S
    begin_us = bench.world.clock()
    await bench.register()
    if "renewed_at" in golden:
        bench.world.clock.move(golden["renewed_at"] - (bench.world.clock() - begin_us) / 1_000_000)
        await bench.register()
    bench.world.clock.move(golden["t"] - (bench.world.clock() - begin_us) / 1_000_000)
    await bench.world.publish("1", node="news")
    await bench.quiet()
    assert bench.stations.urls() == ([NEWS] if golden["active"] else [])


async def test_expired_registrations_are_swept(bench: Bench) -> None:
    """[RC-040] [RC-050]"""
    await bench.register()
    bench.world.clock.move(90_000)
    steps, _ = await bench.world.service.read(lambda tx, context: due_callbacks(tx, context, 0))
    for step in steps:
        await bench.world.service.write(step)
    assert await bench.rows() == []


async def test_callbacks_of_one_host_are_separate(bench: Bench) -> None:
    """[RC-037] [RC-038] Two paths, two feeds, two protocols."""
    await bench.world.create("talk")
    talk = f"{SITE}/feeds/talk.rss"
    bench.stations.answers["/rpc"] = [web.Response(body=TRUE["xml-rpc"])]
    await bench.register(path="/a")
    await bench.register(path="/b")
    await bench.register(talk, path="/a")
    await bench.register(path="/rpc", protocol="xml-rpc", procedure="one")
    await bench.register(path="/rpc", protocol="xml-rpc", procedure="two")
    await bench.push("1")
    assert (bench.stations.urls("/a"), bench.stations.urls("/b")) == ([NEWS], [NEWS])
    assert len(bench.stations.got("/rpc")) == 2
    assert len(await bench.rows()) == 5


async def test_deleted_feed_that_is_made_anew_is_registered_anew(bench: Bench) -> None:
    """[RC-040] The registration of a deleted feed is not that of a feed of the same name."""
    await bench.register()
    await bench.world.delete(node="news")
    await bench.world.create("news")
    await bench.register()
    assert len(await bench.rows()) == 1
    await bench.push("1")
    assert bench.stations.urls() == [NEWS]


async def test_private_network_is_refused_by_default() -> None:
    """[RC-035] [A-133] No call is made."""
    async with running_bench(CallbackClient()) as bench:
        assert "its address is not public" in await bench.ask()
        assert "its address is not public" in await bench.ask(domain="localhost", peer="192.0.2.9")
        assert bench.stations.calls == bench.stations.challenges == []


async def test_caller_without_an_address_needs_a_domain(bench: Bench) -> None:
    """[RC-026]"""
    assert await bench.ask(peer="local") == "the address of the caller is not known; name a domain."


async def test_address_of_the_sixth_version(bench: Bench) -> None:
    """[RC-026] A peer is called back in brackets."""
    assert "the check of http://[2001:db8::9]:9/n failed" in await bench.ask(peer="2001:db8::9", port=9)


# Registrations of other hosts than the caller's.


async def test_other_host_proves_itself_by_a_challenge() -> None:
    """[RC-028] [RC-029] [RSS-021] [A-133] A GET with percent-encoded values, and no notification."""
    async with running_bench(named(PEER)) as bench:
        url = f"{NEWS}?order=created"
        assert await bench.ask(url, path="/n?a=b", domain="Reader.Example", peer="192.0.2.9") == ""
        quoted = "http%3A%2F%2Ffeeds.example%2Ffeeds%2Fnews.rss%3Forder%3Dcreated"
        assert bench.stations.challenges == [f"/n?a=b&url={quoted}&challenge=hX3mW9tQ2zB7"]
        assert bench.stations.calls == []
        (row,) = await bench.rows()
        assert row.host == "reader.example"
        await bench.push("1")
        assert bench.stations.urls() == [url]


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (web.Response(text="wrong"), "the body of the answer is not the challenge"),
        (web.Response(text="hX3mW9tQ2zB7\n"), "the body of the answer is not the challenge"),
        (web.Response(text="hX3mW9tQ2zB7", status=404), "answered 404"),
        (web.Response(status=302, headers={"Location": "/m"}), "answered 302"),
    ],
)
@pytest.mark.parametrize("protocol", ["http-post", "soap"])
async def test_wrong_answer_to_the_challenge(answer: web.Response, reason: str, protocol: str) -> None:
    """[RC-028]"""
    async with running_bench(named(PEER)) as bench:
        bench.stations.proof = lambda _request: web.Response(
            status=answer.status, text=answer.text, headers=answer.headers
        )
        refusal = await bench.ask(domain="reader.example", peer="192.0.2.9", protocol=protocol)
        assert refusal == f"the check of http://reader.example:{bench.stations.port}/n failed: {reason}."
        assert len(bench.stations.challenges) == 1 and await bench.rows() == []


@pytest.mark.parametrize("domain", ["", PEER, "reader.example"])
async def test_domain_of_the_caller_needs_no_challenge(domain: str) -> None:
    """[RC-030] It remains the host of the callback."""
    async with running_bench(named(PEER)) as bench:
        assert await bench.ask(domain=domain) == ""
        assert bench.stations.challenges == [] and len(bench.stations.calls) == 1
        assert [row.host for row in await bench.rows()] == [domain or PEER]


async def test_named_host_is_asked_seldom() -> None:
    """[RC-039] Nobody can use the cloud to knock on the doors of others."""
    async with running_bench(named(PEER)) as bench:
        answers = [await bench.ask(path=f"/{n}", domain="reader.example", peer="192.0.2.9") for n in range(6)]
        assert answers == [*[""] * 5, "reader.example was asked too often; try again in a minute."]


# Bounds.


@pytest.mark.parametrize(
    ("keys", "text"),
    [
        ({"subscriptions_per_feed": 2}, "this feed has 2 subscriptions, which is the limit."),
        ({"subscriptions_per_host": 2}, "127.0.0.1 has 2 subscriptions, which is the limit."),
        ({"subscriptions": 2}, "this service has 2 subscriptions, which is the limit."),
    ],
)
async def test_bounds(bench: Bench, keys: dict[str, int], text: str) -> None:
    """[RC-039] A renewal needs no room."""
    await bench.restart(**keys)
    await bench.register(path="/a")
    await bench.register(path="/b")
    assert await bench.ask(path="/c") == text
    await bench.register(path="/b")
    assert len(await bench.rows()) == 2


async def test_list_beyond_the_bound_stores_nothing(bench: Bench) -> None:
    """[RC-039] [A-134]"""
    await bench.restart(subscriptions_per_host=1)
    await bench.world.create("talk")
    assert "which is the limit" in await bench.ask(NEWS, f"{SITE}/feeds/talk.rss")
    assert await bench.rows() == []


async def test_too_many_requests(bench: Bench) -> None:
    """[RC-039] Refused with a text, then with an error; other callers are served."""
    await bench.restart(requests_per_minute=2)
    for _ in range(2):
        bench.cloud.admit(PEER)
    for _ in range(2):
        with pytest.raises(CloudRequestError, match="more than 2 requests in a minute; try again in a minute"):
            bench.cloud.admit(PEER)
    with pytest.raises(FeedError, match="more than 2 requests in a minute"):
        bench.cloud.admit(PEER)
    bench.cloud.admit("192.0.2.9")
    bench.world.clock.move(60)
    bench.cloud.admit(PEER)


# Notifications.


async def test_changes_during_a_call_make_one_further_call(bench: Bench) -> None:
    """[RC-042]"""
    await bench.register()
    bench.stations.gate, bench.stations.began = asyncio.Event(), asyncio.Event()
    await bench.publish("first")
    await bench.stations.began.wait()
    await bench.publish(" ".join(map(str, range(100))))
    bench.stations.gate.set()
    await bench.quiet()
    assert bench.stations.urls() == [NEWS, NEWS]
    await bench.push("last")
    assert bench.stations.urls() == [NEWS]


async def test_third_failure_in_a_row_ends_the_registration(bench: Bench) -> None:
    """[RC-043] [A-131] Tried again after 1 minute and after 5."""
    await bench.register()
    bench.stations.answers["/n"] = [web.Response(status=500)]
    await bench.push("1")
    assert len(bench.stations.got()) == 1
    assert bench.timers.planned == [60]
    await bench.fire(60)
    assert len(bench.stations.got()) == 1
    assert bench.timers.planned == [300] and len(await bench.rows()) == 1
    await bench.fire(300)
    assert len(bench.stations.got()) == 1
    assert await bench.rows() == []
    await bench.push("2")
    assert bench.stations.got() == []


async def test_success_resets_the_failures(bench: Bench) -> None:
    """[RC-043] [A-131]"""
    await bench.register()
    bench.stations.answers["/n"] = [web.Response(status=500), web.Response(), web.Response(status=500)]
    await bench.push("1")
    await bench.fire(60)
    await bench.push("2")
    await bench.fire(60)
    assert len(await bench.rows()) == 1
    await bench.fire(300)
    assert await bench.rows() == []


async def test_renewal_resets_the_failures(bench: Bench) -> None:
    """[RC-043] [A-131] The change that was not told is told at once."""
    await bench.register()
    bench.stations.answers["/n"] = [web.Response(status=500)]
    await bench.push("1")
    await bench.fire(60)
    bench.stations.answers.clear()
    assert await bench.ask() == ""
    bench.stations.answers["/n"] = [web.Response(status=500)]
    assert len(bench.stations.got()) == 4
    await bench.push("2")
    await bench.fire(60)
    assert len(await bench.rows()) == 1


async def test_gone_callback_ends_at_once(bench: Bench) -> None:
    """[RC-040] 410, for forms."""
    await bench.register()
    bench.stations.answers["/n"] = [web.Response(status=410)]
    await bench.push("1")
    assert await bench.rows() == []


@pytest.mark.parametrize("status", [301, 302, 404, 410, 500])
async def test_redirects_and_errors_are_failures(bench: Bench, status: int) -> None:
    """[RC-040] [RC-044] No redirect is followed."""
    bench.stations.answers["/n"] = [web.Response(body=TRUE["xml-rpc"])]
    await bench.register(protocol="xml-rpc")
    bench.stations.answers["/n"] = [web.Response(status=status, headers={"Location": "/m"}, body=TRUE["xml-rpc"])]
    await bench.push("1")
    assert [path for path, _ in bench.stations.calls] == ["/n"]
    (row,) = await bench.rows()
    failure = bench.dispatcher.failure(row.consumer)
    assert failure is not None and failure.error == f"answered {status}"


async def test_long_answer_is_cut(bench: Bench) -> None:
    """[RC-044] 4 KiB of the answer are read."""
    bench.stations.answers["/n"] = [web.Response(body=TRUE["xml-rpc"])]
    await bench.register(protocol="xml-rpc")
    bench.stations.answers["/n"] = [web.Response(body=b" " * 5_000 + TRUE["xml-rpc"])]
    await bench.push("1")
    (row,) = await bench.rows()
    failure = bench.dispatcher.failure(row.consumer)
    assert failure is not None and "gave no proper answer" in failure.error


async def test_edits_are_not_told_in_created_order(bench: Bench) -> None:
    """[RC-049] [SF-038]"""
    url = f"{NEWS}?order=created"
    await bench.push("1")
    await bench.register(url)
    await bench.push("1")
    assert bench.stations.urls() == []
    await bench.push("2")
    assert bench.stations.urls() == [url]


async def test_filtered_view_tells_of_its_own_changes(bench: Bench) -> None:
    """[RC-049] Also if they lie behind many others."""
    url = f"{SITE}/feeds/news/?category=red"
    await bench.register(url)
    await bench.push(" ".join(map(str, range(120))))
    assert bench.stations.urls() == []
    await bench.push("red", inner="<category term='red'/>")
    assert bench.stations.urls() == [url]


@pytest.mark.parametrize("end", ["delete", "close", "drop"])
async def test_end_of_a_registration(bench: Bench, end: str) -> None:
    """[RC-040] Feed deleted or closed: the next change ends it, and the sweep after 25 hours at the latest."""
    await bench.register()
    if end == "delete":
        await bench.world.delete(node="news")
    elif end == "close":
        await bench.world.configure(node="news", access_model="whitelist")
        await bench.push("1")
    else:
        (row,) = await bench.rows()
        await bench.world.store.write(lambda tx: callback_rows.remove(tx, row.callback_no))
        await bench.push("1")
    assert bench.stations.calls == []


async def test_registrations_survive_a_restart(bench: Bench) -> None:
    """[RC-052] A change that came during the restart is told once."""
    await bench.register()
    await bench.stop()
    await bench.publish("1")
    await bench.restart()
    await bench.quiet()
    assert bench.stations.urls() == [NEWS]
    await bench.push("2")
    assert bench.stations.urls() == [NEWS]
    assert [(one.dialect, one.count) for one in bench.cloud.readings()] == [("http-post", 1)]


async def test_slow_callbacks_do_not_delay_others(bench: Bench) -> None:
    """[RC-051] At most four calls to one host at a time, as the hub makes, in a queue of the cloud."""
    bench.client._allowed = EVERYWHERE
    for number in range(6):
        await bench.register(path=f"/slow{number}")
    bench.stations.gate, bench.stations.began = asyncio.Event(), asyncio.Event()
    await bench.publish("1")
    await bench.stations.began.wait()
    await until(lambda: len(bench.stations.calls) >= 4, "four calls")
    assert len(bench.dispatcher._lanes[CLOUD.name].tasks) == 4
    bench.stations.gate.set()
    await bench.quiet()
    assert len(bench.stations.calls) == 6


async def test_protocol_of_the_element_is_a_setting(bench: Bench) -> None:
    """[RC-002]"""
    await bench.restart(cloud="soap")
    assert bench.cloud.own.element.protocol == "soap"
