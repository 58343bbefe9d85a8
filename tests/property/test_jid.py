"""Addresses of any characters: one Jid for all spellings, and it is its own spelling."""

from hypothesis import given
from hypothesis import strategies as st

from smartfeeds.core.jid import parse_jid

PARTS = st.text(st.characters(exclude_characters="@/"), min_size=1, max_size=8)
ADDRESSES = st.builds("{}@{}/{}".format, PARTS, PARTS, st.text(min_size=1, max_size=8)) | st.text(max_size=16)


@given(ADDRESSES)
def test_compared_form_is_its_own_compared_form(text: str) -> None:
    """[xep-map 20] Normalisation is idempotent, so an address is the same user each time it is stored and read."""
    jid = parse_jid(text)
    if jid is not None:
        assert parse_jid(str(jid)) == jid


@given(PARTS, PARTS)
def test_case_and_composition_make_no_other_user(local: str, domain: str) -> None:
    """[xep-map 20] The cases that casefolding covers; what has no compared form has none in any case."""
    jid = parse_jid(f"{local}@{domain}")
    if jid is not None:
        spelling = f"{jid.local}@{jid.domain}"
        assert all(parse_jid(text) == jid for text in (spelling, f"{spelling}.", f"\u00ad{spelling}"))
