"""The mirrors of the store and of the configuration, in the running service."""

from dataclasses import replace
from functools import partial

from smartfeeds.app.feature import Host, Running
from smartfeeds.features.mirrors.mirror_out import ItemPublisher
from smartfeeds.features.mirrors.mirrors import MIRROR_LIMITS, MirrorConnections, Mirrors
from smartfeeds.features.mirrors.settings import MirrorSettings
from smartfeeds.features.mirrors.statuses import document_readers
from smartfeeds.features.mirrors.stream_link import StreamLink
from smartfeeds.features.polling.push_states import OwnCallbacks
from smartfeeds.features.polling.tools import SourceTools
from smartfeeds.net.addresses import EVERYWHERE
from smartfeeds.net.clients import Fetcher
from smartfeeds.xmpp.stanza_side import StanzaSide


def run_mirrors(host: Host) -> Running:
    """Returns the mirrors. They stop while the link is open, because they end what they follow over it."""
    settings, tools = host.settings, host.parts.get(SourceTools)
    link = partial(StreamLink, host.link, settings.link.answer_s)
    fetch = Fetcher(replace(MIRROR_LIMITS, allowed=settings.sources.networks), limiter=host.limiter)
    fetch_private = Fetcher(replace(MIRROR_LIMITS, allowed=EVERYWHERE), limiter=host.limiter)
    publisher = ItemPublisher(link().publish, settings.pubsub.stanza_bytes)
    connections = MirrorConnections(link, publisher, fetch, fetch_private, host.parts.get(OwnCallbacks))
    configured = [section.to_mirror() for section in settings.sections(MirrorSettings)]
    mirrors = Mirrors(host.service, configured, connections, tools, host.dispatcher)
    host.changes.listen(mirrors)
    return Running(
        parts=(mirrors,),
        clients=(fetch, fetch_private),
        start=mirrors.start,
        stop=mirrors.stop,
        resume=mirrors.resume,
        stanzas=StanzaSide(follows=(mirrors.follows,)),
        document_readers=document_readers,
        readings=mirrors.readings,
    )
