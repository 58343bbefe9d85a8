"""The words and facets of items as tokens of the full-text index.

Every word is one plain ASCII token that starts with its node's number. So the database has nothing to split or fold and
cannot disagree with `core.text.words`, and a search reads the postings of its own node only.
"""

from smartfeeds.core.view import Traits
from smartfeeds.store.rows import digest

_TOKEN_LIMIT = 32  # longer words, and words with other characters, are replaced by a digest


def index_tokens(node_no: int, traits: Traits) -> frozenset[str]:
    """Returns the facets and words of a version of an item in the form of the full-text index."""
    tokens = [
        f"{node_no}w{word}"
        if len(word) <= _TOKEN_LIMIT and word.isascii() and word.isalnum()
        else f"{node_no}x{digest(word).hex()}"
        for word in traits.words
    ]
    tokens += [f"{node_no}f{digest(facet).hex()}" for facet in traits.facets]
    return frozenset(tokens)


def contains_text_of(documents: dict[int, str], tokens: frozenset[str]) -> bool:
    """Returns whether the document of some past version contains all tokens of the present version.

    Without this check, edits that alternate between two contents would use up all documents, and the joined document
    would match views that no version was in. A shorter text cannot contain all tokens, so most texts are not split.
    """
    present = max(documents)
    size = len(documents[present])
    return any(
        len(text) >= size and tokens <= frozenset(text.split())
        for number, text in documents.items()
        if number != present
    )
