"""The sign-in pages: with a token, through the bot, and by XEP-0070; and what a stranger cannot do with them."""

from typing import Any
from urllib.parse import quote

import pytest
import pytest_asyncio

from smartfeeds.core.jid import parse_jid
from smartfeeds.core.token import TokenScope
from smartfeeds.errors import FeedError
from smartfeeds.features.accounts.sign_ins import LIFETIME_S, PER_ADDRESS, PER_JID, WRONG_CODES
from support.bearer import bearer
from support.browsing import FORM, SESSION_COOKIE, sign_in
from support.chat import body_of, write
from support.component import ALICE, BOB, bare
from support.guests import CODE, HTTP_AUTH, SITE, Guest, answer, code_of, confirm_request, sign_ins_of, state
from support.web import Web

pytestmark = [pytest.mark.shared, pytest.mark.needs("bot")]


@pytest.fixture(scope="module")
def shared_settings() -> dict[str, Any]:
    """The site has a configured address, so that it sends requests to confirm."""
    return {"http": {"base_url": SITE}}


@pytest_asyncio.fixture(loop_scope="module")
async def guest(web: Web) -> Guest:
    """A browser that has loaded the sign-in page; Alice has a closed feed."""
    await web.component.create(ALICE, "closed", access_model="whitelist")
    browser = Guest(web)
    assert (await browser.get("/login")).status == 200
    return browser


async def test_token_signs_in(guest: Guest) -> None:
    token = (await bearer(guest.web, ALICE, TokenScope.READ)).removeprefix("Bearer ")
    got = await guest.post("/login", f"token={token}&next=/feeds/closed/")
    assert (got.status, got.header("Location")) == (303, "/feeds/closed/")
    assert (await guest.get("/feeds/closed/")).status == 200
    assert "alice@example.org" in (await guest.get("/account")).text


async def test_wrong_token_is_told_on_the_page(guest: Guest) -> None:
    got = await guest.post("/login", f"token=sf_{'f' * 12}_{'x' * 43}")
    assert (got.status, guest.session) == (403, "")
    assert "this token is not known" in got.text
    assert "WWW-Authenticate" not in got.headers


async def test_cookie_is_kept_from_scripts_and_other_sites(guest: Guest) -> None:
    token = (await bearer(guest.web, ALICE, TokenScope.READ)).removeprefix("Bearer ")
    got = await guest.post("/login", f"token={token}")
    name, *attributes = got.header("Set-Cookie").split("; ")
    assert name.startswith(f"{SESSION_COOKIE}=sfs_")
    assert set(attributes) == {"Path=/", "Max-Age=31536000", "HttpOnly", "SameSite=Lax"}
    assert "no-store" in got.header("Cache-Control")


@pytest.mark.parametrize(
    ("base_url", "name", "attributes"),
    [
        ("https://feeds.example.org", "__Host-smartfeeds-session", {"Path=/", "Secure"}),
        ("https://example.org/feeds-of-us", "__Secure-smartfeeds-session", {"Path=/feeds-of-us", "Secure"}),
    ],
)
async def test_cookie_of_a_site_with_tls_is_secure(
    start_web: Any, base_url: str, name: str, attributes: set[str]
) -> None:
    web = await start_web(http={"base_url": base_url})
    guest = Guest(web)
    await guest.get("/login")
    assert all(cookie.startswith(("__Host-", "__Secure-")) for cookie in guest.cookies)
    token = (await bearer(web, ALICE, TokenScope.READ)).removeprefix("Bearer ")
    got = await guest.post("/login", f"token={token}")
    cookie, *rest = got.header("Set-Cookie").split("; ")
    assert cookie.partition("=")[0] == name
    assert attributes <= set(rest)
    assert (await guest.get("/account")).status == 200


async def test_session_from_before_the_sign_in_is_worth_nothing(guest: Guest) -> None:
    """Session fixation: the id is always new, and the session that the browser had ends."""
    eve = await sign_in(guest.web, BOB)
    guest.cookies[SESSION_COOKIE] = eve.text
    await guest.get("/account")
    token = (await bearer(guest.web, ALICE, TokenScope.READ)).removeprefix("Bearer ")
    assert (await guest.post("/login", f"token={token}")).status == 303
    assert guest.session not in ("", eve.text)
    assert (await eve.get("/account")).status == 303


