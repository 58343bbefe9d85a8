"""The messages of rssCloud: registrations, notifications and answers by form, XML-RPC and SOAP."""

import json
from collections.abc import Mapping
from urllib.parse import parse_qsl

import pytest

from smartfeeds.app.formats import read_document
from smartfeeds.features.callbacks import soap, xml_rpc
from smartfeeds.features.callbacks.cloud_messages import (
    FORM_TYPE,
    XML_TYPE,
    CloudAnswer,
    CloudMessage,
    own_cloud,
    read_answer,
    read_notification,
    read_registration,
    refusal_in,
    write_form_answer,
    write_notification,
    write_registration,
)
from smartfeeds.features.callbacks.cloud_protocol import (
    CloudCallback,
    CloudProtocol,
    CloudRequest,
    CloudRequestError,
    check_request,
    read_form,
)
from smartfeeds.features.callbacks.remote_calls import RemoteCall, RemoteCallError, RemoteValue, read_message
from smartfeeds.formats.rss_channel import Cloud, cloud_element
from support.golden import GOLDEN

GOLD = GOLDEN["rsscloud"]
SITE = "http://feeds.example"
NEWS, TALK = f"{SITE}/feeds/news.rss", f"{SITE}/feeds/talk.rss"
NOTIFY = "/rsscloud/notify/vZ81kQ"
FORM, RPC, SOAP = CloudProtocol.HTTP_POST, CloudProtocol.XML_RPC, CloudProtocol.SOAP
HEAD = (
    '<?xml version="1.0" encoding="utf-8"?>\n'
    '<s:Envelope xmlns:s="http://schemas.xmlsoap.org/soap/envelope/" xmlns:x="http://www.w3.org/2001/XMLSchema"\n'
    '    xmlns:i="http://www.w3.org/2001/XMLSchema-instance" '
    's:encodingStyle="http://schemas.xmlsoap.org/soap/encoding/"><s:Body>\n'
)
TAIL = "</s:Body></s:Envelope>\n"
ARRAY = 'xmlns:e="http://schemas.xmlsoap.org/soap/encoding/" i:type="e:Array" e:arrayType="x:string[2]"'
XML_HEAD = '<?xml version="1.0" encoding="utf-8"?>\n'
RPC_HEAD = "<?xml version='1.0'?>\n"


def by_rpc(data: bytes) -> CloudRequest:
    return read_registration(xml_rpc.read_call(read_message(data)))


def by_soap(data: bytes) -> CloudRequest:
    return read_registration(soap.read_call(read_message(data)))


def rpc_call(*values: str, name: str = "feeds.rssPleaseNotify") -> bytes:
    params = "".join(f"<param><value>{value}</value></param>" for value in values)
    return f"<methodCall><methodName>{name}</methodName><params>{params}</params></methodCall>".encode()


FIVE = ("n.m", "<int>80</int>", "/n", "xml-rpc", f"<array><data><value>{NEWS}</value></data></array>")


# Golden values.


def test_element_of_the_golden_values() -> None:
    """[RC-001] [RSS-015] [RSS-016]"""
    cloud = Cloud("feeds.example", 80, "/RPC2", "feeds.rssPleaseNotify", "xml-rpc")
    assert cloud_element(cloud) == GOLD["cloud_element"]


@pytest.mark.parametrize(
    ("site_url", "protocol", "element"),
    [
        (SITE, FORM, Cloud("feeds.example", 80, "/rsscloud/pleaseNotify", "", "http-post")),
        (SITE, RPC, Cloud("feeds.example", 80, "/RPC2", "smartfeeds.rssPleaseNotify", "xml-rpc")),
        (SITE, SOAP, Cloud("feeds.example", 80, "/rsscloud/soap", "smartfeeds.rssPleaseNotify", "soap")),
        ("https://f.example", FORM, Cloud("f.example", 443, "/rsscloud/pleaseNotify", "", "http-post")),
        ("https://f.example:8443/x", FORM, Cloud("f.example", 8443, "/x/rsscloud/pleaseNotify", "", "http-post")),
    ],
)
def test_own_cloud(site_url: str, protocol: CloudProtocol, element: Cloud) -> None:
    """[RC-002] [RC-003] [RC-004] [A-137]"""
    assert own_cloud(site_url, protocol) == (element, f"{site_url}/rsscloud/pleaseNotify")


