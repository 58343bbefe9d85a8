"""The texts for people in their languages: those of the bot and of the pages (gettext). English is the source.

`say` and `count` look up a text and insert values. A value is never read as a format, so a name may contain braces.
"""

import gettext
from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path

DOMAIN = "smartfeeds"
LOCALE = Path(__file__).parent / "locale"
ENGLISH = "en"
LANGUAGES = (ENGLISH, *sorted(path.name for path in LOCALE.iterdir() if path.is_dir()))


def N_(text: str) -> str:  # noqa: N802 - the usual name of this mark
    """Marks a text of a table for translation, and returns it unchanged."""
    return text


class Texts:
    """The texts in one language."""

    def __init__(self, language: str) -> None:
        self.language = language
        self._translation = translation_of(language)

    def say(self, text: str, **values: object) -> str:
        """Returns a text in this language, with the values in the place of their names."""
        return self._translation.gettext(text).format(**values)

    def message(self, text: str) -> str:
        """Returns a text without values, such as that of an error, in this language; unchanged if it has no
        translation."""
        return self._translation.gettext(text) if text else ""

    def count(self, number: int, one: str, many: str, **values: object) -> str:
        """Returns the text for a number, which is available as `{number}`."""
        return self._translation.ngettext(one, many, number).format(number=number, **values)


@lru_cache(32)
def translation_of(language: str) -> gettext.NullTranslations:
    """Returns the catalogue of a language, an empty one if it has none."""
    return gettext.translation(DOMAIN, LOCALE, [language], fallback=True)


def choose_language(tags: Iterable[str]) -> str:
    """Returns the first language of the tags (RFC 5646) that has texts, else English."""
    primary = (tag.partition("-")[0].lower() for tag in tags)
    return next((language for language in primary if language in LANGUAGES), ENGLISH)
