"""What the bot says to newcomers, to messages that it cannot read, and to what it cannot do."""

import difflib

import pytest

from smartfeeds.core.nearest import nearest
from smartfeeds.errors import Condition, FeedError
from smartfeeds.service.requests import GetNodeInfo, GetNodes, Publish, Request
from support.chat import body_of, send, write
from support.component import ALICE, BOB, CAROL, DOMAIN, Component, Starter, bare

DELAY = "<delay xmlns='urn:xmpp:delay' stamp='2026-01-01T00:00:00Z'/>"
FALLBACK = "I sent you an OMEMO encrypted message but your client doesn't seem to support that."
KEY = "<header sid='1'><key rid='2'>AAAA</key><iv>AAAA</iv></header>"
PAYLOAD = "<payload>AAAA</payload>"


def omemo(namespace: str, inner: str = f"{KEY}{PAYLOAD}") -> str:
    return f"<encrypted xmlns='{namespace}'>{inner}</encrypted>"


def marked(namespace: str, name: str = "") -> str:
    return f"<encryption xmlns='urn:xmpp:eme:0' namespace='{namespace}' name='{name}'/>"


LEGACY = omemo("eu.siacs.conversations.axolotl")


def offered(message: object) -> list[str]:
    """The commands of the buttons of a message."""
    return [one.get("value") for one in message.findall("{urn:xmpp:tmp:quick-response}response")]  # type: ignore[attr-defined]


GREETINGS = ("hi", "Hello", "?", "start", "hi!", "HELLO!!!", "Hey :)", "hi there", "Hello, dear bot", "Good morning!")
GERMAN_GREETINGS = (
    "Hallo.",
    "moin",
    "Moin Moin!",
    "Guten Tag",
    "guten  MORGEN, Bot",
    "Grüß Gott",
    "GRÜSS GOTT!",
    "Servus 👋",
)


@pytest.mark.parametrize("text", [*GREETINGS, *GERMAN_GREETINGS])
async def test_greeting_has_three_lines(component: Component, text: str) -> None:
    """A newcomer reads what the bot does, the first steps, and where the rest is."""
    (message,) = await send(component, BOB, text)

    lines = body_of(message).splitlines()
    assert len(lines) == 3
    assert lines[0] == "I deliver feeds by chat. What is new in a blog or a feed arrives here."
    assert lines[1].startswith("Write list to see the feeds here, ")
    assert lines[2] == "Write help to see all that I can do."
    assert offered(message) == ["list", "help"]


@pytest.mark.parametrize(
    "text",
    ["Hi, what does the feed of the club cost", "hint", "good", "guten", "tag", "morning hi", "hi-fi", "start that"],
)
async def test_message_that_says_more_than_a_greeting_is_none(component: Component, text: str) -> None:
    (message,) = await send(component, BOB, text)
    assert body_of(message).startswith("I do not know")


async def test_greeting_is_in_the_language_of_the_message(component: Component) -> None:
    (answer,) = await write(component, BOB, "hallo", xml_lang="de")
    assert answer.startswith("Ich liefere Feeds im Chat. ")
    assert "Schreibe hilfe, um alles zu sehen" in answer


