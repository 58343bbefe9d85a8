"""The words and facets of items as tokens of the full-text index.

Every word is one plain ASCII token that starts with its node's number. So the database has nothing to split or fold and
cannot disagree with `core.text.words`, and a search reads the postings of its own node only.
"""

from smartfeeds.core.view import Traits
from smartfeeds.store.rows import digest

# Longer words, and words with other characters, are replaced by a digest, which has this length in hexadecimal digits.
_TOKEN_LIMIT = 32


def index_tokens(node_no: int, traits: Traits, digests: dict[str, bytes]) -> frozenset[str]:
    """Returns the facets and words of a version of an item in the form of the full-text index.

    `digests` has the digests of facets that were computed before. The missing ones are added.
    """
    word_mark = f"{node_no}w"
    # One look at the joined text replaces one for each word. Texts in one script are the common case.
    joined = "".join(traits.words)
    plain = joined.isascii() and joined.isalnum() and "" not in traits.words
    tokens = [
        word_mark + word
        if len(word) <= _TOKEN_LIMIT and (plain or (word.isascii() and word.isalnum()))
        else f"{node_no}x{digest(word).hex()}"
        for word in traits.words
    ]
    for facet in traits.facets:
        if facet not in digests:
            digests[facet] = digest(facet)
        tokens.append(f"{node_no}f{digests[facet].hex()}")
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
