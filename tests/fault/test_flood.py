"""One client asks for more than is good: all of it is answered, memory is bounded, and others are served meanwhile."""

import asyncio
import time
from pathlib import Path

from smartfeeds.xmpp.turns import SENDER_STANZAS
from support.client import Client, Session, log_in
from support.component import ALICE, EVE, PS, Starter, entry, ok, refusal, text_of
from support.process import ServiceProcess
from support.relay import Relay
from support.servers import TestServer
from support.service import running, write_config

REQUESTS = 5_000
NOTICED_S = 5.0
MEMORY_KIB = 48 * 1024
NODES = 250


async def test_flood_keeps_to_its_share_and_each_request_gets_one_answer(start: Starter) -> None:
    """What arrives in one piece: no more than the share is worked on, the rest is told to wait at once. [xep-map 12]"""
    component = await start()
    await component.create(ALICE, "news", access_model="open")
    most = 0

    async def watch() -> None:
        nonlocal most
        while True:
            most = max(most, component.app.router.in_flight)
            await asyncio.sleep(0)

    watching = asyncio.create_task(watch())
    flood = [asyncio.create_task(component.get(EVE, "<items node='news'/>")) for _ in range(REQUESTS)]
    publish = asyncio.create_task(component.publish(ALICE, "news", "meanwhile"))
    await publish
    answers = await asyncio.gather(*flood)
    watching.cancel()

    refused = [answer for answer in answers if answer.get("type") == "error"]
    assert {refusal(answer)[:2] for answer in refused} == {("wait", "resource-constraint")}
    assert len(answers) - len(refused) >= SENDER_STANZAS
    assert 0 < most <= SENDER_STANZAS + 1
    assert component.app.router.in_flight == 0
    ok(await component.get(EVE, "<items node='news'/>"))


async def publish_well(alice: Client, component: str, number: int) -> float:
    """Alice publishes; how long it took in seconds."""
    began = time.monotonic()
    inner = f"<publish node='good'><item id='a{number}'>{entry('t')}</item></publish>"
    answer = await alice.set(component, f"<pubsub xmlns='{PS}'>{inner}</pubsub>")
    assert answer.get("type") == "result", text_of(answer)
    return time.monotonic() - began


def memory_kib(pid: int) -> int:
    """What a process holds in memory."""
    status = Path(f"/proc/{pid}/status").read_text()
    return int(status.partition("VmRSS:")[2].split()[0])


async def test_flood_through_a_real_server_is_answered_and_others_are_served(
    server: TestServer, tmp_path: Path
) -> None:
    """[xep-map 9] [xep-map 12] [SF-041]"""
    name = server.take_name()
    async with (
        Relay(server.component_port) as relay,
        ServiceProcess(write_config(tmp_path, server, name, component={"port": relay.port})) as service,
    ):
        await service.start()
        await relay.ready()
        alice = await log_in(server, "alice")
        session = await asyncio.to_thread(Session, server, "eve")
        try:
            await _flood(alice, await session.client(), name, service)
        finally:
            session.leave()
            await alice.logout()
            ended = await service.end()
        assert relay.life == 1, "the link stayed"
        assert ended == 0 and "Traceback" not in service.said


async def _flood(alice: Client, eve: Client, name: str, service: ServiceProcess) -> None:
    for who, node in ((alice, "good"), (eve, "evil")):
        ok(await who.set(name, f"<pubsub xmlns='{PS}'><create node='{node}'/></pubsub>"))
    usual_s = max([await publish_well(alice, name, number) for number in range(10)])
    before_kib = memory_kib(service.pid)

    def request(number: int) -> str:
        item = f"<publish node='evil'><item id='{number % 50}'>{entry('x' * 500)}</item></publish>"
        return f"<iq id='f{number}' type='set' to='{name}'><pubsub xmlns='{PS}'>{item}</pubsub></iq>"

    answers = [asyncio.create_task(eve.answer(f"f{number}", "")) for number in range(REQUESTS)]
    await asyncio.sleep(0)  # all of them listen
    eve.send_raw("".join(map(request, range(REQUESTS))))
    took: list[float] = []
    while not all(answer.done() for answer in answers):
        took.append(await publish_well(alice, name, len(took)))
    outcomes = {answer.result().get("type") for answer in answers}
    print(f"usual {usual_s * 1e3:.1f} ms; {len(took)} publishes meanwhile, longest {max(took) * 1e3:.0f} ms")

    assert "result" in outcomes
    assert took and max(took) < NOTICED_S
    assert memory_kib(service.pid) - before_kib < MEMORY_KIB


async def test_burst_of_two_requests_for_every_node_meets_no_error(server: TestServer, tmp_path: Path) -> None:
    """What clients do after they have logged in. [xep-map 250]"""
    name = server.take_name()
    async with running(write_config(tmp_path, server, name)) as app:
        alice = await log_in(server, "alice")
        made = await asyncio.gather(
            *(alice.set(name, f"<pubsub xmlns='{PS}'><create node='n{n}'/></pubsub>") for n in range(NODES))
        )
        burst = [f"<subscribe node='n{n}' jid='{alice.bare}'/>" for n in range(NODES)]
        subscribed = [alice.set(name, f"<pubsub xmlns='{PS}'>{inner}</pubsub>") for inner in burst]
        pulled = [alice.get(name, f"<pubsub xmlns='{PS}'><items node='n{n}'/></pubsub>") for n in range(NODES)]
        answers = await asyncio.gather(*subscribed, *pulled)

        assert {answer.get("type") for answer in (*made, *answers)} == {"result"}
        assert app.supervisor.epoch == 1
        await alice.logout()