@pytest.mark.parametrize(
    ("text", "inner", "name"),
    [
        (FALLBACK, LEGACY, "OMEMO"),
        (FALLBACK, f"{marked('eu.siacs.conversations.axolotl', 'OMEMO')}{LEGACY}", "OMEMO"),
        ("", omemo("urn:xmpp:omemo:1"), "OMEMO"),
        ("", omemo("urn:xmpp:omemo:2"), "OMEMO"),
        ("This message is encrypted", "<x xmlns='jabber:x:encrypted'>AAAA</x>", "OpenPGP"),
        ("", "<openpgp xmlns='urn:xmpp:openpgp:0'>AAAA</openpgp>", "OpenPGP"),
        ("?OTR:AAMDJ+MVmSfjFZcAAAAAAQAAAAIAAADA1g5IjD1ZGLDVQEyCgCyn9hb", "", "OTR"),
        ("?OTRv23?\nBob has requested an encrypted conversation", "", "OTR"),
        ("help", marked("urn:xmpp:otr:0"), "OTR"),
        ("help", marked("urn:example:secret", "Secret"), "Secret"),
        ("help", marked("urn:example:secret"), "urn:example:secret"),
        ("help", marked("", ""), "?"),
    ],
)
@pytest.mark.parametrize("kind", ["chat", "normal"])
async def test_encrypted_message_gets_an_answer_that_helps(
    component: Component, kind: str, text: str, inner: str, name: str
) -> None:
    """XEP-0380: the text that clients add for others is no command."""
    (message,) = await send(component, BOB, text, inner, type=kind)

    assert body_of(message) == (
        f"I cannot read this message, because it is encrypted ({name}). Switch encryption off for this chat, and write "
        "again."
    )
    assert message.get("type") == kind


async def test_name_of_an_encryption_is_short_and_escaped(component: Component) -> None:
    """The sender chooses it."""
    (message,) = await send(component, BOB, "x", marked("urn:x", "&lt;b/&gt;{x}" + "x" * 500))
    assert "<b/>{x}xxx" in body_of(message)
    assert len(body_of(message)) < 200


@pytest.mark.parametrize(
    ("inner", "kind"),
    [
        (omemo("eu.siacs.conversations.axolotl", KEY), "chat"),
        (omemo("urn:xmpp:omemo:2", KEY), "chat"),
        (f"{LEGACY}{DELAY}", "chat"),
        (LEGACY, "groupchat"),
        (LEGACY, "headline"),
        (LEGACY, "error"),
        (marked("urn:xmpp:otr:0"), "chat"),
    ],
    ids=["keys", "keys of version 2", "late", "room", "headline", "error", "no text"],
)
async def test_encrypted_message_of_a_program_gets_none(component: Component, inner: str, kind: str) -> None:
    """Clients exchange keys of OMEMO on their own, and nobody has written these messages."""
    assert await send(component, BOB, "", inner, type=kind) == []


async def test_programs_that_answer_encrypted_messages_stop_soon(component: Component) -> None:
    answers = [text for _ in range(20) for text in await write(component, BOB, FALLBACK, LEGACY)]

    assert len(answers) == 5


@pytest.mark.parametrize("attribute", ["type='normal'", ""])
async def test_message_of_type_normal_is_a_command(component: Component, attribute: str) -> None:
    """RFC 6121 5.2.2: a message without a type is one, too. The answer has the same type."""
    thread = "<subject>Feeds</subject><thread>t1</thread><active xmlns='http://jabber.org/protocol/chatstates'/>"
    start = f"<message {attribute} id='m1' from='{BOB}' to='{DOMAIN}'>"
    await component.send(f"{start}<body>list</body>{thread}</message>")
    (message,) = await component.events(BOB)

    assert body_of(message) == "There are no feeds."
    assert message.get("type") == "normal"


@pytest.mark.parametrize(
    "inner",
    [
        "<x xmlns='jabber:x:data' type='form'><title>CAPTCHA</title></x>",
        "<event xmlns='http://jabber.org/protocol/pubsub#event'><purge node='x'/></event>",
        "<addresses xmlns='http://jabber.org/protocol/address'><address type='noreply'/></addresses>",
        "<forwarded xmlns='urn:xmpp:forward:0'/>",
        "<x xmlns='http://jabber.org/protocol/muc#user'/>",
        "<confirm xmlns='http://jabber.org/protocol/http-auth' id='x' method='GET' url='https://x.example/'/>",
        "<something xmlns='urn:example:new'/>",
        DELAY,
    ],
)
async def test_normal_message_that_is_more_than_a_text_gets_no_answer(component: Component, inner: str) -> None:
    """Forms, events and announcements of services come with a text for people, and expect no words."""
    assert await send(component, BOB, "list", inner, type="normal") == []
    assert await send(component, "example.org", "list", type="normal") == []


