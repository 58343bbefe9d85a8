"""Replies of guests over HTTP: the form in the frame, the page of the owner, and the list for programs."""

import re
from collections.abc import Mapping
from urllib.parse import quote, urlencode

import pytest
import pytest_asyncio
from lxml import html

from smartfeeds.core.token import TokenScope
from smartfeeds.core.urls import entry_path
from smartfeeds.features.embedding import rows
from smartfeeds.features.embedding.guests import LEAST_AGE_S, MAX_TEXT, RATE
from smartfeeds.features.pages.images import LINK_REL
from support.bearer import bearer
from support.browsing import sign_in
from support.chat import body_of, write
from support.component import ALICE, BOB, CAROL, DOMAIN, bare
from support.prose import note
from support.web import Got, Web

FORM = "application/x-www-form-urlencoded"
FRAME = "/embed/comments/"


@pytest_asyncio.fixture
async def guests(web: Web) -> Web:
    """The feed `comments` of Alice, to which guests may reply."""
    await web.component.create(ALICE, "comments", title="Comments", guest_replies="approval")
    return web


def fields_of(page: Got) -> dict[str, str]:
    """The fields of the form in a frame."""
    form = html.fromstring(page.text).get_element_by_id("text").getparent()
    return {str(name): str(value or "") for name, value in form.fields.items()}


async def form(web: Web, path: str = FRAME) -> dict[str, str]:
    """The fields of the form, some seconds after it was made."""
    page = await web.get(path)
    assert page.status == 200
    web.component.clock.advance(LEAST_AGE_S)
    return fields_of(page)


async def post(web: Web, fields: Mapping[str, str], path: str = FRAME, **headers: str) -> Got:
    sent = {"Content_Type": FORM, "Sec_Fetch_Site": "same-origin", **headers}
    return await web.ask("POST", path, urlencode(fields).encode(), **sent)


async def send(web: Web, name: str = "Mara", text: str = "Good morning", path: str = FRAME, **more: str) -> Got:
    return await post(web, await form(web, path) | {"name": name, "text": text, **more}, path)


async def listed(web: Web, user: str = ALICE) -> list[dict[str, str]]:
    answer = await web.get("/moderation/comments/", Authorization=await bearer(web, user, TokenScope.ADMIN))
    assert answer.status == 200
    items: list[dict[str, str]] = answer.json["items"]
    return items


@pytest.mark.needs("bot")
async def test_author_hears_of_the_reply_of_a_guest_when_it_is_approved(guests: Web) -> None:
    component = guests.component
    await component.configure(ALICE, "comments", publish_model="open")
    await write(component, BOB, "post comments What now?", id="q1")
    (item_id,) = await component.item_ids(ALICE, "comments")
    assert (await send(guests, path=f"{FRAME}?in-reply-to={item_id}")).status == 303
    assert await component.events(bare(BOB)) == []
    (reply,) = await listed(guests)
    owner = await sign_in(guests, ALICE)
    assert (await owner.post("/guests/comments/", f"approve={reply['id']}")).status == 303
    (message,) = await component.events(bare(BOB))
    assert body_of(message).split("\n")[:2] == ["An answer to your entry “What now?”:", "Good morning"]


async def test_guest_replies_and_the_owner_publishes_it(guests: Web) -> None:
    path = f"{FRAME}?in-reply-to=tag%3Ablog.example%3A1&max=5"
    answer = await send(guests, "Mara", "Morning\n\n<b>Good</b> https://spam.example/", path)
    assert (answer.status, answer.header("Location")) == (303, f"{path}&sent=1")
    thanks = await guests.get(answer.header("Location"))
    assert "Thank you." in thanks.text and "<textarea" not in thanks.text and "Good" not in thanks.text
    assert "Good" not in (await guests.get("/feeds/comments/", "text/html")).text

    owner = await sign_in(guests, ALICE)
    page = await owner.get("/guests/comments/", "text/html")
    assert "&lt;b&gt;Good&lt;/b&gt; https://spam.example/" in page.text and "1 reply" in page.text
    (reply,) = await listed(guests)
    assert (reply["name"], reply["inReplyTo"]) == ("Mara", "tag:blog.example:1")
    answer = await owner.post("/guests/comments/", f"approve={reply['id']}")
    assert (answer.status, answer.header("Location")) == (303, f"/guests/comments/?decided={reply['id']}")

    assert await listed(guests) == []
    shown = (await guests.get(path)).text
    assert "Mara (guest)" in shown and "<b>Good</b>" not in shown
    assert "<article" not in (await guests.get(f"{FRAME}?in-reply-to=other")).text
    entry = (await guests.get(f"/entries/comments/guest-{reply['id']}", "text/html")).text
    links = re.findall(r'<a href="https://spam.example/" rel="([^"]+)"', entry)
    assert links == [LINK_REL] and "nofollow" in LINK_REL and "ugc" in LINK_REL and "noopener" in LINK_REL


