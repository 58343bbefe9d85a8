"""The initials and the colour beside the name of an author."""

from zlib import crc32

HUES = 8  # the classes hue-0 to hue-7 of style.css


def initials(name: str) -> str:
    """Returns the first letters of the first and the last word of a name, "?" if it has no letters or digits."""
    starts = [letters[0] for word in name.split() if (letters := [char for char in word if char.isalnum()])]
    return "".join(starts[:1] + starts[1:][-1:]).upper()[:2] or "?"


def hue(name: str) -> int:
    """Returns the number of the colour of a name, the same in every process and on every page."""
    return crc32(name.casefold().encode("utf-8", "replace")) % HUES