def test_registrations_of_the_golden_values() -> None:
    """[RC-014] [RC-020] [RSS-019] [RSS-020] [A-129]"""
    rpc, form = GOLD["xmlrpc"]["register"].encode(), GOLD["http_post"]["register"].partition("\n\n")[2].encode()
    urls = ("http://feeds.example/rss.xml", "http://feeds.example/two.xml")
    assert by_rpc(rpc) == CloudRequest("myCloud.notify", 5337, "/RPC2", RPC, urls)
    assert by_soap(GOLD["soap"]["register"].encode()) == CloudRequest("notify", 5337, "/soap", SOAP, urls[:1])
    assert read_form(form) == CloudRequest("", 5337, "/notify", FORM, urls)


def test_answers_and_notifications_of_the_golden_values() -> None:
    """[RC-045] [RC-046] [RC-048] [RSS-022] [RSS-023] [RSS-024] [RSS-030]"""
    url = "http://feeds.example/rss.xml"
    assert xml_rpc.write_result(True) == GOLD["xmlrpc"]["accepted"].encode()
    assert xml_rpc.write_result(False) == GOLD["xmlrpc"]["refused"].encode()
    notify = write_notification(CloudCallback("", RPC, "myCloud.notify"), url, f"{SITE}/")
    assert notify.body == GOLD["xmlrpc"]["notify"].encode()
    assert refusal_in(RPC, GOLD["xmlrpc"]["notify_answer"].encode()) == ""
    form = write_notification(CloudCallback("", FORM), url, f"{SITE}/")
    assert form.body.decode() == GOLD["http_post"]["notify"].partition("\n\n")[2]
    # The golden envelopes have other prefixes, so what they say is compared.
    golden = read_message(GOLD["soap"]["notify"].encode())
    ours = read_message(write_notification(CloudCallback("", SOAP, "notify"), url, f"{SITE}/").body)
    assert soap.read_call(ours) == soap.read_call(golden) == RemoteCall("notify", (url,))
    assert [node.tag for node in ours.iter()] == [node.tag for node in golden.iter()]
    accepted = soap.write_result("rssPleaseNotify", True, f"{SITE}/")
    assert [node.tag for node in read_message(accepted).iter()] == [
        node.tag for node in read_message(GOLD["soap"]["accepted"].encode()).iter()
    ]


# The bytes of our messages.

REQUEST = CloudRequest("smartfeeds.notify", 8080, NOTIFY, RPC, (NEWS, TALK))


def test_bytes_of_the_form() -> None:
    """[RC-003] A registration, its answers and the notification."""
    request = check_request("", 8080, NOTIFY, "http-post", (NEWS, TALK))
    message = write_registration(FORM, "", request, f"{SITE}/")
    assert message.headers == {"Content-Type": FORM_TYPE}
    assert len(message.body) == 182
    assert message.body.decode() == (
        "notifyProcedure=&port=8080&path=%2Frsscloud%2Fnotify%2FvZ81kQ&protocol=http-post"
        "&url1=http%3A%2F%2Ffeeds.example%2Ffeeds%2Fnews.rss&url2=http%3A%2F%2Ffeeds.example%2Ffeeds%2Ftalk.rss"
    )
    domain = check_request("", 443, NOTIFY, "http-post", (NEWS,), "reader.example")
    fields = dict(parse_qsl(write_registration(FORM, "", domain, SITE).body.decode(), keep_blank_values=True))
    assert (fields["domain"], fields["protocol"]) == ("reader.example", "https-post")
    answer = CloudAnswer(True, "Registered. Ask again within 25 hours, best after 24.")
    xml = f'{XML_HEAD}<notifyResult success="true" msg="Registered. Ask again within 25 hours, best after 24."/>\n'
    assert write_form_answer(answer).decode() == xml
    assert json.loads(write_form_answer(answer, as_json=True)) == {"success": True, "msg": answer.text}
    assert write_notification(CloudCallback("", FORM), NEWS, "") == CloudMessage(
        b"url=http%3A%2F%2Ffeeds.example%2Ffeeds%2Fnews.rss", {"Content-Type": FORM_TYPE}
    )


