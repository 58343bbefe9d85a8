"""The ad-hoc command for conflicts through the whole component: two edits made apart, and a decision (A-62)."""

from xml.sax.saxutils import quoteattr

import pytest
from lxml import etree

from support.component import (
    ALICE,
    BOB,
    CAROL,
    DOMAIN,
    EVE,
    NS,
    Component,
    Element,
    fields,
    ok,
    submit,
    text_of,
)

CMD = "http://jabber.org/protocol/commands"
NODE = "urn:smartfeeds:0#conflicts"
ATOM = "http://www.w3.org/2005/Atom"
SX = "http://feedsync.org/2007/feedsync"


def version(item_id: str, title: str, by: str, when: str = "2025-12-31T12:00:00Z", updates: int = 1) -> str:
    """An entry as another service has it: changed there, at the same time as here."""
    return (
        f"<entry xmlns='{ATOM}'><sx:sync xmlns:sx='{SX}' id='{item_id}' updates='{updates}'>"
        f"<sx:history sequence='{updates}' when='{when}' by='{by}'/></sx:sync>"
        f"<title>{title}</title><summary>as {by} sees it</summary></entry>"
    )


async def send(component: Component, user: str, session: str = "", action: str = "", form: str = "") -> Element:
    """The answer to one step of the command."""
    told = "".join(f" {name}={quoteattr(text)}" for name, text in (("sessionid", session), ("action", action)) if text)
    return await component.ask(user, "set", f"<command xmlns='{CMD}' node='{NODE}'{told}>{form}</command>")


class Talk:
    """The command as a client runs it that sends every form back with all its fields."""

    def __init__(self, component: Component, user: str) -> None:
        self._component = component
        self._user = user
        self._session = ""
        self.answer: Element | None = None

    async def begin(self, node: str, **more: str) -> Element:
        """The answers up to the one that names the node, and further with these fields, form by form."""
        self.answer = ok(await send(self._component, self._user))
        self._session = self.answer[0].get("sessionid", "")
        answer = await self.go(node=node)
        for var, value in more.items():
            answer = await self.go(**{var: value})
        return answer

    async def go(self, action: str = "", **values: str) -> Element:
        """Fills in the form that was shown last and sends it."""
        assert self.answer is not None
        filled = fields(self.answer) | {var: [value] for var, value in values.items()}
        filled.pop("None", None)  # texts for reading have no name
        form = submit(filled)
        answer = await send(self._component, self._user, self._session, action, form)
        if answer.get("type") == "result":
            self.answer = answer
        return answer


def notes(answer: Element) -> list[str | None]:
    """The notes of a completed command."""
    assert ok(answer)[0].get("status") == "completed", text_of(answer)
    return [note.text for note in answer[0].iterfind(f"{{{CMD}}}note")]


def choices(answer: Element, var: str) -> dict[str, str | None]:
    """The values to choose from, with their labels."""
    options = ok(answer).iterfind(f".//x:field[@var='{var}']/x:option", NS)
    return {str(option.findtext("x:value", namespaces=NS)): option.get("label") for option in options}


def condition(answer: Element) -> str:
    """The defined condition of an error."""
    assert answer.get("type") == "error", text_of(answer)
    return etree.QName(answer[-1][0]).localname


async def title_of(component: Component, node: str, item_id: str) -> str | None:
    """What an item says to everybody."""
    answer = ok(await component.get(CAROL, f"<items node='{node}'><item id='{item_id}'/></items>"))
    return answer.findtext(".//a:title", namespaces=NS)


@pytest.fixture
async def feed(component: Component) -> Component:
    """A feed of Alice's with one item that was changed apart, and one that was not."""
    await component.create(ALICE, "n")
    await component.publish(ALICE, "n", "quiet")
    await component.publish(ALICE, "n", "one")
    await component.publish(ALICE, "n", "one", version("one", "theirs", "elsewhere"))
    return component


async def test_conflict_is_found_and_the_winner_stays(feed: Component) -> None:
    """[A-62]: nothing is decided by itself; the winner stands first."""
    talk = Talk(feed, ALICE)

    items = await talk.begin("n")
    versions = await talk.go(item="one")
    (winner, other) = choices(versions, "keep").values()
    shown = [each.findtext("x:value", namespaces=NS) for each in versions.iterfind(".//x:field[@type='fixed']", NS)]
    done = await talk.go("complete")

    assert choices(items, "item") == {"one": "one (one): 1 conflict"}
    assert (winner, other) == (
        f"{DOMAIN}/alice@example.org, 2026-01-01T00:00:00Z, one",
        "elsewhere, 2025-12-31T12:00:00Z, theirs",
    )
    assert shown == [winner, f"{other}\nas elsewhere sees it"]
    assert notes(done) == ["Resolved 1 conflict of one (one)."]
    assert await title_of(feed, "n", "one") == "one"
    assert notes(await Talk(feed, ALICE).begin("n")) == ["No item of n has a conflict."]


