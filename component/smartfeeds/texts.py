"""The texts for people in their languages: those of the bot and of the pages (gettext). English is the source.

`say` and `count` look up a text and insert values. A value is never read as a format, so a name may contain braces.
"""

import gettext
import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
from pathlib import Path
from string import Formatter

DOMAIN = "smartfeeds"
LOCALE = Path(__file__).parent / "locale"
ENGLISH = "en"
# The texts of errors with values have a context of gettext (msgctxt), because they are looked up in another way.
ERROR_CONTEXT = "error\x04"
# In front of the errors of the options of nodes (`core.options`).
_OPTION = re.compile(r"pubsub#\w+: ")
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
        """Returns the text of an error in this language; unchanged if it has no translation.

        An error has its values in its text already, so a text with values is recognised by the words around them. The
        name of an option in front of the text stays (`pubsub#language: ...`).
        """
        option = _OPTION.match(text)
        if option is not None:
            return option[0] + self.message(text[option.end() :])
        translation = self._translation.gettext(text) if text else ""
        return self._with_values(text) if translation == text else translation

    def _with_values(self, text: str) -> str:
        """The text of an error with values. A value may be the text of an error with values, too."""
        matches = ((pattern.fullmatch(text), form) for pattern, form in _error_forms(self.language))
        match, form = next(((match, form) for match, form in matches if match), (None, ""))
        if match is None:
            return text
        return form.format(**{name: self._with_values(value) for name, value in match.groupdict().items()})

    def count(self, number: int, one: str, many: str, **values: object) -> str:
        """Returns the text for a number, which is available as `{number}`."""
        return self._translation.ngettext(one, many, number).format(number=number, **values)


@lru_cache(32)
def translation_of(language: str) -> gettext.NullTranslations:
    """Returns the catalogue of a language, an empty one if it has none."""
    return gettext.translation(DOMAIN, LOCALE, [language], fallback=True)


@lru_cache(32)
def _error_forms(language: str) -> tuple[tuple[re.Pattern[str], str], ...]:
    """Returns the texts of errors with values as patterns, and their translations."""
    translation = translation_of(language)
    catalogue: Mapping[object, str] = getattr(translation, "_catalog", {})
    return tuple(
        (_pattern(key.removeprefix(ERROR_CONTEXT)), form)
        for key, form in catalogue.items()
        if isinstance(key, str) and key.startswith(ERROR_CONTEXT)
    )


def _pattern(text: str) -> re.Pattern[str]:
    """Returns a pattern of all texts of a format, with a group for each value."""
    parts = Formatter().parse(text)
    return re.compile("".join(re.escape(words) + (f"(?P<{name}>.+?)" if name else "") for words, name, _, _ in parts))


def choose_language(tags: Iterable[str]) -> str:
    """Returns the first language of the tags (RFC 5646) that has texts, else English."""
    primary = (tag.partition("-")[0].lower() for tag in tags)
    return next((language for language in primary if language in LANGUAGES), ENGLISH)
