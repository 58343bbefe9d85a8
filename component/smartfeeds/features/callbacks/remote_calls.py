"""Procedure calls as XML: the values that XML-RPC and SOAP share, and the reading of a message (`xml_rpc`, `soap`)."""

from dataclasses import dataclass

from lxml import etree

from smartfeeds.errors import FeedError
from smartfeeds.formats.loader import load
from smartfeeds.formats.xml import Element

MAX_DEPTH = 20  # of a message (RC-010)

# A parameter or a result. No procedure takes dates or binary data, which are objects of `xmlrpc.client`.
RemoteValue = bool | int | float | str | list["RemoteValue"] | dict[str, "RemoteValue"] | None


class RemoteCallError(ValueError):
    """A message is no proper call or no proper answer, or it is an answer that reports a fault."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.text = text


@dataclass(frozen=True, slots=True)
class RemoteCall:
    """A call of a procedure. Parameters have no names, because documents name them differently (A-130)."""

    name: str
    parameters: tuple[RemoteValue, ...]


def read_message(data: bytes) -> Element:
    """Returns the root element of a message in any encoding. Raises RemoteCallError, also for any DTD."""
    try:
        root = load(data, repair=False).root
    except FeedError as error:
        raise RemoteCallError(f"{error.text}.") from None
    if root.getroottree().docinfo.internalDTD is not None:
        raise RemoteCallError("the document has a DTD, which is not allowed here.")
    depth = 0
    for event, _ in etree.iterwalk(root, events=("start", "end")):
        depth += 1 if event == "start" else -1
        if depth > MAX_DEPTH:
            raise RemoteCallError(f"the document is nested deeper than {MAX_DEPTH} levels.")
    return root


def local_name(node: Element) -> str:
    """Returns the name of an element without its namespace."""
    return str(node.tag).rpartition("}")[2]
