"""The running parts: the key of the forms of guests, the rates of their addresses, the news of their replies, and the
removal of old ones."""

import hmac
from functools import partial

from smartfeeds.app.feature import Host, Running
from smartfeeds.chat.notices import ChatNotices
from smartfeeds.features.embedding.chat import write_news
from smartfeeds.features.embedding.guests import GuestForms, GuestLimits
from smartfeeds.features.embedding.requests import SWEEP, ReplyStored, SubmitReply
from smartfeeds.service.answers import ask
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

    async def submit(request: SubmitReply) -> ReplyStored:
        """Stores a reply. Those who decide hear of it if they use chat. Raises FeedError, StoreError."""
        answer = await ask(host.service.handle, request, ReplyStored)
        notices = host.parts.find(ChatNotices)  # when all features run
        if answer.news is not None and notices is not None:
            notices.send(answer.news.people, partial(write_news, answer.news))
        return answer

    parts = (GuestForms(key, host.now_us), GuestLimits(host.now_us), queue)
    return Running(parts=parts, duties=duties, handlers={SubmitReply: submit})
