"""The size of the HTML that Markdown becomes."""

import pytest

from smartfeeds.errors import Condition, FeedError
from smartfeeds.features.authoring.markdown import MAX_CHARACTERS, MAX_LINK_CHARACTERS, render_markdown


@pytest.mark.parametrize("use", ["[a]", "![a]", "![[a]]"])
@pytest.mark.parametrize("definition", ["[a]: /{}", "[a]: / '{}'"])
def test_references_that_multiply_a_text_are_refused(definition: str, use: str) -> None:
    """Thousands of uses of one long address or title: 65,536 characters of Markdown would be 165 MB of HTML."""
    start = f"{definition.format('b' * (MAX_CHARACTERS // 2))}\n\n"
    text = start + use * ((MAX_CHARACTERS - len(start)) // len(use))
    with pytest.raises(FeedError, match=f"the limit is {MAX_LINK_CHARACTERS}") as caught:
        render_markdown(text, take_heading=True)
    assert caught.value.condition is Condition.PAYLOAD_TOO_BIG


def test_links_of_a_long_text_are_rendered() -> None:
    """A text that consists of references of usual length."""
    start = f"[a]: https://example.org/{'b' * 40}\n\n"
    html = render_markdown(start + "[a] " * 8_000, take_heading=True).html
    assert html.count("<a href=") == 8_000
