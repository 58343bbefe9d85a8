"""Registers at rssClouds of other servers, in the protocol of their element (RC-056 to RC-065; RSS-019 to RSS-021).

One call registers one feed, because clouds refuse all addresses of a call of which they refuse one.
"""

import json
from collections.abc import Callable, Mapping
from typing import Final
from urllib.parse import urlencode, urlsplit

from smartfeeds.core.rsscloud import CloudProtocol
from smartfeeds.core.source_push import RequestResult, SourcePush
from smartfeeds.errors import FeedError
from smartfeeds.formats import soap, xml_rpc
from smartfeeds.formats.json_text import load_json, looks_like_json
from smartfeeds.formats.remote_calls import RemoteCall, RemoteCallError, RemoteValue, local_name, read_message
from smartfeeds.net.callbacks import CallbackAnswer, CallbackClient
from smartfeeds.sources.push_keys import callback_url

REDIRECTS: Final = 5
_MAX_ANSWER_BYTES: Final = 65_536
_HTTPS_POST: Final = "https-post"
_PORTS: Final = {"http": 80, "https": 443}
_NAMESPACE: Final = "http://www.soapware.org/"
_PARAMETERS: Final = ("notifyProcedure", "port", "path", "protocol", "urlList")
_PROCEDURES: Final = {CloudProtocol.XML_RPC.value: "smartfeeds.notify", CloudProtocol.SOAP.value: "notify"}
_TOO_MANY: Final = 429
_SERVER_ERROR: Final = 500
_FORM: Final = {"Content-Type": "application/x-www-form-urlencoded"}
_XML: Final = {"Content-Type": "text/xml; charset=utf-8"}


class Clouds:
    """Registers callbacks below `own_url`."""

    def __init__(self, own_url: str) -> None:
        self._own_url = own_url

    async def register(self, client: CallbackClient, push: SourcePush) -> RequestResult:
        """The result of a registration. Each protocol of notifications that the cloud may accept is tried in turn."""
        result = RequestResult(succeeded=False, reason="no protocol was tried")
        for notify in notify_protocols(push, self._own_url):
            body, headers = _request(push, notify, self._own_url)
            answer = await client.post(push.address, body, headers, max_bytes=_MAX_ANSWER_BYTES, redirects=REDIRECTS)
            result = read_answer(push.target.protocol, notify, answer)
            if result.succeeded or not result.is_refusal:
                break
        return result


def notify_protocols(push: SourcePush, own_url: str) -> tuple[str, ...]:
    """The protocols to ask notifications in, the one that was accepted the last time first.

    That of the door comes before forms, which every cloud knows (RC-059). Over https some clouds know forms by another
    word, others by the port alone (RC-060).
    """
    post = CloudProtocol.HTTP_POST.value
    forms = (_HTTPS_POST, post) if own_url.startswith("https:") else (post,)
    names = forms if push.target.protocol == post else (push.target.protocol, *forms)
    return tuple(sorted(names, key=lambda name: name != push.notify)) if push.notify else names


def _request(push: SourcePush, notify: str, own_url: str) -> tuple[bytes, Mapping[str, str]]:
    """The body and the headers of a registration."""
    parts, target = urlsplit(callback_url(own_url, push.token)), push.target
    port = parts.port or _PORTS[parts.scheme]
    procedure = _PROCEDURES.get(notify, "")
    if target.protocol == CloudProtocol.HTTP_POST.value:
        fields = {
            "notifyProcedure": procedure,
            "domain": parts.hostname or "",
            "port": str(port),
            "path": parts.path,
            "protocol": notify,
            "url1": target.topic,
        }
        return urlencode(fields).encode(), _FORM
    call = RemoteCall(target.procedure, (procedure, port, parts.path, notify, [target.topic]))
    if target.protocol == CloudProtocol.SOAP.value:
        return soap.write_call(call, _PARAMETERS, _NAMESPACE), {**_XML, "SOAPAction": '""'}
    return xml_rpc.write_call(call), _XML


def read_answer(protocol: str, notify: str, answer: CallbackAnswer) -> RequestResult:
    """The result of a registration from the answer of a cloud (RC-065, RD-3)."""
    if answer.status in (0, _TOO_MANY) or (answer.status >= _SERVER_ERROR and not answer.body):
        return RequestResult(
            succeeded=False,
            reason=f"the cloud {answer.outcome}",
            retry_after_s=answer.retry_after_s,
            door=answer.permanent_url,
        )
    try:
        succeeded, text = _READERS[protocol](answer.body)
    except (RemoteCallError, FeedError) as error:
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


def _read_form_answer(body: bytes) -> tuple[bool, str]:
    """The content of `notifyResult`, as XML or JSON. Raises RemoteCallError and FeedError."""
    if looks_like_json(body):
        value = load_json(body).value
        fields = value if isinstance(value, Mapping) else {}
        return fields.get("success") in (True, "true"), str(fields.get("msg", ""))
    root = read_message(body)
    if local_name(root) != "notifyResult":
        raise RemoteCallError(f"the root element is {local_name(root)[:40]}, not notifyResult.")
    return root.get("success", "").strip().lower() == "true", root.get("msg", "")


def _of_value(value: RemoteValue) -> tuple[bool, str]:
    """Whether a value means success: a truth value, a number, a text, or the structure of Radio's servers."""
    if isinstance(value, Mapping):
        failed = value.get("flError")
        return failed in (False, 0, "false", "0"), str(value.get("message", ""))
    if isinstance(value, str):
        return value.strip().lower() in ("true", "1"), value
    return (value is True or value == 1), json.dumps(value, default=str)


_READERS: Final[Mapping[str, Callable[[bytes], tuple[bool, str]]]] = {
    CloudProtocol.HTTP_POST.value: _read_form_answer,
    CloudProtocol.XML_RPC.value: lambda body: _of_value(xml_rpc.read_result(body)),
    CloudProtocol.SOAP.value: lambda body: _of_value(soap.read_result(body)),
}
