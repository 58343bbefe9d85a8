"""The doors of the cloud, where workstations register: as a form, by XML-RPC and by SOAP (RSS-019 to RSS-022; A-129).

The doors of XML-RPC and SOAP take the messages of each other, because Radio sent SOAP to `/RPC2`. Pages of other hosts
cannot use the doors: they would register the address of their reader.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from http import HTTPStatus

from smartfeeds.core.urls import CLOUD_FORM, CLOUD_RPC, CLOUD_SOAP
from smartfeeds.features.callbacks import soap, xml_rpc
from smartfeeds.features.callbacks.cloud_messages import (
    XML_TYPE,
    CloudAnswer,
    is_registration,
    read_registration,
    read_remote_call,
    write_form_answer,
)
from smartfeeds.features.callbacks.cloud_protocol import (
    HELLO,
    MAX_BODY_BYTES,
    CloudRequest,
    CloudRequestError,
    read_form,
)
from smartfeeds.features.callbacks.remote_calls import RemoteCall, RemoteCallError
from smartfeeds.features.cloud.cloud import CloudServer
from smartfeeds.formats.representation import Representation
from smartfeeds.http.bodies import unsupported
from smartfeeds.http.calls import HttpCall
from smartfeeds.http.encode import FeedLinks
from smartfeeds.http.http_errors import HttpError
from smartfeeds.http.negotiation import WEB_FORM, choose
from smartfeeds.http.openapi_schemas import TEXT, Schema
from smartfeeds.http.operations import Content, Operation
from smartfeeds.http.replies import Reply
from smartfeeds.http.side import HttpSide, Route, SiteTools
from smartfeeds.parts import Parts
from smartfeeds.threads import OwnThreads

XML_AT_ONCE = 4  # messages that are read at a time
_JSON_TYPE = "application/json"
_XML_TYPES = ("text/xml", "application/xml")
_AS_XML = Representation("", XML_TYPE, _XML_TYPES)
_AS_JSON = Representation("", f"{_JSON_TYPE}; charset=utf-8", (_JSON_TYPE,))
_FIELDS = ("notifyProcedure", "port", "path", "protocol", "url1", "domain")
_NO_STORE = {"Cache-Control": "no-store"}
_XML_CONTENT: Content = {kind: dict(TEXT) for kind in _XML_TYPES}
_XML_ANSWER: Content = {_XML_TYPES[0]: dict(TEXT)}
_RESULT: Schema = {"type": "object", "properties": {"success": {"type": "boolean"}, "msg": dict(TEXT)}}

REGISTER_BY_FORM = Operation(
    "cloudRegister",
    "Registers a callback that is notified of changes of feeds, for 25 hours (rssCloud); url2 and so on are more feeds",
    {200: {**_XML_ANSWER, _JSON_TYPE: _RESULT}},
    errors=(403, 404, 429),
    body={
        WEB_FORM: {
            "type": "object",
            "required": ["port", "path", "protocol", "url1"],
            "properties": {name: dict(TEXT) for name in _FIELDS},
        }
    },
    plain_errors=True,
)
REGISTER_BY_XML_RPC = Operation(
    "cloudRegisterByXmlRpc",
    "The same by XML-RPC: smartfeeds.rssPleaseNotify with procedure, port, path, protocol and feeds",
    {200: _XML_ANSWER, 500: _XML_ANSWER},
    errors=(404, 429),
    body=_XML_CONTENT,
)
REGISTER_BY_SOAP = replace(
    REGISTER_BY_XML_RPC,
    name="cloudRegisterBySoap",
    summary="The same by SOAP 1.1: rssPleaseNotify with the same parameters in this order",
)


class CloudDoors:
    """Handles registrations. The cloud does not run if it is off, or if the service has no public address."""

    def __init__(self, tools: SiteTools) -> None:
        self._cloud = tools.parts.find(CloudServer)
        self._bodies = replace(tools.bodies, limit_bytes=MAX_BODY_BYTES)
        self._threads = OwnThreads(XML_AT_ONCE)

    async def by_form(self, call: HttpCall) -> Reply:
        """A registration as a form. Raises FeedError, HttpError."""
        cloud = self._opened()
        body = await self._bodies.read(call, (WEB_FORM,))
        if call.media_type != WEB_FORM:
            raise unsupported(f"a registration is a form: {WEB_FORM}", (WEB_FORM,))

        def read() -> CloudRequest:
            try:
                return read_form(body)
            except CloudRequestError:
                raise
            except ValueError:
                text = "the body is not a form in UTF-8, or has too many fields"
                raise HttpError(HTTPStatus.BAD_REQUEST, text) from None

        answer = await _registered(cloud, call, read)
        # An answer in the wrong format is better than none: living workstations send strange headers (RD-5).
        form = choose(call.header("Accept"), (_AS_XML, _AS_JSON)) or _AS_XML
        return _reply(write_form_answer(answer, as_json=form is _AS_JSON), form.media_type)

    async def by_xml_rpc(self, call: HttpCall) -> Reply:
        """A call by XML-RPC, or by SOAP. Raises FeedError, HttpError."""
        return await self._by_xml(call, is_soap=False)

    async def by_soap(self, call: HttpCall) -> Reply:
        """The same; a message that is neither gets a fault of SOAP. Raises FeedError, HttpError."""
        return await self._by_xml(call, is_soap=True)

    async def _by_xml(self, call: HttpCall, *, is_soap: bool) -> Reply:
        cloud = self._opened()
        body = await self._bodies.read(call, _XML_TYPES)
        if call.media_type not in ("", *_XML_TYPES):
            raise unsupported("a call is XML: text/xml", _XML_TYPES)
        is_soap, remote_call = await self._threads(partial(read_remote_call, body, prefers_soap=is_soap))
        try:
            if isinstance(remote_call, RemoteCallError):
                raise remote_call
            success = await _called(cloud, call, remote_call)
        except RemoteCallError as fault:
            # SOAP 1.1 section 6.2: a fault has the status 500. XML-RPC always has 200.
            if is_soap:
                return _reply(soap.write_fault(fault), XML_TYPE, HTTPStatus.INTERNAL_SERVER_ERROR)
            return _reply(xml_rpc.write_fault(fault), XML_TYPE)
        if is_soap:
            return _reply(soap.write_result(remote_call.name, success, f"{call.site_url}/"), XML_TYPE)
        return _reply(xml_rpc.write_result(success), XML_TYPE)

    def _opened(self) -> CloudServer:
        if self._cloud is None:
            text = "this service has no cloud, because its operator has switched it off or has not set http.base_url"
            raise HttpError(HTTPStatus.NOT_FOUND, text)
        return self._cloud


async def _called(cloud: CloudServer, call: HttpCall, remote_call: RemoteCall) -> bool:
    """The result of a procedure. Raises RemoteCallError for one that does not exist here."""
    if soap.element_name(remote_call.name) == HELLO:
        return True
    if not is_registration(remote_call):
        text = (
            f"there is no procedure {remote_call.name[:80]}; the feeds of this server report their changes themselves."
        )
        raise RemoteCallError(text)
    return (await _registered(cloud, call, lambda: read_registration(remote_call))).success


async def _registered(cloud: CloudServer, call: HttpCall, read: Callable[[], CloudRequest]) -> CloudAnswer:
    try:
        cloud.admit(call.address)
        return CloudAnswer(True, await cloud.register(read(), call.address))
    except CloudRequestError as error:
        return CloudAnswer(False, f"Not registered: {error}")


def _reply(body: bytes, media_type: str, status: HTTPStatus = HTTPStatus.OK) -> Reply:
    return Reply(body, media_type, status, _NO_STORE)


def _links(links: FeedLinks, parts: Parts) -> FeedLinks:
    cloud = parts.find(CloudServer)
    return links if cloud is None else links._replace(cloud=cloud.own)


HTTP = HttpSide(
    (
        Route("POST", CLOUD_FORM, "cloud", REGISTER_BY_FORM, lambda h: h.by_form),
        Route("POST", CLOUD_RPC, "cloud", REGISTER_BY_XML_RPC, lambda h: h.by_xml_rpc),
        Route("POST", CLOUD_SOAP, "cloud", REGISTER_BY_SOAP, lambda h: h.by_soap),
    ),
    CloudDoors,
    links=_links,
)
