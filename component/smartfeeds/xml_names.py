"""Bounds the memory that libxml2 takes for the names in the XML of others (xep-map 246).

libxml2 stores each name of an element, an attribute, a prefix and a processing instruction in a dictionary. lxml has
one dictionary for each thread, which grows until the thread ends. So each thread gets a new dictionary after some bytes
of XML. A document keeps the dictionary that it was parsed with. Its memory is freed with the last of these documents.
"""

import ctypes
import threading
from typing import Final, overload

from lxml import etree

# With names of three characters, a dictionary of so many bytes of XML takes about 4 MB; usually far less.
DICTIONARY_BYTES: Final = 524_288
# The entry of the dictionary in the state of a thread. lxml has had this name since its version 2.
_ENTRY: Final = "_ParserDictionaryContext"

_thread_state = ctypes.pythonapi.PyThreadState_GetDict
_thread_state.restype = ctypes.c_void_p  # a borrowed reference, which `ctypes.py_object` would release
_thread_state.argtypes = []


class _Parsed(threading.local):
    """The bytes that this thread may still parse with its dictionary."""

    left_bytes: int = DICTIONARY_BYTES


_parsed = _Parsed()


@overload
def parse_xml(data: bytes | str, parser: etree.XMLParser) -> etree._Element: ...


@overload
def parse_xml(data: bytes | str, parser: etree.HTMLParser) -> etree._Element | None: ...


def parse_xml(data: bytes | str, parser: etree.XMLParser | etree.HTMLParser) -> etree._Element | None:
    """Parses a document as `etree.fromstring` does, whose results and exceptions it has.

    Every document of others is parsed by this function, or its pieces are counted by `count_parsed`.
    """
    _parsed.left_bytes -= len(data)
    if _parsed.left_bytes < 0:
        renew_names()
    return etree.fromstring(data, parser)


def count_parsed(size_bytes: int) -> None:
    """Counts a piece of a document before a pull parser gets it."""
    _parsed.left_bytes -= size_bytes
    if _parsed.left_bytes < 0:
        renew_names()


def renew_names() -> None:
    """Gives this thread a new dictionary. Documents and parsers in use are not changed."""
    _state().pop(_ENTRY, None)
    # The first document decides. A parser would hand on the dictionary that it used last.
    etree.Element("names")
    _parsed.left_bytes = DICTIONARY_BYTES


def _state() -> dict[object, object]:
    """The dictionary of the running thread in which extension modules store their state."""
    state: dict[object, object] = ctypes.cast(_thread_state(), ctypes.py_object).value
    return state


renew_names()
if _ENTRY not in _state():
    # A service that could not renew its dictionaries would grow with each name, without a word.
    raise ImportError(f"lxml {etree.__version__} stores names in an unknown place; install lxml>=5.3,<7")
