"""The network that the other tests of this folder break: real servers, real s2s, wires that can be cut (RFC 6120)."""

import itertools
from pathlib import Path

from support.client import Client, ClientFactory
from support.component import text_of
from support.federation import PING, Federation
from support.site import AppSite

STANZAS = "{urn:ietf:params:xml:ns:xmpp-stanzas}"


async def ask(client: Client, address: str) -> str:
    """What a ping has for an answer: `result`, or the condition of the error."""
    answer = await client.get(address, PING)
    if answer.get("type") == "result":
        return "result"
    found = [child.tag.removeprefix(STANZAS) for child in answer[-1] if child.tag.startswith(STANZAS)]
    assert found, text_of(answer)
    return found[0]


async def test_components_are_reached_over_s2s_unless_it_is_cut(
    two: Federation, client: ClientFactory, tmp_path: Path
) -> None:
    """Each way has a connection of its own; behind a cut there is none, and what is sent comes back."""
    alice = await client(two.near, "alice")
    wires = two.wire(two.near.name, two.far.name), two.wire(two.far.name, two.near.name)
    async with AppSite(two.far, tmp_path / "site") as site:
        assert await ask(alice, site.name) == "result"
        assert all(wire.connections > 0 for wire in wires)

        await two.cut()

        assert not any(wire.connections for wire in wires)
        await two.until_parted(alice, site.name)

        await two.heal()
        await two.until_reached(alice, site.name)


async def test_a_cut_of_prosody_is_at_once(pair: Federation, client: ClientFactory, tmp_path: Path) -> None:
    """Right behind a cut a stanza comes back, right behind its end one arrives: Prosody has no back-off."""
    alice = await client(pair["a"], "alice")
    async with AppSite(pair["b"], tmp_path / "site") as site:
        for _ in range(3):
            assert await ask(alice, site.name) == "result"
            await pair.cut()
            assert await ask(alice, site.name) == "remote-server-not-found"
            await pair.heal()


async def test_one_cut_of_a_ring_leaves_the_other_ways(ring: Federation, client: ClientFactory, tmp_path: Path) -> None:
    """Every server of three reaches every other; where one wire pair is cut, only these two are parted."""
    clients = {name: await client(ring[name], "alice") for name in "abc"}
    async with (
        AppSite(ring["a"], tmp_path / "a") as a,
        AppSite(ring["b"], tmp_path / "b") as b,
        AppSite(ring["c"], tmp_path / "c") as c,
    ):
        sites = {"a": a, "b": b, "c": c}
        ways = list(itertools.permutations("abc", 2))

        async def reached() -> dict[tuple[str, str], str]:
            return {(near, far): await ask(clients[near], sites[far].name) for near, far in ways}

        assert set((await reached()).values()) == {"result"}

        await ring.cut("a", "b")

        found = await reached()
        parted = {("a", "b"), ("b", "a")}
        assert {way for way in ways if found[way] != "result"} == parted

        await ring.heal("a", "b")

        assert set((await reached()).values()) == {"result"}


async def test_a_lossy_wire_swallows_and_tells_nobody(pair: Federation, client: ClientFactory, tmp_path: Path) -> None:
    """What is sent into it gets neither an answer nor an error, and is not delivered later either."""
    alice, bob = await client(pair["a"], "alice"), await client(pair["b"], "bob")
    await pair.until_reached(alice, pair["b"].domain)
    wire = pair.wire("a", "b")

    pair.lose()
    alice.send_raw(f"<message to='{bob.jid}'><body>lost</body></message>")
    await wire.until(lambda: wire.lost_bytes > 0)
    await pair.heal()
    await pair.until_reached(alice, pair["b"].domain)
    alice.send_raw(f"<message to='{bob.jid}'><body>arrived</body></message>")

    assert (await bob.next_message())[0].text == "arrived"
    assert not alice.messages
