"""What doctor finds out about other connections of the component on ejabberd, which sends stanzas to any of them."""

import pytest

from smartfeeds.app.config import settings_of
from smartfeeds.features.doctor.findings import CheckState
from smartfeeds.features.doctor.probe import check_second_connection
from smartfeeds.xmpp.stream import ComponentStream
from support.servers import SECRET, TestServer


async def test_connection_that_receives_the_stanzas_of_the_component_is_noticed(
    ejabberd: TestServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """[TOP-006] A program that is connected under the same name and answers nothing."""
    monkeypatch.setattr("smartfeeds.features.doctor.probe.ANSWER_S", 3.0)
    domain = ejabberd.take_name()
    component = {"jid": domain, "secret": SECRET, "port": ejabberd.component_port}
    settings = settings_of(component=component)  # type: ignore[arg-type]
    foreign = ComponentStream(domain, SECRET, port=ejabberd.component_port, on_stanza=lambda _stanza: True)
    await foreign.open()
    try:
        finding = await check_second_connection(settings)
    finally:
        await foreign.close()

    assert finding.state is CheckState.FIX
    assert f"stanzas to {domain} reached another connection" in finding.text
    assert "global_routes: false" in finding.advice