def test_bytes_of_xml_rpc() -> None:
    """[RC-045] A registration, a fault, a notification."""
    message = write_registration(RPC, "smartfeeds.rssPleaseNotify", REQUEST, f"{SITE}/")
    values = "".join(f"<value><string>{url}</string></value>\n" for url in (NEWS, TALK))
    assert message == CloudMessage(
        f"{RPC_HEAD}<methodCall>\n<methodName>smartfeeds.rssPleaseNotify</methodName>\n<params>\n"
        "<param>\n<value><string>smartfeeds.notify</string></value>\n</param>\n"
        "<param>\n<value><int>8080</int></value>\n</param>\n"
        f"<param>\n<value><string>{NOTIFY}</string></value>\n</param>\n"
        "<param>\n<value><string>xml-rpc</string></value>\n</param>\n"
        f"<param>\n<value><array><data>\n{values}</data></array></value>\n</param>\n"
        "</params>\n</methodCall>\n".encode(),
        {"Content-Type": XML_TYPE},
    )
    assert by_rpc(message.body) == REQUEST
    fault = xml_rpc.write_fault(RemoteCallError("5 parameters are wanted, 3 came."))
    assert fault.decode() == (
        f"{RPC_HEAD}<methodResponse>\n<fault>\n<value><struct>\n"
        "<member>\n<name>faultCode</name>\n<value><int>4</int></value>\n</member>\n"
        "<member>\n<name>faultString</name>\n<value><string>5 parameters are wanted, 3 came.</string></value>\n"
        "</member>\n</struct></value>\n</fault>\n</methodResponse>\n"
    )
    assert write_notification(CloudCallback("", RPC, "smartfeeds.<notify"), NEWS, "").body.decode() == (
        f"{RPC_HEAD}<methodCall>\n<methodName>smartfeeds.&lt;notify</methodName>\n<params>\n"
        f"<param>\n<value><string>{NEWS}</string></value>\n</param>\n</params>\n</methodCall>\n"
    )


def test_bytes_of_soap() -> None:
    """[RC-046] A registration, its answer, a fault, a notification and its answer."""
    request = CloudRequest("notify", 8080, NOTIFY, SOAP, (NEWS, TALK))
    message = write_registration(SOAP, "smartfeeds.rssPleaseNotify", request, f"{SITE}/")
    body = (
        f'{HEAD}<m:rssPleaseNotify xmlns:m="{SITE}/">\n'
        '<notifyProcedure i:type="x:string">notify</notifyProcedure>\n<port i:type="x:int">8080</port>\n'
        f'<path i:type="x:string">{NOTIFY}</path>\n<protocol i:type="x:string">soap</protocol>\n'
        f'<urlList {ARRAY}>\n<item i:type="x:string">{NEWS}</item><item i:type="x:string">{TALK}</item></urlList>\n'
        f"</m:rssPleaseNotify>\n{TAIL}"
    )
    assert message == CloudMessage(body.encode(), {"Content-Type": XML_TYPE, "SOAPAction": '""'})
    assert by_soap(message.body) == request
    answer = soap.write_result("rssPleaseNotify", True, f"{SITE}/")
    result = '<result i:type="x:boolean">true</result>'
    assert answer.decode() == (
        f'{HEAD}<m:rssPleaseNotifyResponse xmlns:m="{SITE}/">{result}</m:rssPleaseNotifyResponse>\n{TAIL}'
    )
    assert (len(answer), soap.read_result(answer)) == (422, True)
    fault = soap.write_fault(RemoteCallError("5 parameters are wanted, 3 came."))
    texts = "<faultcode>s:Client</faultcode><faultstring>5 parameters are wanted, 3 came.</faultstring>"
    assert (fault.decode(), len(fault)) == (f"{HEAD}<s:Fault>{texts}</s:Fault>\n{TAIL}", 404)
    notification = write_notification(CloudCallback("", SOAP, "notify"), NEWS, f"{SITE}/")
    url = f'<url i:type="x:string">{NEWS}</url>'
    assert notification.body.decode() == f'{HEAD}<m:notify xmlns:m="{SITE}/">{url}</m:notify>\n{TAIL}'
    assert (len(notification.body), notification.headers["SOAPAction"]) == (412, '""')
    assert len(soap.write_result("notify", True, f"{SITE}/")) == 404


def test_procedure_of_soap_with_dots_names_its_last_part() -> None:
    """[RC-047]"""
    body = write_notification(CloudCallback("", SOAP, "a.b.notify"), NEWS, f"{SITE}/").body
    assert soap.read_call(read_message(body)).name == "notify"
    assert soap.element_name("a.1notify") == "_1notify"


# What is read.


@pytest.mark.parametrize("name", ["pleaseNotify", "rssCloud.pleaseNotify", "a.b.requestNotification"])
@pytest.mark.parametrize("port", ["<int>80</int>", "<i4>80</i4>", "80", "<string> 80 </string>"])
def test_values_of_xml_rpc(name: str, port: str) -> None:
    """[RC-015]"""
    call = xml_rpc.read_call(read_message(rpc_call(FIVE[0], port, *FIVE[2:], name=name)))
    assert call.name == name
    assert read_registration(call) == CloudRequest("n.m", 80, "/n", RPC, (NEWS,))


