"""The dictionaries of names are renewed, and documents outlive their dictionary (xep-map 246)."""

import copy
import re
from collections.abc import Callable
from pathlib import Path
from threading import Thread

import pytest
from lxml import etree

from smartfeeds import xml_names
from smartfeeds.formats.autodiscovery import links_of
from smartfeeds.formats.loader import load
from smartfeeds.formats.plain import html_text
from smartfeeds.formats.web_page import read_page
from smartfeeds.formats.xml import canonical, parse_payload, parse_stored
from smartfeeds.xml_names import DICTIONARY_BYTES, PullParser, parse_xml, renew_names
from smartfeeds.xmpp.parsing import StanzaParser

HEADER = b"<s:stream xmlns='jabber:component:accept' xmlns:s='http://etherx.jabber.org/streams'>"
FEED = b"<feed xmlns='http://www.w3.org/2005/Atom'><id>i</id><title>%s</title><updated>2026-01-01T00:00:00Z</updated></feed>"
TEXT = b"x" * 10_000
PAGE = b"<html><head><title>%s hub</title><body><div class='h-feed'><p class='h-entry'>x" % TEXT


def read_stanzas(data: bytes) -> None:
    for _ in StanzaParser(HEADER).parse([data]):
        pass


READERS: dict[str, tuple[Callable[[bytes], object], bytes]] = {
    "stanza": (read_stanzas, b"<iq id='1'><x>%s</x></iq>" % TEXT),
    "payload": (parse_payload, FEED % TEXT),
    "stored payload": (parse_stored, FEED % TEXT),
    "namespace that is no URI": (lambda data: canonical(parse_stored(data)), b"<x xmlns='vcard-temp'>%s</x>" % TEXT),
    "document": (load, FEED % TEXT),
    "HTML of an entry": (lambda data: html_text(data.decode()), b"<ul>%s</ul>" % TEXT),
    "links of a page": (lambda data: links_of(data, "https://a.example/"), PAGE),
    "entries of a page": (lambda data: read_page(data, "utf-8", "https://a.example/"), PAGE),
}


@pytest.mark.parametrize(("read", "data"), READERS.values(), ids=READERS)
def test_every_reader_counts_what_it_parses(
    read: Callable[[bytes], object], data: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """[xep-map 246] The thread has a new dictionary at least once for each DICTIONARY_BYTES."""
    renewed: list[int] = []
    monkeypatch.setattr(xml_names, "renew_names", lambda: (renewed.append(1), renew_names()))
    for _ in range(2 * DICTIONARY_BYTES // len(data) + 2):
        read(data)
    assert len(renewed) >= 2


def test_parser_does_not_hand_on_its_dictionary() -> None:
    """lxml would give a thread without a dictionary that of the parser. The main thread has a special dictionary.

    So the test uses another thread.
    """
    entries: list[object] = []

    def work() -> None:
        parser = etree.XMLParser()
        for _ in range(3):
            xml_names.parse_xml(b"<x/>", parser)
            entries.append(xml_names._state()[xml_names._ENTRY])
            renew_names()

    thread = Thread(target=work)
    thread.start()
    thread.join()
    assert len({id(entry) for entry in entries}) == 3


def test_new_thread_does_not_share_the_dictionary_of_a_parser(monkeypatch: pytest.MonkeyPatch) -> None:
    """It has its own dictionary before its first document. Two threads that write into one would end the process."""
    order: list[str] = []
    parser = etree.XMLParser()
    parse_xml(b"<x/>", parser)  # the parser has a dictionary of this thread
    monkeypatch.setattr(xml_names, "renew_names", lambda: (order.append("renewed"), renew_names()))

    def work() -> None:
        for _ in range(2):
            parse_xml(b"<x/>", parser)
            order.append("parsed")

    thread = Thread(target=work)
    thread.start()
    thread.join()
    assert order == ["renewed", "parsed", "parsed"]


def test_documents_outlive_their_dictionary() -> None:
    """Trees of several dictionaries are searched, copied, written, and joined."""
    trees = []
    for number in range(4):
        trees.append(parse_payload(f"<a xmlns='urn:x' k{number}='v'><b{number}><c/></b{number}></a>".encode()))
        renew_names()
    whole = parse_payload(b"<whole xmlns='urn:x'/>")
    for tree in trees:
        renew_names()
        whole.append(copy.deepcopy(tree))
        whole[-1].append(tree[0])
    renew_names()
    assert [len(list(whole.iter(f"{{urn:x}}b{number}"))) for number in range(4)] == [2, 2, 2, 2]
    assert len(whole.findall(".//{urn:x}c")) == 8
    assert canonical(whole).count(b"<b3><c></c></b3>") == 2
    assert canonical(parse_stored(canonical(whole))) == canonical(whole)


def entries(number: int) -> bytes:
    """A piece of a document with names of its own."""
    numbers = range(number * 200, number * 200 + 200)
    return b"".join(b"<item><n%d k%d='v'>x</n%d></item>" % (at, at, at) for at in numbers)


def test_document_in_pieces_has_one_dictionary() -> None:
    """The thread gets others between the pieces, and reads other documents. Otherwise libxml2 would end the process."""
    parsers = [PullParser(("end",), tag=("item",), remove_comments=True) for _ in range(2)]
    for parser in parsers:
        parser.feed(b"<feed>")
    count = 0
    for number in range(50):
        for parser in parsers:
            renew_names()
            parser.feed(entries(number))
            parse_xml(entries(number)[:-7] + b"</item>", etree.XMLParser(recover=True))
            renew_names()
            for _event, item in parser.read_events():
                count += len(item)
                item.clear()
    for parser in parsers:
        parser.feed(b"</feed>")
        assert parser.close().tag == "feed"
    assert count == 2 * 50 * 200


@pytest.mark.parametrize("is_new", [True, False])
def test_pull_parser_leaves_the_dictionary_of_its_thread(is_new: bool) -> None:
    """Also where the thread has none yet."""
    found: list[object] = []

    def work() -> None:
        if not is_new:
            renew_names()
        before = xml_names._state().get(xml_names._ENTRY)
        parser = PullParser(("end",))
        for piece in (b"<a>", b"</a>"):
            parser.feed(piece)
        parser.close()
        found.extend((before, xml_names._state().get(xml_names._ENTRY)))

    thread = Thread(target=work)
    thread.start()
    thread.join()
    assert found[0] is found[1]
    assert (found[0] is None) == is_new


def test_no_other_module_makes_pull_parsers() -> None:
    """lxml would write the names of one document into several dictionaries, and the process would end."""
    package = Path(xml_names.__file__).parent
    direct = re.compile(r"XMLPullParser|HTMLPullParser|iterparse|etree\.fromstring|etree\.(XML|HTML|parse)\(")
    users = {
        path.relative_to(package).as_posix() for path in package.rglob("*.py") if direct.search(path.read_text("utf-8"))
    }
    assert users - {"features/attachments/requests.py"} == {"xml_names.py"}  # the summary of attachments is a constant
