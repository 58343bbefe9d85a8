"""Counts how often XML is parsed and written while some code runs."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import pytest
from lxml import etree


@dataclass
class XmlWork:
    """`parses` counts XML documents that lxml read, `canonical` and `plain` the elements that it wrote in either form.

    HTML is not counted: its text is read for searches alone.
    """

    parses: int = 0
    canonical: int = 0
    plain: int = 0

    @property
    def counts(self) -> tuple[int, int, int]:
        return self.parses, self.canonical, self.plain


@contextmanager
def xml_work(monkeypatch: pytest.MonkeyPatch) -> Iterator[XmlWork]:
    """Counts the parses and writes of XML within the block, in any thread."""
    work = XmlWork()
    parse, write = etree.fromstring, etree.tostring

    def fromstring(text: Any, parser: Any = None, **named: Any) -> Any:
        work.parses += not isinstance(parser, etree.HTMLParser)
        return parse(text, parser, **named)

    def tostring(element: Any, **named: Any) -> Any:
        if named.get("method") == "c14n":
            work.canonical += 1
        else:
            work.plain += 1
        return write(element, **named)

    with monkeypatch.context() as patch:
        patch.setattr(etree, "fromstring", fromstring)
        patch.setattr(etree, "tostring", tostring)
        yield work
