"""The cloud of a whole component: its doors, what documents say of it, and peers of other makes."""

import asyncio
import json
import socketserver
import threading
import xmlrpc.client
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from urllib.parse import urlencode
from xmlrpc.server import SimpleXMLRPCServer

import pytest
from lxml import etree

from smartfeeds.features.callbacks import remote_calls, soap, xml_rpc
from smartfeeds.features.callbacks.remote_calls import RemoteCall, RemoteCallError
from smartfeeds.formats import loader
from smartfeeds.formats.loader import LoadedDocument
from support.callbacks import Subscribers, fixed, running_subscribers
from support.component import ALICE
from support.golden import GOLDEN
from support.waiting import HANG_S, until
from support.web import Got, Web, WebStarter

SITE = "http://feeds.example"
NOTES = f"{SITE}/feeds/notes.rss"
FORM = "application/x-www-form-urlencoded"
LOOPBACK = {"allowed_networks": ["127.0.0.0/8"]}
DOORS = ("/rsscloud/pleaseNotify", "/RPC2", "/rsscloud/soap")
PARAMETERS = ("notifyProcedure", "port", "path", "protocol", "urlList")


@pytest.fixture
async def subscribers() -> AsyncIterator[Subscribers]:
    async with running_subscribers() as running:
        yield running


async def start(start_web: WebStarter, **settings: object) -> Web:
    """A component with a public address and the feed notes of Alice, which may call back to this machine."""
    http = {"base_url": SITE, **settings.pop("http", {})}  # type: ignore[dict-item]
    web = await start_web(http=http, webhooks={**LOOPBACK, **settings})
    await web.component.create(ALICE, "notes", access_model="open")
    return web


@pytest.fixture
async def site(start_web: WebStarter) -> Web:
    return await start(start_web)


def fields(port: int, path: str = "/reader", **more: str) -> dict[str, str]:
    return {"notifyProcedure": "", "port": str(port), "path": path, "protocol": "http-post", "url1": NOTES, **more}


def call(port: int, path: str = "/reader", protocol: str = "http-post", name: str = "x.rssPleaseNotify") -> RemoteCall:
    return RemoteCall(name, ("notify", port, path, protocol, (NOTES,)))


async def form(web: Web, data: dict[str, str], **headers: str) -> Got:
    body = urlencode(data).encode()
    return await web.ask("POST", "/rsscloud/pleaseNotify", body, **{"Content_Type": FORM, **headers})


async def xml(web: Web, path: str, body: bytes, content_type: str = "text/xml", **headers: str) -> Got:
    return await web.ask("POST", path, body, **{"Content_Type": content_type, **headers})


async def told(web: Web, subscribers: Subscribers, name: str = "reader") -> list[bytes]:
    """The notifications after a publish, when one has come."""
    subscribers.pushes.clear()
    await web.component.publish(ALICE, "notes", "1")
    await subscribers.receive_push(name)
    return [push.body for push in subscribers.pushes[name]]


# Documents.


@pytest.mark.needs("documents")
@pytest.mark.parametrize(
    ("protocol", "path", "procedure"),
    [
        ("http-post", "/rsscloud/pleaseNotify", ""),
        ("xml-rpc", "/RPC2", "smartfeeds.rssPleaseNotify"),
        ("soap", "/rsscloud/soap", "smartfeeds.rssPleaseNotify"),
        ("off", "", ""),
    ],
)
async def test_documents_name_the_cloud(start_web: WebStarter, protocol: str, path: str, procedure: str) -> None:
    """[RC-001] [RC-002] [RC-003] [RC-005] [RC-006] [RC-007] [RSS-015] [RSS-016] Whatever host a request names."""
    web = await start(start_web, cloud=protocol)
    await web.component.publish(ALICE, "notes", "1")
    strange = {"Host": "evil.example"}
    rss = etree.fromstring((await web.ask("GET", "/feeds/notes.rss", **strange)).body)
    old = etree.fromstring((await web.ask("GET", "/feeds/notes.rss092")).body)
    opml = etree.fromstring((await web.ask("GET", "/feeds/notes.opml")).body)
    hubs = json.loads((await web.ask("GET", "/feeds/notes.jsonfeed")).body)["hubs"]
    source = "{http://source.scripting.com/}cloud"
    clouds = [hub["url"] for hub in hubs if hub["type"] == "rssCloud"]
    if protocol == "off":
        assert rss.findall(".//cloud") == old.findall(".//cloud") == opml.findall(f".//{source}") == clouds == []
        assert (await form(web, fields(80))).status == 404
        return
    element = {"domain": "feeds.example", "port": "80", "path": path, "registerProcedure": procedure}
    for document in (rss, old):
        (cloud,) = document.findall("channel/cloud")
        assert dict(cloud.attrib) == {**element, "protocol": protocol}
    url = f"{SITE}/rsscloud/pleaseNotify"
    assert [rss.findtext(f"channel/{source}"), opml.findtext(f"head/{source}"), *clouds] == [url] * 3
    assert old.find(f".//{source}") is None


