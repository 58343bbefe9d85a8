"""Payloads as Prosody stores them: stanzas as tables, which become XML (IMP-004 to IMP-006).

Every element has its namespace in `attr.xmlns`; prefixes are not stored. The name of an attribute with a namespace is
the URI, byte 1 and the local name.
"""

from functools import lru_cache
from typing import Final

from smartfeeds.core.text import ForbiddenCharacterError, attribute, escape
from smartfeeds.errors import Condition, FeedError
from smartfeeds.features.moving_in.lua_terms import LuaTable, LuaValue
from smartfeeds.formats.xml import checked_name

_NAMESPACE_END: Final = "\1"
_STAMP: Final = "stamp"
# Most elements of a feed have start tags that other items have too. Those with values up to this length are remembered.
_REMEMBERED_CHARACTERS: Final = 500
_NO_ATTRIBUTES: Final = LuaTable({}, [])


def stanza_xml(root: LuaTable) -> bytes:
    """Returns a stored payload as XML, without the attribute that Prosody adds. Raises FeedError for a table that is no
    stanza."""
    out: list[str] = []
    # What is still to be written, the next part last: texts, elements with the namespace around them, and end tags.
    waiting: list[tuple[LuaValue, str | None] | str] = [(root, None)]
    try:
        while waiting:
            part = waiting.pop()
            if isinstance(part, str):
                out.append(part)
                continue
            value, outer = part
            if isinstance(value, str):
                out.append(escape(value))
                continue
            if not isinstance(value, LuaTable):
                raise FeedError(Condition.INVALID_PAYLOAD, f"{value!r} is neither an element nor a text")
            start, namespace, name = _start_tag(value, outer, is_root=value is root)
            if value.entries:
                out.append(f"{start}>")
                waiting.append(f"</{name}>")
                waiting.extend((child, namespace) for child in reversed(value.entries))
            else:
                out.append(f"{start}/>")
        return "".join(out).encode()
    except (ForbiddenCharacterError, UnicodeEncodeError):
        # Names are not escaped, so a name with a lone surrogate fails here.
        raise FeedError(Condition.INVALID_PAYLOAD, "the payload has a character that XML forbids") from None


def _start_tag(element: LuaTable, outer: str | None, *, is_root: bool) -> tuple[str, str | None, str]:
    """Returns the start tag without its end, the namespace of the element, and its name."""
    name, attributes = element.fields.get("name"), element.fields.get("attr", _NO_ATTRIBUTES)
    if not isinstance(name, str) or not isinstance(attributes, LuaTable):
        raise FeedError(Condition.INVALID_PAYLOAD, "an element of the payload has no name or no table of attributes")
    pairs: list[tuple[str, str]] = []
    size = 0
    for key, value in attributes.fields.items():
        if not isinstance(key, str) or not isinstance(value, str | int | float):
            raise FeedError(Condition.INVALID_PAYLOAD, f"the attribute {key!r} of the payload is no text")
        # Prosody writes the time of the publish into the root and removes it before it sends the item.
        if not (is_root and key == _STAMP):
            text = str(value)
            pairs.append((key, text))
            size += len(text)
    tag, namespace = (_remembered_tag if size <= _REMEMBERED_CHARACTERS else _tag)(name, outer, tuple(pairs))
    return tag, namespace, name


def _tag(name: str, outer: str | None, attributes: tuple[tuple[str, str], ...]) -> tuple[str, str | None]:
    """Returns the start tag without its end, and the namespace."""
    parts = [f"<{checked_name(name)}"]
    namespace, prefixes = outer, 0
    for key, value in attributes:
        text = attribute(value)
        if key == "xmlns":
            namespace = value
            if namespace != outer and (namespace or outer):
                parts.append(f' xmlns="{text}"')
        elif _NAMESPACE_END in key:
            uri, _, local = key.partition(_NAMESPACE_END)
            parts.append(f' xmlns:ns{prefixes}="{attribute(uri)}" ns{prefixes}:{checked_name(local)}="{text}"')
            prefixes += 1
        else:
            parts.append(f' {checked_name(key)}="{text}"')
    return "".join(parts), namespace


_remembered_tag = lru_cache(maxsize=1_000)(_tag)
