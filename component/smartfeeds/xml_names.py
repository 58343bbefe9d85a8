"""Bounds the memory that libxml2 takes for the names in the XML of others (xep-map 246).

libxml2 stores each name of an element, an attribute, a prefix and a processing instruction in a dictionary. lxml has
one dictionary for each thread, which grows until the thread ends. So each thread gets a new dictionary after some bytes
of XML. A document keeps the dictionary that it was parsed with. Its memory is freed with the last of these documents.
"""

import ctypes
import threading
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, Final, Literal, TypeVar, cast, overload

from lxml import etree

T = TypeVar("T")

# With names of three characters, a dictionary of so many bytes of XML takes about 4 MB; usually far less.
DICTIONARY_BYTES: Final = 524_288
# The entry of the dictionary in the state of a thread. lxml has had this name since its version 2.
_ENTRY: Final = "_ParserDictionaryContext"

# lxml has no public way to its dictionary. The check at the end of this module fails if a version stores it elsewhere.
_thread_state = ctypes.pythonapi.PyThreadState_GetDict
_thread_state.restype = ctypes.c_void_p  # a borrowed reference, which `ctypes.py_object` would release
_thread_state.argtypes = []


class _Parsed(threading.local):
    """The bytes that this thread may still parse with its dictionary."""

    # A new thread has no dictionary. lxml would give it that of the parser, which belongs to the thread that used the
    # parser last. Two threads that write into one dictionary end the process.
    left_bytes: int = 0


_parsed = _Parsed()


@overload
def parse_xml(data: bytes | str, parser: etree.XMLParser) -> etree._Element: ...


@overload
def parse_xml(data: bytes | str, parser: etree.HTMLParser) -> etree._Element | None: ...


def parse_xml(data: bytes | str, parser: etree.XMLParser | etree.HTMLParser) -> etree._Element | None:
    """Parses a document. Results and exceptions are those of `etree.fromstring`.

    Every document of others is parsed by this function or by a `PullParser`.
    """
    _parsed.left_bytes -= len(data)
    if _parsed.left_bytes <= 0:
        renew_names()
    return etree.fromstring(data, parser)


class PullParser:
    """An `etree.XMLPullParser` with a dictionary of its own, which ends with it and with its document.

    A document must have one dictionary. The pieces of a document come at different times, and the thread may get a new
    dictionary between them.
    """

    def __init__(
        self, events: Sequence[Literal["start", "end"]], tag: Sequence[str] | None = None, **options: Any
    ) -> None:
        self._parser = etree.XMLPullParser(events, tag=tag, **options)
        former = _exchange(None)
        # The first document decides. A parser would hand on the dictionary that it used last.
        etree.Element("names")
        self._entry = _exchange(former)

    def feed(self, data: bytes) -> None:
        """Parses the next piece. Raises etree.XMLSyntaxError."""
        self._call(partial(self._parser.feed, data))

    def close(self) -> etree._Element:
        """Ends the document and returns its root. Raises etree.XMLSyntaxError."""
        return self._call(self._parser.close)

    def read_events(self) -> Iterator[tuple[str, etree._Element]]:
        """The events since the last call."""
        return cast("Iterator[tuple[str, etree._Element]]", self._parser.read_events())

    def _call(self, method: Callable[[], T]) -> T:
        former = _exchange(self._entry)
        try:
            return method()
        finally:
            _exchange(former)


def renew_names() -> None:
    """Gives this thread a new dictionary. Documents do not change.

    The parser of a document that is incomplete must be a `PullParser`.
    """
    _exchange(None)
    etree.Element("names")
    _parsed.left_bytes = DICTIONARY_BYTES


def _exchange(entry: object | None) -> object | None:
    """Sets or removes the dictionary of this thread, and returns the former one."""
    state = _state()
    former = state.pop(_ENTRY, None)
    if entry is not None:
        state[_ENTRY] = entry
    return former


def _state() -> dict[object, object]:
    """The dictionary of the running thread in which extension modules store their state."""
    state: dict[object, object] = ctypes.cast(_thread_state(), ctypes.py_object).value
    return state


renew_names()
if _ENTRY not in _state():
    # A service that could not renew its dictionaries would grow with each name, without a word.
    raise ImportError(f"lxml {etree.__version__} stores names in an unknown place; install lxml>=5.3,<7")
