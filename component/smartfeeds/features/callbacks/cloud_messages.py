"""The messages of rssCloud, as a cloud and as a workstation send and read them (RSS-019 to RSS-030; A-129, A-130).

Registrations and notifications come as forms, by XML-RPC and by SOAP. The answer to a form is the element
`notifyResult`, or the same as JSON; the answer to a call is a truth value.
"""

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple
from urllib.parse import urlencode, urlsplit

from smartfeeds.core.text import attribute
from smartfeeds.core.urls import CLOUD_FORM, CLOUD_RPC, CLOUD_SOAP
from smartfeeds.errors import FeedError
from smartfeeds.features.callbacks import soap, xml_rpc
from smartfeeds.features.callbacks.cloud_protocol import (
    HTTPS_POST,
    REGISTER_NAMES,
    REGISTER_PROCEDURE,
    CloudCallback,
    CloudProtocol,
    CloudRequest,
    check_request,
)
from smartfeeds.features.callbacks.remote_calls import (
    RemoteCall,
    RemoteCallError,
    RemoteValue,
    local_name,
    read_message,
)
from smartfeeds.formats.json_text import dump_json, load_json, looks_like_json
from smartfeeds.formats.rss_channel import Cloud, OwnCloud

FORM_TYPE: Final = "application/x-www-form-urlencoded"
XML_TYPE: Final = "text/xml; charset=utf-8"
_PARAMETERS: Final = ("notifyProcedure", "port", "path", "protocol", "urlList")
_WORDS: Final = {"0": False, "false": False, "1": True, "true": True}
_DOMAIN_AT: Final = len(_PARAMETERS)
_DOORS: Final = {
    CloudProtocol.HTTP_POST: (CLOUD_FORM, ""),
    CloudProtocol.XML_RPC: (CLOUD_RPC, REGISTER_PROCEDURE),
    CloudProtocol.SOAP: (CLOUD_SOAP, REGISTER_PROCEDURE),
}


class CloudMessage(NamedTuple):
    """A message to send with POST."""

    body: bytes
    headers: Mapping[str, str]


class CloudAnswer(NamedTuple):
    """An answer to a registration: whether it succeeded, and the text for people if there is one."""

    success: bool
    text: str = ""


def own_cloud(site_url: str, protocol: CloudProtocol) -> OwnCloud:
    """Returns what our feeds say of our cloud. `site_url` is the public address without a slash at its end.

    The element has no scheme, so port 443 stands for https, and `source:cloud` has the whole address (RD-14).
    """
    parts = urlsplit(site_url)
    path, procedure = _DOORS[protocol]
    port = parts.port or (443 if parts.scheme == "https" else 80)
    element = Cloud(parts.hostname or "", port, f"{parts.path}{path}", procedure, protocol.value)
    return OwnCloud(element, f"{site_url}{CLOUD_FORM}")


# The cloud reads registrations.


def read_remote_call(body: bytes, *, prefers_soap: bool = False) -> tuple[bool, RemoteCall | RemoteCallError]:
    """Returns whether a message is SOAP, and its call or why it has none.

    `prefers_soap`: a message that is neither SOAP nor XML-RPC counts as SOAP.
    """
    is_soap = prefers_soap
    try:
        root = read_message(body)
        is_soap = root.tag == soap.ENVELOPE or (is_soap and local_name(root) != xml_rpc.METHOD_CALL)
        return is_soap, soap.read_call(root) if is_soap else xml_rpc.read_call(root)
    except RemoteCallError as fault:
        return is_soap, fault


def is_registration(call: RemoteCall) -> bool:
    """Returns whether a call registers callbacks, under any of the names that clouds have offered (RD-1)."""
    return soap.element_name(call.name) in REGISTER_NAMES


def read_registration(call: RemoteCall) -> CloudRequest:
    """Returns the registration of a call (RSS-020).

    A sixth parameter is the domain if it is a string; Radio sent data of its user there (RD-2). Raises RemoteCallError
    for parameters of other numbers or types, CloudRequestError for values that are refused.
    """
    values = call.parameters
    if not _DOMAIN_AT <= len(values) <= _DOMAIN_AT + 1:
        raise RemoteCallError(f"{_DOMAIN_AT} parameters are wanted, {len(values)} came.")
    procedure, port, path, protocol, urls = values[:_DOMAIN_AT]
    addresses = [urls] if isinstance(urls, str) else list(urls) if isinstance(urls, Sequence) else [None]
    texts = [text.strip() for text in (procedure, path, protocol, *addresses) if isinstance(text, str)]
    if len(texts) != 3 + len(addresses) or not isinstance(port, int | str):
        raise RemoteCallError(
            "the parameters must be a procedure (string), a port (int), a path (string), a protocol (string) and the "
            "addresses of feeds (array of strings)."
        )
    domain = values[_DOMAIN_AT] if len(values) > _DOMAIN_AT else ""
    return check_request(
        texts[0],
        port.strip() if isinstance(port, str) else port,
        texts[1],
        texts[2],
        texts[3:],
        domain.strip() if isinstance(domain, str) else "",
    )


