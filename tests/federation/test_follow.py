"""Followers of a feed on another server, over real s2s that breaks and loses, and a component that is killed."""

import asyncio
from pathlib import Path

import pytest

from smartfeeds.client.follow import Follower, FollowerClock
from smartfeeds.client.transport import SlixLink, Timeouts
from smartfeeds.push.bounces import Bounces
from smartfeeds.service.subscriptions import Bounce
from support.client import Client, ClientFactory, Session
from support.component import PS, entry, text_of
from support.federation import FederatedServer, Federation, component_on
from support.race import (
    NO_INTEGRITY_S,
    NODE,
    REQUEST_S,
    Ledger,
    Mirror,
    Publisher,
    Short,
    judge,
    make_feed,
    publishing,
    pull_all,
)
from support.site import AppSite, ProcessSite
from support.waiting import waiting

SEED = 20260
KILLS = 4
ACKNOWLEDGED = 8  # between two kills
CHANGES = 8  # and handed over by the follower


async def publish(client: Client, service: str, item_id: str) -> None:
    """Publishes one item."""
    item = f"<publish node='{NODE}'><item id='{item_id}'>{entry(item_id)}</item></publish>"
    answer = await client.set(service, f"<pubsub xmlns='{PS}'>{item}</pubsub>")
    assert answer.get("type") == "result", text_of(answer)


async def follower_of(service: str, server: FederatedServer, folder: Path) -> Mirror:
    """A follower with an account on this server."""
    account = await asyncio.to_thread(server.server.account, "bob")
    return Mirror(account.jid, account.password, server.client_port, service, folder / "position")


@pytest.fixture
def bounced(monkeypatch: pytest.MonkeyPatch) -> asyncio.Event:
    """Is set when a notification has come back to a component as an error."""
    event, note = asyncio.Event(), Bounces.note

    async def noted(bounces: Bounces, bounce: Bounce) -> None:
        await note(bounces, bounce)
        event.set()

    monkeypatch.setattr(Bounces, "note", noted)
    return event


@pytest.mark.parametrize("trouble", ["cut", "loss"])
async def test_what_was_published_while_the_servers_were_apart_is_found_by_the_next_push(
    two: Federation, client: ClientFactory, tmp_path: Path, bounced: asyncio.Event, trouble: str
) -> None:
    """[SF-046] [SF-047] A push that came back, or was lost without a word, is a gap that the next one shows."""
    wire = two.wire(two.far.name, two.near.name)
    owner, alice = await client(two.far, "owner"), await client(two.near, "alice")
    async with AppSite(two.far, tmp_path / "site") as site:
        await make_feed(owner, site.name)
        mirror = await follower_of(site.name, two.near, tmp_path)
        mirror.begin()
        await publish(owner, site.name, "before")
        await mirror.until_in_step("before")

        if trouble == "cut":
            await two.cut()
            await publish(owner, site.name, "apart")
            await bounced.wait()
        else:
            two.lose()
            await publish(owner, site.name, "apart")
            await wire.until(lambda: wire.lost_bytes > 0)
        await two.heal()
        await two.until_reached(alice, site.name)
        assert set(mirror.items) == {"before"}
        await publish(owner, site.name, "after")
        await mirror.until_in_step("after")
        await mirror.end()

        assert list(mirror.items) == ["before", "apart", "after"]
        assert mirror.gaps == 1
        state = await site.state(NODE)
        assert set(state) == set(mirror.items) and all(kept.sync for kept in state.values())


async def test_a_component_follows_over_s2s_through_a_cut(
    pair: Federation, client: ClientFactory, tmp_path: Path, bounced: asyncio.Event
) -> None:
    """[SF-045] [SF-047] A follower that is an address of a component, as a service is that follows another."""
    owner = await client(pair["b"], "owner")
    async with AppSite(pair["b"], tmp_path / "site") as site, component_on(pair["a"]) as bot:
        await make_feed(owner, site.name)
        link = SlixLink(bot, subscribe_as=f"news@{bot.boundjid.bare}", timeouts=Timeouts(request_s=REQUEST_S))
        address = f"xmpp:{site.name}?;node={NODE}"
        follower = Follower(link, address, mirror=True, clock=FollowerClock(Short()), integrity_s=NO_INTEGRITY_S)
        async with follower, waiting("the changes of the feed"):
            await publish(owner, site.name, "before")
            assert (await anext(follower)).item_id == "before"
            await pair.cut()
            await publish(owner, site.name, "apart")
            await bounced.wait()
            await pair.heal()
            await publish(owner, site.name, "after")

            assert [(await anext(follower)).item_id for _ in range(2)] == ["apart", "after"]
            assert follower.proof().in_step and follower.proof().counters.gaps_found == 1


async def test_a_component_killed_again_and_again_loses_nothing_over_s2s(pair: Federation, tmp_path: Path) -> None:
    """[SF-028] [SF-039] [SF-047] Publishers and the follower are on another server; some kills go with a cut."""
    ledger = Ledger()
    sessions = [await asyncio.to_thread(Session, pair["a"], "alice", f"p{number}") for number in range(2)]
    async with ProcessSite(pair["b"], tmp_path / "site") as site:
        await make_feed(await sessions[0].client(), site.name)
        mirror = await follower_of(site.name, pair["a"], tmp_path)
        mirror.begin()
        publishers = [
            Publisher(session, site.name, site.relay, ledger, f"p{number}", SEED + number)
            for number, session in enumerate(sessions)
        ]
        async with publishing(publishers):
            for number in range(KILLS):
                await ledger.until(ledger.acknowledged + ACKNOWLEDGED)
                await mirror.until_more(CHANGES)
                if number % 2:
                    await pair.cut()
                await site.kill()
                await pair.heal()
                await site.start()
        await publishers[0].publish("last")
        await mirror.until_in_step("last")
        feed = await pull_all(await sessions[0].client(), site.name)
        alive = await site.state(NODE)
        await mirror.end()
        for session in sessions:
            session.leave()
        await site.kill()

        judge(feed, ledger, mirror)
        assert {item_id: not kept.deleted for item_id, kept in alive.items()} == {
            item_id: title is not None for item_id, title in ledger.state.items()
        }
        assert await site.state(NODE) == alive
        assert "Traceback" not in site.process.said and "request_failed" not in site.process.said
