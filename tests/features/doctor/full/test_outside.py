"""What doctor says of DNS and of connections from other servers: a name server of the test's own, and real servers."""

import re
import ssl
from collections.abc import AsyncIterator

import pytest

from smartfeeds.app.config import settings_of
from smartfeeds.features.doctor.findings import CheckState, Finding
from smartfeeds.features.doctor.outside import Outside, check_s2s
from smartfeeds.features.doctor.probe import check_all
from smartfeeds.local.process import free_port
from support.federation import Country, FederatedServer
from support.nameserver import Nameserver, resolver
from support.servers import SECRET

EVERY_NAME = re.compile("(?!)")  # the names of these servers are for tests


@pytest.fixture(params=["a", "e"], ids=["prosody", "ejabberd"])
def server(country: Country, request: pytest.FixtureRequest) -> FederatedServer:
    """A Prosody and an ejabberd that accept other servers."""
    return country.server(request.param)


@pytest.fixture
async def outside(server: FederatedServer) -> AsyncIterator[Outside]:
    """What another server sees: records of the server and of the names below it, and its certificate is valid."""
    names = Nameserver({server.domain: server.s2s_port})
    trusting = ssl.create_default_context(cafile=str(server.server.folder / "server.pem"))
    yield Outside(resolver(names.port), trusting, EVERY_NAME)
    names.close()


async def s2s(domains: list[str], outside: Outside) -> list[Finding]:
    """The findings of all names."""
    return [finding async for finding in check_s2s(domains, outside)]


async def test_names_of_a_good_server_are_found_and_served(server: FederatedServer, outside: Outside) -> None:
    """The component's own record, and the host that the component is at; ejabberd serves a component that is there."""
    name = server.take_name()
    settings = settings_of(
        component={"jid": name, "secret": SECRET, "port": server.component_port},  # type: ignore[arg-type]
        store={"url": f"sqlite:///{server.server.folder}/doctor.db"},  # type: ignore[arg-type]
        http={"listen": ""},  # type: ignore[arg-type]
    )
    findings = [finding async for finding in check_all(settings, outside=outside)]

    (dns,) = [finding for finding in findings if finding.check == "dns"]
    assert dns.state is CheckState.OK, dns
    assert dns.text.startswith(f"{name} is at localhost:") and "127.0.0.1" in dns.text
    served = [finding for finding in findings if finding.check == "s2s"]
    assert [finding.state for finding in served] == [CheckState.OK] * 2, served
    assert [finding.text.split()[0] for finding in served] == [name, server.domain]


async def test_certificate_that_nobody_trusts_is_named(server: FederatedServer, outside: Outside) -> None:
    outside.tls = ssl.create_default_context()
    (finding,) = await s2s([server.domain], outside)

    assert finding.state is CheckState.NOTE
    assert f"the certificate is not valid for {server.domain}: self-signed certificate" in finding.text
    assert f"get a certificate that names {server.domain}" in finding.advice


async def test_record_that_leads_to_a_server_of_other_names_must_be_corrected(server: FederatedServer) -> None:
    names = Nameserver({"elsewhere.fed.test": server.s2s_port})
    (finding,) = await s2s(["elsewhere.fed.test"], Outside(resolver(names.port), reserved=EVERY_NAME))
    names.close()

    assert finding.state is CheckState.FIX
    assert "the server answers host-unknown" in finding.text
    assert "correct the DNS record" in finding.advice


async def test_server_that_cannot_be_reached_is_a_note() -> None:
    """A firewall or a router may refuse this machine and nobody else."""
    names = Nameserver({"fed.test": free_port()})
    (finding,) = await s2s(["fed.test"], Outside(resolver(names.port), reserved=EVERY_NAME))
    names.close()

    assert finding.state is CheckState.NOTE
    assert "no connection from here" in finding.text and "firewall" in finding.advice