def test_one_string_is_an_array_of_one() -> None:
    """[RC-016]"""
    assert by_rpc(rpc_call(*FIVE[:4], NEWS)).urls == (NEWS,)


def test_sixth_parameter_is_the_domain_if_it_is_a_string() -> None:
    """[RC-014] [RC-030] A structure, as Radio sent it, is ignored."""
    assert by_rpc(rpc_call(*FIVE, "reader.example")).domain == "reader.example"
    assert by_rpc(rpc_call(*FIVE, "")).domain == ""
    struct = "<struct><member><name>usernum</name><value><int>0</int></value></member></struct>"
    assert by_rpc(rpc_call(*FIVE, struct)).domain == ""


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (rpc_call(*FIVE[:3]), "5 parameters are wanted, 3 came"),
        (rpc_call(*FIVE, "", ""), "5 parameters are wanted, 7 came"),
        (rpc_call("<int>1</int>", *FIVE[1:]), "the parameters must be a procedure"),
        (rpc_call(FIVE[0], "<struct/>", *FIVE[2:]), "the parameters must be a procedure"),
        (rpc_call(*FIVE[:4], "<array><data><value><int>1</int></value></data></array>"), "the parameters must be"),
        (rpc_call(FIVE[0], "<int>x</int>", *FIVE[2:]), "no proper XML-RPC: invalid literal .* 'x'"),
        (rpc_call(FIVE[0], f"<int>{'1' * 5_000}</int>", *FIVE[2:]), "no proper XML-RPC: Exceeds the limit"),
        (rpc_call(FIVE[0], "<int>1</int><int>2</int><odd/>"), "5 parameters are wanted, 3 came"),
        (rpc_call("<boolean>2</boolean>"), "bad boolean value"),
        (rpc_call("<double>a</double>"), "could not convert string to float: 'a'"),
        (rpc_call("<bigdecimal>a</bigdecimal>"), "no proper XML-RPC: bigdecimal is none of its types"),
        (rpc_call("<base64>a</base64>"), "no proper XML-RPC"),
        (rpc_call("<odd>1</odd>"), "unknown tag 'odd'"),
        (rpc_call("<struct><member><value>a</value></member></struct>"), "list index out of range"),
        (rpc_call("<struct><member><array/><value>a</value></member></struct>"), "unhashable type"),
        (rpc_call("<\u0370/>"), "not well-formed"),
        (b"<methodCall/>", "no proper XML-RPC"),
        (b"<methodCall><params/></methodCall>", "the call has no methodName"),
        (b"<methodResponse/>", "the message is no call: its root element is methodResponse"),
        (b"<methodCall><methodName>a</methodName><params><param/></params></methodCall>", "5 parameters are wanted, 0"),
        (b"", "the document is empty"),
        (b"<a", "the document"),
        (b"<!DOCTYPE a [<!ENTITY e SYSTEM 'file:///etc/passwd'>]><a>&e;</a>", "external entity"),
        (b"<!DOCTYPE a [<!ENTITY e 'x'>]><a>&e;</a>", "the document has a DTD"),
        (b"<!DOCTYPE a><a/>", "the document has a DTD"),
        (b"<a>" * 21 + b"</a>" * 21, "nested deeper than 20 levels"),
        (b"<a>" * 2_000 + b"</a>" * 2_000, "nested too deeply"),
    ],
)
def test_no_proper_call(data: bytes, reason: str) -> None:
    """[RC-010] [RC-014]"""
    with pytest.raises(RemoteCallError, match=reason):
        by_rpc(data)


def test_entity_bomb_is_no_call() -> None:
    """[RC-010]"""
    entities = "".join(f'<!ENTITY e{n} "{f"&e{n - 1};" * 10}">' for n in range(1, 10))
    with pytest.raises(RemoteCallError):
        by_rpc(f'<!DOCTYPE a [<!ENTITY e0 "ha">{entities}]><a>&e9;</a>'.encode())


def test_depth_of_twenty_levels_is_read() -> None:
    """[RC-010]"""
    assert read_message(b"<a>" * 20 + b"</a>" * 20).tag == "a"