async def test_conflict_is_settled_for_the_other_version(feed: Component) -> None:
    """[A-62]: a decision is an edit, which subscribers get."""
    await feed.subscribe(BOB, "n")
    await feed.events("bob@example.org")
    talk = Talk(feed, ALICE)
    versions = await talk.begin("n", item="one")

    done = await talk.go("complete", keep=list(choices(versions, "keep"))[1])

    assert notes(done) == ["Resolved 1 conflict of theirs (one)."]
    assert await title_of(feed, "n", "one") == "theirs"
    (event,) = await feed.events("bob@example.org")
    assert event.findtext(".//a:title", namespaces=NS) == "theirs"


async def test_conflict_is_settled_by_a_combined_text(feed: Component) -> None:
    """[FS-070] The text replaces title and text of the version to keep."""
    talk = Talk(feed, ALICE)
    form = await talk.begin("n", item="one")
    keep = next(iter(choices(form, "keep")))

    assert notes(await talk.go(keep=keep, text="both of us")) == ["Resolved 1 conflict of both of us (one)."]

    assert await title_of(feed, "n", "one") == "both of us"


async def test_conflict_of_an_item_that_changed_meanwhile_stays(feed: Component) -> None:
    """[A-62]: whoever decides has seen what there is; the form can be asked for anew."""
    talk = Talk(feed, ALICE)
    await talk.begin("n", item="one")
    await feed.publish(ALICE, "n", "one", version("one", "third", "third"))

    late = await talk.go("complete")
    back = await talk.go("prev")
    versions = await talk.go(item="one")
    done = await talk.go("complete")

    assert condition(late) == "conflict"
    assert "again" in str(late.findtext(".//st:text", namespaces=NS))
    assert choices(back, "item") == {"one": "one (one): 2 conflicts"}
    assert len(choices(versions, "keep")) == 3
    assert notes(done) == ["Resolved 2 conflicts of one (one)."]


async def test_conflict_settled_by_somebody_else_meanwhile(feed: Component) -> None:
    """The second decision changes nothing."""
    await feed.affiliate(ALICE, "n", BOB, "publisher")
    first, second = Talk(feed, ALICE), Talk(feed, BOB)
    await first.begin("n", item="one")
    versions = await second.begin("n", item="one")
    await first.go("complete")

    late = await second.go("complete", keep=list(choices(versions, "keep"))[1])

    assert condition(late) == "conflict"
    assert await title_of(feed, "n", "one") == "one"


async def test_conflict_may_be_read_by_readers_and_settled_by_publishers(feed: Component) -> None:
    """[xep-map 239]: the rights of the node decide at each step."""
    talk = Talk(feed, EVE)
    await talk.begin("n", item="one")
    refused = await talk.go("complete")
    await feed.configure(ALICE, "n", access_model="whitelist")

    closed = Talk(feed, EVE)
    hidden = await closed.begin("n")
    still = await talk.go("complete")

    assert condition(refused) == "forbidden"
    assert condition(hidden) == condition(still) == "not-allowed"
    owner = Talk(feed, ALICE)
    await owner.begin("n", item="one")
    assert notes(await owner.go("complete")) == ["Resolved 1 conflict of one (one)."]


async def test_conflicts_of_what_is_not_there(feed: Component) -> None:
    assert condition(await Talk(feed, ALICE).begin("nowhere")) == "item-not-found"
    talk = Talk(feed, ALICE)
    await talk.begin("n")
    assert condition(await talk.go(item="quiet")) == "item-not-found"
    assert condition(await talk.go(item="none")) == "item-not-found"
    assert condition(await talk.go(item="i" * 2_000)) == "bad-request"


async def test_conflicts_of_many_items_and_long_names_fit_into_a_stanza(component: Component) -> None:
    """The list has an end, and says so; what is behind it is reached once some are settled."""
    await component.create(ALICE, "n")
    ids = [f"{number:02}{'&' * 1_000}" for number in range(30)]
    for item_id in ids:
        await component.publish(ALICE, "n", item_id, f"<entry xmlns='{ATOM}'><title>{'&amp;' * 500}</title></entry>")
        sync_id = await sync_id_of(component, item_id)
        await component.publish(ALICE, "n", item_id, version(sync_id, "theirs", "elsewhere"))

    answer = await Talk(component, ALICE).begin("n")

    assert list(choices(answer, "item")) == ids[:25]
    (note,) = answer[0].iterfind(f"{{{CMD}}}note")
    assert note.text == "The list shows 25 of 30 items; resolve some to see the others."


async def sync_id_of(component: Component, item_id: str) -> str:
    """The id by which other services know an item."""
    answer = ok(await component.get(ALICE, f"<items node='n?sync=true'><item id={quoteattr(item_id)}/></items>"))
    (found,) = answer.iterfind(".//sx:sync", NS)
    return str(found.get("id"))