@pytest.mark.parametrize("atom_id", ["", "<id>tag:x,2026:q</id>"])
async def test_reply_is_found_by_every_spelling_that_finds_the_other_replies(guests: Web, atom_id: str) -> None:
    """Whichever of them the frame names."""
    xmpp, page = f"xmpp:{DOMAIN}?;node=comments;item=q", f"{guests.origin}/entries/comments/q"
    payload = f"<entry xmlns='http://www.w3.org/2005/Atom'>{atom_id}<title>Q</title></entry>"
    await guests.component.publish(ALICE, "comments", "q", payload)
    owner = await sign_in(guests, ALICE)
    for number, target in enumerate(("q", xmpp, page), start=1):
        guests.component.clock.advance(600)
        path = f"{FRAME}?{urlencode({'in-reply-to': target})}"
        assert (await send(guests, "Mara", f"Answer {number}", path)).status == 303
        (reply,) = await listed(guests)
        await owner.post("/guests/comments/", f"approve={reply['id']}")
        assert f"Answer {number}" in (await guests.get(path)).text
        assert (await guests.get(f"{FRAME}?in-reply-to=q")).text.count("<article") == number
        references = ("tag:x,2026:q",) if atom_id else (xmpp,)
        for reference in references:
            shown = await guests.get(f"{FRAME}?{urlencode({'in-reply-to': reference})}")
            assert shown.text.count("<article") == number, reference


async def test_reply_says_nothing_of_an_entry_that_its_guest_may_not_read(guests: Web) -> None:
    await guests.component.create(ALICE, "secret", access_model="whitelist")
    payload = "<entry xmlns='http://www.w3.org/2005/Atom'><id>tag:x,2026:secret</id><title>Q</title></entry>"
    await guests.component.publish(ALICE, "secret", "q", payload)
    target = f"xmpp:{DOMAIN}?;node=secret;item=q"
    await send(guests, path=f"{FRAME}?{urlencode({'in-reply-to': target})}")
    (reply,) = await listed(guests)
    await (await sign_in(guests, ALICE)).post("/guests/comments/", f"approve={reply['id']}")
    document = (await guests.get("/feeds/comments.atom")).text
    assert "Good morning" in document and "tag:x,2026:secret" not in document


async def test_form_is_there_only_where_a_reply_would_be_seen(guests: Web) -> None:
    for query in ("", "?in-reply-to=a", "?order=modified", "?in-reply-to=a&max=1&theme=dark"):
        assert "<textarea" in (await guests.get(FRAME + query)).text, query
    for query in ("?in-reply-to=a&in-reply-to=b", "?author=x", "?q=words", "?replies=off", "?sent=1"):
        assert "<textarea" not in (await guests.get(FRAME + query)).text, query
        fields = await form(guests) | {"name": "Mara", "text": "Good morning"}
        if query not in ("?replies=off", "?sent=1"):
            assert (await post(guests, fields, FRAME + query)).status == 403, query
    await guests.component.configure(ALICE, "comments", guest_replies="no")
    assert "<textarea" not in (await guests.get(FRAME)).text
    assert (await post(guests, fields)).status == 403
    assert await listed(guests) == []


