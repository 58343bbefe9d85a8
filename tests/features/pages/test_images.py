"""Images of entries, which the service loads and caches."""

import asyncio
from dataclasses import dataclass, field, replace
from functools import partial
from html import escape
from urllib.parse import quote, urlsplit

import pytest
from aiohttp import web as aioweb
from aiohttp.test_utils import make_mocked_request

from smartfeeds.core.ip_addresses import parse_networks
from smartfeeds.core.times import US_PER_S
from smartfeeds.errors import ConfigError
from smartfeeds.features.pages import setup
from smartfeeds.features.pages.image_requests import FAILED_S, MAX_BYTES, STORED_S, Images, image_type
from smartfeeds.features.pages.images import file_path, image_writer
from smartfeeds.features.pages.look import ImageLinks, ImagePolicy, SiteLook
from smartfeeds.features.pages.sanitise import clean
from smartfeeds.features.pages.setup import _image_links
from smartfeeds.formats.entry import EntryText, TextKind
from smartfeeds.http.calls import HttpCall
from smartfeeds.http.http_errors import HttpError
from smartfeeds.http.replies import Reply
from smartfeeds.net.clients import Fetcher
from smartfeeds.net.limiter import HostLimiter, HostLimits
from support.waiting import wait_for
from support.web import WebStarter
from support.website import NO_ADDRESSES, Names, running_site

LINKS = ImageLinks(b"k" * 32)
PNG = b"\x89PNG\r\n\x1a\n" + bytes(40)
CAT = "https://pictures.example/cat.png?size=1&a=b"


@dataclass
class Host:
    """A host of images, and the clock."""

    body: bytes = PNG
    now_us: int = 0
    requests: list[str] = field(default_factory=list)
    gate: asyncio.Event | None = None

    async def fetch(self, address: str, accept: str, max_bytes: int) -> bytes:
        self.requests.append(address)
        assert "svg" not in accept
        assert max_bytes == MAX_BYTES
        if self.gate is not None:
            await self.gate.wait()
        if not self.body:
            raise ConfigError("no such host")
        return self.body

    def images(self, links: ImageLinks | None = LINKS) -> Images:
        return Images(links, self.fetch, lambda: self.now_us)


async def load(images: Images, path: str) -> Reply:
    path, _, query = path.partition("?")
    return await images.get(HttpCall(make_mocked_request("GET", path), "127.0.0.1", "http://x", path, query))


async def test_image_is_loaded_once() -> None:
    host = Host()
    images = host.images()
    reply = await load(images, LINKS.path(CAT))
    assert (reply.body, reply.media_type) == (PNG, "image/png")
    assert reply.headers["Content-Security-Policy"] == "default-src 'none'; sandbox"
    assert await load(images, LINKS.path(CAT)) is reply
    assert host.requests == [CAT]
    host.now_us += STORED_S * US_PER_S
    await load(images, LINKS.path(CAT))
    assert host.requests == [CAT, CAT]


async def test_readers_at_the_same_time_share_one_load() -> None:
    host = Host(gate=asyncio.Event())
    images = host.images()
    loads = [asyncio.create_task(load(images, LINKS.path(CAT))) for _ in range(5)]
    await asyncio.sleep(0)
    assert host.gate is not None
    host.gate.set()
    assert {reply.body for reply in await asyncio.gather(*loads)} == {PNG}
    assert host.requests == [CAT]


async def test_images_of_a_slow_host_do_not_hold_up_those_of_others() -> None:
    """The limiter of the outgoing requests hands out turns per host; a bound of the images in front of it would be
    taken by the ones that wait there."""
    gate = asyncio.Event()
    limiter = HostLimiter(HostLimits(at_once=4, at_once_per_host=2, burst=100))

    async def fetch(address: str, _accept: str, _max_bytes: int) -> bytes:
        host = urlsplit(address).hostname or ""
        async with limiter.turn(host, 443):
            if host == "slow.example":
                await gate.wait()
            return PNG

    images = Images(LINKS, fetch, lambda: 0)
    slow = [asyncio.create_task(load(images, LINKS.path(f"https://slow.example/{n}.png"))) for n in range(50)]
    await asyncio.sleep(0)
    assert (await wait_for(load(images, LINKS.path(CAT)), "the image of another host")).body == PNG
    assert not any(task.done() for task in slow)
    gate.set()
    assert {reply.body for reply in await asyncio.gather(*slow)} == {PNG}


