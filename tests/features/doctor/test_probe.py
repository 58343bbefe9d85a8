"""What doctor says of the HTTP side, of DNS and of ports."""

import asyncio
import os
import socket
import sqlite3
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from pathlib import Path

import aiodns
import pytest
from aiohttp import web

from smartfeeds.app.config import HttpSettings, Settings, settings_of
from smartfeeds.core.times import US_PER_S, format_datetime
from smartfeeds.features.doctor.findings import CheckState
from smartfeeds.features.doctor.outside import Outside, check_base_url, check_dns, check_s2s, port_purpose
from smartfeeds.features.doctor.probe import (
    check_all,
    check_clock,
    check_host,
    check_http,
    check_link,
    check_second_connection,
    check_stanza_limit,
)
from smartfeeds.local.process import free_port
from smartfeeds.store.lock import lock_database
from support.fakeserver import FakeServer, Session
from support.nameserver import Nameserver, resolver
from support.waiting import wait_for
from support.web import WebStarter


def with_http(**http: str) -> Settings:
    return settings_of(component={"jid": "feeds.example.org", "secret": "x"}, http=http)  # type: ignore[arg-type]


async def test_process_without_a_link_checks_no_server() -> None:
    """[TOP-024]"""
    settings = settings_of(component={"jid": "feeds.example.org", "link": "off"})  # type: ignore[arg-type]
    finding = await check_link(settings)
    assert finding.state is CheckState.NOTE and "serves HTTP only" in finding.text


async def test_http_that_is_off_is_told_so() -> None:
    assert (await check_http(with_http(listen=""))).state is CheckState.NOTE


async def test_http_without_a_public_address_says_how_to_have_one() -> None:
    found = await check_http(with_http(listen="127.0.0.1:0"))
    assert found.state is CheckState.NOTE
    assert "http.base_url" in found.advice


async def test_http_with_its_address_is_well() -> None:
    found = await check_http(with_http(listen="127.0.0.1:0", base_url="https://feeds.example.org"))
    assert found.state is CheckState.OK
    assert "https://feeds.example.org" in found.text


async def test_http_address_that_is_taken_must_be_changed() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        found = await check_http(with_http(listen=f"127.0.0.1:{port}"))
    assert found.state is CheckState.FIX
    assert found.text == f"cannot bind 127.0.0.1:{port}: address already in use"


async def test_http_address_of_the_running_service_is_no_problem(tmp_path: Path) -> None:
    database = tmp_path / "feeds.db"
    release = lock_database(database, "smartfeeds, feeds.example.org")
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        settings = settings_of(
            component={"jid": "feeds.example.org", "secret": "x"},  # type: ignore[arg-type]
            store={"url": f"sqlite:///{database}"},  # type: ignore[arg-type]
            http={"listen": f"127.0.0.1:{taken.getsockname()[1]}"},  # type: ignore[arg-type]
        )
        beside = await check_http(settings)
        release()
        alone = await check_http(settings)
    assert (beside.state, alone.state) == (CheckState.NOTE, CheckState.FIX)
    assert f"process {os.getpid()} (smartfeeds, feeds.example.org)" in beside.text


async def test_every_problem_names_the_value_and_has_advice(tmp_path: Path) -> None:
    """An operator who has never seen the code can act on each line."""
    secret = tmp_path / "secret"
    secret.write_text("x")
    secret.chmod(0o644)
    database = tmp_path / "feeds.db"
    with closing(sqlite3.connect(database)) as connection:
        connection.execute("CREATE TABLE alembic_version (version_num TEXT)")
        connection.execute("INSERT INTO alembic_version VALUES ('9999')")
        connection.commit()
    settings = settings_of(
        component={"jid": "feeds.example.org", "secret_file": secret, "port": 1},  # type: ignore[arg-type]
        store={"url": f"sqlite:///{database}"},  # type: ignore[arg-type]
        http={"listen": ""},  # type: ignore[arg-type]
    )
    findings = {finding.check: finding async for finding in check_all(settings)}
    assert findings["secret"].text == f"all users of this machine can read {secret}"
    assert findings["secret"].advice == f"run: chmod 600 {secret}"
    assert "its schema 9999 is newer than this program" in findings["store"].text
    assert "install a newer smartfeeds" in findings["store"].advice
    assert "feeds.example.org at 127.0.0.1:1: connect-failed" in findings["link"].text
    assert all(finding.advice for finding in findings.values() if finding.state is not CheckState.OK)