@pytest.mark.parametrize("csrf", ["", "forged"])
async def test_form_of_another_page_signs_nobody_in(guest: Guest, csrf: str) -> None:
    """Login CSRF: nobody signs a stranger's browser in to an account of their own."""
    token = (await bearer(guest.web, BOB, TokenScope.READ)).removeprefix("Bearer ")
    good = guest.csrf
    assert (await guest.post("/login", f"token={token}", Sec_Fetch_Site="cross-site")).status == 403
    guest.csrf = csrf
    assert (await guest.post("/login", f"token={token}")).status == 403
    stranger = Guest(guest.web, csrf=good)
    assert (await stranger.post("/login", f"token={token}")).status == 403
    await stranger.get("/login")
    assert stranger.csrf != good
    assert (guest.session, stranger.session) == ("", "")


@pytest.mark.parametrize(
    "path",
    [
        "https://evil.example/",
        "//evil.example/",
        "/\\evil.example",
        "\\\\evil.example",
        "javascript:alert(1)",
        "/\t/evil.example",
        "/feeds/\r\nSet-Cookie: a=b",
        "evil",
    ],
)
async def test_sign_in_returns_to_pages_of_this_site_only(guest: Guest, path: str) -> None:
    token = (await bearer(guest.web, ALICE, TokenScope.READ)).removeprefix("Bearer ")
    assert quote(path) not in (await guest.get(f"/login?next={quote(path, safe='')}")).text
    got = await guest.post("/login", f"token={token}&next={quote(path, safe='')}")
    assert (got.status, got.header("Location")) == (303, "/feeds/")
    assert "a" not in got.headers


async def test_sign_in_returns_to_the_page_that_led_to_it(guest: Guest) -> None:
    got = await guest.get("/login", Referer=f"{SITE}/feeds/closed/?q=x")
    assert 'name="next" value="/feeds/closed/?q=x"' in got.text
    got = await guest.get("/login", Referer="https://evil.example/feeds/closed/")
    assert 'name="next" value="/feeds/"' in got.text


async def test_code_is_confirmed_by_a_chat_message(guest: Guest) -> None:
    """The bot names the site and the address that asks, and does nothing before the user agrees."""
    code = await code_of(guest)
    web = guest.web
    (question,) = await write(web.component, ALICE, f"login {code}")
    assert SITE in question and "127.0.0.1" in question and f"login {code} yes" in question
    assert await state(guest) == "waiting"
    (done,) = await write(web.component, ALICE, f"login {code} yes")
    assert "signed in as alice@example.org" in done
    assert await state(guest) == "confirmed"
    assert "You sign in as alice@example.org." in (await guest.get("/login/wait")).text
    got = await guest.post("/login/wait")
    assert (got.status, got.header("Location")) == (303, "/feeds/closed/")
    assert (await guest.get("/feeds/closed/")).status == 200


async def confirm(web: Web, user: str, code: str) -> None:
    """The two messages of a user who signs in."""
    await write(web.component, user, f"login {code}")
    await write(web.component, user, f"login {code} yes")


async def test_first_message_never_confirms(guest: Guest) -> None:
    """A link can contain a message with both words. Its answer is the question, which names who asks."""
    code = await code_of(guest)
    web = guest.web
    (question,) = await write(web.component, ALICE, f"login {code} yes")
    assert "127.0.0.1" in question and f"login {code} yes" in question
    assert await state(guest) == "waiting"
    await write(web.component, BOB, f"login {code}")
    await answer(web, ALICE, code)
    assert await state(guest) == "waiting"
    await confirm(web, ALICE, code)
    assert await state(guest) == "confirmed"


async def test_code_works_once(guest: Guest) -> None:
    code = await code_of(guest)
    await confirm(guest.web, ALICE, code)
    guest_text = dict(guest.cookies)
    assert (await guest.post("/login/wait")).status == 303
    again = Guest(guest.web, guest_text, guest.csrf)
    assert (await again.post("/login/wait")).status == 403
    (refusal,) = await write(guest.web.component, BOB, f"login {code} yes")
    assert "No sign-in waits for this code" in refusal


async def test_code_is_bound_to_its_browser(guest: Guest) -> None:
    code = await code_of(guest)
    await confirm(guest.web, ALICE, code)
    other = Guest(guest.web)
    await other.get("/login")
    assert (await other.post("/login/wait")).status == 403
    assert await state(other) == "ended"