@pytest.mark.parametrize(
    "path",
    [
        LINKS.path("https://other.example/").split("?")[0] + "?url=" + quote(CAT, safe=""),
        ImageLinks(b"other").path(CAT),
        "/images/" + "0" * 32,
        "/images/?url=" + quote(CAT, safe=""),
        "/images/%E2%98%83?url=" + quote(CAT, safe=""),
    ],
)
async def test_only_addresses_of_our_pages_are_loaded(path: str) -> None:
    """Anybody could use the service to fetch anything otherwise."""
    host = Host()
    with pytest.raises(HttpError) as error:
        await load(host.images(), path)
    assert (error.value.status, host.requests) == (404, [])


async def test_nothing_is_loaded_if_pages_have_no_images() -> None:
    host = Host()
    with pytest.raises(HttpError):
        await load(host.images(None), LINKS.path(CAT))
    assert host.requests == []


@pytest.mark.parametrize("body", [b"", b"<svg xmlns='http://www.w3.org/2000/svg'/>", b"<html>", b"RIFF....WAVE"])
async def test_other_content_is_no_image(body: bytes) -> None:
    """The first bytes decide. A failure is remembered for a while, whoever asks."""
    host = Host(body)
    images = host.images()
    for _ in range(2):
        with pytest.raises(HttpError) as error:
            await load(images, LINKS.path(CAT))
        assert error.value.status == 502
    assert len(host.requests) == 1
    host.now_us += FAILED_S * US_PER_S
    host.body = PNG
    assert (await load(images, LINKS.path(CAT))).media_type == "image/png"


@pytest.mark.parametrize(
    ("body", "media_type"),
    [
        (PNG, "image/png"),
        (b"\xff\xd8\xff\xe0", "image/jpeg"),
        (b"GIF89a", "image/gif"),
        (b"RIFF\x00\x00\x00\x00WEBPVP8 ", "image/webp"),
        (b"\x00\x00\x00\x20ftypavif", "image/avif"),
        (b"\x00\x00\x00\x20ftypisom", ""),
        (b"GIF", ""),
    ],
)
def test_type_of_an_image(body: bytes, media_type: str) -> None:
    assert image_type(body) == media_type


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "pictures.example"])
@pytest.mark.parametrize("sources", [{}, {"allowed_networks": ["127.0.0.0/8"]}])
async def test_no_image_is_requested_from_a_private_network(
    start_web: WebStarter, monkeypatch: pytest.MonkeyPatch, sources: dict[str, object], host: str
) -> None:
    """Whoever publishes chooses the address, and whoever opens its path makes the service request it. The networks of
    the operator are for feeds that admins choose. A name may lead anywhere."""
    monkeypatch.setattr(setup, "Fetcher", partial(Fetcher, resolver=Names("127.0.0.1")))
    async with running_site() as site:
        web = await start_web(sources=sources, site={"images": "on"})
        site.pages["/x.png"] = PNG
        links = _image_links(web.component.app.settings)
        got = await web.get(links.path(site.url("/x.png", host)))
        assert (got.status, site.asked) == (502, [])


