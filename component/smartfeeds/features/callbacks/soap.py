"""Calls and answers of SOAP 1.1 in the style RPC (sections 4, 5 and 7): reading and writing of messages.

Parameters are read by position, whatever their names and namespaces are (A-130). An element may be a reference to
another one with an id (section 5.4.1).
"""

from collections.abc import Sequence
from typing import Final

from lxml import etree

from smartfeeds.core.text import attribute, escape
from smartfeeds.features.callbacks.remote_calls import (
    MAX_DEPTH,
    RemoteCall,
    RemoteCallError,
    RemoteValue,
    local_name,
    read_message,
)
from smartfeeds.formats.atom import string_of
from smartfeeds.formats.xml import Element

ENVELOPE_NS: Final = "http://schemas.xmlsoap.org/soap/envelope/"
ENVELOPE: Final = f"{{{ENVELOPE_NS}}}Envelope"
_ENCODING_NS: Final = "http://schemas.xmlsoap.org/soap/encoding/"
_TYPE: Final = "{http://www.w3.org/2001/XMLSchema-instance}type"
_NIL: Final = "{http://www.w3.org/2001/XMLSchema-instance}nil"
_ARRAY_TYPE: Final = f"{{{_ENCODING_NS}}}arrayType"
_NUMBERS: Final = frozenset({"int", "integer", "short", "long", "byte", "unsignedInt", "unsignedShort"})
# The values of all references of a message together: nested references would multiply them.
_MAX_VALUES: Final = 1_000
_HEAD: Final = (
    '<?xml version="1.0" encoding="utf-8"?>\n'
    f'<s:Envelope xmlns:s="{ENVELOPE_NS}" xmlns:x="http://www.w3.org/2001/XMLSchema"\n'
    '    xmlns:i="http://www.w3.org/2001/XMLSchema-instance" '
    f's:encodingStyle="{_ENCODING_NS}"><s:Body>\n'
)
_TAIL: Final = "</s:Body></s:Envelope>\n"


class MustUnderstandError(RemoteCallError):
    """A message has a header that must be understood, and none is known here (section 4.2.3)."""


def read_call(root: Element) -> RemoteCall:
    """Returns the call in an envelope. Raises RemoteCallError."""
    if root.tag != ENVELOPE:
        raise RemoteCallError(f"the message is no envelope of SOAP 1.1: its root element is {local_name(root)[:40]}.")
    for header in root.iterchildren(f"{{{ENVELOPE_NS}}}Header"):
        for block in header.iterchildren(etree.Element):
            if block.get(f"{{{ENVELOPE_NS}}}mustUnderstand", "0").strip() in ("1", "true"):
                raise MustUnderstandError(f"the header {local_name(block)[:40]} is not known.")
    body = root.find(f"{{{ENVELOPE_NS}}}Body")
    # Other children of the body are the targets of references.
    call = None if body is None else next(body.iterchildren(etree.Element), None)
    if call is None:
        raise RemoteCallError("the envelope has no call.")
    reader = _Reader(root)
    return RemoteCall(local_name(call), tuple(reader.value(node) for node in call.iterchildren(etree.Element)))


def read_result(data: bytes) -> RemoteValue:
    """Returns the result in an answer: the first value of its body. Raises RemoteCallError, also for a fault."""
    answer = read_call(read_message(data))
    if answer.name == "Fault":
        texts = [value for value in answer.parameters if isinstance(value, str)]
        raise RemoteCallError(texts[1] if len(texts) > 1 else "a fault")
    if not answer.parameters:
        raise RemoteCallError("the answer has no value.")
    return answer.parameters[0]


def write_call(call: RemoteCall, names: Sequence[str], namespace: str) -> bytes:
    """Returns a call as an envelope in UTF-8. `names` are the elements of the parameters.

    The name of the call may have dots before its last part, which is the name of its element.
    """
    parameters = "\n".join(_element(name, value) for name, value in zip(names, call.parameters, strict=True))
    inside = f"\n{parameters}\n" if len(names) > 1 else parameters
    name = element_name(call.name)
    return f'{_HEAD}<m:{name} xmlns:m="{attribute(namespace)}">{inside}</m:{name}>\n{_TAIL}'.encode()


