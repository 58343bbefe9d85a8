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