async def test_folder_of_the_database_that_is_missing_is_named(tmp_path: Path) -> None:
    """The service does not create it: its owner would be wrong."""
    folder = tmp_path / "none"
    settings = settings_of(
        component={"jid": "feeds.example.org", "secret": "x", "port": 1},  # type: ignore[arg-type]
        store={"url": f"sqlite:///{folder}/feeds.db"},  # type: ignore[arg-type]
        http={"listen": ""},  # type: ignore[arg-type]
    )
    (found,) = [finding async for finding in check_all(settings) if finding.check == "store"]
    assert found.state is CheckState.FIX
    assert f"the folder {folder} does not exist; create it" in found.text + found.advice
    assert not folder.exists()


async def test_server_that_refuses_later_connections_is_reported_for_each_check(tmp_path: Path) -> None:
    """Also for the connections from other servers, during which the component is online."""
    async with FakeServer() as server:
        component = {"jid": server.domain, "secret": server.secret, "port": server.port}
        store = {"url": f"sqlite:///{tmp_path}/feeds.db"}
        settings = settings_of(component=component, store=store, http={"listen": ""})  # type: ignore[arg-type]
        states: dict[str, CheckState] = {}
        async for finding in check_all(settings):
            states[finding.check] = finding.state
            server.switches.refuse = "host-unknown" if finding.check == "link" else server.switches.refuse

    assert states["link"] is CheckState.OK
    refused = ("server", "clock", "stanza size", "second process", "s2s")
    assert {check: states.get(check) for check in refused} == dict.fromkeys(refused, CheckState.FIX)


async def test_server_is_not_checked_beside_a_running_service(tmp_path: Path) -> None:
    """ejabberd would send some stanzas of the checks to the service, and the checks would report a limit of size 0."""
    database = tmp_path / "feeds.db"
    async with FakeServer() as server:
        settings = settings_of(
            component={"jid": server.domain, "secret": server.secret, "port": server.port},  # type: ignore[arg-type]
            store={"url": f"sqlite:///{database}"},  # type: ignore[arg-type]
            http={"listen": ""},  # type: ignore[arg-type]
        )
        release = lock_database(database, "smartfeeds, feeds.example.org")
        findings = {finding.check: finding async for finding in check_all(settings)}
        release()
        alone = await check_link(settings)

    assert findings["link"].state is CheckState.NOTE
    assert f"name and secret; process {os.getpid()} (smartfeeds, feeds.example.org) is using" in findings["link"].text
    assert not findings.keys() & {"server", "clock", "stanza size", "second process"}
    assert alone.state is CheckState.OK


def component_of(server: FakeServer) -> Settings:
    """The settings of a component of this server."""
    return settings_of(component={"jid": server.domain, "secret": server.secret, "port": server.port})  # type: ignore[arg-type]


async def answer(session: Session, content: str) -> None:
    """Answers the next request of the component with this type and content."""
    request = await session.expect()
    names = f"id='{request.get('id')}' from='{request.get('to')}' to='{request.get('from')}'"
    await session.send(f"<iq {names} type={content}</iq>")


REFUSED = "'error'><error type='cancel'><service-unavailable xmlns='urn:ietf:params:xml:ns:xmpp-stanzas'/></error>"
INFO = "'result'><query xmlns='http://jabber.org/protocol/disco#info'>{}</query>"


@pytest.mark.parametrize(
    ("answers", "state", "found"),
    [
        (
            ["'result'><query xmlns='jabber:iq:version'><name>Prosody</name><version>0.12</version></query>"],
            CheckState.OK,
            "example.org runs Prosody 0.12",
        ),
        (
            [REFUSED, INFO.format("<identity category='server' type='im' name='ejabberd'/>")],
            CheckState.OK,
            "example.org identifies itself as ejabberd",
        ),
        (
            [REFUSED, INFO.format("<identity category='server' type='im'/>")],
            CheckState.OK,
            "example.org identifies itself as im",
        ),
        ([REFUSED, REFUSED], CheckState.NOTE, "example.org does not report its software"),
    ],
)
async def test_software_of_the_server_is_named(answers: list[str], state: CheckState, found: str) -> None:
    """XEP-0092, else XEP-0030."""
    async with FakeServer() as server:
        checking = asyncio.create_task(check_host(component_of(server)))
        session = await server.session()
        for content in answers:
            await answer(session, content)
        finding = await wait_for(checking, "the finding")

    assert (finding.state, finding.text) == (state, found)