async def test_page_that_waits_is_the_sign_in_page_for_a_browser_that_began_none(guest: Guest) -> None:
    await code_of(guest)
    got = await Guest(guest.web).get("/login/wait")
    assert (got.status, got.header("Location")) == (303, "/login")


async def test_code_ends_after_five_minutes(guest: Guest) -> None:
    code = await code_of(guest)
    guest.web.component.clock.advance(LIFETIME_S)
    (refusal,) = await write(guest.web.component, ALICE, f"login {code} yes")
    assert "No sign-in waits for this code" in refusal
    assert (await state(guest), (await guest.post("/login/wait")).status) == ("ended", 403)


async def test_confirmed_sign_in_ends_after_five_minutes_too(guest: Guest) -> None:
    code = await code_of(guest)
    await confirm(guest.web, ALICE, code)
    guest.web.component.clock.advance(LIFETIME_S)
    assert (await guest.post("/login/wait")).status == 403


async def test_codes_cannot_be_guessed(guest: Guest) -> None:
    """After some wrong codes no code of this user is right; other users do not notice."""
    for number in range(WRONG_CODES):
        sign_ins_of(guest.web.component).find(f"2222-222{number}", user := jid_of(BOB))
    code = await code_of(guest)
    assert sign_ins_of(guest.web.component).find(code, user) is None
    assert sign_ins_of(guest.web.component).find(code, jid_of(ALICE)) is not None


def jid_of(user: str) -> Any:
    return parse_jid(user)


async def test_user_confirms_the_request_of_xep_0070(guest: Guest) -> None:
    """The request names the site, the address that asks and the code, for clients that know XEP-0070 and for others."""
    code = await code_of(guest, "Alice@Example.org")
    message = await confirm_request(guest.web, ALICE)
    confirm = message.find(f"{{{HTTP_AUTH}}}confirm")
    assert confirm is not None
    assert dict(confirm.attrib) == {"id": code, "method": "POST", "url": f"{SITE}/login"}
    assert all(text in body_of(message) for text in (SITE, "127.0.0.1", code, "alice@example.org"))
    await answer(guest.web, BOB, code)
    assert await state(guest) == "waiting"
    await answer(guest.web, ALICE, code)
    assert await state(guest) == "confirmed"
    assert (await guest.post("/login/wait")).status == 303
    assert "alice@example.org" in (await guest.get("/account")).text


HOW = "To confirm, write this with the code that your browser shows: login CODE yes"


async def test_request_ends_with_what_to_write(guest: Guest) -> None:
    """Not every client has a button for requests of XEP-0070. What the request names confirms it in one message."""
    code = await code_of(guest, bare(ALICE))
    message = await confirm_request(guest.web, ALICE)
    assert body_of(message).splitlines()[-1] == HOW
    await write(guest.web.component, ALICE, HOW.partition(": ")[2].replace("CODE", code))
    assert await state(guest) == "confirmed"


async def test_request_of_a_service_without_chat_names_no_command(start_web: Any) -> None:
    guest = Guest(await start_web(bot={"enabled": False}, http={"base_url": SITE}))
    await guest.get("/login")
    await code_of(guest, bare(ALICE))
    assert "login CODE" not in body_of(await confirm_request(guest.web, ALICE))


@pytest.mark.parametrize("word", ["yes", "Yes!", "confirm", "OK", "okay.", "ja", "bestätigen"])
@pytest.mark.parametrize("asks", [True, False])
async def test_yes_alone_confirms_nothing_and_leads_to_the_command(guest: Guest, word: str, asks: bool) -> None:
    """The code that the user types is what ties the answer to a browser. So a word without it only gets the usage."""
    # Each address has a rate of its own for words that the bot does not know.
    name = f"{len(word)}{word[0]}{asks}".lower()
    user, other = f"{name}@example.org", f"not-{name}@example.org/phone"
    component = guest.web.component
    (unknown,) = await write(component, f"{user}/phone", word)
    assert unknown.startswith("I do not know")
    code = await code_of(guest, user if asks else "")
    if not asks:
        await write(component, f"{user}/phone", f"login {code}")
    assert await write(component, f"{user}/phone", word) == [f"A sign-in to the web pages waits for you. {HOW}"]
    assert await state(guest) == "waiting"
    assert (await write(component, other, word))[0].startswith("I do not know")
    component.clock.advance(LIFETIME_S)
    assert (await write(component, f"{user}/phone", word))[0].startswith("I do not know")


