"""The running parts: the key of the forms of guests, the rates of their addresses, and the removal of old replies."""

import hmac
from functools import partial

from smartfeeds.app.feature import Host, Running
from smartfeeds.features.embedding.guests import GuestForms, GuestLimits
from smartfeeds.features.embedding.requests import SWEEP
from smartfeeds.xmpp.command_sessions import session_key


def run_embedding(host: Host) -> Running:
    """Returns the parts and the sweep. One process at a time removes replies whose time is over."""
    duties = ((SWEEP.name, partial(SWEEP.run, host.service)),)
    if not host.settings.http.listen:
        return Running(duties=duties)
    component = host.settings.component
    key = hmac.digest(session_key(component.reveal_secret(), component.jid), b"guests", "sha256")
    from smartfeeds.features.embedding.moderation import reply_queue

    queue = reply_queue(host.handle, component.jid)
    return Running(parts=(GuestForms(key, host.now_us), GuestLimits(host.now_us), queue), duties=duties)