@pytest.mark.parametrize(
    ("apart_s", "state", "found"),
    [
        (0, CheckState.OK, "agrees with the clock of example.org"),
        (60, CheckState.FIX, "seconds from the clock of example.org"),
        (-3_600, CheckState.FIX, "seconds from the clock of example.org"),
        (None, CheckState.OK, "example.org does not report its time"),
    ],
)
async def test_clock_is_compared_with_that_of_the_server(apart_s: int | None, state: CheckState, found: str) -> None:
    async with FakeServer() as server:
        checking = asyncio.create_task(check_clock(component_of(server)))
        session = await server.session()
        utc = format_datetime(int((time.time() + (apart_s or 0)) * US_PER_S))
        told = f"'result'><time xmlns='urn:xmpp:time'><tzo>+02:00</tzo><utc>{utc}</utc></time>"
        await answer(session, REFUSED if apart_s is None else told)
        finding = await wait_for(checking, "the finding")

    assert finding.state is state and found in finding.text


@pytest.mark.parametrize(("limit_bytes", "state"), [(100_000, CheckState.FIX), (5_000_000, CheckState.OK)])
async def test_largest_stanza_is_the_last_that_comes_back(
    limit_bytes: int, state: CheckState, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each size has a connection of its own, because the server ends that of a stanza that is too large."""
    monkeypatch.setattr("smartfeeds.features.doctor.probe.SIZES_BYTES", (1_000, 65_536))
    async with FakeServer() as server:
        settings = component_of(server)
        needed_bytes = settings.pubsub.stanza_bytes
        checking = asyncio.create_task(check_stanza_limit(settings))
        for number, size in enumerate((1_000, 65_536, needed_bytes), 1):
            session = await server.session(number)
            if size > limit_bytes:
                await session.expect()
                await session.stream_error("policy-violation")
            else:
                await answer(session, "'result'>")
        finding = await wait_for(checking, "the finding")

    assert finding.state is state
    if state is CheckState.OK:
        assert finding.text == f"stanzas of {needed_bytes:,} bytes pass"
    else:
        refusal = f"the server refuses {needed_bytes:,} bytes (policy-violation)"
        assert finding.text == f"stanzas of 65,536 bytes pass; {refusal}"
        assert f"sends up to {needed_bytes:,} bytes: raise the stanza limit" in finding.advice


async def test_name_that_another_process_uses_is_no_fault() -> None:
    """It may be the service itself."""
    async with FakeServer() as server:
        server.switches.refuse = "conflict"
        finding = await check_link(component_of(server))

    assert finding.state is CheckState.NOTE
    assert "another process is connected under this name" in finding.text


async def test_second_connection_that_the_server_refuses_would_stand_by() -> None:
    async with FakeServer() as server:
        checking = asyncio.create_task(check_second_connection(component_of(server)))
        await server.session()
        server.switches.refuse = "conflict"
        finding = await wait_for(checking, "the finding")

    assert finding.state is CheckState.OK
    assert finding.text.startswith("the server refuses it (") and finding.text.endswith("would stand by")


@pytest.mark.parametrize(
    ("url", "advice"),
    [
        ("sqlite:///feeds.db", "run one process only"),
        ("postgresql://127.0.0.1/feeds", "several processes may share it"),
    ],
)
async def test_second_link_is_advised_against_only_if_the_database_is_a_file(url: str, advice: str) -> None:
    async with FakeServer() as server:
        component = {"jid": server.domain, "secret": server.secret, "port": server.port}
        settings = settings_of(component=component, store={"url": url})  # type: ignore[arg-type]
        finding = await check_second_connection(settings)

    assert finding.state is CheckState.OK
    assert finding.text == f"accepted; the server distributes stanzas over both, so {advice}"


async def test_connection_that_receives_the_stanzas_of_the_component_is_noticed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """[TOP-006] The server sends them elsewhere."""
    monkeypatch.setattr("smartfeeds.features.doctor.probe.ANSWER_S", 1.0)
    async with FakeServer() as server:
        server.switches.answer_pings = False
        finding = await check_second_connection(component_of(server))

    assert finding.state is CheckState.FIX
    assert f"40 of 40 stanzas to {server.domain} reached another connection, or none" in finding.text
    assert "global_routes: false" in finding.advice


async def test_name_without_records_says_which_one_to_add() -> None:
    names = Nameserver({"known.fed.example.net": 5269})
    finding = await check_dns("feeds.smartfeeds.net", Outside(resolver(names.port)))
    names.close()

    assert finding.state is CheckState.NOTE
    assert "feeds.smartfeeds.net has no SRV, A or AAAA record" in finding.text
    assert "add: _xmpp-server._tcp.feeds.smartfeeds.net. 3600 IN SRV 0 5 5269" in finding.advice


async def test_record_that_names_a_host_without_address_must_be_corrected() -> None:
    names = Nameserver({"smartfeeds.net": 5269}, target="gone.smartfeeds.net")
    finding = await check_dns("feeds.smartfeeds.net", Outside(resolver(names.port)))
    names.close()

    assert finding.state is CheckState.FIX
    assert "_xmpp-server._tcp.feeds.smartfeeds.net names gone.smartfeeds.net, which has no A or AAAA" in finding.text


async def test_name_server_that_is_silent_is_told_so() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as silent:
        silent.bind(("127.0.0.1", 0))
        names = aiodns.DNSResolver(nameservers=["127.0.0.1"], udp_port=silent.getsockname()[1], timeout=0.1, tries=1)
        finding = await check_dns("feeds.smartfeeds.net", Outside(names))

    assert finding.state is CheckState.NOTE
    assert "the name server does not answer" in finding.text and "/etc/resolv.conf" in finding.advice


async def test_name_server_that_fails_for_the_host_is_reported() -> None:
    """`check_dns` looks up the component only."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as silent:
        silent.bind(("127.0.0.1", 0))
        names = aiodns.DNSResolver(nameservers=["127.0.0.1"], udp_port=silent.getsockname()[1], timeout=0.1, tries=1)
        (finding,) = [finding async for finding in check_s2s(["smartfeeds.net"], Outside(names))]

    assert finding.state is CheckState.NOTE
    assert finding.text.startswith("_xmpp-server._tcp.smartfeeds.net: the name server does not answer")


@pytest.mark.parametrize("domain", ["feeds.localhost", "localhost", "feeds.example.org", "feeds.test", "a.local"])
async def test_name_for_tests_is_not_looked_up(domain: str) -> None:
    finding = await check_dns(domain, Outside(resolver(free_port())))

    assert finding.state is CheckState.NOTE
    assert "is a name for tests and local networks" in finding.text


@asynccontextmanager
async def other_server(*answers: str) -> AsyncIterator[Outside]:
    """A network in which the server of smartfeeds.net gives these answers, one for each read."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        for answer in answers:
            await reader.readuntil(b">")
            writer.write(answer.encode())
        writer.close()

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
        names = Nameserver({"smartfeeds.net": server.sockets[0].getsockname()[1]})
        yield Outside(resolver(names.port))
        names.close()


FEATURES = "<stream:stream xmlns='jabber:server'><stream:features>{}</stream:features>"


@pytest.mark.parametrize(
    ("answers", "state", "found"),
    [
        (
            ["<stream:stream xmlns='jabber:server'><stream:error><host-unknown/></stream:error>"],
            CheckState.FIX,
            "the server answers host-unknown",
        ),
        ([FEATURES.format("")], CheckState.FIX, "no TLS is offered"),
        (
            [FEATURES.format("<starttls xmlns='urn:ietf:params:xml:ns:xmpp-tls'/>") + "<proceed/>", "no TLS"],
            CheckState.NOTE,
            "no connection from here",
        ),
    ],
)
async def test_other_servers_connect_to_what_the_record_names(
    answers: list[str], state: CheckState, found: str
) -> None:
    async with other_server(*answers) as outside:
        findings = [finding async for finding in check_s2s(["smartfeeds.net", "feeds.example.org"], outside)]

    assert {finding.state for finding in findings} == {state}
    assert all(finding.text.startswith("smartfeeds.net at localhost:") for finding in findings)
    assert any(found in finding.text for finding in findings)


async def test_other_servers_are_tried_beside_a_running_service(tmp_path: Path) -> None:
    """The service is connected, so its name is served now, and no connection of the check has to serve it."""
    async with FakeServer("feeds.smartfeeds.net") as server:
        settings = settings_of(
            component={"jid": server.domain, "secret": server.secret, "port": server.port},  # type: ignore[arg-type]
            store={"url": f"sqlite:///{tmp_path}/feeds.db"},  # type: ignore[arg-type]
            http={"listen": ""},  # type: ignore[arg-type]
        )
        names = Nameserver({"smartfeeds.net": free_port()})
        release = lock_database(tmp_path / "feeds.db", "smartfeeds, feeds.smartfeeds.net")
        findings = [finding async for finding in check_all(settings, outside=Outside(resolver(names.port)))]
        release()
        names.close()

    tried = [finding.text.partition(" at ")[0] for finding in findings if finding.check == "s2s"]
    assert tried == ["feeds.smartfeeds.net", "smartfeeds.net"]
    assert len(server.sessions) == 1, "that of the check of the link"


async def test_servers_of_a_name_are_listed_with_their_addresses() -> None:
    names = Nameserver({"smartfeeds.net": 5269})
    finding = await check_dns("smartfeeds.net", Outside(resolver(names.port)))
    names.close()

    assert finding.state is CheckState.OK
    assert finding.text == "smartfeeds.net is at localhost:5269 (127.0.0.1)"


async def test_server_that_nobody_reaches_is_a_note() -> None:
    """A firewall may refuse this machine and nobody else."""
    names = Nameserver({"smartfeeds.net": free_port()})
    findings = [finding async for finding in check_s2s(["smartfeeds.net"], Outside(resolver(names.port)))]
    names.close()

    assert [finding.state for finding in findings] == [CheckState.NOTE]
    assert "no connection from here" in findings[0].text and "check from another machine" in findings[0].advice


async def test_port_that_nobody_answers_has_no_purpose() -> None:
    assert await port_purpose("127.0.0.1", free_port()) == ""


async def hello(_request: web.BaseRequest) -> web.Response:
    """Another service."""
    return web.Response(text="hello")


@pytest.fixture
async def stranger() -> AsyncIterator[int]:
    """The port of another web server."""
    server = await asyncio.get_running_loop().create_server(web.Server(hello), "127.0.0.1", 0)
    yield server.sockets[0].getsockname()[1]
    server.close()


async def test_port_of_a_web_server_is_named(stranger: int) -> None:
    assert await port_purpose("127.0.0.1", stranger) == "the port of a web server"
    settings = settings_of(component={"jid": "feeds.example.org", "secret": "x", "port": stranger})  # type: ignore[arg-type]
    finding = await check_link(settings)
    assert finding.state is CheckState.FIX
    assert "this is the port of a web server, not the port for components" in finding.text
    assert "set component.port" in finding.advice


@pytest.mark.parametrize("attributes", ["xmlns='jabber:client' version='1.0'", "version='1.0' xmlns='jabber:client'"])
async def test_port_for_clients_is_named_whatever_the_order_of_attributes(attributes: str) -> None:
    """Prosody writes them in an order that differs between its starts."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b">")
        stream = "http://etherx.jabber.org/streams"
        writer.write(f"<stream:stream {attributes} xmlns:stream='{stream}'><stream:features/>".encode())
        writer.close()

    async with await asyncio.start_server(answer, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        assert await port_purpose("127.0.0.1", port) == "the port for clients (c2s)"


async def test_public_address_that_leads_to_this_machine_is_well() -> None:
    """The check answers itself, because the service is stopped."""
    listen = f"127.0.0.1:{free_port()}"
    finding = await check_base_url(HttpSettings(listen=listen, base_url=f"http://{listen}/news"), served=False)

    assert (finding.state, finding.text) == (CheckState.OK, f"http://{listen}/news leads to this service")


async def test_public_address_of_another_service_must_be_changed(stranger: int) -> None:
    http = HttpSettings(listen=f"127.0.0.1:{free_port()}", base_url=f"http://127.0.0.1:{stranger}")
    for served in (False, True):
        finding = await check_base_url(http, served=served)
        assert finding.state is CheckState.FIX
        assert finding.text == f"http://127.0.0.1:{stranger}/healthz answers, but not from this service"
        assert f"pass http://127.0.0.1:{stranger}/ on to {http.listen}" in finding.advice


async def test_public_address_that_nobody_answers_is_a_note() -> None:
    """A router may refuse this machine and nobody else."""
    http = HttpSettings(listen=f"127.0.0.1:{free_port()}", base_url=f"http://127.0.0.1:{free_port()}")
    finding = await check_base_url(http, served=False)

    assert finding.state is CheckState.NOTE
    assert "no connection from here" in finding.text


async def test_public_address_of_the_running_service_is_well(start_web: WebStarter) -> None:
    running = await start_web()
    http = HttpSettings(listen=f"127.0.0.1:{running.port}", base_url=f"http://127.0.0.1:{running.port}")

    assert (await check_base_url(http, served=True)).state is CheckState.OK