@pytest.mark.parametrize("bot", [True, False])
async def test_host_header_reaches_no_stranger(start_web: Any, bot: bool) -> None:
    """Without a configured address the text of a request would name the host that the sender of a form typed."""
    guest = Guest(await start_web(bot={"enabled": bot}))
    page = await guest.get("/login")
    assert ('name="jid"' in page.text, "asks you to confirm" in page.text) == (bot, False)
    got = await guest.post("/login", f"jid={bare(ALICE)}", Host="bank.example")
    assert await guest.web.component.events(bare(ALICE)) == []
    if not bot:
        assert (got.status, "http.base_url" in got.text) == (403, True)
        return
    wait = await guest.get("/login/wait")
    assert "received a request" not in wait.text
    match = CODE.search(wait.text)
    assert match is not None
    await answer(guest.web, ALICE, match[1])
    assert await state(guest) == "waiting"
    await write(guest.web.component, BOB, f"login {match[1]}")
    await confirm(guest.web, ALICE, match[1])
    assert await state(guest) == "confirmed"


async def test_sign_in_belongs_to_a_new_cookie(guest: Guest) -> None:
    """A host of the same domain may have set the cookie that the browser had, and know it."""
    planted = dict(guest.cookies)
    csrf = guest.csrf
    code = await code_of(guest)
    assert guest.cookies != planted
    await confirm(guest.web, ALICE, code)
    stranger = Guest(guest.web, planted, csrf)
    assert await state(stranger) == "ended"
    assert (await stranger.post("/login/wait")).status == 403
    assert (await guest.post("/login/wait")).status == 303


async def test_second_sign_in_of_a_browser_replaces_the_first(guest: Guest) -> None:
    first = await code_of(guest)
    second = await code_of(guest)
    user = jid_of(ALICE)
    assert sign_ins_of(guest.web.component).find(first, user) is None
    assert sign_ins_of(guest.web.component).find(second, user) is not None


async def test_user_refuses_the_request_of_xep_0070(guest: Guest) -> None:
    code = await code_of(guest, bare(ALICE))
    await answer(guest.web, ALICE, code, kind="error")
    assert await state(guest) == "refused"
    assert "refused" in (await guest.get("/login/wait")).text
    await answer(guest.web, ALICE, code)
    assert (await guest.post("/login/wait")).status == 403


async def test_nobody_floods_a_stranger_with_requests(guest: Guest) -> None:
    browsers = [Guest(guest.web) for _ in range(PER_JID + 1)]
    statuses = []
    for browser in browsers:
        await browser.get("/login")
        statuses.append((await browser.post("/login", f"jid={bare(ALICE)}")).status)
    assert statuses == [303] * PER_JID + [403]
    messages = await guest.web.component.events(bare(ALICE))
    assert sum(one.find(f"{{{HTTP_AUTH}}}confirm") is not None for one in messages) == PER_JID
    guest.web.component.clock.advance(LIFETIME_S)
    assert (await browsers[-1].post("/login", f"jid={bare(ALICE)}")).status == 303


async def test_network_address_begins_a_bounded_number_of_sign_ins(guest: Guest) -> None:
    statuses = [(await guest.post("/login", "jid=")).status for _ in range(PER_ADDRESS + 1)]
    assert statuses == [303] * PER_ADDRESS + [403]


async def test_ipv6_network_begins_a_bounded_number_of_sign_ins(guest: Guest) -> None:
    """Its host part is free to choose, so each sign-in could come from an address of its own."""
    sign_ins = sign_ins_of(guest.web.component)
    for number in range(PER_ADDRESS):
        sign_ins.begin(f"browser {number}", f"2001:db8::{number:x}", "site", None, "/")
    with pytest.raises(FeedError, match="too many sign-ins"):
        sign_ins.begin("browser", "2001:db8::ffff:1", "site", None, "/")
    sign_ins.begin("browser", "2001:db8:0:1::1", "site", None, "/")


@pytest.mark.parametrize("jid", ["example.org", "a b@c", "@example.org", "<script>@x"])
async def test_malformed_address_is_told_on_the_page(guest: Guest, jid: str) -> None:
    got = await guest.post("/login", f"jid={quote(jid)}")
    assert got.status == 403
    assert "type your XMPP address" in got.text and "<script>@" not in got.text


