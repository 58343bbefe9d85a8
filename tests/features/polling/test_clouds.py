"""Sources that follow rssClouds: registration, challenges, notifications and polls, over real sockets."""

from urllib.parse import parse_qsl, quote, urlencode

import pytest
from aiohttp import web

from smartfeeds.core.times import US_PER_S
from smartfeeds.features.callbacks import soap, xml_rpc
from smartfeeds.features.callbacks.remote_calls import RemoteCall, read_message
from smartfeeds.features.polling import rows as source_rows
from smartfeeds.features.polling.push_states import PushState
from smartfeeds.features.polling.source import PushKind
from support.polling import PATH
from support.pushing import running_pushing

DOOR = "/rsscloud/pleaseNotify"
FORM = "application/x-www-form-urlencoded"
GOOD = web.Response(text='<notifyResult success="true" msg="Registered."/>')
BAD = web.Response(text='<notifyResult success="false" msg="Not registered: use http://x.example/rss"/>')
ANSWERS = {
    "http-post": GOOD,
    "xml-rpc": web.Response(body=xml_rpc.write_result(True)),
    "soap": web.Response(body=soap.write_result("rssPleaseNotify", True, "http://x/")),
}
GOLDEN_CALLS = {
    "xml-rpc": xml_rpc.write_call(RemoteCall("smartfeeds.notify", ("{url}",))),
    "soap": soap.write_call(RemoteCall("notify", ("{url}",)), ("url",), "http://feeds.example/"),
}


@pytest.fixture
async def pushing(world, site):
    async with running_pushing(world, site) as running:
        yield running


def rss(site, *titles, protocol="http-post", procedure="", extra=""):
    items = "".join(f"<item><guid>{title}</guid><title>{title}</title></item>" for title in titles)
    place = f'domain="127.0.0.1" port="{site.port}" path="{DOOR}"'
    cloud = f'<cloud {place} registerProcedure="{procedure}" protocol="{protocol}"/>'
    return f'<rss version="2.0"><channel><title>t</title>{cloud}{extra}{items}</channel></rss>'.encode()


async def registered(pushing, site, page, answer=GOOD):
    """A source that is registered; the bodies that its cloud has received."""
    bodies = []

    async def door(request):
        bodies.append(await request.read())
        one = answer.pop(0) if isinstance(answer, list) else answer
        return web.Response(body=one.body, status=one.status, headers={"Content-Type": "text/xml"})

    site.pages[PATH], site.pages[DOOR] = page, door
    await pushing.polling.poll(await pushing.polling.add())
    await pushing.look()
    return await pushing.push(), bodies


async def notify(pushing, push, url, protocol="http-post"):
    if protocol == "http-post":
        body, kind = urlencode({"url": url}).encode(), FORM
    else:
        body, kind = GOLDEN_CALLS[protocol].replace(b"{url}", url.encode()), "text/xml"
    return await pushing.post(pushing.path(push), body, Content_Type=kind)


async def test_registration_as_a_form(pushing, site):
    """[RC-058] [RC-060] [RC-062] [RC-063] [RC-064] One feed, the domain, a path with a token."""
    push, bodies = await registered(pushing, site, rss(site, "a"))
    assert [dict(parse_qsl(body.decode(), keep_blank_values=True)) for body in bodies] == [
        {
            "notifyProcedure": "",
            "domain": "reader.example",
            "port": "80",
            "path": f"/push/{push.token}",
            "protocol": "http-post",
            "url1": site.url(PATH),
        }
    ]
    assert push.state is PushState.ACTIVE and push.ends_us == pushing.world.clock() + 90_000 * US_PER_S


@pytest.mark.parametrize("protocol", ["xml-rpc", "soap"])
async def test_registration_by_a_call(pushing, site, protocol):
    """[RC-058] [RC-059] The procedure of the element, five parameters, the protocol of the door."""
    page = rss(site, "a", protocol=protocol, procedure="feeds.rssPleaseNotify")
    push, bodies = await registered(pushing, site, page, ANSWERS[protocol])
    root = read_message(bodies[0])
    call = soap.read_call(root) if protocol == "soap" else xml_rpc.read_call(root)
    procedure = {"soap": "notify", "xml-rpc": "smartfeeds.notify"}[protocol]
    assert call.name == ("rssPleaseNotify" if protocol == "soap" else "feeds.rssPleaseNotify")
    assert call.parameters == (procedure, 80, f"/push/{push.token}", protocol, [site.url(PATH)])
    assert push.state is PushState.ACTIVE


async def test_protocol_that_the_cloud_refuses(pushing, site):
    """[RC-059] Forms are asked for after the protocol of the door, and remembered."""
    refused = web.Response(body=soap.write_result("rssPleaseNotify", False, "http://x/"))
    answers = [refused, ANSWERS["soap"], ANSWERS["soap"]]
    page = rss(site, "a", protocol="soap", procedure="rssPleaseNotify")
    push, bodies = await registered(pushing, site, page, answers)
    await pushing.look(86_400)
    words = [soap.read_call(read_message(body)).parameters[3] for body in bodies]
    assert words == ["soap", "http-post", "http-post"] and push.notify == "http-post"


