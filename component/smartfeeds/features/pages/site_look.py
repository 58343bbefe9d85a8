"""The look of the site as files: the style sheet with the accent colour, and the logo.

An operator chooses one colour. Pages need it in shades that can be read in light and in dark colours, so each shade is
mixed with black or white until its contrast with every ground is that of WCAG 2.1, 1.4.3.
"""

from collections.abc import Iterable
from typing import Final

from smartfeeds.core.feed_files import LOGO_TYPES
from smartfeeds.features.pages.hashed_files import HashedFile, hashed_file

Colour = tuple[int, int, int]

CONTRAST: Final = 4.5  # for text of ordinary size
_BLACK: Final = (0, 0, 0)
_WHITE: Final = (255, 255, 255)
# The grounds of style.css on which the accent colour occurs: --ground, --sheet and --code. The first is the ink on the
# accent colour in dark, the second that in light.
LIGHT_GROUNDS: Final = ((0xF6, 0xF7, 0xF5), _WHITE, (0xF0, 0xF3, 0xF1))
DARK_GROUNDS: Final = ((0x13, 0x17, 0x16), (0x1C, 0x22, 0x21), (0x26, 0x2E, 0x2C))
_TINT: Final = 0.12  # the part of the accent colour in the ground of chips and marks
_STEP: Final = 0.02


def ground() -> str:
    """Returns the colour of the ground of pages, in light."""
    return _hex(LIGHT_GROUNDS[0])


def parse_colour(text: str) -> Colour:
    """Reads `#rrggbb`."""
    return (int(text[1:3], 16), int(text[3:5], 16), int(text[5:7], 16))


def contrast(one: Colour, other: Colour) -> float:
    """Returns the contrast of two colours, from 1 to 21 (WCAG 2.1, contrast ratio)."""
    darker, lighter = sorted((_luminance(one), _luminance(other)))
    return (lighter + 0.05) / (darker + 0.05)


def accent_rule(text: str) -> str:
    """Returns the rule of a style sheet that replaces the accent colour of style.css."""
    colour = parse_colour(text)
    (light, light_tint), (dark, dark_tint) = (
        _shades(colour, LIGHT_GROUNDS, _WHITE, _BLACK),
        _shades(colour, DARK_GROUNDS, DARK_GROUNDS[1], _WHITE),
    )
    return (
        f":root {{ --accent: light-dark({_hex(light)}, {_hex(dark)}); "
        f"--accent-ink: light-dark({_hex(_WHITE)}, {_hex(DARK_GROUNDS[0])}); "
        f"--tint: light-dark({_hex(light_tint)}, {_hex(dark_tint)}); }}\n"
    )


def accent_file(text: str) -> HashedFile | None:
    """Returns the style sheet with an accent colour, None for the default colour."""
    return hashed_file("site.css", "text/css; charset=utf-8", accent_rule(text).encode()) if text else None


def logo_file(suffix: str, body: bytes) -> HashedFile:
    """Returns the logo. `suffix` is one of `core.feed_files.LOGO_TYPES`."""
    file = hashed_file(f"logo{suffix}", LOGO_TYPES[suffix], body)
    # An SVG image may have styles of its own. Opened by its address it runs no script and loads nothing.
    policy = "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'; sandbox"
    return HashedFile(file.path, file.reply.with_headers(Content_Security_Policy=policy))


def _shades(colour: Colour, grounds: Iterable[Colour], sheet: Colour, end: Colour) -> tuple[Colour, Colour]:
    """The colour mixed with `end` until it can be read on the grounds and on its own tint, and the tint."""
    part = 0.0
    while True:
        shade = _mix(colour, end, part)
        tint = _mix(sheet, shade, _TINT)
        if part >= 1 or all(contrast(shade, ground) >= CONTRAST for ground in (*grounds, tint)):
            return shade, tint
        part += _STEP


def _mix(colour: Colour, end: Colour, part: float) -> Colour:
    red, green, blue = (round(near + (far - near) * min(part, 1.0)) for near, far in zip(colour, end, strict=True))
    return red, green, blue


def _luminance(colour: Colour) -> float:
    """The relative luminance of a colour of sRGB (WCAG 2.1)."""
    shares = (channel / 255 for channel in colour)
    red, green, blue = (share / 12.92 if share <= 0.04045 else ((share + 0.055) / 1.055) ** 2.4 for share in shares)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def _hex(colour: Colour) -> str:
    return f"#{bytes(colour).hex()}"
