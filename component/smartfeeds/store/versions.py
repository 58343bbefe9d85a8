"""The past versions of an item in the filter index (`core.view.ViewStanding`).

Each facet has its states (`rows.STATES`), and each version its document of tokens. Versions beyond `STATES` are joined
into one. A joined version matches every view that any of its versions matches. So no item that has left a view is
missing there; at worst a view shows a needless tombstone.
"""

from functools import reduce
from operator import or_

from smartfeeds.core.view import ANYTHING, Traits, View
from smartfeeds.store.index_tokens import contains_text_of, index_tokens
from smartfeeds.store.rows import STATES, digest

# Text and facets of all versions of an item before its past versions count as ANYTHING. Each edit writes the facets of
# the item again, and joining versions reads and writes all their text, while all other writes wait. With these bounds
# an edit took up to 50 ms; with 2,400,000 characters 1,140 ms, with 32,768 facets 290 ms. Eight versions of 7,000 words
# fit, about what the default payload limit allows.
PAST_TEXT = 600_000  # characters
PAST_FACETS = 4_096
# The text of one version beyond this counts as ANYTHING. A tsvector of PostgreSQL has at most 1,048,575 bytes of text.
# A payload of the default limit never has more.
VERSION_TEXT = 1_000_000  # characters
(WILDCARD,) = map(digest, ANYTHING.facets)
_NO_TOKENS = frozenset[str]()

# The facets of an item, each with the states that have it.
States = dict[bytes, int]


def with_version(
    node_no: int, version: Traits, states: States, documents: dict[int, str], digests: dict[str, bytes]
) -> tuple[States, dict[int, frozenset[str]]]:
    """Returns the facets of an item with their states, and the documents that change, if a version becomes the present
    one. `states` and `documents` are those of the versions before it. `digests` is that of `index_tokens`.
    """
    tokens = index_tokens(node_no, version, digests)
    if sum(map(len, tokens)) > VERSION_TEXT:
        version, tokens = ANYTHING, index_tokens(node_no, ANYTHING, digests)
    changed = {0: tokens}
    if states:
        states, changed = _past_states(node_no, states, documents, tokens)
    for facet in version.facets:
        key = digests[facet]
        states[key] = states.get(key, 0) | 1
    return states, changed


def _past_states(
    node_no: int, states: States, documents: dict[int, str], tokens: frozenset[str]
) -> tuple[States, dict[int, frozenset[str]]]:
    """Returns the facets of an item with the states of its past versions, and the documents that change, if the next
    present version has these tokens.

    A version is not remembered if the next version or a past version contains all of its tokens. If there are too many
    versions, all past versions are joined into one. If their text is too long, the joined version is ANYTHING.
    """
    present = max(documents)  # an item with states has a document of each version (`index_tokens` of a facet, at least)
    present_tokens = frozenset(documents[present].split())
    if present_tokens <= tokens or states.get(WILDCARD, 0) > 1 or contains_text_of(documents, present_tokens):
        past = {facet: bits & ~1 for facet, bits in states.items() if bits > 1}
        return past, {present: tokens} if present_tokens != tokens else {}
    if sum(map(len, documents.values())) > PAST_TEXT or len(states) > PAST_FACETS:
        past, joined = {WILDCARD: 2}, index_tokens(node_no, ANYTHING, {})
    elif present == STATES - 1:
        past, joined = dict.fromkeys(states, 2), frozenset(" ".join(documents.values()).split())
    else:
        return {facet: bits << 1 for facet, bits in states.items()}, {present + 1: tokens}
    return past, {**dict.fromkeys(documents, _NO_TOKENS), 0: joined, 1: tokens}


def matching_states(node_no: int, view: View, states: States, documents: dict[int, str], *, publishers: bool) -> int:
    """Returns the states of an item that match all filters of a view."""
    bits = -1
    every = states.get(WILDCARD, 0)
    for alternatives in view.facets(publishers=publishers):
        bits &= every | reduce(or_, (states.get(digest(facet), 0) for facet in alternatives))
    if view.query and bits:
        terms = [f" {token} " for token in index_tokens(node_no, Traits(words=view.query), {})]
        present = max(documents, default=0)
        matches = (number for number, text in documents.items() if all(term in text for term in terms))
        bits &= every | sum(1 << present - number for number in matches)
    return bits