async def test_https_post_first(world, site):
    """[RC-060] A cloud that knows only http-post gets it with port 443."""
    async with running_pushing(world, site, tls=True) as pushing:
        push, bodies = await registered(pushing, site, rss(site, "a"), [BAD, GOOD])
        forms = [dict(parse_qsl(body.decode())) for body in bodies]
        assert [(form["protocol"], form["port"]) for form in forms] == [("https-post", "443"), ("http-post", "443")]
        assert push.state is PushState.ACTIVE and push.notify == "http-post"


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (BAD, "use http://x.example/rss"),
        (web.Response(text="<html><body>Hello</body></html>"), "answered 200 with something else"),
        (web.Response(text=""), "answered 200 with something else"),
        (web.Response(status=503), "answered 503"),
    ],
)
async def test_refusal(pushing, site, world, answer, reason):
    """[RC-064] [RC-065] [RC-068] Again after an hour, doubling."""
    push, bodies = await registered(pushing, site, rss(site, "a"), answer)
    assert push.state is PushState.REFUSED and reason in push.reason
    assert push.due_us == world.clock() + 3_600 * US_PER_S
    await pushing.look(3_600)
    assert len(bodies) == 2 and (await pushing.push()).due_us == world.clock() + 7_200 * US_PER_S


@pytest.mark.parametrize(
    "answer",
    [
        web.Response(text='{"success": true, "msg": "ok"}'),
        web.Response(text='<notifyResult success="TRUE" msg=""/>'),
    ],
)
async def test_forms_of_success(pushing, site, answer):
    """[RC-065]"""
    push, _ = await registered(pushing, site, rss(site, "a"), answer)
    assert push.state is PushState.ACTIVE


async def test_structure_of_radio(pushing, site):
    """[RC-065] flError false is success."""
    text = (
        "<methodResponse><params><param><value><struct><member><name>flError</name><value><boolean>0</boolean></value>"
        "</member><member><name>message</name><value>ok</value></member></struct></value></param></params></methodResponse>"
    )
    page = rss(site, "a", protocol="xml-rpc", procedure="x.rssPleaseNotify")
    push, _ = await registered(pushing, site, page, web.Response(text=text))
    assert push.state is PushState.ACTIVE


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
async def test_redirects_keep_the_registration(pushing, site, status):
    """[RC-057]"""
    site.pages["/new"] = GOOD
    site.pages[PATH] = rss(site, "a")
    site.pages[DOOR] = web.Response(status=status, headers={"Location": "/new"})
    await pushing.polling.poll(await pushing.polling.add())
    await pushing.look()
    push = await pushing.push()
    assert push.state is PushState.ACTIVE and site.asked[-1].method == "POST"
    assert push.address == (site.url("/new") if status in (301, 308) else site.url(DOOR))


@pytest.mark.parametrize("protocol", ["http-post", "xml-rpc", "soap"])
async def test_notification_leads_to_a_poll(pushing, site, world, protocol):
    """[RC-069] [RC-070] [RC-074] [RC-076] [RSS-030] True at once, then a poll; the address in any spelling."""
    push, _ = await registered(pushing, site, rss(site, "a", extra="<skipHours><hour>1</hour></skipHours>"))
    world.clock.move(3_000)
    got = await notify(pushing, push, site.url(PATH).replace("http:", "https:") + "/", protocol)
    assert got.status == 200
    if protocol != "http-post":
        reader = soap.read_result if protocol == "soap" else xml_rpc.read_result
        assert reader(got.body) is True
    source = await pushing.source()
    assert source.due_us == world.clock() and source.progress.push is PushKind.CLOUD
    site.pages[PATH] = rss(site, "b", "a")
    await pushing.polling.look()
    assert sorted(await pushing.titles()) == ["a", "b"]
    backup_s = ((await pushing.source()).due_us - world.clock()) / US_PER_S
    assert 5 * 3_600 < backup_s < 26 * 3_600


@pytest.mark.parametrize("protocol", ["http-post", "xml-rpc", "soap"])
async def test_unknown_notification(pushing, site, protocol):
    """[RC-071] [RC-078] 404 or false for another address, and for a path that is over; no poll."""
    push, _ = await registered(pushing, site, rss(site, "a"))
    due_us = (await pushing.source()).due_us
    got = await notify(pushing, push, "http://other.example/", protocol)
    await pushing.change(state=PushState.ENDED)
    ended = await notify(pushing, push, site.url(PATH), protocol)
    if protocol == "http-post":
        assert (got.status, ended.status) == (404, 410)
    else:
        reader = soap.read_result if protocol == "soap" else xml_rpc.read_result
        assert [reader(answer.body) for answer in (got, ended)] == [False, False]
    assert (await pushing.source()).due_us == due_us


