"""Sign-ins through XMPP, each step of them at any of two processes."""

import pytest

from features.cluster.processes import joined
from support.chat import write
from support.component import ALICE, Component, Starter, bare
from support.guests import SITE, Guest, answer, code_of, confirm_request, sign_ins_of, state
from support.waiting import until
from support.web import Web, WebStarter

pytestmark = pytest.mark.parametrize("engine", ["postgres"], indirect=True)


async def start_pair(start_web: WebStarter) -> tuple[Guest, Web]:
    """A browser at the first process, with Alice's closed feed, and the second process."""
    first = await start_web(http={"base_url": SITE})
    await first.component.create(ALICE, "closed", access_model="whitelist")
    second = await start_web(http={"base_url": SITE})
    await joined(first.component, second.component)
    guest = Guest(first)
    await guest.get("/login")
    return guest, second


def knows(component: Component, code: str, informed: str = "") -> bool:
    sign_in = next((each for each in sign_ins_of(component) if each.shown_code == code), None)
    return sign_in is not None and (not informed or str(sign_in.informed) == informed)


async def test_confirmation_reaches_the_browser_at_another_process(start_web: WebStarter) -> None:
    """[TOP-013] XEP-0070. Nothing is sticky: the browser may also complete the sign-in elsewhere."""
    guest, second = await start_pair(start_web)
    code = await code_of(guest, bare(ALICE))
    await confirm_request(guest.web, ALICE)
    await until(lambda: knows(second.component, code, bare(ALICE)), "the sign-in")
    await answer(second, ALICE, code)
    there = Guest(second, guest.cookies, guest.csrf)
    assert await state(there) == "confirmed"
    await until(lambda: any(each.jid for each in sign_ins_of(guest.web.component)), "the confirmation")
    assert await state(guest) == "confirmed"
    assert (await there.post("/login/wait")).header("Location") == "/feeds/closed/"
    assert (await there.get("/feeds/closed/")).status == 200
    await until(lambda: not any(each.browser for each in sign_ins_of(guest.web.component)), "the use of the sign-in")
    assert (await guest.post("/login/wait")).status == 403, "a sign-in works once"


async def test_refusal_reaches_the_browser_at_another_process(start_web: WebStarter) -> None:
    """[TOP-013]"""
    guest, second = await start_pair(start_web)
    code = await code_of(guest, bare(ALICE))
    await confirm_request(guest.web, ALICE)
    await until(lambda: knows(second.component, code, bare(ALICE)), "the sign-in")
    await answer(second, ALICE, code, "error")
    sign_in = next(iter(sign_ins_of(guest.web.component)))
    await until(lambda: sign_in.state.value == "refused", "the refusal")
    assert await state(guest) == "refused"
    assert (await guest.post("/login/wait")).status == 403


async def test_confirmation_that_overtakes_the_sign_in_is_passed_on(start_web: WebStarter) -> None:
    """[TOP-005] [TOP-013] A client may answer before the letter is read."""
    guest, second = await start_pair(start_web)
    code = await code_of(guest, bare(ALICE))
    await confirm_request(guest.web, ALICE)
    await until(lambda: knows(second.component, code, bare(ALICE)), "the sign-in")
    sign_ins_of(second.component)._by_code.clear()
    await answer(second, ALICE, code)
    sign_in = next(iter(sign_ins_of(guest.web.component)))
    await until(lambda: sign_in.jid, "the confirmation")
    assert await state(guest) == "confirmed"


@pytest.mark.needs("bot")
async def test_both_chat_messages_may_reach_another_process(start_web: WebStarter) -> None:
    """[TOP-013]"""
    guest, second = await start_pair(start_web)
    code = await code_of(guest)
    await until(lambda: knows(second.component, code), "the sign-in")
    (question,) = await write(second.component, ALICE, f"login {code}")
    assert f"login {code} yes" in question
    await until(lambda: knows(guest.web.component, code, bare(ALICE)), "the question")
    await write(guest.web.component, ALICE, f"login {code} yes")
    assert await state(guest) == "confirmed"


async def test_process_without_a_link_asks_through_another_one(start_web: WebStarter) -> None:
    """[TOP-024] Also one that serves HTTP only."""
    guest, second = await start_pair(start_web)
    await guest.web.component.cut()
    code = await code_of(guest, bare(ALICE))
    messages = await second.component.next_event(bare(ALICE))
    assert [message.get("id") for message in messages] == [f"sign-in-{code}"]
    await answer(second, ALICE, code)
    sign_in = next(iter(sign_ins_of(guest.web.component)))
    await until(lambda: sign_in.jid, "the confirmation")
    assert await state(guest) == "confirmed"


@pytest.mark.needs("bot")
async def test_process_that_starts_learns_of_sign_ins(start_web: WebStarter, start: Starter) -> None:
    """[TOP-013] [TOP-034] A restart of one process after the other ends no sign-in."""
    guest, second = await start_pair(start_web)
    code = await code_of(guest)
    third = await start()
    await until(lambda: knows(third, code), "the sign-in")
    await until(lambda: knows(second.component, code), "the sign-in")
    assert [each.browser for each in sign_ins_of(third)] == [each.browser for each in sign_ins_of(guest.web.component)]
    assert all(each.browser not in guest.cookies.values() for each in sign_ins_of(third)), "a digest goes out"