async def test_element_of_a_site_with_tls(start_web: WebStarter) -> None:
    """[RC-004] [RC-007]"""
    web = await start(start_web, http={"base_url": "https://feeds.example:8443/x"})
    cloud = etree.fromstring((await web.ask("GET", "/feeds/notes.rss")).body).find("channel/cloud")
    assert cloud is not None
    assert (cloud.get("port"), cloud.get("path"), cloud.get("protocol")) == (
        *("8443", "/x/rsscloud/pleaseNotify"),
        "http-post",
    )


# Doors.


async def test_registration_by_form(site: Web, subscribers: Subscribers) -> None:
    """[RC-008] [RC-020] [RC-026] [RSS-019] [RSS-021] [RSS-022] [A-129] The callback is at the address of the caller."""
    got = await form(site, fields(subscribers.port))
    assert (got.status, got.header("Content-Type")) == (200, "text/xml; charset=utf-8")
    assert got.body == (
        b'<?xml version="1.0" encoding="utf-8"?>\n'
        b'<notifyResult success="true" msg="Registered. Ask again within 25 hours, best after 24."/>\n'
    )
    assert etree.fromstring(got.body).tag == etree.fromstring(GOLDEN["rsscloud"]["http_post"]["accepted"].encode()).tag
    assert await told(site, subscribers) == [urlencode({"url": NOTES}).encode()]


async def test_answers_to_forms(site: Web, subscribers: Subscribers) -> None:
    """[RC-025] [RC-039] A refusal has status 200; XML unless JSON is preferred (RD-5)."""
    refused = await form(site, fields(subscribers.port, url1="http://other.example/rss.xml"))
    root = etree.fromstring(refused.body)
    assert (refused.status, root.get("success")) == (200, "false")
    assert root.get("msg") == "Not registered: http://other.example/rss.xml is not a feed of this server."
    as_json = await form(site, fields(subscribers.port), Accept="application/json")
    assert as_json.header("Content-Type") == "application/json; charset=utf-8"
    assert json.loads(as_json.body)["success"] is True
    for accept in ("image/png", "*/*", "application/json;q=0.1, text/xml"):
        assert (await form(site, fields(0), Accept=accept)).header("Content-Type").startswith("text/xml")
    assert (await form(site, fields(1), Content_Type="text/plain")).status == 415
    assert (await xml(site, DOORS[0], b"port=%FF", FORM)).status == 400
    assert (await xml(site, DOORS[0], b"a" * 65_537, FORM)).status == 413


@pytest.mark.parametrize("door", DOORS)
async def test_doors_take_post_of_programs_only(site: Web, door: str) -> None:
    """[RC-009] [RC-013] No CORS: a page could register the address of its reader."""
    for method in ("GET", "PUT", "DELETE"):
        got = await site.ask(method, door)
        assert (got.status, got.header("Allow")) == (405, "POST, OPTIONS")
    asked = {"Origin": "https://evil.example", "Access_Control_Request_Method": "POST"}
    assert "Access-Control-Allow-Methods" not in (await site.ask("OPTIONS", door, **asked)).headers
    assert (await form(site, fields(80), Origin="https://evil.example")).status == 403


@pytest.mark.parametrize("door", DOORS[1:])
async def test_registration_by_calls(site: Web, subscribers: Subscribers, door: str) -> None:
    """[RC-008] [RC-012] [RC-017] [RC-022] [RSS-019] Either door takes XML-RPC and SOAP, as Radio sent them."""
    for content_type in ("text/xml", "application/xml; charset=utf-8", ""):
        by_rpc = await xml(site, door, xml_rpc.write_call(call(subscribers.port)), content_type)
        assert (by_rpc.status, by_rpc.header("Content-Type")) == (200, "text/xml; charset=utf-8")
        assert xml_rpc.read_result(by_rpc.body) is True
    body = soap.write_call(call(subscribers.port), PARAMETERS, "urn:x")
    for action in ('"x"', "x", '""', "/xmlStorageSystem"):
        got = await xml(site, door, body, SOAPAction=action)
        assert (got.status, soap.read_result(got.body)) == (200, True)
    assert b"<m:rssPleaseNotifyResponse xmlns:m=" in got.body
    assert (await xml(site, door, body, "text/plain")).status == 415
    unknown = call(subscribers.port, protocol="XML-RPC")
    assert xml_rpc.read_result((await xml(site, door, xml_rpc.write_call(unknown))).body) is False
    assert await told(site, subscribers) == [urlencode({"url": NOTES}).encode()]