async def test_challenge(pushing, site):
    """[RC-072] Also with the address as it is, as WordPress writes it."""
    push, _ = await registered(pushing, site, rss(site, "a"))
    await pushing.change(
        target=push.target.__class__(push.kind, push.target.url, "http://b.example/?feed=rss2&x=1", "http-post")
    )
    path = pushing.path(push)
    for url in ("http://b.example/?feed=rss2&x=1", quote("http://b.example/?feed=rss2&x=1", safe="")):
        got = await pushing.get(path, f"url={url}&challenge=%3Cscript%3E")
        assert (got.status, got.body) == (200, b"<script>")
        assert (
            got.headers["Content-Type"].startswith("text/plain") and got.headers["X-Content-Type-Options"] == "nosniff"
        )
    for query in (
        "url=http://c.example/&challenge=x",
        f"url={quote('http://b.example/?feed=rss2&x=1', safe='')}&challenge={'x' * 513}",
        "challenge=x",
        "",
    ):
        assert (await pushing.get(path, query or "a=b")).status == 404


async def test_notifications_are_coalesced(pushing, site, world):
    """[RC-073] Ten in a second make two polls: one at once, one more a minute later."""
    push, _ = await registered(pushing, site, rss(site, "a"))
    world.clock.move(3_000)
    site.asked.clear()

    async def page(_request):
        for _time in range(9):
            world.clock.move(0.1)
            await notify(pushing, push, site.url(PATH))
        site.pages[PATH] = rss(site, "b", "a")
        return web.Response(body=rss(site, "a"))

    site.pages[PATH] = page
    await notify(pushing, push, site.url(PATH))
    await pushing.polling.look(600)
    assert site.paths.count(PATH) == 2


async def test_stale_answer_is_polled_once_more(pushing, site, world):
    """[RC-075] The publisher may have answered from a cache."""
    push, _ = await registered(pushing, site, rss(site, "a"))
    world.clock.move(3_000)
    site.asked.clear()
    await notify(pushing, push, site.url(PATH))
    await pushing.polling.look()
    assert (await pushing.source()).due_us == world.clock() + 60 * US_PER_S
    await pushing.polling.look(600)
    assert site.paths.count(PATH) == 2


async def test_registers_again_at_start(pushing, site):
    """[RC-066] [RSS-028] Its address may have changed; spread over ten minutes."""
    push, bodies = await registered(pushing, site, rss(site, "a"))
    pushing.subscriber._began = False
    await pushing.look()
    await pushing.look(600)
    assert bodies == [bodies[0]] * 2 and (await pushing.pushes())[0].token == push.token


async def test_renewal_after_a_day(pushing, site, world):
    """[RC-067] [RSS-027] Up to 30 minutes earlier; each feed for itself."""
    push, bodies = await registered(pushing, site, rss(site, "a"))
    assert (push.due_us - world.clock()) / US_PER_S == 86_400 - 900
    await pushing.look(86_400)
    assert len(bodies) == 2 and (await pushing.push()).ends_us == world.clock() + 90_000 * US_PER_S


async def test_hub_comes_before_cloud(pushing, site):
    """[RC-055] The cloud is asked when the hub refuses."""
    site.pages["/hub"] = web.Response(status=400)
    hub = f'<a:link xmlns:a="http://www.w3.org/2005/Atom" rel="hub" href="{site.url("/hub")}"/>'
    push, bodies = await registered(pushing, site, rss(site, "a", extra=hub))
    assert site.paths == [PATH, "/hub"] and bodies == []
    await pushing.look(60)
    push = await pushing.push()
    assert (push.kind, push.state, len(bodies)) == (PushKind.CLOUD, PushState.ACTIVE, 1)


async def test_removed_source_is_unknown_to_the_cloud(pushing, site, world):
    """[RC-078] A cloud is not told; it drops the path after its failures."""
    push, bodies = await registered(pushing, site, rss(site, "a"))
    source = await pushing.source()
    await world.store.write(lambda tx: source_rows.remove(tx, source.source_no))
    await pushing.look(60)
    await pushing.look()
    assert len(bodies) == 1
    assert (await notify(pushing, push, site.url(PATH))).status == 410


async def test_missed_changes_are_counted(pushing, site, world):
    """[RC-077]"""
    await registered(pushing, site, rss(site, "a"))
    for name in ("m1", "m2", "m3"):
        page = rss(site, name, "a").replace(b"</guid>", b"</guid><pubDate>Mon, 09 May 2011 12:30:00 GMT</pubDate>", 1)
        await pushing.change(active_us=1)
        site.pages[PATH] = page
        await pushing.polling.poll(await pushing.source(), 3_600)
    assert [push.state for push in await pushing.pushes()] == [PushState.LEAVING, PushState.PLANNED]
