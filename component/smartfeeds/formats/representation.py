"""Representations: what HTTP names a format by, the suffix of an address and media types (SF-058)."""

from dataclasses import dataclass


# Compared by identity: every representation is a constant, and keys of caches hold them.
@dataclass(frozen=True, slots=True, eq=False)
class Representation:
    """A format of a response: its suffix, the media type for Content-Type, the types that select it in Accept, its
    name for people, and types that select it in Accept although they may mean other formats too.

    `has_hub`: the address is a topic of the hub, and the response names the hub (`features.callbacks.topics`).
    `self_suffix` is the suffix of the address that a document for feed readers gives as its own, if that is not its own
    suffix. `link` is the place among the alternate links of a feed, 0 for none; feed readers take the first one that
    they know. `schema` is the name of its schema in the OpenAPI document, "" for a text.
    """

    suffix: str
    media_type: str
    accept_types: tuple[str, ...]
    name: str = ""
    generic_types: tuple[str, ...] = ()
    has_hub: bool = False
    self_suffix: str | None = None
    link: int = 0
    schema: str = ""

    @property
    def bare_type(self) -> str:
        """The media type without parameters."""
        return self.media_type.partition(";")[0]

    @property
    def own_suffix(self) -> str:
        """The suffix of the address that a document for feed readers gives as its own."""
        return self.suffix if self.self_suffix is None else self.self_suffix


ATOM_TYPE = "application/atom+xml; charset=utf-8"
RSS_TYPE = "application/rss+xml; charset=utf-8"
ATOM = Representation(
    "atom",
    ATOM_TYPE,
    ("application/atom+xml",),
    "Atom",
    ("application/xml", "text/xml"),
    has_hub=True,
    link=1,
)
RSS = Representation("rss", RSS_TYPE, ("application/rss+xml",), "RSS", has_hub=True, link=2)
OPML = Representation("opml", "text/x-opml; charset=utf-8", ("text/x-opml", "application/opml+xml"))