FAULT = (
    xml_rpc.write_fault(RemoteCallError("x"))
    .replace(b"methodResponse", b"methodCall")
    .replace(b"<int>4<", b"<int>99999999999<")
)


async def test_calls_that_are_no_registration(site: Web) -> None:
    """[RC-010] [RC-014] [A-136] A fault: of XML-RPC with status 200, of SOAP with 500. Feeds need no ping."""
    hello = xml_rpc.write_call(RemoteCall("xmlStorageSystem.hello", ()))
    assert xml_rpc.read_result((await xml(site, "/RPC2", hello)).body) is True
    ping = RemoteCall("rssCloud.ping", (NOTES,))
    for body, reason in (
        (xml_rpc.write_call(ping), "there is no procedure rssCloud.ping"),
        (xml_rpc.write_call(RemoteCall("x.pleaseNotify", (1, 2, 3))), "5 parameters are wanted, 3 came"),
        (b"<a>" * 21 + b"</a>" * 21, "nested deeper than 20 levels"),
        (b"", "the document is empty"),
        (xml_rpc.write_call(ping).replace(b"params>", b"fault>"), "no proper XML-RPC"),
        (FAULT, "the message is no call: it reports a fault"),
    ):
        got = await xml(site, "/RPC2", body)
        assert got.status == 200
        with pytest.raises(RemoteCallError, match=reason):
            xml_rpc.read_result(got.body)
        assert b"<value><int>4</int></value>" in got.body
    for body in (soap.write_call(ping, ("url",), "urn:x"), b"<odd/>", b"<"):
        got = await xml(site, "/rsscloud/soap", body)
        assert got.status == 500 and b"<faultcode>s:Client</faultcode>" in got.body
    assert (await xml(site, "/RPC2", b" " * 65_537)).status == 413


@pytest.mark.parametrize("door", ["http-post", "xml-rpc", "soap"])
async def test_protocol_of_the_notification_need_not_be_that_of_the_door(
    site: Web, subscribers: Subscribers, door: str
) -> None:
    """[RC-023] [RSS-025] All nine pairs."""
    subscribers.receive["rpc"] = fixed(200, xml_rpc.write_result(True).decode())
    subscribers.receive["soap"] = fixed(200, soap.write_result("n", True, "urn:x").decode())
    for path, protocol in (("/form", "http-post"), ("/rpc", "xml-rpc"), ("/soap", "soap")):
        request = call(subscribers.port, path, protocol)
        if door == "http-post":
            got = await form(site, fields(subscribers.port, path, protocol=protocol, notifyProcedure="notify"))
            assert etree.fromstring(got.body).get("success") == "true"
        elif door == "xml-rpc":
            assert xml_rpc.read_result((await xml(site, "/RPC2", xml_rpc.write_call(request))).body) is True
        else:
            body = soap.write_call(request, PARAMETERS, "urn:x")
            assert soap.read_result((await xml(site, "/rsscloud/soap", body)).body) is True
    assert {name: subscribers.tries[name] for name in ("form", "rpc", "soap")} == {"form": 1, "rpc": 1, "soap": 1}


@pytest.mark.parametrize("trusted", [True, False])
async def test_forwarded_address_counts_from_a_proxy_only(start_web: WebStarter, trusted: bool) -> None:
    """[RC-027] [A-133] The last address that is no proxy; a header of a stranger is ignored."""
    web = await start(start_web, http={"proxies": ["127.0.0.0/8"] if trusted else []})
    got = await form(web, fields(9), X_Forwarded_For="198.51.100.1, 127.0.0.7")
    host = "198.51.100.1" if trusted else "127.0.0.1"
    assert f"http://{host}:9/reader" in (etree.fromstring(got.body).get("msg") or "")


