"""The HTML that Markdown becomes, its size and its title."""

import pytest

from smartfeeds.errors import Condition, FeedError
from smartfeeds.features.authoring.markdown import MAX_CHARACTERS, MAX_LINK_CHARACTERS, render_markdown
from smartfeeds.features.authoring.rendering import rendered_markdown

WALK = "We walked along the river until it was dark, " * 5


@pytest.mark.parametrize("use", ["[a]", "![a]", "![[a]]"])
@pytest.mark.parametrize("definition", ["[a]: /{}", "[a]: / '{}'"])
def test_references_that_multiply_a_text_are_refused(definition: str, use: str) -> None:
    """Thousands of uses of one long address or title: 65,536 characters of Markdown would be 165 MB of HTML."""
    start = f"{definition.format('b' * (MAX_CHARACTERS // 2))}\n\n"
    text = start + use * ((MAX_CHARACTERS - len(start)) // len(use))
    with pytest.raises(FeedError, match=f"the limit is {MAX_LINK_CHARACTERS}") as caught:
        render_markdown(text, take_title=True)
    assert caught.value.condition is Condition.PAYLOAD_TOO_BIG


def test_links_of_a_long_text_are_rendered() -> None:
    """A text that consists of references of usual length."""
    start = f"[a]: https://example.org/{'b' * 40}\n\n"
    html = render_markdown(start + "[a] " * 8_000, take_title=True).html
    assert html.count("<a href=") == 8_000


@pytest.mark.parametrize(
    ("text", "title", "below"),
    [
        ("# Our *new* shop\n\nCome **in**", "Our new shop", "Come **in**"),
        ("Our new shop\n============\nCome in", "Our new shop", "Come in"),
        ("Our new shop\n\nCome in", "Our new shop", "Come in"),
        ("Our new shop", "Our new shop", ""),
        ("[s]: https://x.example/\n\n# The [shop][s]\n\nCome to the [shop][s]", "The shop", "Come to the [shop][s]"),
    ],
)
def test_first_line_of_markdown_leaves_the_html_and_the_markdown(text: str, title: str, below: str) -> None:
    """What is stored as Markdown makes the HTML that is stored beside it."""
    rendered = rendered_markdown(text, take_title=True)
    assert (rendered.title, rendered.source.endswith(below)) == (title, True)
    assert title not in rendered.source
    assert rendered_markdown(rendered.source, take_title=False).html == rendered.html


@pytest.mark.parametrize(
    ("text", "title"),
    [
        ("Hello **you** there", "Hello you…"),
        ("It rains here. We stay at home.\n\nMore", "It rains here. We stay at home."),
        (WALK, "We walked along the river until it was dark, We walked…"),
        (f"# {WALK}\n\ntext", "We walked along the river until it was dark, We walked…"),
        ("intro\n\n## Second", "Second"),
        ("- milk\n- tea\n- bread", "milk tea…"),
        ("```\nls -l\n```\n\nlists the files", "lists the…"),
        ("![Two cats](https://x.example/c.jpg)", "Two cats"),
        ("one\ntwo", "one…"),
    ],
)
def test_other_markdown_stays_whole(text: str, title: str) -> None:
    rendered = rendered_markdown(text, take_title=True)
    assert rendered.source == text
    assert rendered.html == rendered_markdown(text, take_title=False).html
    assert rendered.title == title