def write_form_answer(answer: CloudAnswer, *, as_json: bool = False) -> bytes:
    """Returns the answer to a form."""
    if as_json:
        return dump_json({"success": answer.success, "msg": answer.text})
    success = str(answer.success).lower()
    result = f'<notifyResult success="{success}" msg="{attribute(answer.text)}"/>'
    return f'<?xml version="1.0" encoding="utf-8"?>\n{result}\n'.encode()


# The cloud notifies.


def write_notification(callback: CloudCallback, feed_url: str, namespace: str) -> CloudMessage:
    """Returns the notification that a feed has changed (RSS-023, RSS-030). `namespace` is for SOAP."""
    call = RemoteCall(callback.procedure, (feed_url,))
    if callback.protocol is CloudProtocol.HTTP_POST:
        return CloudMessage(urlencode({"url": feed_url}).encode(), {"Content-Type": FORM_TYPE})
    if callback.protocol is CloudProtocol.XML_RPC:
        return CloudMessage(xml_rpc.write_call(call), {"Content-Type": XML_TYPE})
    return CloudMessage(soap.write_call(call, ("url",), namespace), {"Content-Type": XML_TYPE, "SOAPAction": '""'})


def refusal_in(protocol: CloudProtocol, body: bytes) -> str:
    """Returns why the body of an answer to a notification by XML-RPC or SOAP is none of success, "" for success
    (RSS-024)."""
    try:
        return "" if _truth(_result_of(protocol, body)) else "answered false"
    except RemoteCallError as fault:
        return f"gave no proper answer: {fault.text}"


# A workstation registers.


def write_registration(protocol: CloudProtocol, procedure: str, request: CloudRequest, namespace: str) -> CloudMessage:
    """Returns the registration at a cloud, in the protocol of its door; `procedure` is its `registerProcedure`.

    `request.tls` asks for `https-post`. Without it, port 443 alone stands for https (RC-060).
    """
    word = HTTPS_POST if request.tls else request.protocol.value
    if protocol is CloudProtocol.HTTP_POST:
        domain = [("domain", request.domain)] if request.domain else []
        fields = [
            ("notifyProcedure", request.procedure),
            *domain,
            ("port", str(request.port)),
            ("path", request.path),
            ("protocol", word),
            *((f"url{number}", url) for number, url in enumerate(request.urls, 1)),
        ]
        return CloudMessage(urlencode(fields).encode(), {"Content-Type": FORM_TYPE})
    call = RemoteCall(procedure, (request.procedure, request.port, request.path, word, list(request.urls)))
    if protocol is CloudProtocol.XML_RPC:
        return CloudMessage(xml_rpc.write_call(call), {"Content-Type": XML_TYPE})
    return CloudMessage(soap.write_call(call, _PARAMETERS, namespace), {"Content-Type": XML_TYPE, "SOAPAction": '""'})


def read_answer(protocol: CloudProtocol, body: bytes) -> CloudAnswer:
    """Returns the answer of a cloud, in the forms that living clouds write (RC-065, RD-3).

    Raises RemoteCallError for a fault, and for a body that is no answer.
    """
    if protocol is CloudProtocol.HTTP_POST:
        return _json_answer(body) if looks_like_json(body) else _form_answer(body)
    result = _result_of(protocol, body)
    if isinstance(result, Mapping):  # of Radio's servers
        return CloudAnswer(_truth(result.get("flError")) is False, str(result.get("message", "")))
    if _truth(result):
        return CloudAnswer(True)
    return CloudAnswer(False, result if isinstance(result, str) and result else "answered false")


def _json_answer(body: bytes) -> CloudAnswer:
    try:
        value = load_json(body).value
    except FeedError as error:
        raise RemoteCallError(str(error)) from None
    fields = value if isinstance(value, Mapping) else {}
    return CloudAnswer(bool(_truth(fields.get("success"))), str(fields.get("msg", "")))


def _form_answer(body: bytes) -> CloudAnswer:
    root = read_message(body)
    if local_name(root) != "notifyResult":
        raise RemoteCallError(f"the answer is no notifyResult: its root element is {local_name(root)[:40]}.")
    return CloudAnswer(bool(_truth(root.get("success"))), root.get("msg", ""))


# A workstation is notified.


def read_notification(call: RemoteCall) -> str:
    """Returns the address of the feed that has changed. Raises RemoteCallError."""
    if len(call.parameters) != 1 or not isinstance(call.parameters[0], str):
        raise RemoteCallError(f"1 parameter is wanted, the address of a feed; {len(call.parameters)} came.")
    return call.parameters[0].strip()


# Both.


def _result_of(protocol: CloudProtocol, body: bytes) -> RemoteValue:
    return xml_rpc.read_result(body) if protocol is CloudProtocol.XML_RPC else soap.read_result(body)


def _truth(value: object) -> bool | None:
    """A truth value in the forms that living clouds write, None for anything else. Values of other types are not even
    compared: that may raise."""
    if isinstance(value, int | float):
        return bool(value) if value in (0, 1) else None
    return _WORDS.get(value.strip().lower()) if isinstance(value, str) else None
