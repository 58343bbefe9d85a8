"""The accent colour of a site in shades that can be read, and its logo."""

import itertools
import re
from importlib.resources import files

import pytest

from smartfeeds.features.pages.site_look import (
    CONTRAST,
    DARK_GROUNDS,
    LIGHT_GROUNDS,
    accent_rule,
    contrast,
    parse_colour,
)

_PAIR = re.compile(r"--([\w-]+): light-dark\((#[0-9a-f]{6}), (#[0-9a-f]{6})\)")
STYLE = files("smartfeeds.features.pages").joinpath("static/style.css").read_text()


def colours(rule: str) -> dict[str, tuple[str, str]]:
    """The colours of a rule in light and in dark."""
    return {name: (light, dark) for name, light, dark in _PAIR.findall(rule)}


def check_readable(accent: dict[str, tuple[str, str]], base: dict[str, tuple[str, str]]) -> None:
    for scheme in (0, 1):
        shade = {name: parse_colour(pair[scheme]) for name, pair in (base | accent).items()}
        for ground in ("ground", "sheet", "code", "tint"):
            assert contrast(shade["accent"], shade[ground]) >= CONTRAST, (accent, ground, scheme)
        assert contrast(shade["accent-ink"], shade["accent"]) >= CONTRAST, (accent, scheme)
        assert contrast(shade["ink"], shade["tint"]) >= CONTRAST, (accent, scheme)


def test_contrast_is_that_of_wcag() -> None:
    assert contrast((0, 0, 0), (255, 255, 255)) == pytest.approx(21)
    assert contrast((255, 255, 255), (0x76, 0x76, 0x76)) == pytest.approx(4.54, abs=0.01)


def test_default_colours_can_be_read() -> None:
    check_readable({}, colours(STYLE))


def test_every_accent_can_be_read_in_light_and_dark() -> None:
    """729 colours from black to white: links, chips, and the text of buttons have a contrast of 4.5 to 1."""
    base = colours(STYLE)
    for parts in itertools.product(range(0, 257, 32), repeat=3):
        accent = "#" + bytes(min(part, 255) for part in parts).hex()
        rule = colours(accent_rule(accent))
        assert rule.keys() == {"accent", "accent-ink", "tint"}
        check_readable(rule, base)


def test_readable_accent_stays_as_it_is() -> None:
    assert colours(accent_rule("#0b6e63"))["accent"][0] == "#0b6e63"
    assert colours(accent_rule("#5fcdbd"))["accent"][1] == "#5fcdbd"


def test_grounds_are_those_of_the_style_sheet() -> None:
    base = colours(STYLE)
    for scheme, grounds in enumerate((LIGHT_GROUNDS, DARK_GROUNDS)):
        assert grounds == tuple(parse_colour(base[name][scheme]) for name in ("ground", "sheet", "code"))