async def test_form_with_an_error_keeps_what_was_typed(guests: Web) -> None:
    for name, text, words in (
        ("", "Good morning", "Write your name."),
        ("a@example.org", "Good morning", "Write a name, not an address."),
        ("Mara", " ", "Write a text."),
        ("Mara", "x" * (MAX_TEXT + 1), "The text is too long"),
    ):
        answer = await send(guests, name, text)
        assert (answer.status, words in answer.text) == (400, True)
        typed = fields_of(answer)
        assert (typed["name"], typed["text"].strip()) == (name, text.strip())
    answer = await post(guests, fields_of(await guests.get(FRAME)) | {"name": "<Mara>", "text": "</textarea><b>x"})
    assert answer.status == 400 and "That was very fast." in answer.text
    assert "<b>x" not in answer.text and fields_of(answer)["text"].strip() == "</textarea><b>x"
    assert await listed(guests) == []
    # The form that was shown again has a token of its own.
    guests.component.clock.advance(LEAST_AGE_S)
    assert (await post(guests, fields_of(answer))).status == 303
    assert len(await listed(guests)) == 1


async def test_program_that_fills_in_every_field_is_thanked_and_ignored(guests: Web) -> None:
    answer = await send(guests, website="https://spam.example")

    assert (answer.status, await listed(guests)) == (303, [])


@pytest.mark.parametrize(
    "headers", [{"Sec_Fetch_Site": "cross-site"}, {"Sec_Fetch_Site": "", "Origin": "https://x.example"}]
)
async def test_form_of_another_site_is_refused(guests: Web, headers: dict[str, str]) -> None:
    fields = await form(guests) | {"name": "Mara", "text": "Good morning"}

    assert (await post(guests, fields, **headers)).status == 403
    assert await listed(guests) == []


async def test_replayed_or_forged_token_gives_no_second_reply(guests: Web) -> None:
    fields = await form(guests) | {"name": "Mara", "text": "Good morning"}
    for _ in range(3):
        assert (await post(guests, fields)).status == 303
    assert len(await listed(guests)) == 1
    await guests.component.create(ALICE, "other", guest_replies="approval")
    for path in ("/embed/other/", f"{FRAME}?in-reply-to=a"):
        assert (await post(guests, fields, path)).status == 400
    for token in ("", "x", fields["token"][:-1]):
        assert (await post(guests, fields | {"token": token})).status == 400
    assert len(await listed(guests)) == 1


@pytest.mark.parametrize("decision", ["none", "approve", "refuse"])
async def test_form_that_is_sent_again_with_other_words_loses_none(guests: Web, decision: str) -> None:
    """Guests go back to correct or to add something. They are thanked, so it must have arrived."""
    fields = await form(guests) | {"name": "Mara", "text": "First"}
    assert (await post(guests, fields)).status == 303
    (reply,) = await listed(guests)
    if decision != "none":
        await (await sign_in(guests, ALICE)).post("/guests/comments/", urlencode({decision: reply["id"]}))
    for _ in range(2):
        for text in ("First", " First\r\n", "Second"):
            assert (await post(guests, fields | {"text": text})).status == 303
            guests.component.clock.advance(60)

    texts = [reply["text"] for reply in await listed(guests)]
    assert texts == (["First", "Second"] if decision == "none" else ["Second"])


async def test_one_network_address_sends_few_replies(guests: Web) -> None:
    fields = [await form(guests) | {"name": "Mara", "text": f"Reply {number}"} for number in range(int(RATE.burst) + 1)]
    guests.component.clock.advance(60 * RATE.burst)

    assert [(await post(guests, each)).status for each in fields] == [303] * int(RATE.burst) + [429]
    assert len(await listed(guests)) == RATE.burst


async def test_huge_and_broken_bodies_are_refused(guests: Web) -> None:
    fields = await form(guests)
    assert (await post(guests, fields | {"name": "Mara", "text": "x" * 900_000})).status == 413
    assert (await post(guests, fields | {"name": "M" * 100_000, "text": "x"})).status == 400
    broken = await guests.ask("POST", FRAME, b"name=%ff&text=x", Content_Type=FORM, Sec_Fetch_Site="same-origin")
    assert broken.status == 400
    double = await guests.ask("POST", FRAME, b"name=a&name=b", Content_Type=FORM, Sec_Fetch_Site="same-origin")
    assert double.status == 400
    assert await listed(guests) == []


@pytest.mark.parametrize("target", ["%00", "a%01b", "%EF%BF%BE", "x" * 3_000])
async def test_target_that_no_entry_can_name_is_refused(guests: Web, target: str) -> None:
    """The owner could not publish such a reply, and PostgreSQL could not store it."""
    path = f"{FRAME}?in-reply-to={target}"
    page = await guests.get(path)
    if page.status == 200:
        assert (await send(guests, path=path)).status == 400
    else:
        assert page.status == 400
    assert await listed(guests) == []


