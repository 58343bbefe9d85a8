"""Measures the layout of a page in a browser: nothing is cut or outside of the window, lines of text can be read,
targets are large enough for fingers, and the bar is the same on all pages."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from playwright.async_api import Page, ViewportSize

# Two phones, a tablet, a laptop and a large screen.
WINDOWS: Final[tuple[ViewportSize, ...]] = (
    {"width": 360, "height": 740},
    {"width": 390, "height": 844},
    {"width": 768, "height": 1024},
    {"width": 1280, "height": 800},
    {"width": 1920, "height": 1080},
)
# From this width on the bar shows all of its links, and else a menu.
BAR_WIDTH: Final = 833
TARGET_PX: Final = 24  # WCAG 2.2, 2.5.8
FINGER_PX: Final = 44  # of what people press on phones
APART_PX: Final = 4  # between buttons, fields, badges and cards
LINE_CHARACTERS: Final = 80  # the longest line; 60 to 75 are usual
# What is meant to be cut, and says so by an ellipsis, a fade or a link to the whole.
_CUT_ON_PURPOSE: Final = ".unseen, .skip, .clamp, .excerpt, .stack thead, [title]"

_MEASURE: Final = (Path(__file__).parent / "layout.js").read_text(encoding="utf-8")


@dataclass(frozen=True, slots=True)
class Layout:
    """The layout of a page in a window: what is wrong with it, the characters of its longest line, the width and height
    of the bar with the left and the right end of its content, and the width of the content.

    A page in a frame of another site has no bar.
    """

    faults: tuple[str, ...]
    longest_line: int
    bar: tuple[float, ...]
    main: float


async def measure(page: Page, window: ViewportSize) -> Layout:
    """Measures the page that is open in a window of this size."""
    await page.set_viewport_size(window)
    is_phone = window["width"] < 600
    arguments = [TARGET_PX, FINGER_PX, APART_PX, is_phone, _CUT_ON_PURPOSE]
    facts: dict[str, Any] = await page.evaluate(_MEASURE, arguments)
    return Layout(tuple(facts["faults"]), facts["longest"], tuple(facts["bar"]), facts["main"])
