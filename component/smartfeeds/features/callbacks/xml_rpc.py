"""Calls and answers of XML-RPC (xmlrpc.com/spec): reading and writing of messages."""

from collections.abc import Iterable, Mapping, Sequence

from lxml import etree

from smartfeeds.core.text import escape
from smartfeeds.features.callbacks.remote_calls import (
    RemoteCall,
    RemoteCallError,
    RemoteValue,
    local_name,
    read_boolean,
    read_message,
    read_number,
)
from smartfeeds.formats.atom import string_of
from smartfeeds.formats.xml import Element

METHOD_CALL = "methodCall"
_DECLARATION = '<?xml version="1.0" encoding="utf-8"?>\n'
_TEXTS = frozenset({"string", "base64", "dateTime.iso8601"})


def read_call(root: Element) -> RemoteCall:
    """Returns the call in a message. Raises RemoteCallError."""
    if local_name(root) != METHOD_CALL:
        raise RemoteCallError(f"the message is no call: its root element is {local_name(root)[:40]}.")
    name = "".join(string_of(node) for node in _children(root, "methodName")).strip()
    if not name:
        raise RemoteCallError("the call has no methodName.")
    return RemoteCall(name, tuple(_parameters(root)))


def read_result(data: bytes) -> RemoteValue:
    """Returns the result in an answer. Raises RemoteCallError, also for an answer that reports a fault."""
    root = read_message(data)
    if local_name(root) != "methodResponse":
        raise RemoteCallError(f"the message is no answer: its root element is {local_name(root)[:40]}.")
    for fault in _children(root, "fault"):
        value = _only_value(fault)
        members = value if isinstance(value, Mapping) else {}
        code = members.get("faultCode")
        raise RemoteCallError(str(members.get("faultString", "a fault")), code if isinstance(code, int) else 0)
    results = list(_parameters(root))
    if len(results) != 1:
        raise RemoteCallError(f"the answer has {len(results)} values.")
    return results[0]


def write_call(call: RemoteCall) -> bytes:
    """Returns a call as a message in UTF-8."""
    parameters = "".join(f"<param>{_value(value)}</param>\n" for value in call.parameters)
    name = f"<methodName>{escape(call.name)}</methodName>"
    return f"{_DECLARATION}<methodCall>{name}<params>\n{parameters}</params></methodCall>\n".encode()


def write_result(value: RemoteValue) -> bytes:
    """Returns an answer with one value."""
    result = f"<params><param>{_value(value)}</param></params>"
    return f"{_DECLARATION}<methodResponse>{result}</methodResponse>\n".encode()


def write_fault(fault: RemoteCallError) -> bytes:
    """Returns an answer that reports a fault."""
    values: Mapping[str, RemoteValue] = {"faultCode": fault.code, "faultString": fault.text}
    members = "".join(f"<member><name>{name}</name>{_value(value)}</member>\n" for name, value in values.items())
    result = f"<fault><value><struct>\n{members}</struct></value></fault>"
    return f"{_DECLARATION}<methodResponse>{result}</methodResponse>\n".encode()


def _children(parent: Element, name: str) -> list[Element]:
    return [child for child in parent.iterchildren(etree.Element) if local_name(child) == name]


def _parameters(root: Element) -> Iterable[RemoteValue]:
    return (_only_value(param) for params in _children(root, "params") for param in _children(params, "param"))


def _only_value(parent: Element) -> RemoteValue:
    values = _children(parent, "value")
    if len(values) != 1:
        raise RemoteCallError(f"{local_name(parent)} has {len(values)} values, one is wanted.")
    return _read_value(values[0])


def _read_value(node: Element) -> RemoteValue:
    """The content of a `value`. Without a type it is a string."""
    typed = next(node.iterchildren(etree.Element), None)
    if typed is None:
        return string_of(node)
    kind = local_name(typed)
    if kind == "array":
        return [_read_value(value) for data in _children(typed, "data") for value in _children(data, "value")]
    if kind == "struct":
        members = _children(typed, "member")
        return {"".join(map(string_of, _children(member, "name"))): _only_value(member) for member in members}
    text = string_of(typed)
    if kind in _TEXTS:
        return text
    if kind == "boolean":
        return read_boolean(text)
    if kind in ("int", "i4", "i8"):
        return read_number(text)
    if kind == "double":
        try:
            return float(text)
        except ValueError:
            raise RemoteCallError(f"{text[:40]!r} is no number.") from None
    if kind == "nil":
        return None
    raise RemoteCallError(f"{kind[:40]} is no type of XML-RPC.")


def _value(value: RemoteValue) -> str:
    if isinstance(value, bool):
        return f"<value><boolean>{int(value)}</boolean></value>"
    if isinstance(value, int):
        return f"<value><int>{value}</int></value>"
    if isinstance(value, str):
        return f"<value><string>{escape(value)}</string></value>"
    if isinstance(value, Sequence):
        return f"<value><array><data>{''.join(map(_value, value))}</data></array></value>"
    raise TypeError(f"no message of this program has a value of the type {type(value).__name__}")
