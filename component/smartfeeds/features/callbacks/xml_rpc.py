"""Calls and answers of XML-RPC (xmlrpc.com/spec), read and written by the standard library.

The parser of the standard library expands entities and has no limits. So it gets only what `remote_calls.read_message`
has read and checked: a document of limited size and depth, without a DTD.
"""

from typing import Any, Final
from xml.parsers.expat import ExpatError
from xmlrpc.client import Error, Fault, Unmarshaller, dumps, loads

from lxml import etree

from smartfeeds.core.text import escape
from smartfeeds.features.callbacks.remote_calls import (
    RemoteCall,
    RemoteCallError,
    RemoteValue,
    local_name,
    read_message,
)
from smartfeeds.formats.xml import Element

METHOD_CALL: Final = "methodCall"
_FAULT_CODE: Final = 4  # of all our faults
_TYPES: Final = {"i4", "int", "boolean", "string", "double", "dateTime.iso8601", "base64", "array", "struct"}
# The library also reads types of other specifications. Decimals among them may raise when they are compared.
_EXTENSIONS: Final = frozenset(Unmarshaller.dispatch) - _TYPES - {"methodName", "params", "value", "fault", "name"}
# The library checks neither the types of values nor the members of structures. ExpatError: lxml lets more characters
# pass in names (XML 1.0, fifth edition).
_FAULTS = (Error, ExpatError, ArithmeticError, LookupError, TypeError, ValueError)


def read_call(root: Element) -> RemoteCall:
    """Returns the call in a message. Raises RemoteCallError."""
    if local_name(root) != METHOD_CALL:
        raise RemoteCallError(f"the message is no call: its root element is {local_name(root)[:40]}.")
    try:
        values, name = _read(root)
    except Fault:
        raise RemoteCallError("the message is no call: it reports a fault.") from None
    if not name:
        raise RemoteCallError("the call has no methodName.")
    return RemoteCall(name, values)


def read_result(data: bytes) -> RemoteValue:
    """Returns the result in an answer. Raises RemoteCallError, also for an answer that reports a fault."""
    root = read_message(data)
    if local_name(root) != "methodResponse":
        raise RemoteCallError(f"the message is no answer: its root element is {local_name(root)[:40]}.")
    try:
        results, _ = _read(root)
    except Fault as fault:
        raise RemoteCallError(str(fault.faultString)) from None
    if len(results) != 1:
        raise RemoteCallError(f"the answer has {len(results)} values.")
    return results[0]


def write_call(call: RemoteCall) -> bytes:
    """Returns a call as a message in UTF-8."""
    # `dumps` escapes values, but not the name.
    return dumps(call.parameters, escape(call.name)).encode()


def write_result(value: RemoteValue) -> bytes:
    """Returns an answer with one value."""
    return dumps((value,), methodresponse=True).encode()


def write_fault(fault: RemoteCallError) -> bytes:
    """Returns an answer that reports a fault."""
    return dumps(Fault(_FAULT_CODE, fault.text)).encode()


def _read(root: Element) -> tuple[tuple[RemoteValue, ...], str]:
    """The values of a message, and the name of its method, "" without one. Raises RemoteCallError, and Fault for a
    message that reports one."""
    for node in root.iter(etree.Element):
        # As the library does, which knows no namespaces.
        if (tag := local_name(node).rpartition(":")[2]) in _EXTENSIONS:
            raise RemoteCallError(f"the message is no proper XML-RPC: {tag} is none of its types.")
    try:
        message: Any = loads(etree.tostring(root))
    except Fault:
        raise
    except _FAULTS as error:
        raise RemoteCallError(f"the message is no proper XML-RPC: {str(error)[:80]}.") from None
    values, name = message
    return values, (name or "").strip()
