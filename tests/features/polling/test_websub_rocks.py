"""The cases of websub.rocks for subscribers, rebuilt: the site is the publisher and the hub of the tester."""

from collections.abc import Callable

import pytest
from aiohttp import web

from smartfeeds.features.polling.push_states import PushState, SourcePush
from support.polling import PATH, atom
from support.pushing import HUB, Pushing, running_pushing, signature
from support.website import Site
from support.world import World

SELF = "/self"
Offer = Callable[[str, str], web.Response]


@pytest.fixture
async def pushing(world: World, site: Site):
    async with running_pushing(world, site) as running:
        yield running


def linked(hub: str, own: str) -> str:
    return f'<link rel="hub" href="{hub}"/><link rel="self" href="{own}"/>'


def by_header(hub: str, own: str) -> web.Response:
    return web.Response(body=atom("old"), headers={"Link": f'<{hub}>; rel="hub", <{own}>; rel="self"'})


def by_page(hub: str, own: str) -> web.Response:
    entry = '<article class="h-entry"><h1 class="p-name"><a class="u-url" href="/old">old</a></h1></article>'
    text = f'<html><head><title>A blog</title>{linked(hub, own)}</head><body class="h-feed">{entry}</body></html>'
    return web.Response(text=text, content_type="text/html")


def by_atom(hub: str, own: str) -> web.Response:
    return web.Response(body=atom("old", inner=linked(hub, own)), content_type="application/atom+xml")


def by_rss(hub: str, own: str) -> web.Response:
    links = linked(hub, own).replace("<link", "<atom:link")
    text = (
        '<rss version="2.0" xmlns:atom="http://www.w3.org/2005/Atom"><channel><title>A blog</title>'
        f"<link>http://blog.example/</link><description/>{links}<item><title>old</title><guid>old</guid></item>"
        "</channel></rss>"
    )
    return web.Response(text=text, content_type="application/rss+xml")


def by_header_first(hub: str, own: str) -> web.Response:
    page = by_atom(f"{hub}-of-the-document", f"{own}-of-the-document")
    page.headers["Link"] = f'<{hub}>; rel="hub", <{own}>; rel="self"'
    return page


async def ask(pushing: Pushing) -> SourcePush:
    """Polls the source of the test, and sends the request to the hub that it finds."""
    pushing.site.pages[HUB] = pushing.hub
    await pushing.polling.poll(await pushing.polling.add())
    await pushing.look()
    return await pushing.push()


async def subscribe(pushing: Pushing) -> SourcePush:
    """A subscription that the hub has checked."""
    got = await pushing.check(await ask(pushing))
    assert (got.status, got.body) == (200, b"c1")
    return await pushing.push()


@pytest.mark.parametrize(
    "offer",
    [
        pytest.param(by_header, id="100_header"),
        pytest.param(by_page, id="101_html"),
        pytest.param(by_atom, id="102_atom"),
        pytest.param(by_rss, id="103_rss"),
        pytest.param(by_header_first, id="104_header_before_document"),
    ],
)
async def test_discovery(pushing: Pushing, site: Site, offer: Offer) -> None:
    """[WS-091] [WS-092] [WS-093] [WS-104] [WS-108] [WR 100] [WR 101] [WR 102] [WR 103] [WR 104]"""
    site.pages[PATH] = offer(site.url(HUB), site.url(PATH))
    push = await subscribe(pushing)
    assert push.state is PushState.ACTIVE
    assert [form["hub.topic"] for form in pushing.requests] == [site.url(PATH)]
    assert (await pushing.deliver(push, atom("new"))).status == 202
    assert sorted(await pushing.titles()) == ["new", "old"]


async def test_200_topic_with_another_self(pushing: Pushing, site: Site) -> None:
    """[WS-096] [WR 200]"""
    site.pages[PATH] = by_header(site.url(HUB), site.url(SELF))
    push = await subscribe(pushing)
    assert (pushing.requests[0]["hub.topic"], push.state) == (site.url(SELF), PushState.ACTIVE)


@pytest.mark.parametrize("status", [pytest.param(302, id="201_temporary"), pytest.param(301, id="202_permanent")])
async def test_topic_that_redirects(pushing: Pushing, site: Site, status: int) -> None:
    """[WS-098] [WR 201] [WR 202] The hub of the page before the redirect does not count."""
    old = {"Location": site.url(SELF), "Link": f'<{site.url("/old-hub")}>; rel="hub", <{site.url(PATH)}>; rel="self"'}
    site.pages[PATH] = web.Response(status=status, headers=old)
    site.pages[SELF] = by_header(site.url(HUB), site.url(SELF))
    push = await subscribe(pushing)
    assert (pushing.requests[0]["hub.topic"], push.address) == (site.url(SELF), site.url(HUB))


@pytest.mark.parametrize("status", [pytest.param(307, id="203_temporary"), pytest.param(308, id="204_permanent")])
async def test_hub_that_redirects(pushing: Pushing, site: Site, status: int) -> None:
    """[WS-105] [WR 203] [WR 204] The whole request arrives at the other hub."""
    site.pages["/moved"] = web.Response(status=status, headers={"Location": site.url(HUB)})
    site.pages[PATH] = by_header(site.url("/moved"), site.url(PATH))
    push = await subscribe(pushing)
    (form,) = pushing.requests
    assert (form["hub.mode"], form["hub.topic"]) == ("subscribe", site.url(PATH))
    assert push.state is PushState.ACTIVE


async def test_205_check_of_another_topic(pushing: Pushing, site: Site) -> None:
    """[WS-109] [WR 205]"""
    site.pages[PATH] = by_header(site.url(HUB), site.url(PATH))
    push = await ask(pushing)
    got = await pushing.check(push, hub_topic=site.url("/another"))
    assert got.status == 404 and b"c1" not in got.body
    assert (await pushing.push()).state is PushState.ASKED


async def test_300_push(pushing: Pushing, site: Site) -> None:
    """[WS-119] [WR 300] The push brings the item; no poll follows."""
    site.pages[PATH] = by_header(site.url(HUB), site.url(PATH))
    push = await subscribe(pushing)
    site.asked.clear()
    assert 200 <= (await pushing.deliver(push, atom("new"))).status < 300
    assert "new" in await pushing.titles() and site.paths == []


@pytest.mark.parametrize(
    "header",
    [
        pytest.param({"X_Hub_Signature": signature("of another hub", atom("new"))}, id="301_wrong_signature"),
        pytest.param({"X_Hub_Signature": ""}, id="302_no_signature"),
    ],
)
async def test_push_that_is_not_signed_by_the_hub(pushing: Pushing, site: Site, header: dict[str, str]) -> None:
    """[WS-123] [WS-124] [WR 301] [WR 302]"""
    site.pages[PATH] = by_header(site.url(HUB), site.url(PATH))
    push = await subscribe(pushing)
    assert push.has_secret
    assert (await pushing.deliver(push, atom("new"), **header)).status == 403
    assert await pushing.titles() == ["old"]
