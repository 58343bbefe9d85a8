"""The catalogues with the translations of all texts."""

import gettext
import json
import re
import runpy
from pathlib import Path
from string import Formatter

import pytest

from smartfeeds.texts import DOMAIN, LANGUAGES, LOCALE

ROOT = Path(__file__).parents[2]
TEXTS: list[tuple[str, ...]] = runpy.run_path(str(ROOT / "tools/texts.py"))["texts"]()
TRANSLATIONS = [language for language in LANGUAGES if language != "en"]


def catalogue(language: str) -> dict[object, str]:
    """The compiled catalogue: a plural has a key of the text and the number of the form."""
    loaded = gettext.translation(DOMAIN, LOCALE, [language])
    assert isinstance(loaded, gettext.GNUTranslations)
    entries: dict[object, str] = dict(loaded._catalog)  # type: ignore[attr-defined]
    del entries[""]
    return entries


def fields(text: str) -> set[str]:
    """The names of the values in a text: `{name}` in modules, `%(name)s` in templates."""
    if named := set(re.findall(r"%\((\w+)\)s", text)):
        return named
    return {name for _, name, _, _ in Formatter().parse(text) if name is not None}


@pytest.mark.parametrize("language", TRANSLATIONS)
def test_catalogue_has_each_text_and_no_other(language: str) -> None:
    expected = {text[0] if len(text) == 1 else (text[0], form) for text in TEXTS for form in range(len(text))}
    assert len(expected) > 80
    assert set(catalogue(language)) == expected


@pytest.mark.parametrize("language", TRANSLATIONS)
def test_translations_have_the_values_of_the_text(language: str) -> None:
    translations = catalogue(language)
    for text in TEXTS:
        for form, source in enumerate(text):
            translation = translations[source if len(text) == 1 else (text[0], form)]
            assert translation and fields(translation) == fields(source), source


@pytest.mark.parametrize("language", TRANSLATIONS)
def test_compiled_catalogue_is_current(language: str) -> None:
    """Each translation of the source is in the compiled catalogue, without a compiler."""
    source = (LOCALE / language / "LC_MESSAGES" / "smartfeeds.po").read_text()
    # A text with several lines begins with an empty line.
    written = re.findall(r'(?m)^msgstr(?:\[\d\])? ((?:".*"\n?)+)', source)[1:]
    texts = ["".join(map(json.loads, lines.splitlines())) for lines in written]
    assert sorted(texts) == sorted(catalogue(language).values())
