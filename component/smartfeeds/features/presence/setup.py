"""Presence in the running service."""

import asyncio
from functools import partial

from smartfeeds.app.feature import Host, Running
from smartfeeds.core.consumers import HELD
from smartfeeds.delivery.changes import repeat_until_stored
from smartfeeds.delivery.deliverer import ConsumerKind
from smartfeeds.features.presence.capabilities import encode_caps
from smartfeeds.features.presence.held import HeldSender
from smartfeeds.features.presence.tasks import Tasks
from smartfeeds.features.presence.xmpp import Presences
from smartfeeds.push.side import PushSide
from smartfeeds.xmpp.avatar import presence_mark


def run_presence(host: Host) -> Running:
    """Returns what reads and sends presence, and what delivers the events that have waited for it."""

    def described() -> str:
        return f"{encode_caps(host.capabilities())}{presence_mark(host.picture())}"

    presences = Presences(host.service, host.link, host.dispatcher.follow, described, host.now_us)
    held = HeldSender(host.service, host.notifications, presences.availability, clock=host.now_us)
    host.dispatcher.register(HELD, ConsumerKind(held, on_demand=True))

    later = Tasks("temporary subscriptions")

    async def resume() -> None:
        await asyncio.gather(repeat_until_stored(partial(host.dispatcher.resume, HELD)), presences.resume())

    async def leave() -> None:
        await later.stop()
        await presences.stop()
        # Another process goes on to serve the users.
        if not host.letters.has_others():
            await presences.leave()

    return Running(
        parts=(presences,),
        online=lambda: later.spawn(repeat_until_stored(presences.end_temporary)),
        load=presences.load,
        resume=resume,
        leave=leave,
        stanzas=presences.stanzas,
        push=PushSide(presences.availability, presences.interests),
    )
