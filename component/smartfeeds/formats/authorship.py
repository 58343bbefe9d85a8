"""Whether an entry names another author than the person who published it.

An entry names its authors itself, and whoever may publish may write any name. So what shows the authors also names the
publisher if an author has the address of somebody else.
"""

import re
from itertools import islice
from urllib.parse import unquote

from smartfeeds.core.jid import parse_jid
from smartfeeds.core.model import Item, Node
from smartfeeds.formats.entry import Entry, EntryPerson

SHOWN_AUTHORS = 20  # the most that a page shows of one entry
_URI = re.compile(r"xmpp:(?://)?(?P<jid>[^?#;]*)(?P<rest>.*)", re.IGNORECASE | re.DOTALL)  # RFC 5122


def other_publisher(node: Node, item: Item, entry: Entry) -> str:
    """Returns the bare JID of the person who published an entry, "" if no author has another address.

    Services publish for others: sources, mirrors, imports. A node may hide its publishers.
    """
    publisher = parse_jid(item.publisher) if item.publisher and node.options.shows_publisher else None
    if publisher is None or not publisher.local:
        return ""
    bare = publisher.bare_text
    return bare if any(_is_another(author, bare) for author in islice(entry.authors, SHOWN_AUTHORS)) else ""


def _is_another(author: EntryPerson, publisher: str) -> bool:
    """Whether an author has an XMPP address that is not that of the publisher: as the URI, or as a name that looks like
    one."""
    uri = _URI.fullmatch(author.uri.strip())
    # Some programs do not encode the address, which may have these signs itself.
    if uri is not None and publisher not in (_bare(unquote(uri["jid"])), _bare(uri["jid"] + uri["rest"])):
        return True
    label = _bare(author.label.strip().removeprefix("xmpp:"))
    return "@" in label and label != publisher


def _bare(text: str) -> str:
    """The bare form of an address, "" if the text is none."""
    jid = parse_jid(text)
    return "" if jid is None else jid.bare_text
