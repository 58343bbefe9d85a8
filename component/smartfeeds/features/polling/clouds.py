"""Registers at rssClouds of other servers, in the protocol of their element (RC-056 to RC-065; RSS-019 to RSS-021).

One call registers one feed, because clouds refuse all addresses of a call of which they refuse one.
"""

from typing import Final
from urllib.parse import urlsplit

from smartfeeds.features.callbacks.cloud_messages import CloudMessage, read_answer, write_registration
from smartfeeds.features.callbacks.cloud_protocol import HTTPS_POST, CloudProtocol, CloudRequest
from smartfeeds.features.callbacks.remote_calls import RemoteCallError
from smartfeeds.features.polling.push_states import RequestResult, SourcePush, callback_url
from smartfeeds.net.callbacks import CallbackAnswer
from smartfeeds.net.clients import CallbackClient
from smartfeeds.threads import OwnThreads

REDIRECTS: Final = 5  # RC-057
ANSWERS_AT_ONCE: Final = 4  # that are read at a time
_MAX_ANSWER_BYTES: Final = 65_536
_PORTS: Final = {"http": 80, "https": 443}
_NAMESPACE: Final = "http://www.soapware.org/"
_PROCEDURES: Final = {CloudProtocol.XML_RPC.value: "smartfeeds.notify", CloudProtocol.SOAP.value: "notify"}
_TOO_MANY: Final = 429
_SERVER_ERROR: Final = 500


class Clouds:
    """Registers callbacks below `own_url`."""

    def __init__(self, own_url: str) -> None:
        self._own_url = own_url
        # A thread that ends forgets the names of the document that it has parsed.
        self._threads = OwnThreads(ANSWERS_AT_ONCE)

    async def register(self, client: CallbackClient, push: SourcePush) -> RequestResult:
        """The result of a registration. Each protocol of notifications that the cloud may accept is tried in turn."""
        result = RequestResult(succeeded=False, reason="no protocol was tried")
        for notify in notify_protocols(push, self._own_url):
            body, headers = _message(push, notify, self._own_url)
            answer = await client.post(push.address, body, headers, max_bytes=_MAX_ANSWER_BYTES, redirects=REDIRECTS)
            result = await self._threads(result_of, push.target.protocol, notify, answer)
            if result.succeeded or not result.is_refusal:
                break
        return result


def notify_protocols(push: SourcePush, own_url: str) -> tuple[str, ...]:
    """The protocols to ask notifications in, the one that was accepted the last time first.

    That of the door comes before forms, which every cloud knows (RC-059). Over https some clouds know forms by another
    word, others by the port alone (RC-060).
    """
    post = CloudProtocol.HTTP_POST.value
    forms = (HTTPS_POST, post) if own_url.startswith("https:") else (post,)
    names = forms if push.target.protocol == post else (push.target.protocol, *forms)
    return tuple(sorted(names, key=lambda name: name != push.notify)) if push.notify else names


def _message(push: SourcePush, notify: str, own_url: str) -> CloudMessage:
    """The registration that asks for notifications in a protocol, by its word."""
    parts, target = urlsplit(callback_url(own_url, push.token)), push.target
    request = CloudRequest(
        _PROCEDURES.get(notify, ""),
        parts.port or _PORTS[parts.scheme],
        parts.path,
        CloudProtocol.HTTP_POST if notify == HTTPS_POST else CloudProtocol(notify),
        (target.topic,),
        parts.hostname or "",
        tls=notify == HTTPS_POST,
    )
    return write_registration(CloudProtocol(target.protocol), target.procedure, request, _NAMESPACE)


def result_of(protocol: str, notify: str, answer: CallbackAnswer) -> RequestResult:
    """The result of a registration from the answer of a cloud (RC-065, RD-3)."""
    if answer.status in (0, _TOO_MANY) or (answer.status >= _SERVER_ERROR and not answer.body):
        return RequestResult(
            succeeded=False,
            reason=f"the cloud {answer.outcome}",
            retry_after_s=answer.retry_after_s,
            door=answer.permanent_url,
        )
    try:
        succeeded, text = read_answer(CloudProtocol(protocol), answer.body)
    except RemoteCallError as error:
        succeeded, text = False, f"answered {answer.status} with something else: {error}"
    is_accepted = succeeded and answer.succeeded
    return RequestResult(
        succeeded=is_accepted,
        reason="" if is_accepted else f"the cloud refused: {text or answer.outcome}",
        is_refusal=not is_accepted,
        retry_after_s=answer.retry_after_s,
        door=answer.permanent_url,
        notify=notify,
    )