async def test_many_requests_get_429(start_web: WebStarter) -> None:
    """[RC-039]"""
    web = await start(start_web, requests_per_minute=1)
    answers = [await form(web, fields(0)) for _ in range(3)]
    assert [got.status for got in answers] == [200, 200, 429]
    assert "more than 1 requests in a minute" in answers[1].text
    assert answers[2].header("Retry-After")


# Peers of other makes.


@contextmanager
def xml_rpc_server(calls: list[str]) -> Iterator[int]:
    """A receiver of Python's standard library; its port."""
    server = SimpleXMLRPCServer(("127.0.0.1", 0), logRequests=False, allow_none=False)

    def notify(url: str) -> bool:
        calls.append(url)
        return True

    server.register_function(notify, "reader.feeds.notify")
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    assert isinstance(server, socketserver.TCPServer)
    yield server.server_address[1]
    server.shutdown()
    thread.join()
    server.server_close()


async def test_xml_rpc_of_the_standard_library(site: Web) -> None:
    """[RC-014] [RC-045] [RSS-019] [RSS-023] [RSS-024] As client and as receiver."""
    calls: list[str] = []
    with xml_rpc_server(calls) as port, xmlrpc.client.ServerProxy(f"{site.origin}/RPC2") as proxy:
        values = ("reader.feeds.notify", port, "/RPC2", "xml-rpc", [NOTES])
        assert await asyncio.to_thread(proxy.smartfeeds.rssPleaseNotify, *values) is True
        assert calls == [NOTES]
        await site.component.publish(ALICE, "notes", "1")
        await until(lambda: len(calls) >= 2, "the call")
        with pytest.raises(xmlrpc.client.Fault, match="5 parameters are wanted, 0 came"):
            await asyncio.to_thread(proxy.smartfeeds.rssPleaseNotify)
        refused = (*values[:4], ["http://other.example/"])
        assert await asyncio.to_thread(proxy.smartfeeds.rssPleaseNotify, *refused) is False


async def test_form_of_curl(site: Web, subscribers: Subscribers) -> None:
    """[RC-020] [RC-048] [A-129]"""
    pairs = fields(subscribers.port).items()
    options = [option for name, value in pairs for option in ("--data-urlencode", f"{name}={value}")]
    curl = await asyncio.create_subprocess_exec(
        "curl", "-sS", *options, f"{site.origin}{DOORS[0]}", stdout=asyncio.subprocess.PIPE
    )
    output, _ = await curl.communicate()
    assert b'success="true"' in output
    assert await told(site, subscribers) == [urlencode({"url": NOTES}).encode()]


async def test_hub_and_cloud_live_side_by_side(site: Web, subscribers: Subscribers) -> None:
    """[RC-051] [A-155] One change feeds both, each with its own queue and policy."""
    hub = {"hub.callback": subscribers.url("websub"), "hub.mode": "subscribe", "hub.topic": NOTES, "hub.verify": "sync"}
    assert (await xml(site, "/feeds/notes/hub/", urlencode(hub).encode(), FORM)).status == 204
    await form(site, fields(subscribers.port))
    assert len(await told(site, subscribers)) == 1
    await subscribers.receive_push("websub")
    metrics = (await site.ask("GET", "/metrics")).text
    assert 'smartfeeds_callbacks{dialect="http-post"} 1.0' in metrics
    assert 'smartfeeds_callbacks{dialect="0.3"} 1.0' in metrics
    assert 'smartfeeds_callback_seconds_count{kind="cloud",result="2xx"}' in metrics


@pytest.mark.parametrize(
    "path", ["/RPC2", "/rsscloud/soap", pytest.param("/push/unknown", marks=pytest.mark.needs("polling"))]
)
async def test_messages_of_strangers_are_not_parsed_in_the_thread_of_the_service(
    site: Web, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """[RC-010] The XML library keeps each name for the life of the thread that has parsed it."""
    threads: list[threading.Thread] = []

    def load(data: bytes, *, repair: bool) -> LoadedDocument:
        threads.append(threading.current_thread())
        return loader.load(data, repair=repair)

    monkeypatch.setattr(remote_calls, "load", load)
    bodies = [xml_rpc.write_call(RemoteCall(f"name{number}", ())) for number in range(3)]
    for body in bodies:
        assert (await xml(site, path, body)).status in (200, 500)
    assert len({id(thread) for thread in threads}) == len(bodies) and threading.main_thread() not in threads
    for thread in threads:
        thread.join(HANG_S)
        assert not thread.is_alive()
