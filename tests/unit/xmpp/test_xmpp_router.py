"""The router: which stanzas it takes, who gets which answer from where, what happens when things go wrong."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest
from structlog.testing import capture_logs

from smartfeeds.app.opening import all_use_cases
from smartfeeds.app.sides import xmpp_side
from smartfeeds.core.model import Item, NodeKind, SubscriptionState
from smartfeeds.errors import Condition, FeedError, StoreClosedError, StoreError, UnknownOutcomeError
from smartfeeds.service import requests as r
from smartfeeds.service.feeds import Finish, RequestTasks
from smartfeeds.service.subscriptions import Bounce
from smartfeeds.xmpp.commands import Command, CommandNote, CommandResult, StepInput
from smartfeeds.xmpp.disco import ServiceInfo
from smartfeeds.xmpp.router import ANSWER_LIMIT_BYTES, RouterTools, StanzaRouter
from smartfeeds.xmpp.side import XmppSide
from smartfeeds.xmpp.stanza_side import StanzaSide
from unit.xmpp.wire import ACTOR, PS, SERVICE, STANZAS, canonical, parse

Handle = Callable[[r.Request], Awaitable[object]]
USE_CASES = all_use_cases()
PULL = f"<pubsub xmlns='{PS}'><items node='n'/></pubsub>"
INFO = "<query xmlns='http://jabber.org/protocol/disco#info'/>"
ADDRESSES = f"from='{ACTOR}' to='{SERVICE}'"


class Asked:
    """A router whose service answers as `handle` says, and everything that came of it."""

    def __init__(
        self,
        handle: Handle,
        *,
        stanzas: StanzaSide | None = None,
        side: XmppSide | None = None,
    ) -> None:
        self.requests: list[r.Request] = []
        self.sent: list[bytes] = []
        self.observed: list[tuple[str, str, float]] = []
        self._handle = handle
        self._tasks = RequestTasks()
        self._time_s = 0.0
        self.router = StanzaRouter(
            self,
            self.sent.append,
            ServiceInfo(SERVICE),
            USE_CASES,
            side or xmpp_side(),
            stanzas or StanzaSide(),
            RouterTools(
                b"key",
                lambda *observation: self.observed.append(observation),
                clock=self._clock,
                new_id=lambda: "fresh",
            ),
        )

    async def handle(self, request: r.Request) -> object:
        self.requests.append(request)
        return await self._handle(request)

    def submit(self, request: r.Request, finish: Finish) -> None:
        self._tasks.start(self.handle(request), finish)

    async def offer(self, *stanzas: str) -> list[bool]:
        """Whether each was taken; returns when all requests are answered."""
        taken = [bool(self.router.on_stanza(parse(stanza))) for stanza in stanzas]
        await self.router.drain()
        assert self.router.in_flight == 0
        return taken

    def _clock(self) -> float:
        self._time_s += 0.5
        return self._time_s


def answering(answer: object) -> Handle:
    async def handle(_request: r.Request) -> object:
        return answer

    return handle


def failing(error: Exception) -> Handle:
    async def handle(_request: r.Request) -> object:
        raise error

    return handle


def iq(content: str = PULL, kind: str = "get", addresses: str = ADDRESSES, stanza_id: str = "id='1'") -> str:
    return f"<iq type='{kind}' {stanza_id} {addresses}>{content}</iq>"


def error(
    kind: str, condition: str, text: str = "", *, addresses: str = f"from='{SERVICE}' to='{ACTOR}'", about: str = ""
) -> str:
    told = f"<text xmlns='{STANZAS}'>{text}</text>" if text else ""
    return (
        f"<iq type='error' id='1' {addresses}>{about}"
        f"<error type='{kind}'><{condition} xmlns='{STANZAS}'/>{told}</error></iq>"
    )


EMPTY_PAGE = r.Page("n", (), None, True)


@pytest.mark.parametrize(
    ("sender", "to", "service"),
    [
        ("juliet@capulet.lit/balcony", SERVICE, SERVICE),
        ("juliet@capulet.lit", f"feed_1@{SERVICE}/res", f"feed_1@{SERVICE}"),
        ("capulet.lit", f"Feed_1@{SERVICE}", f"feed_1@{SERVICE}"),
        ("o-neill@x/it&apos;s &lt;b&gt; &amp; &quot;c&quot;", SERVICE, SERVICE),
    ],
)
async def test_router_request_is_answered_from_the_address_it_went_to(sender: str, to: str, service: str) -> None:
    """The same id, swapped addresses as they were written [xep-map 6] [xep-map 7] [xep-map 8] [xep-map 12]."""
    asked = Asked(answering(EMPTY_PAGE))

    taken = await asked.offer(iq(addresses=f"from='{sender}' to='{to}'", stanza_id="id='a&apos;&amp;'"))

    assert taken == [True]
    assert [request.service for request in asked.requests] == [service]
    assert [canonical(data) for data in asked.sent] == [
        canonical(
            f"<iq type='result' id='a&apos;&amp;' from='{to}' to='{sender}'>"
            f"<pubsub xmlns='{PS}'><items node='n'/></pubsub></iq>"
        )
    ]
    assert asked.observed == [("pull", "ok", 0.5)]


async def test_router_our_domain_in_capitals_is_answered_as_the_server_knows_it() -> None:
    """Another spelling as `from` would end the link for everybody [xep-map 7]."""
    asked = Asked(answering(EMPTY_PAGE))

    await asked.offer(iq(addresses=f"from='{ACTOR}' to='n@FEEDS.Example'"))

    assert parse(asked.sent[0]).get("from") == "n@feeds.example"


@pytest.mark.parametrize(
    ("addresses", "stanza_id"),
    [
        (f"to='{SERVICE}'", "id='1'"),
        (f"from='' to='{SERVICE}'", "id='1'"),
        (f"from='@x' to='{SERVICE}'", "id='1'"),
        (f"from='{ACTOR}' to='other.example'", "id='1'"),
        (f"from='{ACTOR}' to='a@@/'", "id='1'"),
        (ADDRESSES, ""),
        (ADDRESSES, "id=''"),
    ],
)
async def test_router_request_that_cannot_be_answered_is_dropped(addresses: str, stanza_id: str) -> None:
    """[xep-map 7] [xep-map 21]"""
    asked = Asked(answering(EMPTY_PAGE))

    assert await asked.offer(iq(addresses=addresses, stanza_id=stanza_id)) == [True]
    assert (asked.requests, asked.sent) == ([], [])
    assert asked.observed == [("unread", "dropped", 0.0)]


async def test_router_request_without_to_is_answered_from_the_domain() -> None:
    asked = Asked(answering(EMPTY_PAGE))

    await asked.offer(iq(addresses=f"from='{ACTOR}'"))

    assert parse(asked.sent[0]).get("from") == SERVICE


async def test_router_long_address_is_answered_too() -> None:
    resource = "r" * 1000
    asked = Asked(answering(EMPTY_PAGE))

    await asked.offer(iq(addresses=f"from='a@b/{resource}' to='n@{SERVICE}/{resource}'"))

    assert parse(asked.sent[0]).get("to") == f"a@b/{resource}"
    assert parse(asked.sent[0]).get("from") == f"n@{SERVICE}/{resource}"


@pytest.mark.parametrize(
    "stanza",
    [
        iq("<ping xmlns='urn:xmpp:ping'/>"),
        iq("<query xmlns='jabber:iq:version'/>"),
        iq(kind="result"),
        iq(f"<error type='cancel'><gone xmlns='{STANZAS}'/></error>", kind="error"),
        "<other/>",
        "<iq xmlns='jabber:server' type='get' id='1'/>",
    ],
)
async def test_router_leaves_to_slixmpp_what_is_not_ours(stanza: str) -> None:
    """Results and errors never get an answer [xep-map 14]."""
    asked = Asked(answering(EMPTY_PAGE))

    assert await asked.offer(stanza) == [False]
    assert asked.sent == []


@pytest.mark.parametrize(
    ("content", "kind"),
    [
        ("<query xmlns='jabber:iq:register'/>", "get"),
        ("<query xmlns='jabber:iq:register'/>", "set"),
        ("<ping xmlns='urn:xmpp:ping'/>", "set"),
        ("<pong xmlns='urn:xmpp:ping'/>", "get"),
        ("<query xmlns='jabber:iq:version'/>", "set"),
        ("<x/>", "get"),
        ("<x/>", "set"),
    ],
)
async def test_router_unknown_payload_is_unavailable(content: str, kind: str) -> None:
    """[xep-map 13]"""
    asked = Asked(answering(EMPTY_PAGE))

    assert await asked.offer(iq(content, kind)) == [True]
    assert [canonical(data) for data in asked.sent] == [canonical(error("cancel", "service-unavailable"))]


@pytest.mark.parametrize("content", ["<ping xmlns='urn:xmpp:ping'/>", "<query xmlns='jabber:iq:version'/>"])
async def test_router_hands_on_nothing_that_cannot_be_answered(content: str) -> None:
    """slixmpp would fail on these addresses, and its error has no address to go to [xep-map 246]."""
    asked = Asked(answering(EMPTY_PAGE))

    addresses = [f"from='{sender}' to='{SERVICE}'" for sender in ("e@@evil", "e@evil..", "")]
    assert await asked.offer(*(iq(content, addresses=one) for one in addresses)) == [True] * 3

    assert [outcome for _, outcome, _ in asked.observed] == ["dropped"] * 3
    assert asked.sent == []


@pytest.mark.parametrize(
    ("stanza", "text"),
    [
        (iq(""), "a request must have exactly one child element"),
        (iq(PULL + PULL), "a request must have exactly one child element"),
        (iq(INFO, kind="set"), "discovery requests must be of type get"),
        (iq(f"<pubsub xmlns='{PS}'/>"), "the request has no action, or one that this type of IQ does not have"),
    ],
)
async def test_router_malformed_request_is_refused(stanza: str, text: str) -> None:
    """Nothing reaches the service [xep-map 15]."""
    asked = Asked(answering(EMPTY_PAGE))

    assert await asked.offer(stanza) == [True]
    assert asked.requests == []
    assert [canonical(data) for data in asked.sent] == [canonical(error("modify", "bad-request", text))]
    assert asked.observed == [("unread", "bad-request", 0.0)]


async def test_router_discovery_of_the_service_is_answered_at_once() -> None:
    asked = Asked(answering(EMPTY_PAGE))

    await asked.offer(iq(INFO))

    assert asked.requests == []
    assert b"<identity category='pubsub' type='service'" in asked.sent[0]
    assert asked.observed == [("discover", "ok", 0.0)]


async def test_router_discovery_names_the_address_that_was_asked() -> None:
    """[xep-map 8]"""
    asked = Asked(answering(r.ItemIds("n", ("i",), None)))
    query = "<query xmlns='http://jabber.org/protocol/disco#items' node='n'/>"

    await asked.offer(iq(query, addresses=f"from='{ACTOR}' to='n@{SERVICE}/x'"))

    assert f"<item jid='n@{SERVICE}' name='i'/>".encode() in asked.sent[0]


async def test_router_refusal_of_the_service_is_sent_with_its_text() -> None:
    asked = Asked(failing(FeedError(Condition.FORBIDDEN, "not <you>")))

    await asked.offer(iq())

    assert [canonical(data) for data in asked.sent] == [canonical(error("auth", "forbidden", "not &lt;you&gt;"))]
    assert asked.observed == [("pull", "forbidden", 0.5)]


@pytest.mark.parametrize(
    ("failure", "kind", "condition", "text"),
    [
        (RuntimeError("secret path /var"), "cancel", "internal-server-error", "internal error (incident fresh)"),
        (
            StoreError("disk full at /var"),
            "wait",
            "resource-constraint",
            "the store is not available; try again later (incident fresh)",
        ),
        (
            UnknownOutcomeError("the database postgresql://db: the connection was lost during the commit"),
            "cancel",
            "internal-server-error",
            "the database was lost while it stored the change: look whether it did before you repeat the request"
            " (incident fresh)",
        ),
    ],
)
async def test_router_other_failure_is_logged_and_never_told(
    failure: Exception, kind: str, condition: str, text: str
) -> None:
    asked = Asked(failing(failure))

    with capture_logs() as logs:
        await asked.offer(iq())

    assert [canonical(data) for data in asked.sent] == [canonical(error(kind, condition, text))]
    (line,) = logs
    told = ("store_failed", str(failure)) if isinstance(failure, StoreError) else ("request_failed", failure)
    assert (line["event"], line.get("reason") or line.get("exc_info")) == told, "a full disk needs no traceback"
    assert line["incident"] == "fresh"
    assert asked.observed == [("pull", condition, 0.5)]


async def test_router_request_that_the_stop_overtakes_is_no_incident() -> None:
    """An operator who is called for each error would be called at each restart."""
    asked = Asked(failing(StoreClosedError("the store is closed")))

    with capture_logs() as logs:
        await asked.offer(iq())

    text = "the service is stopping; try again later"
    assert [canonical(data) for data in asked.sent] == [canonical(error("wait", "resource-constraint", text))]
    assert logs == []


@pytest.mark.parametrize("at_once", [False, True])
async def test_router_request_ends_although_its_response_cannot_be_sent(
    monkeypatch: pytest.MonkeyPatch, *, at_once: bool
) -> None:
    """Otherwise the later requests of its sender, and the end of the service, would wait for it."""
    refusal = FeedError(Condition.FORBIDDEN)
    asked = Asked(failing(refusal))
    asyncio.get_running_loop().set_exception_handler(lambda _loop, _context: None)  # it reports the fault

    def refuse(_data: bytes) -> None:
        raise RuntimeError("no response")

    monkeypatch.setattr(asked.router, "_reply", refuse)
    if at_once:
        monkeypatch.setattr(asked, "submit", lambda _request, finish: finish(None, refusal))
        with pytest.raises(RuntimeError, match="no response"):
            await asked.offer(iq())
    else:
        await asked.offer(iq(), iq())

    assert asked.router.in_flight == 0


@pytest.mark.parametrize("answer", [object(), r.Page("\x07", (), None, True)])
async def test_router_answer_that_cannot_be_written_is_an_incident(answer: object) -> None:
    asked = Asked(answering(answer))

    with capture_logs():
        await asked.offer(iq())

    assert [canonical(data) for data in asked.sent] == [
        canonical(error("cancel", "internal-server-error", "internal error (incident fresh)"))
    ]


async def test_router_stanza_that_was_not_admitted_is_answered_from_its_start_tag() -> None:
    """Overload is resource-constraint, type wait, never service-unavailable (xep-map 6.1)."""
    asked = Asked(answering(EMPTY_PAGE))
    addresses = {"from": str(ACTOR), "to": SERVICE}

    asked.router.on_full("iq", {"id": "1", "type": "get", **addresses})

    assert [canonical(data) for data in asked.sent] == [
        canonical(error("wait", "resource-constraint", "too many requests at once; try again later"))
    ]


@pytest.mark.parametrize(
    ("name", "attributes"),
    [
        ("iq", {"id": "1", "type": "result", "from": str(ACTOR), "to": SERVICE}),
        ("iq", {"id": "1", "type": "get", "to": SERVICE}),
        ("iq", {"type": "get", "from": str(ACTOR), "to": SERVICE}),
        ("iq", {"id": "1", "type": "get", "from": str(ACTOR), "to": "elsewhere.example"}),
        ("iq", {"id": "x" * ANSWER_LIMIT_BYTES, "type": "get", "from": str(ACTOR), "to": SERVICE}),
        ("message", {"id": "1", "type": "get", "from": str(ACTOR), "to": SERVICE}),
        ("", {}),
    ],
    ids=["result", "nobody", "no-id", "elsewhere", "long-id", "message", "nothing"],
)
async def test_router_stanza_that_was_not_admitted_and_cannot_be_answered_is_dropped(
    name: str, attributes: dict[str, str]
) -> None:
    asked = Asked(answering(EMPTY_PAGE))

    asked.router.on_full(name, attributes)

    assert asked.sent == []
    assert asked.observed == [("unread", "dropped", 0.0)]


async def test_router_service_that_fails_at_once_ends_its_request_only() -> None:
    """The next request of the sender, which waits for it, is answered, too."""
    asked = Asked(answering(r.EmptyResult()))
    submit = asked.submit

    def fail_for_pulls(request: r.Request, finish: Finish) -> None:
        if isinstance(request, r.Pull):
            raise ValueError("touch")
        submit(request, finish)

    asked.submit = fail_for_pulls  # type: ignore[method-assign]
    retract = f"<pubsub xmlns='{PS}'><retract node='n'><item id='a'/></retract></pubsub>"
    with capture_logs() as logs:
        assert await asked.offer(iq(), iq(retract, "set"), iq(), iq(retract, "set")) == [True] * 4

    assert [parse(data).get("type") for data in asked.sent] == ["error", "result", "error", "result"]
    assert [entry["event"] for entry in logs] == ["request_failed"] * 2


async def test_router_cancelled_request_is_not_answered() -> None:
    async def handle(_request: r.Request) -> object:
        raise asyncio.CancelledError

    asked = Asked(handle)
    await asked.offer(iq())

    assert asked.sent == []
    assert asked.observed == [("pull", "cancelled", 0.5)]


STEP = "<command xmlns='http://jabber.org/protocol/commands' node='urn:test:c'/>"


def commanded(*, asking: bool, handle: Handle) -> Asked:
    """A router with one command, whose only step asks the service for something or shows something forbidden."""

    async def step(ask: StepInput) -> CommandResult:
        if asking:
            await ask.answer(r.GetNodes(ask.actor, ask.service), r.NodeList)
        return CommandResult((CommandNote("done" if asking else "\x07"),))

    return Asked(handle, side=XmppSide(commands=(Command("urn:test:c", "C", "urn:test:c", (step,)),)))


async def test_router_command_ends_before_the_next_request_of_its_sender() -> None:
    """A command may write after it has read (RFC 6120 10.1). Another device of the user does not wait."""
    running: list[str] = []
    held = asyncio.get_running_loop().create_future()

    async def handle(request: r.Request) -> object:
        running.append(f"{type(request).__name__} {request.actor.resource}")
        if isinstance(request, r.GetNodes):
            await held
            return r.NodeList((), None)
        return EMPTY_PAGE

    router = commanded(asking=True, handle=handle).router
    phone = ACTOR.bare_text + "/phone"
    for stanza in (iq(STEP, "set"), iq(), iq(addresses=f"from='{phone}' to='{SERVICE}'")):
        router.on_stanza(parse(stanza))
    for _ in range(9):  # more turns than these requests take, which wait for no socket and no thread
        await asyncio.sleep(0)
    before = running.copy()
    held.set_result(None)
    await router.drain()

    assert before == [f"GetNodes {ACTOR.resource}", "Pull phone"]
    assert running == [*before, f"Pull {ACTOR.resource}"]


async def test_router_step_of_a_command_asks_the_service_and_is_answered_once() -> None:
    asked = commanded(asking=True, handle=answering(r.NodeList((), None)))

    await asked.offer(iq(STEP, "set", f"from='{ACTOR}' to='n@{SERVICE}/x'"))

    assert asked.requests == [r.GetNodes(ACTOR, f"n@{SERVICE}")]
    (answer,) = map(parse, asked.sent)
    assert (answer.get("type"), answer.get("from"), answer[0].get("status")) == (
        "result",
        f"n@{SERVICE}/x",
        "completed",
    )
    assert asked.observed == [("command", "ok", 0.5)]


async def test_router_step_that_is_refused_or_fails_is_an_error() -> None:
    refused = commanded(asking=True, handle=failing(FeedError(Condition.CONFLICT, "read again")))
    failed = commanded(asking=False, handle=failing(RuntimeError("x")))

    await refused.offer(iq(STEP, "set"))
    with capture_logs() as logs:
        await failed.offer(iq(STEP, "set"))

    assert canonical(refused.sent[0]) == canonical(error("cancel", "conflict", "read again", about=STEP))
    assert canonical(failed.sent[0]) == canonical(
        error("cancel", "internal-server-error", "internal error (incident fresh)", about=STEP)
    )
    assert [line["operation"] for line in logs] == ["command"]
    assert refused.observed + failed.observed == [
        ("command", "conflict", 0.5),
        ("command", "internal-server-error", 0.5),
    ]


COMMAND = "<command xmlns='http://jabber.org/protocol/commands'"
ABOUT = {
    "get": (f"{COMMAND} node='n'/>", "get", ("cancel", "service-unavailable", ""), f"{COMMAND} node='n'/>"),
    "no node": (
        f"{COMMAND}/>",
        "set",
        ("modify", "bad-request", "the command has no node; name a command by its node"),
        f"{COMMAND}/>",
    ),
    "all of it": (
        f"{COMMAND} node='n' sessionid='a&amp;&apos;' action='dance' status='x'><note>x</note></command>",
        "get",
        ("cancel", "service-unavailable", ""),
        f"{COMMAND} node='n' sessionid='a&amp;&apos;' action='dance'/>",
    ),
    "too long": (f"{COMMAND} node='{'n' * 2_000}'/>", "get", ("cancel", "service-unavailable", ""), ""),
    "longer as we write it": (
        f'{COMMAND} node="{chr(39) * 1_000}"/>',
        "get",
        ("cancel", "service-unavailable", ""),
        "",
    ),
}


@pytest.mark.parametrize(("content", "kind", "expected", "about"), ABOUT.values(), ids=ABOUT.keys())
async def test_router_error_repeats_which_command_it_is_about(
    content: str, kind: str, expected: tuple[str, str, str], about: str
) -> None:
    """Else clients that keep sessions by their ids hear nothing of it (XEP-0050 3.7)."""
    asked = Asked(answering(r.EmptyResult()))

    await asked.offer(iq(content, kind))

    assert [canonical(data) for data in asked.sent] == [canonical(error(*expected, about=about))]


async def test_router_partly_refused_is_an_error_with_its_entries() -> None:
    refused = r.PartlyRefused(affiliations=r.AffiliationList("n", (), owner=True))
    asked = Asked(answering(refused))

    await asked.offer(iq())

    answer = parse(asked.sent[0])
    assert answer.get("type") == "error"
    assert [child.tag.rpartition("}")[2] for child in answer] == ["pubsub", "error"]
    assert asked.observed == [("pull", "not-acceptable", 0.5)]


async def test_router_last_item_follows_the_subscription() -> None:
    """[xep-map 116]"""
    item = Item(1, "i", 0, 0, b"", "a@b")
    shown = r.SubscriptionShown("n", "a@b", SubscriptionState.SUBSCRIBED)
    asked = Asked(answering(r.Subscribed(shown, NodeKind.FEED, last=item)))

    await asked.offer(iq())

    result, message = (parse(data) for data in asked.sent)
    assert result.get("type") == "result"
    assert (message.get("id"), message.get("from"), message.get("to")) == ("fresh", SERVICE, "a@b")


def bounce(stanza_id: str = "17.1304942400000000", condition: str = f"<gone xmlns='{STANZAS}'/>") -> str:
    return (
        f"<message type='error' id='{stanza_id}' {ADDRESSES}><event xmlns='{PS}#event'/>"
        f"<error type='cancel'><text xmlns='{STANZAS}'>x</text>{condition}</error></message>"
    )


BOUNCES = {
    "item": (bounce(), Bounce(ACTOR, SERVICE, 17, "gone")),
    "event": (bounce("17.5e9"), Bounce(ACTOR, SERVICE, 17, "gone")),
    "no condition": (bounce(condition=""), Bounce(ACTOR, SERVICE, 17, "")),
    "foreign condition": (bounce(condition="<gone xmlns='urn:x'/>"), Bounce(ACTOR, SERVICE, 17, "")),
}


@pytest.mark.parametrize(("stanza", "expected"), BOUNCES.values(), ids=BOUNCES.keys())
async def test_router_error_for_an_event_is_a_bounce_without_an_answer(stanza: str, expected: Bounce) -> None:
    """Matched by its id; errors are never answered [xep-map 14] [xep-map 241]."""
    noted: list[r.Request] = []

    async def note(request: r.Request) -> object:
        noted.append(request)
        return None

    asked = Asked(answering(r.EmptyResult()), stanzas=StanzaSide(handlers={Bounce: note}))

    assert await asked.offer(stanza) == [True]
    assert (noted, asked.requests, asked.sent) == ([expected], [], [])
    assert asked.observed == [("bounce", "ok", 0.5)]


async def test_router_bounces_go_to_the_service_unless_told_otherwise() -> None:
    asked = Asked(answering(r.EmptyResult()))

    await asked.offer(bounce())

    assert asked.requests == [Bounce(ACTOR, SERVICE, 17, "gone")]


@pytest.mark.parametrize("failure", [FeedError(Condition.BUSY), RuntimeError("x")])
async def test_router_bounce_that_fails_is_counted_and_silent(failure: Exception) -> None:
    asked = Asked(failing(failure))

    with capture_logs():
        assert await asked.offer(bounce()) == [True]

    assert asked.sent == []
    assert [operation for operation, _, _ in asked.observed] == ["bounce"]


@pytest.mark.parametrize(
    "stanza",
    [
        "<message/>",
        f"<message {ADDRESSES}><body>hi</body></message>",
        f"<message type='error' id='x.y' {ADDRESSES}/>",
        f"<message type='error' id='1.{'9' * 40}' {ADDRESSES}/>",
        "<message type='error' id='1.2' from='@' to='feeds.example'/>",
        "<message type='error' id='1.2' from='a@b' to='other.example'/>",
        "<presence/>",
        f"<presence type='subscribe' {ADDRESSES}/>",
        f"<presence type='error' {ADDRESSES}/>",
    ],
)
async def test_router_other_messages_and_presence_are_swallowed(stanza: str) -> None:
    """[xep-map 14]"""
    asked = Asked(answering(r.EmptyResult()))

    assert await asked.offer(stanza) == [True]
    assert (asked.requests, asked.sent) == ([], [])


@pytest.mark.parametrize(
    ("stanza", "taken"),
    [
        (f"<message from='feeds.b.example' to='{SERVICE}'><event xmlns='{PS}#event'/></message>", False),
        (f"<message from='feeds.b.example/x' to='{SERVICE}'><event xmlns='{PS}#event'/></message>", False),
        (f"<message from='feeds.c.example' to='{SERVICE}'><event xmlns='{PS}#event'/></message>", True),
        (f"<message to='{SERVICE}'><event xmlns='{PS}#event'/></message>", True),
        (f"<message from='feeds.b.example' to='{SERVICE}'><body>x</body></message>", True),
        (f"<message type='error' from='feeds.b.example' to='{SERVICE}'><event xmlns='{PS}#event'/></message>", True),
    ],
)
async def test_router_leaves_events_of_feeds_that_are_followed(stanza: str, taken: bool) -> None:
    """Only events, and only of those; strangers reach nobody behind the router (xep-map 14)."""
    asked = Asked(answering(r.EmptyResult()), stanzas=StanzaSide(follows=({"feeds.b.example"}.__contains__,)))

    assert await asked.offer(stanza) == [taken]
    assert (asked.requests, asked.sent) == ([], [])


def test_router_every_use_case_has_a_name_of_its_own() -> None:
    """Metrics and logs tell them apart."""
    assert len(set(USE_CASES.names.values())) == len(USE_CASES.reads) + len(USE_CASES.writes)
    assert all(USE_CASES.names.values())
