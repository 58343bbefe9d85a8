"""The outline of a feed by chat: shown with codes, and moved by steps."""

import re

import pytest

from support.chat import write
from support.component import ALICE, BOB, Component


@pytest.fixture
async def blogs(component: Component) -> Component:
    """Alice's feed with three items."""
    await component.create(ALICE, "blogs")
    for title in ("News", "Ann", "Bob"):
        await component.publish(ALICE, "blogs", title)
    return component


async def codes(component: Component) -> dict[str, str]:
    (answer,) = await write(component, ALICE, "outline blogs")
    return dict(re.findall(r"- (\w+) \(([0-9a-f]{6})\)", answer))


async def shape(component: Component, command: str = "outline blogs") -> list[str]:
    """The lines of the answer without the codes."""
    (answer,) = await write(component, ALICE, command)
    return [re.sub(r" \(.*", "", line) for line in answer.split("\n")]


async def test_outline_is_shown_and_moved(blogs: Component) -> None:
    """[SSE-028]"""
    code = await codes(blogs)
    assert (await shape(blogs))[:-1] == ["Outline of blogs:", "- News", "- Ann", "- Bob"]
    assert (await shape(blogs))[-1] == f"To move an item: move blogs {code['News']} down"
    assert await write(blogs, ALICE, f"move blogs {code['Ann']} indent") == ["Moved in blogs: Ann"]
    assert await write(blogs, ALICE, f"Move blogs {code['Bob'].upper()} IN") == ["Moved in blogs: Bob"]
    assert await write(blogs, ALICE, f"move blogs {code['Bob']} up") == ["Moved in blogs: Bob"]
    assert (await shape(blogs))[1:-1] == ["- News", "  - Bob", "  - Ann"]
    assert await write(blogs, ALICE, f"move blogs {code['Bob']} outdent") == ["Moved in blogs: Bob"]
    assert (await shape(blogs))[1:-1] == ["- News", "  - Ann", "- Bob"]


async def test_words_are_german_too(blogs: Component) -> None:
    code = (await codes(blogs))["Ann"]
    await write(blogs, ALICE, "sprache de")
    (answer,) = await write(blogs, ALICE, "gliederung blogs")
    assert answer.split("\n")[-1].startswith("So verschiebt man einen Eintrag: verschiebe blogs ")
    for word in ("einrücken", "ausrücken", "runter", "hoch"):
        assert await write(blogs, ALICE, f"verschiebe blogs {code} {word}") == ["In blogs verschoben: Ann"]


@pytest.mark.parametrize(
    ("command", "answer"),
    [
        ("move blogs {News} up", "The item cannot move that way."),
        ("move blogs 000000 up", "No item has this code. To see them: outline blogs"),
        ("move blogs {News} sideways", "Write: move FEED CODE DIRECTION"),
        ("move blogs {News}", "Write: move FEED CODE DIRECTION"),
        ("outline", "Write: outline FEED"),
        ("outline none", "There is no such feed or item, or it is closed to you."),
    ],
)
async def test_command_that_cannot_be_followed(blogs: Component, command: str, answer: str) -> None:
    assert await write(blogs, ALICE, command.format(**await codes(blogs))) == [answer]


async def test_others_see_the_outline_and_move_nothing(blogs: Component) -> None:
    code = (await codes(blogs))["Bob"]
    assert "- News" in (await write(blogs, BOB, "outline blogs"))[0]
    assert await write(blogs, BOB, f"move blogs {code} up") == [
        "You may not do that. To write in blogs, ask its owner: alice@example.org"
    ]


async def test_long_outline_is_cut_and_empty_one_said(component: Component) -> None:
    await component.create(ALICE, "blogs")
    assert await write(component, ALICE, "outline blogs") == ["blogs has no items."]
    for number in range(42):
        await component.publish(ALICE, "blogs", f"n{number}")
    lines = await shape(component)
    assert lines[40:42] == ["- n39", "and 2 more"] and len(lines) == 43