@pytest.fixture
async def news(component: Component) -> Component:
    """A component with the feed `news` of Alice."""
    await component.create(ALICE, "news", title="The Daily Planet")
    return component


@pytest.mark.parametrize(
    ("text", "suggestion"),
    [
        ("subcribe news", "subscribe news"),
        ("Lst", "list"),
        ("news", "show news"),
        ("newz", "show news"),
    ],
)
async def test_misspelt_command_is_suggested(news: Component, text: str, suggestion: str) -> None:
    (message,) = await send(news, BOB, text)

    word = text.split()[0].casefold()
    unknown = f"I do not know “{word}”. Write help to see what I can do."
    assert body_of(message) == f"{unknown} Did you mean: {suggestion}"
    assert offered(message) == [suggestion, "help"]


async def test_suggestion_is_in_the_language_of_the_user(news: Component) -> None:
    (message,) = await send(news, BOB, "abonniern news", xml_lang="de")
    assert offered(message) == ["abonnieren news", "hilfe"]
    (message,) = await send(news, BOB, "newz", xml_lang="de")
    assert offered(message) == ["zeige news", "hilfe"]


@pytest.mark.needs("polling")
async def test_address_alone_is_followed(news: Component) -> None:
    (message,) = await send(news, BOB, "https://Blog.example/Feed")
    assert offered(message) == ["follow https://Blog.example/Feed", "help"]


async def test_word_that_is_like_nothing_gets_no_suggestion(news: Component) -> None:
    (message,) = await send(news, BOB, "quaggelwonk")
    assert "Did you mean" not in body_of(message)
    assert offered(message) == ["help"]


@pytest.mark.parametrize(
    ("text", "suggestion"),
    [
        ("subscribe newz", "subscribe news"),
        ("show NEWS q=x", "show news q=x"),
        ("show 'daily'", ""),
        ('subscribe "the daily planet"', "subscribe news"),
        ("latest neews 3", "latest news 3"),
        ("show completely-different", ""),
    ],
)
async def test_misspelt_feed_is_suggested(news: Component, text: str, suggestion: str) -> None:
    (message,) = await send(news, BOB, text)

    assert body_of(message).startswith("There is no such feed or item, or it is closed to you.")
    assert offered(message) == ([suggestion, "help"] if suggestion else [])


@pytest.mark.parametrize("command", ["subscribe", "unsubscribe", "show", "latest"])
@pytest.mark.parametrize(
    ("filters", "reason"),
    [
        ("autor=bob", "There is no filter autor. Did you mean author?"),
        ("category=music Autor=bob", "There is no filter Autor. Did you mean author?"),
        ("zzz=1", "There is no filter zzz. There are: order, author, "),
        ("music", "Filters are written NAME=VALUE, such as author=bob or category=music."),
        ("author=", "Filters are written NAME=VALUE, such as author=bob or category=music."),
    ],
)
async def test_wrong_filter_is_named(news: Component, command: str, filters: str, reason: str) -> None:
    (answer,) = await write(news, BOB, f"{command} news {filters}")
    assert answer.startswith(reason)
    assert answer.splitlines()[-1].startswith(f"Write: {command} ")


@pytest.mark.parametrize("setting", ["answer", "hide"])
async def test_closed_feed_is_never_suggested(start: Starter, setting: str) -> None:
    """Nothing of a closed feed leaks."""
    component = await start(pubsub={"closed_nodes": setting})
    await component.create(ALICE, "plans", access_model="whitelist", title="Secret Plans")
    for text in ("subscribe planz", "planz", "show 'secret plan'"):
        (message,) = await send(component, BOB, text)
        assert "Did you mean" not in body_of(message)
    (message,) = await send(component, ALICE, "planz")
    assert offered(message) == ["show plans", "help"]