def write_result(name: str, value: RemoteValue, namespace: str) -> bytes:
    """Returns the answer to a call of this name."""
    return write_call(RemoteCall(f"{element_name(name)}Response", (value,)), ("result",), namespace)


def write_fault(fault: RemoteCallError) -> bytes:
    """Returns an answer that reports a fault of the caller."""
    code = "MustUnderstand" if isinstance(fault, MustUnderstandError) else "Client"
    texts = f"<faultcode>s:{code}</faultcode><faultstring>{escape(fault.text)}</faultstring>"
    return f"{_HEAD}<s:Fault>{texts}</s:Fault>\n{_TAIL}".encode()


def element_name(procedure: str) -> str:
    """Returns the element of a procedure: the last part of a name such as `radio.notify` (RC-047).

    The name of an element begins with a letter or an underscore.
    """
    name = procedure.rpartition(".")[2].rpartition("/")[2].rpartition(":")[2]
    return name if name[:1].isalpha() else f"_{name}"


class _Reader:
    """Reads the values of one message."""

    def __init__(self, root: Element) -> None:
        self._targets = {node.get("id", ""): node for node in root.iterfind(".//*[@id]")}
        self._count = 0

    def value(self, node: Element, level: int = 0) -> RemoteValue:
        self._count += 1
        if level > MAX_DEPTH or self._count > _MAX_VALUES:
            raise RemoteCallError("the references of the envelope have too many values.")
        target = node.get("href", "")
        if target.startswith("#"):
            if target[1:] not in self._targets:
                raise RemoteCallError(f"the envelope has no element with the id {target[1:41]}.")
            return self.value(self._targets[target[1:]], level + 1)
        children = list(node.iterchildren(etree.Element))
        kind = node.get(_TYPE, "").rpartition(":")[2]
        if kind == "Array" or node.get(_ARRAY_TYPE) is not None:
            return [self.value(child, level + 1) for child in children]
        if children:
            # Without a type an array cannot be distinguished from a structure; arrays repeat one name.
            names = [local_name(child) for child in children]
            values = [self.value(child, level + 1) for child in children]
            untyped_array = not kind and len(set(names)) == 1 and all(isinstance(value, str) for value in values)
            return values if untyped_array else dict(zip(names, values, strict=True))
        return _simple(kind, node)


def _simple(kind: str, node: Element) -> RemoteValue:
    text = string_of(node)
    if node.get(_NIL, "").strip() in ("1", "true"):
        return None
    if kind == "boolean":
        return _boolean(text)
    return _number(text) if kind in _NUMBERS else text


def _number(text: str) -> int:
    """Returns a whole number. Raises RemoteCallError."""
    digits = text.strip()
    if not digits.lstrip("+-").isascii() or not digits.lstrip("+-").isdigit() or len(digits) > 19:
        raise RemoteCallError(f"{digits[:40]!r} is no whole number.")
    return int(digits)


def _boolean(text: str) -> bool:
    """Returns a truth value. Raises RemoteCallError."""
    word = text.strip().lower()
    if word not in ("0", "1", "false", "true"):
        raise RemoteCallError(f"{word[:40]!r} is no truth value.")
    return word in ("1", "true")


def _element(name: str, value: RemoteValue) -> str:
    if isinstance(value, bool):
        return f'<{name} i:type="x:boolean">{str(value).lower()}</{name}>'
    if isinstance(value, int):
        return f'<{name} i:type="x:int">{value}</{name}>'
    if isinstance(value, str):
        return f'<{name} i:type="x:string">{escape(value)}</{name}>'
    if isinstance(value, Sequence):
        items = "".join(_element("item", item) for item in value)
        kind = f'i:type="e:Array" e:arrayType="x:string[{len(value)}]"'
        return f'<{name} xmlns:e="{_ENCODING_NS}" {kind}>\n{items}</{name}>'
    raise TypeError(f"no message of this program has a value of the type {type(value).__name__}")