async def test_page_without_bot_needs_an_address(start_web: Any) -> None:
    web = await start_web(bot={"enabled": False}, http={"base_url": SITE})
    guest = Guest(web)
    await guest.get("/login")
    assert (await guest.post("/login", "jid=")).status == 403
    await code_of(guest, bare(ALICE))
    assert "login " not in (await guest.get("/login/wait")).text


async def test_sessions_are_listed_and_ended(start_web: Any) -> None:
    web = await start_web(http={"base_url": SITE})
    await web.component.create(ALICE, "closed", access_model="whitelist")
    one, other = await sign_in(web, ALICE), await sign_in(web, ALICE)
    page = await one.get("/account", "text/html")
    assert (page.text.count("<li "), page.text.count("this browser")) == (2, 1)
    got = await one.post("/account", f"session={other.session_id}")
    assert (got.status, got.header("Location")) == (303, "/account")
    assert (await other.get("/feeds/closed/?timeout=0")).status == 404
    bob = await sign_in(web, BOB)
    assert (await bob.post("/account", f"session={one.session_id}")).status == 404
    third = await sign_in(web, ALICE)
    got = await one.post("/account", "session=all")
    assert "Max-Age=0" in got.header("Set-Cookie")
    assert [(await browser.get("/account")).status for browser in (one, third)] == [303, 303]
    assert (await bob.get("/account")).status == 200


async def test_user_signs_out(guest: Guest) -> None:
    alice = await sign_in(guest.web, ALICE)
    got = await alice.post("/account", "")
    assert (got.status, "Max-Age=0" in got.header("Set-Cookie")) == (303, True)
    assert (await alice.get("/feeds/closed/?timeout=0")).status == 404


@pytest.mark.parametrize("path", ["/login", "/login/wait", "/account"])
async def test_get_changes_nothing(guest: Guest, path: str) -> None:
    code = await code_of(guest)
    await confirm(guest.web, ALICE, code)
    before = dict(guest.cookies)
    await guest.get(path)
    assert guest.session == "" and before.items() <= guest.cookies.items()
    assert (await guest.post("/login/wait")).status == 303


@pytest.mark.parametrize("path", ["/login", "/login/wait", "/account"])
async def test_pages_cannot_be_framed_or_cached(guest: Guest, path: str) -> None:
    await code_of(guest)
    browser = Guest(guest.web, guest.cookies | {SESSION_COOKIE: (await sign_in(guest.web, ALICE)).text})
    got = await (guest if path != "/account" else browser).get(path)
    assert got.status == 200
    assert "frame-ancestors 'none'" in got.header("Content-Security-Policy")
    assert got.header("Cache-Control") == "no-store"


async def test_browser_that_wants_a_dialog_has_an_address(guest: Guest) -> None:
    got = await guest.get("/login-basic", Sec_Fetch_Mode="navigate")
    assert (got.status, got.header("WWW-Authenticate").partition(" ")[0]) == (401, "Basic")
    token = await bearer(guest.web, ALICE, TokenScope.READ)
    got = await guest.get("/login-basic", Authorization=token)
    assert (got.status, got.header("Location")) == (303, "/feeds/")


@pytest.mark.needs("conflicts")
async def test_page_that_needs_a_sign_in_leads_to_it_without_a_dialog(guest: Guest) -> None:
    """A program, such as a feed reader, still learns that it can use Basic."""
    headers = {"Content_Type": FORM, "Sec_Fetch_Site": "same-origin", "Accept": "text/html"}
    page = await guest.web.ask("POST", "/conflicts/closed/x", b"keep=x", Sec_Fetch_Mode="navigate", **headers)
    assert (page.status, page.header("WWW-Authenticate").partition(" ")[0]) == (401, "Bearer")
    assert 'href="/login"' in page.text
    program = await guest.web.ask("POST", "/conflicts/closed/x", b"keep=x", **headers)
    assert program.header("WWW-Authenticate").startswith("Basic ")


async def test_codes_and_cookies_are_not_logged(guest: Guest, capfd: pytest.CaptureFixture[str]) -> None:
    code = await code_of(guest)
    await confirm(guest.web, ALICE, code)
    await guest.post("/login/wait")
    output = "".join(capfd.readouterr())
    assert not any(text in output for text in (code, code.replace("-", ""), *guest.cookies.values()))
    assert code not in repr(sign_ins_of(guest.web.component).find(code, jid_of(ALICE)))