@pytest.mark.parametrize(
    "encode",
    [
        lambda text: f"<?xml version='1.0' encoding='iso-8859-1'?>{text}".encode("iso-8859-1"),
        lambda text: f"<?xml version='1.0' encoding='utf-16'?>{text}".encode("utf-16"),
        lambda text: b"\xef\xbb\xbf" + text.encode(),
        lambda text: f"\r\n<?xml version='1.0'?>\r\n{text}\r\n".encode(),
        lambda text: text.encode(),
    ],
    ids=["iso-8859-1", "utf-16", "mark", "line-ends", "bare"],
)
def test_encodings(encode: object) -> None:
    """[RC-011]"""
    assert callable(encode)
    text = rpc_call(*FIVE[:2], "/caf\u00e9", *FIVE[3:]).decode()
    assert by_rpc(encode(text)).path == "/caf%C3%A9"


SOAP_VARIANTS = {
    "other names": lambda text: text.replace("notifyProcedure", "a").replace("urlList", "b").replace("item", "c"),
    "other prefixes": lambda text: text.replace("SOAP-ENV:", "env:").replace(":SOAP-ENV=", ":env="),
    "other namespace": lambda text: text.replace('m="http://feeds.example/"', 'm="urn:x"'),
    "no namespace": lambda text: text.replace("m:rssPleaseNotify", "rssPleaseNotify").replace(
        ' xmlns:m="http://feeds.example/"', ""
    ),
    "no types": lambda text: text.replace('xsi:type="xsd:string"', "").replace('xsi:type="xsd:int"', ""),
    "no array type": lambda text: text.replace(' SOAP-ENC:arrayType="xsd:string[1]"', ""),
    "array of another type": lambda text: text.replace(
        'SOAP-ENC:arrayType="xsd:string[1]"', 'xsi:type="SOAP-ENC:Array"'
    ),
}


@pytest.mark.parametrize("name", SOAP_VARIANTS)
def test_soap_is_read_by_position(name: str) -> None:
    """[RC-017] [RC-018] [A-130]"""
    golden = GOLD["soap"]["register"]
    variant = SOAP_VARIANTS[name](golden)
    assert variant != golden
    assert by_soap(variant.encode()) == by_soap(golden.encode())


def envelope(body: str, header: str = "") -> bytes:
    return HEAD.replace("<s:Body>", f"{header}<s:Body>").encode() + f"{body}{TAIL}".encode()


def test_soap_references_are_followed() -> None:
    """[RC-018] SOAP 1.1 section 5.4.1"""
    body = (
        '<pleaseNotify><a href="#p"/><b>80</b><c>/n</c><d>soap</d><e href="#u"/></pleaseNotify>'
        f'<x id="p" i:type="x:string">notify</x><y id="u" {ARRAY}><item href="#n"/></y><z id="n">{NEWS}</z>'
    )
    assert by_soap(envelope(body)) == CloudRequest("notify", 80, "/n", SOAP, (NEWS,))


@pytest.mark.parametrize(
    ("body", "header", "reason"),
    [
        ('<p><a href="#no"/></p>', "", "no element with the id no"),
        ('<p><a href="#a"/></p><b id="a" href="#a"/>', "", "too many values"),
        ('<p><a href="#a"/></p><b id="a"><c href="#d"/><c href="#d"/></b><d id="d"><e href="#a"/></d>', "", "too many"),
        ("", "", "the envelope has no call"),
        ("<p/>", '<s:Header><t:tx xmlns:t="urn:t" s:mustUnderstand="1"/></s:Header>', "the header tx is not known"),
    ],
)
def test_soap_that_is_no_proper_call(body: str, header: str, reason: str) -> None:
    """[RC-018] [RC-019]"""
    with pytest.raises(RemoteCallError, match=reason):
        soap.read_call(read_message(envelope(body, header)))


def test_header_that_must_be_understood_has_a_fault_of_its_own() -> None:
    """[RC-019] SOAP 1.1 section 4.4.1; other headers are ignored."""
    header = '<s:Header><t:tx xmlns:t="urn:t" s:mustUnderstand="{}"/></s:Header>'
    assert soap.read_call(read_message(envelope("<p/>", header.format(0)))) == RemoteCall("p", ())
    with pytest.raises(soap.MustUnderstandError) as caught:
        soap.read_call(read_message(envelope("<p/>", header.format(1))))
    assert b"<faultcode>s:MustUnderstand</faultcode>" in soap.write_fault(caught.value)