async def test_user_who_is_signed_in_replies_as_a_guest(guests: Web) -> None:
    """The session does not count: neither its rights, nor its form token."""
    cookie = (await sign_in(guests, ALICE)).cookie
    fields = await form(guests) | {"name": "Alice", "text": "Good morning"}

    assert (await post(guests, fields, Cookie=cookie)).status == 303
    (reply,) = await listed(guests)
    assert reply["name"] == "Alice"


async def test_page_and_list_are_for_owners_and_publishers(guests: Web) -> None:
    await send(guests)
    (reply,) = await listed(guests)
    await guests.component.affiliate(ALICE, "comments", CAROL, "publisher")
    assert (await guests.get("/guests/comments/", "text/html")).status == 401
    for user, status in ((BOB, 403), (CAROL, 200)):
        browser = await sign_in(guests, user)
        page = await browser.get("/guests/comments/", "text/html")
        assert (page.status, "Good morning" in page.text) == (status, status == 200)
        token = await bearer(guests, user, TokenScope.ADMIN)
        assert (await guests.get("/moderation/comments/", Authorization=token)).status == status
    approve = {"approve": reply["id"]}
    without_csrf = await post(guests, approve, "/guests/comments/", Cookie=(await sign_in(guests, ALICE)).cookie)
    by_bob = await (await sign_in(guests, BOB)).post("/guests/comments/", urlencode(approve))
    assert (without_csrf.status, by_bob.status, len(await listed(guests))) == (403, 403, 1)


async def test_page_says_what_was_decided_and_leads_to_the_entry(guests: Web) -> None:
    """The page asks the queue, so that an address that somebody made says nothing that has not happened."""
    owner = await sign_in(guests, ALICE)

    async def told(path: str) -> list[str]:
        page = html.fromstring((await owner.get(path, "text/html")).text)
        return [text.text_content() for text in page.xpath("//*[@role='status']")]

    for number in range(4):
        await send(guests, text=f"Reply {number}")
    first, second, _, last = [reply["id"] for reply in await listed(guests)]
    for reply_id in (first, "x", "%00", "%EF%BF%BE", "x" * 5_000):
        assert await told(f"/guests/comments/?decided={reply_id}") == []
    answer = await owner.post("/guests/comments/", f"approve={first}")
    page = await owner.get(answer.header("Location"), "text/html")
    (path,) = html.fromstring(page.text).xpath("//*[@role='status']//a/@href")
    assert "The reply is published." in page.text and "Reply 0" in (await owner.get(path, "text/html")).text
    refused = ["Refused. What the guest wrote is deleted."]
    assert await told((await owner.post("/guests/comments/", f"refuse={second}")).header("Location")) == refused
    (place,) = html.fromstring((await owner.get("/guests/comments/", "text/html")).text).xpath(
        "//button[@name='refuse_all']/@value"
    )
    answer = await owner.post("/guests/comments/", urlencode({"refuse_all": place}))
    assert answer.header("Location").endswith(last) and await told(answer.header("Location")) == refused
    await guests.component.create(ALICE, "other", guest_replies="approval")
    assert await told(f"/guests/other/?decided={first}") == []


async def test_page_shows_what_a_guest_answers_as_the_published_entry_will(guests: Web) -> None:
    """By its title, if those who decide may read it; else by its feed or its address."""
    item_id = "tag:blog.example,2026:walk"
    await guests.component.publish(ALICE, "comments", item_id, note("A walk by the sea"))
    await guests.component.create(BOB, "closed", access_model="whitelist")
    await guests.component.publish(BOB, "closed", "a", note("A secret"))
    shown = {
        item_id: ("A walk by the sea", entry_path("comments", item_id)),
        f"{guests.origin}/entries/comments/{quote(item_id, safe='')}": (
            "A walk by the sea",
            entry_path("comments", item_id),
        ),
        f"{guests.origin}/entries/closed/a": ("an entry of closed", "/entries/closed/a"),
        "https://blog.example/walk": ("https://blog.example/walk", "https://blog.example/walk"),
    }
    for target in (*shown, "tag:blog.example,2026:other"):
        await send(guests, path=f"{FRAME}?{urlencode({'in-reply-to': target})}")
        guests.component.clock.advance(60)

    page = html.fromstring((await (await sign_in(guests, ALICE)).get("/guests/comments/", "text/html")).text)
    links = [(link.text_content(), link.get("href")) for link in page.xpath("//span[@class='reply']/a")]
    assert links == list(shown.values())
    assert page.xpath("//span[@class='reply']/bdi/text()") == ["tag:blog.example,2026:other"]


