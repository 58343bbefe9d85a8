"""Replies to entries of feeds that are filled from elsewhere: nobody here may answer them, and no owner can help."""

from collections.abc import AsyncIterator

import pytest
from lxml import etree

from features.bot.test_answers import reply_to
from smartfeeds.core.jid import parse_jid
from smartfeeds.features.polling import rows as source_rows
from smartfeeds.features.polling.poller import Poller
from smartfeeds.features.polling.source import new_source
from smartfeeds.features.polling.sources import add_source
from smartfeeds.service.drafts import draft_of
from smartfeeds.service.nodes import add_node
from smartfeeds.service.requests import Publish, SetAffiliations
from support.chat import write
from support.component import ALICE, BOB, DOMAIN, Component, Starter, bare
from support.polling import atom
from support.website import Site, running_site

pytestmark = pytest.mark.needs("polling")

LINK = "https://harbour.example/deep"
AT_ITS_OWN = "Entries of other blogs are answered at their own address"
ENTRY = "<entry xmlns='http://www.w3.org/2005/Atom'><title>Mine</title></entry>"
OPERATORS = "the people who run this service"


@pytest.fixture
async def site() -> AsyncIterator[Site]:
    """A blog on 127.0.0.1."""
    async with running_site() as site:
        site.pages["/feed"] = atom("first")
        yield site


@pytest.fixture
async def component(start: Starter) -> Component:
    return await start(sources={"allowed_networks": ["127.0.0.0/8"]}, http={"listen": ""})


async def fill(component: Component, site: Site, node: str = "harbour") -> None:
    """Makes the site fill a node, which Bob follows."""
    source = new_source(node, site.url("/feed"), component.clock())
    await component.app.service.write(lambda tx, context: add_source(tx, context, source))
    await poll(component)
    await write(component, BOB, f"subscribe {node}")


async def poll(component: Component) -> None:
    (source,) = await component.app.service.store.read(lambda tx: source_rows.sources(tx, 0, 100))
    component.clock.advance(3_600)
    await component.app.parts.get(Poller).poll(source)


async def answered(component: Component, site: Site, link: str = "") -> str:
    """The answer to a reply to a new entry of the site."""
    body = atom("second", "first")
    site.pages["/feed"] = body.replace(b"<entry>", f"<entry><link href='{link}'/>".encode(), 1) if link else body
    await poll(component)
    return await answer_to_next(component)


async def answer_to_next(component: Component) -> str:
    message = (await component.events(bare(BOB)))[-1]
    (answer,) = await write(component, BOB, "How deep is it?", reply_to(str(message.get("id"))))
    return answer


@pytest.mark.parametrize(
    ("link", "expected"),
    [
        (LINK, f"{AT_ITS_OWN}: {LINK}"),
        ("", f"{AT_ITS_OWN}. This one names none."),
        ("ftp://harbour.example/deep", f"{AT_ITS_OWN}. This one names none."),
    ],
)
async def test_entry_of_a_blog_is_answered_at_its_own_address(
    component: Component, site: Site, link: str, expected: str
) -> None:
    """The service owns the feed, so there is nobody here to ask."""
    await fill(component, site)
    assert await answered(component, site, link) == expected


async def test_own_entry_beside_those_of_a_blog_is_a_matter_of_the_owner(component: Component, site: Site) -> None:
    await component.create(ALICE, "harbour")
    await fill(component, site)
    await component.publish(ALICE, "harbour", "own", ENTRY)
    expected = "Only its publishers may answer in harbour. Ask its owner: alice@example.org"
    assert await answer_to_next(component) == expected
    assert await answered(component, site, LINK) == f"{AT_ITS_OWN}: {LINK}"


async def test_person_who_may_publish_answers_here(component: Component, site: Site) -> None:
    await component.create(ALICE, "harbour", publish_model="open")
    await fill(component, site)
    assert await answered(component, site, LINK) == "Your answer is published in harbour."


async def test_service_is_no_owner_whom_anybody_can_ask(component: Component) -> None:
    service = parse_jid(DOMAIN)
    assert service is not None
    await component.app.service.write(lambda tx, context: add_node(tx, context, service, "ours", None, trusted=True))
    await write(component, BOB, "subscribe ours")
    draft = draft_of(etree.fromstring(ENTRY))
    await component.app.service.handle(Publish(service, DOMAIN, "ours", "one", draft))
    assert await answer_to_next(component) == f"Only its publishers may answer in ours. Ask its owner: {OPERATORS}"
    assert await write(component, BOB, "post ours Hello") == [
        f"You may not do that. To write in ours, ask its owner: {OPERATORS}"
    ]
    assert await write(component, BOB, f"allow ours {bare(ALICE)}") == [
        f"You may not do that. The owner of ours may: {OPERATORS}"
    ]
    await component.app.service.handle(SetAffiliations(service, DOMAIN, "ours", ((bare(ALICE), "owner"),)))
    assert await write(component, BOB, "post ours Hello") == [
        f"You may not do that. To write in ours, ask its owner: {bare(ALICE)}, {OPERATORS}"
    ]