async def test_redirect_of_an_image_into_a_private_network_is_not_followed(
    start_web: WebStarter, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The test calls one address public."""
    limits = replace(setup.IMAGE_LIMITS, allowed=parse_networks(("127.0.0.1",)))
    monkeypatch.setattr(setup, "IMAGE_LIMITS", limits)
    async with running_site() as site, running_site("127.0.0.2") as inside:
        web = await start_web(sources={"allowed_networks": ["127.0.0.0/8"]})
        links = _image_links(web.component.app.settings)
        inside.pages["/x.png"] = site.pages["/y.png"] = PNG
        site.pages["/x.png"] = aioweb.Response(status=302, headers={"Location": inside.url("/x.png", "127.0.0.2")})
        assert (await web.get(links.path(site.url("/x.png")))).status == 502
        assert (await web.get(links.path(site.url("/y.png")))).body == PNG
        assert (site.paths, inside.paths) == (["/x.png", "/y.png"], [])


PRIVATE = ("http://127.0.0.1:19300/x", "http://localhost/x", "https://10.1/x", "http://[fd00::1]/x")


@pytest.mark.parametrize("policy", ImagePolicy)
@pytest.mark.parametrize("address", PRIVATE)
def test_image_in_a_private_network_is_a_link(policy: ImagePolicy, address: str) -> None:
    """The service would not load it, and a reader inside that network may."""
    assert written(policy, f'<img src="{address}" alt="a cat">') == (
        f'<a class="picture" href="{address}" rel="noopener noreferrer nofollow ugc">[picture: a cat]</a>'
    )


@pytest.mark.parametrize("address", NO_ADDRESSES)
def test_pages_are_written_with_images_whose_addresses_cannot_be_read(address: str) -> None:
    assert "<a" not in written(ImagePolicy.ON, f'<img src="{escape(address)}" alt="a cat">')


HTML = f'<p>A <img src="{CAT.replace("&", "&amp;")}" alt="my &lt;cat&gt;"></p>'


def written(policy: ImagePolicy, html: str = HTML) -> str:
    look = SiteLook(images=policy, image_links=LINKS)
    return clean(EntryText(TextKind.HTML, html), image_writer(look, "/base")).html


SITE = "https://feeds.example.org/base"
FILE = f"{SITE}/files/cats/0123.png"


@pytest.mark.parametrize("policy", ImagePolicy)
def test_own_files_are_shown_at_once(policy: ImagePolicy) -> None:
    """Whatever the operator chooses for those of other hosts: nobody else learns of the reader."""
    look = SiteLook(images=policy, image_links=LINKS)
    text = f'<p><img src="{FILE}" alt="a &quot;cat&quot;"></p>'
    html = clean(EntryText(TextKind.HTML, text), image_writer(look, "/base", site_url=SITE)).html
    assert html == (
        '<p><img src="/base/files/cats/0123.png" alt="a &quot;cat&quot;" loading="lazy" decoding="async"></p>'
    )


@pytest.mark.parametrize(
    "address",
    [
        f"{SITE}/login-basic",
        f"{SITE}/files/../login-basic",
        f"{SITE}/files/%2e%2E/login-basic",
        f"{SITE}/files/cats/%2e",
        f"{SITE}/files/cats\\..\\..\\login-basic",
        f"{SITE}/files/",
        f"{SITE}/files/cats/1.png?next=/login-basic",
        f"{SITE}/files/cats/1.png#a",
        f"{SITE}/files/cats/1 2.png",
        f"{SITE}/images/0123?url=https://pictures.example/a.png",
        f"{SITE}x/files/cats/1.png",
        "https://feeds.example.org/files/cats/1.png",
        "https://pictures.example/files/cats/1.png",
        "/base/files/cats/1.png",
    ],
)
def test_nothing_else_of_this_site_is_an_image(address: str) -> None:
    """A page requests its images without a click, with the cookies of its reader."""
    assert file_path(address, SITE) == ""


@pytest.mark.parametrize("path", ["/files/a/b/0123.png", "/files/%C3%A9t%C3%A9/1.png", "/enclosures/a/0123.jpg"])
def test_paths_of_own_files(path: str) -> None:
    assert file_path(f"{SITE}{path}", SITE) == path
    assert file_path(f"{SITE}{path}", "") == ""


def test_images_are_shown_by_the_choice_of_the_operator() -> None:
    path = f"/base{LINKS.path(CAT)}"
    label = "my \N{SINGLE LEFT-POINTING ANGLE QUOTATION MARK}cat\N{SINGLE RIGHT-POINTING ANGLE QUOTATION MARK}"
    assert f'<img src="{path}" alt="{label}" loading="lazy"' in written(ImagePolicy.ON)
    assert f'<a class="picture load" href="{path}" data-label="{label}">[picture: {label}]</a>' in written(
        ImagePolicy.CLICK
    )
    assert 'href="https://pictures.example/cat.png?size=1&amp;a=b"' in written(ImagePolicy.OFF)


@pytest.mark.parametrize("policy", [ImagePolicy.ON, ImagePolicy.CLICK])
@pytest.mark.parametrize("source", ["javascript:alert(1)", "//x.example/a.png", "a.png", "ftp://x/a.png", '"><script>'])
def test_images_without_an_address_of_the_web_are_labels(policy: ImagePolicy, source: str) -> None:
    html = written(policy, f'<img alt="x" src="{source}">')
    assert "href" not in html
    assert "src=" not in html