async def test_closed_feed_names_the_contact_of_its_owner(start: Starter) -> None:
    """[xep-map 103] Whoever follows a link to it learns whom to ask for membership."""
    component = await start()
    await component.create(ALICE, "plans", access_model="whitelist", title="Secret Plans")
    closed = "This feed is closed to you. Only its members may read it; to become one, ask its owner."
    for text in ("subscribe plans", "latest plans"):
        assert await write(component, BOB, text) == [closed]
    assert await write(component, BOB, "show plans") == [f"plans\n{closed}"]

    await component.configure(ALICE, "plans", contact=bare(CAROL))

    named = f"This feed is closed to you. Only its members may read it; to become one, ask {bare(CAROL)}"
    assert await write(component, BOB, "subscribe plans") == [named]
    assert await write(component, BOB, "show plans") == [f"plans\n{named}"]


async def test_hidden_feed_is_not_there(start: Starter) -> None:
    component = await start(pubsub={"closed_nodes": "hide"})
    await component.create(ALICE, "plans", access_model="whitelist", contact=bare(CAROL))
    for text in ("subscribe plans", "show plans", "latest plans"):
        assert await write(component, BOB, text) == ["There is no such feed or item, or it is closed to you."]


async def test_may_not_says_who_may(news: Component) -> None:
    """Whoever may not write asks the owner, and an outcast, who may not know who that is, hears no name."""
    await news.publish(ALICE, "news", "first")
    assert await write(news, BOB, "post news Hello") == [
        f"You may not do that. To write in news, ask its owner: {bare(ALICE)}"
    ]
    assert await write(news, BOB, f"allow news {bare(CAROL)}") == [
        f"You may not do that. The owner of news may: {bare(ALICE)}"
    ]
    await news.affiliate(ALICE, "news", BOB, "outcast")
    assert await write(news, BOB, "post news Hello") == ["You may not do that. To write in news, ask its owner."]
    assert await write(news, BOB, "subscribe news") == ["You may not do that. Ask the owner of news."]


async def test_refusal_has_its_reason(news: Component, monkeypatch: pytest.MonkeyPatch) -> None:
    """\"You may not do that\" alone does not say what to change."""
    handle = news.app.service.handle

    async def refuse(request: Request) -> object:
        if isinstance(request, Publish):
            raise FeedError(Condition.FORBIDDEN, "this item is somebody else's")
        return await handle(request)

    monkeypatch.setattr(news.app.service, "handle", refuse)
    (answer,) = await write(news, ALICE, "post news Hello")
    assert answer == (
        f"You may not do that. To write in news, ask its owner: {bare(ALICE)} (this item is somebody else's)"
    )


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("post news Hello", "You may not do that."),
        ("show newz", "There is no such feed or item, or it is closed to you."),
        ("newz", "The service is busy. Try again later."),
    ],
)
async def test_busy_service_is_no_unknown_feed(
    news: Component, monkeypatch: pytest.MonkeyPatch, text: str, expected: str
) -> None:
    """The look-up for a suggestion may fail for a reason that has nothing to do with the feed."""
    handle = news.app.service.handle

    async def refuse(request: Request) -> object:
        if isinstance(request, GetNodes) or (isinstance(request, GetNodeInfo) and text.startswith("post")):
            raise FeedError(Condition.BUSY)
        return await handle(request)

    monkeypatch.setattr(news.app.service, "handle", refuse)
    assert await write(news, BOB, text) == [expected]


async def test_feed_that_is_meant_by_its_title_is_suggested(component: Component) -> None:
    """Its name is nothing like the text, and a command is a little."""
    await component.create(ALICE, "n17", title="Lisd")
    (message,) = await send(component, BOB, "lisd")
    assert offered(message) == ["show n17", "help"]


def test_hostile_names_cannot_make_a_suggestion_slow(monkeypatch: pytest.MonkeyPatch) -> None:
    """Users may create 1,000 feeds with names that are slow to compare. Only a few are compared letter by letter."""
    compared = []
    monkeypatch.setattr(difflib.SequenceMatcher, "ratio", lambda self: compared.append(len(self.a)) or 0.0)
    names = [f"{'ab' * 500}{number}" for number in range(1_000)]

    assert nearest("ba" * 5_000, names) == ""
    assert len(compared) <= 30
    assert max(compared) <= 40