def test_radio_calls_with_user_data() -> None:
    """[RC-014] [RC-017] Radio's community servers: six parameters, the last a structure (RD-2)."""
    body = (
        '<m:requestNotification xmlns:m="http://www.soapware.org/">'
        '<notifyProcedure i:type="x:string">radio.notify</notifyProcedure><port i:type="x:int">5335</port>'
        '<path i:type="x:string">/RPC2</path><protocol i:type="x:string">soap</protocol>'
        f'<urlList {ARRAY}><item i:type="x:string">{NEWS}</item></urlList>'
        '<userinfo><usernum i:type="x:int">0</usernum></userinfo></m:requestNotification>'
    )
    assert by_soap(envelope(body)) == CloudRequest("radio.notify", 5335, "/RPC2", SOAP, (NEWS,))


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"port": 0}, "the port must be a number from 1 to 65535"),
        ({"port": 65_536}, "the port must be"),
        ({"port": "8o"}, "the port must be"),
        ({"port": True}, "the port must be"),
        ({"path": "//evil.example/"}, "the path must begin with one slash"),
        ({"path": "/a\nb"}, "the path must begin"),
        ({"path": "/a#b"}, "the path must begin"),
        ({"path": "/a b"}, "the path must begin"),
        ({"path": "/" + "a" * 1_024}, "the path is longer than 1024 bytes"),
        ({"protocol": "XML-RPC"}, "the protocol must be one of http-post, xml-rpc, soap, https-post"),
        ({"protocol": "post"}, "the protocol must be one of"),
        ({"procedure": ""}, "xml-rpc needs the name of a procedure"),
        ({"procedure": "a<b"}, "xml-rpc needs the name"),
        ({"procedure": "a" * 256}, "xml-rpc needs the name"),
        ({"urls": ()}, "1 to 100 addresses of feeds are wanted, 0 came"),
        ({"urls": tuple("a" * 101)}, "1 to 100 addresses of feeds are wanted, 101 came"),
        ({"domain": "a.example:80"}, "the domain must be the name of a host"),
        ({"domain": "a.example/x"}, "the domain must be"),
    ],
)
def test_registration_that_is_refused(changes: Mapping[str, object], reason: str) -> None:
    """[RC-021] [RC-022] [RC-024] [RC-025] [RSS-017]"""
    values: dict[str, object] = {"procedure": "n", "port": 80, "path": "/n", "protocol": "xml-rpc", "urls": (NEWS,)}
    with pytest.raises(CloudRequestError, match=reason):
        check_request(**(values | changes))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("port", "path", "protocol", "host", "url"),
    [
        (80, "notify", "http-post", "192.0.2.7", "http://192.0.2.7/notify"),
        (8080, "/a?b=c", "http-post", "Reader.Example", "http://reader.example:8080/a?b=c"),
        (443, "/n", "http-post", "reader.example", "https://reader.example/n"),
        (8443, "/n", "https-post", "reader.example", "https://reader.example:8443/n"),
        (80, "/n", "http-post", "2001:db8::1", "http://[2001:db8::1]/n"),
        (81, "/n", "http-post", "[2001:db8::1]", "http://[2001:db8::1]:81/n"),
    ],
)
def test_address_of_the_callback(port: int, path: str, protocol: str, host: str, url: str) -> None:
    """[RC-021] [RC-022] [RC-026]"""
    request = check_request("", port, path, protocol, (NEWS,))
    assert request.callback(host) == CloudCallback(url, FORM)


def test_fields_of_a_form() -> None:
    """[RC-020] The URLs in the order of their numbers, `url` first; other fields are ignored (RD-7)."""
    body = b"port=80&path=/n&protocol=http-post&url10=j&url2=b&url=x&urls=n&url0=0&url2=twice&more=1"
    assert read_form(body).urls == ("x", "0", "b", "j")
    for missing in ("port", "path", "protocol"):
        body = b"&".join(part for part in b"port=80&path=/n&protocol=soap".split(b"&") if missing.encode() not in part)
        with pytest.raises(CloudRequestError, match=f"the field {missing} is missing"):
            read_form(body)
    with pytest.raises(CloudRequestError, match="soap needs the name of a procedure"):
        read_form(b"port=80&path=/n&protocol=soap&url1=a")
    for broken in (b"\xff", b"port=%FF", b"&".join([b"a=1"] * 301)):
        with pytest.raises(ValueError):
            read_form(broken)