async def test_page_of_the_feed_tells_those_who_decide_that_replies_wait(guests: Web) -> None:
    """The page itself is stored with the version of the feed, which the reply of a guest does not change."""

    async def told(user: str) -> list[str]:
        page = html.fromstring((await (await sign_in(guests, user)).get("/feeds/comments/", "text/html")).text)
        return [str(text) for text in page.xpath("//main//a[@href='/guests/comments/']/text()")]

    await guests.component.affiliate(ALICE, "comments", CAROL, "publisher")
    await guests.component.publish(ALICE, "comments", "a")
    assert [await told(user) for user in (ALICE, BOB, CAROL)] == [[], [], []]
    await send(guests)
    one = ["1 reply of a guest waits for your decision"]
    assert [await told(user) for user in (ALICE, BOB, CAROL)] == [one, [], one]
    assert "/guests/" not in (await guests.get("/feeds/comments/", "text/html")).text
    await send(guests)
    assert await told(ALICE) == ["2 replies of guests wait for your decision"]
    await guests.component.configure(ALICE, "comments", publish_model="open")
    assert await told(BOB) == []
    await guests.component.configure(ALICE, "comments", guest_replies="no")
    assert await told(ALICE) == []


async def test_feed_without_guests_asks_for_no_number(guests: Web, monkeypatch: pytest.MonkeyPatch) -> None:
    counted: list[int] = []

    def count(_tx: object, node_no: int) -> int:
        counted.append(node_no)
        return 0

    monkeypatch.setattr(rows, "waiting_count", count)
    await guests.component.create(ALICE, "quiet")
    alice = await sign_in(guests, ALICE)

    assert (await alice.get("/feeds/quiet/", "text/html")).status == 200
    assert counted == []
    assert (await alice.get("/feeds/comments/", "text/html")).status == 200
    assert len(counted) == 1


async def test_owner_refuses_all_that_the_page_has_shown(guests: Web) -> None:
    """A reply that came while the page was open is not among them: nobody has read it."""
    owner = await sign_in(guests, ALICE)
    for text in ("First", "Second"):
        await send(guests, text=text)
    shown = html.fromstring((await owner.get("/guests/comments/", "text/html")).text)
    (place,) = shown.xpath("//button[@name='refuse_all']/@value")
    await send(guests, text="Late")

    assert (await owner.post("/guests/comments/", urlencode({"refuse_all": place}))).status == 303
    assert [reply["text"] for reply in await listed(guests)] == ["Late"]
    for broken in ("yes", "", "-", "x-1", "9" * 30 + "-1"):
        assert (await owner.post("/guests/comments/", urlencode({"refuse_all": broken}))).status == 400
    assert [reply["text"] for reply in await listed(guests)] == ["Late"]


async def test_programs_decide_many_at_once(guests: Web) -> None:
    for number in range(3):
        await send(guests, text=f"Reply {number}")
    ids = [reply["id"] for reply in await listed(guests)]
    sent = {"Authorization": await bearer(guests, ALICE, TokenScope.ADMIN), "Content_Type": "application/json"}

    async def decide(body: str) -> Got:
        return await guests.ask("POST", "/moderation/comments/", body.encode(), **sent)

    answer = await decide(f'{{"approve": ["{ids[0]}", "{ids[1]}"], "refuse": ["{ids[2]}"]}}')
    assert (answer.status, answer.json) == (200, {"approved": 2, "refused": 1})
    answer = await decide(f'{{"approve": ["{ids[0]}"]}}')
    assert (answer.status, answer.json) == (200, {"approved": 0, "refused": 0})
    assert (await decide(f'{{"approve": ["{ids[2]}"]}}')).status == 409
    assert (await decide('{"approve": ["missing"]}')).status == 404
    for body in ('{"approve": "x"}', '{"approve": [1]}', '{"aprove": []}', "[]"):
        assert (await decide(body)).status == 400
    assert (await guests.get(FRAME)).text.count("<article") == 2