@pytest.mark.parametrize(
    ("protocol", "body", "answer"),
    [
        (FORM, b'<?xml version="1.0"?><notifyResult success="true" msg="ok"/>', (True, "ok")),
        (FORM, b"<notifyResult success='false' msg='no'/>", (False, "no")),
        (FORM, b"<notifyResult success='TRUE'/>", (True, "")),
        (FORM, b"<notifyResult/>", (False, "")),
        (FORM, b'{"success": true, "msg": "ok"}', (True, "ok")),
        (FORM, b'{"success": "true"}', (True, "")),
        (FORM, b'{"success": false, "msg": "no"}', (False, "no")),
        (FORM, b"[]", (False, "")),
        (RPC, xml_rpc.write_result(True), (True, "")),
        (RPC, xml_rpc.write_result(1), (True, "")),
        (RPC, xml_rpc.write_result("true"), (True, "")),
        (RPC, xml_rpc.write_result(False), (False, "answered false")),
        (RPC, xml_rpc.write_result("no such feed"), (False, "no such feed")),
        (SOAP, soap.write_result("x", True, "urn:x"), (True, "")),
        (SOAP, soap.write_result("x", "1", "urn:x"), (True, "")),
        (SOAP, envelope("<r><p><flError>0</flError><message>Fine</message></p></r>"), (True, "Fine")),
        (
            SOAP,
            envelope('<r><p><flError i:type="x:boolean">false</flError><message>Fine</message></p></r>'),
            (True, "Fine"),
        ),
        (
            SOAP,
            envelope('<r><p><flError i:type="x:boolean">true</flError><message>No</message></p></r>'),
            (False, "No"),
        ),
    ],
)
def test_answers_of_clouds(protocol: CloudProtocol, body: bytes, answer: tuple[bool, str]) -> None:
    """[RSS-022] [RC-065] As living clouds write them (RD-3)."""
    assert read_answer(protocol, body) == answer


@pytest.mark.parametrize(
    ("protocol", "body", "text"),
    [
        (FORM, b"<html><body>hello</body></html>", "the answer is no notifyResult: its root element is html"),
        (FORM, b"{", "line 1"),
        (RPC, xml_rpc.write_fault(RemoteCallError("no such feed")), "no such feed"),
        (RPC, b"<methodResponse><fault><value>no</value></fault></methodResponse>", "no proper XML-RPC"),
        (RPC, b"<methodResponse><fault/></methodResponse>", "no proper XML-RPC"),
        (SOAP, soap.write_fault(RemoteCallError("no")), "no"),
    ],
)
def test_faults_and_other_documents_are_no_answers(protocol: CloudProtocol, body: bytes, text: str) -> None:
    """[RC-065]"""
    with pytest.raises(RemoteCallError, match=text):
        read_answer(protocol, body)


# Values that the library reads and no answer has: of other specifications, and such as cannot be compared.
FOREIGN = [
    *(f"<bigdecimal>{text}</bigdecimal>" for text in ("sNaN", "NaN", "Infinity", "1", "1e999999")),
    "<nil/>",
    "<ex:nil/>",
    '<ex:nil xmlns:ex="http://ws.apache.org/xmlrpc/namespaces/extensions"/>',
    '<nil xmlns="http://ws.apache.org/xmlrpc/namespaces/extensions"/>',
    *(f"<{kind}>1</{kind}>" for kind in ("i1", "i2", "i8", "biginteger", "float", "ex:i8")),
]
STRANGE = [
    *(f"<double>{text}</double>" for text in ("nan", "inf", "1e999", "0.5")),
    "<dateTime.iso8601>20110509T12:00:00</dateTime.iso8601>",
    "<base64>MQ==</base64>",
    "<int>99999999999</int>",
    "<array><data/></array>",
    "<struct/>",
]


def response(value: str) -> bytes:
    return f"<methodResponse><params><param><value>{value}</value></param></params></methodResponse>".encode()


def fault(code: str, text: str) -> str:
    members = f"<member><name>faultCode</name><value>{code}</value></member>"
    members += f"<member><name>faultString</name><value>{text}</value></member>"
    return f"<fault><value><struct>{members}</struct></value></fault>"


def fl_error(value: str) -> str:
    return f"<struct><member><name>flError</name><value>{value}</value></member></struct>"


@pytest.mark.parametrize("value", FOREIGN)
def test_types_of_other_specifications_are_refused(value: str) -> None:
    """[RC-010] [RC-065] Wherever they are, in calls and in answers."""
    for inside in (value, fl_error(value), f"<array><data><value>{value}</value></data></array>"):
        assert refusal_in(RPC, response(inside)).startswith("gave no proper answer")
        with pytest.raises(RemoteCallError):
            read_answer(RPC, response(inside))
        with pytest.raises(RemoteCallError):
            by_rpc(rpc_call(*FIVE, inside))
    with pytest.raises(RemoteCallError):
        read_answer(RPC, f"<methodResponse>{fault('<int>1</int>', value)}</methodResponse>".encode())


@pytest.mark.parametrize("value", STRANGE)
def test_no_value_is_a_success_but_a_truth_value(value: str) -> None:
    """[RC-065]"""
    assert refusal_in(RPC, response(value)) == "answered false"
    assert not read_answer(RPC, response(value)).success
    assert not read_answer(RPC, response(fl_error(value))).success
    for port in range(5):
        with pytest.raises((RemoteCallError, CloudRequestError)):
            by_rpc(rpc_call(*FIVE[:port], value, *FIVE[port + 1 :]))


@pytest.mark.parametrize("code", ["99999999999", "-99999999999", "7"])
def test_fault_of_a_caller_is_not_echoed(code: str) -> None:
    """[RC-010] A call that reports a fault is none; our faults have the code 4."""
    with pytest.raises(RemoteCallError, match="the message is no call: it reports a fault") as caught:
        by_rpc(f"<methodCall>{fault(f'<int>{code}</int>', 'secret')}</methodCall>".encode())
    written = xml_rpc.write_fault(caught.value)
    assert b"<int>4</int>" in written and b"secret" not in written

    with pytest.raises(RemoteCallError, match="secret") as caught:
        read_answer(RPC, f"<methodResponse>{fault(f'<int>{code}</int>', 'secret')}</methodResponse>".encode())
    assert b"<int>4</int>" in xml_rpc.write_fault(caught.value)


@pytest.mark.parametrize(
    ("protocol", "body", "refusal"),
    [
        (RPC, xml_rpc.write_result(True), ""),
        (RPC, xml_rpc.write_result(False), "answered false"),
        (RPC, xml_rpc.write_fault(RemoteCallError("no")), "gave no proper answer: no"),
        (RPC, b"ok", "gave no proper answer: the document"),
        (SOAP, soap.write_result("notify", True, "urn:x"), ""),
        (SOAP, envelope("<notifyResponse><return i:type='x:boolean'>true</return></notifyResponse>"), ""),
        (SOAP, soap.write_result("notify", False, "urn:x"), "answered false"),
        (SOAP, soap.write_fault(RemoteCallError("no")), "gave no proper answer: no"),
        (SOAP, envelope("<notifyResponse/>"), "gave no proper answer: the answer has no value"),
    ],
)
def test_answers_of_workstations(protocol: CloudProtocol, body: bytes, refusal: str) -> None:
    """[RC-045] [RC-046] [RSS-024]"""
    assert refusal_in(protocol, body).startswith(refusal)
    assert bool(refusal_in(protocol, body)) == bool(refusal)


def test_notification_of_a_value_without_type_is_read() -> None:
    """rsscloud-server 4 writes no type."""
    call = (
        "<?xml version='1.0'?><methodCall><methodName>smartfeeds.notify</methodName>"
        f"<params><param><value>{NEWS}</value></param></params></methodCall>"
    )
    assert read_notification(xml_rpc.read_call(read_message(call.encode()))) == NEWS
    bad: tuple[RemoteValue, ...]
    for bad in ((), (1,), (NEWS, NEWS)):
        with pytest.raises(RemoteCallError, match="1 parameter is wanted"):
            read_notification(RemoteCall("n", bad))


@pytest.mark.parametrize("scheme", ["http", "https"])
@pytest.mark.parametrize("slash", ["", "/"])
def test_source_cloud_is_read(scheme: str, slash: str) -> None:
    """[RC-005] In RSS and in OPML, in each spelling of the namespace."""
    cloud = f'<s:cloud xmlns:s="{scheme}://source.scripting.com{slash}"> https://c.example/n </s:cloud>'
    rss = f"<rss version='2.0'><channel><title>t</title>{cloud}</channel></rss>"
    opml = f"<opml version='2.0'><head><title>t</title>{cloud}</head><body><outline text='a'/></body></opml>"
    for text in (rss, opml):
        channel = read_document(text.encode()).channel
        assert channel is not None
        assert (channel.cloud_url, channel.extensions) == ("https://c.example/n", ())


@pytest.mark.needs("documents")
def test_hub_of_a_json_feed_may_be_a_cloud() -> None:
    """[RC-006]"""
    hubs = [{"type": "RSSCloud", "url": "https://c.example/n"}, {"type": "WebSub", "url": "https://h.example/"}]
    text = json.dumps({"version": "https://jsonfeed.org/version/1.1", "title": "t", "hubs": hubs, "items": []})
    channel = read_document(text.encode()).channel
    assert channel is not None
    assert (channel.hub, channel.cloud_url, channel.left_out) == ("https://h.example/", "https://c.example/n", ())
