"""The texts for people in all languages."""

import gettext
import json
import re
import runpy
from pathlib import Path
from string import Formatter

import pytest

from smartfeeds.app.sides import chat_tables
from smartfeeds.chat.commands import joined_commands
from smartfeeds.core.model import NodeKind
from smartfeeds.core.options import NodeOptions, OptionLimits
from smartfeeds.errors import FeedError
from smartfeeds.features.bot import commands as bot_commands
from smartfeeds.features.bot import usages
from smartfeeds.features.bot.commands import by_word
from smartfeeds.texts import DOMAIN, LANGUAGES, LOCALE, Texts, choose_language

COMMANDS = joined_commands(bot_commands.COMMANDS, chat_tables())
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


COMMANDS_BY_WORD = by_word(COMMANDS)
USAGES = [row.usage for row in COMMANDS]


@pytest.mark.parametrize("language", LANGUAGES)
def test_next_steps_are_commands(language: str) -> None:
    """What an answer offers is a command in the language of the person."""
    steps = [usage for usage in vars(usages).values() if isinstance(usage, str) and usage in USAGES]
    steps += ["quiet off", "digest off", "quiet 22-7 Europe/Berlin", "digest daily 8:00 Europe/Berlin"]
    assert len(steps) > 12
    for step in steps:
        row = COMMANDS_BY_WORD[Texts(language).say(step).split()[0]]
        assert row.usage == step or row.name == step.split()[0]


def test_value_is_never_read_as_a_format() -> None:
    assert Texts("en").say("{title} (edited)", title="{0.__class__} %s {title}") == "{0.__class__} %s {title} (edited)"


def test_counts_have_a_singular() -> None:
    for language, texts in (("en", ["1 subscriber", "2 subscribers"]), ("de", ["1 Abonnent", "2 Abonnenten"])):
        assert [Texts(language).count(n, "{number} subscriber", "{number} subscribers") for n in (1, 2)] == texts


def test_choose_language() -> None:
    assert choose_language(["de-AT"]) == "de"
    assert choose_language(["fr", "DE"]) == "de"
    assert choose_language(["../de", "", "x" * 9]) == "en"


def test_each_word_belongs_to_one_command() -> None:
    words = [row.name for row in COMMANDS] + [
        a for row in COMMANDS for aliases in row.aliases.values() for a in aliases
    ]
    assert len(words) == len(set(words)) == len(COMMANDS_BY_WORD)


@pytest.mark.parametrize("language", LANGUAGES)
def test_usage_begins_with_a_name_of_the_command(language: str) -> None:
    for row in COMMANDS:
        word = Texts(language).say(row.usage).split()[0].removeprefix("/")
        assert COMMANDS_BY_WORD[word] is row


@pytest.mark.parametrize(
    ("text", "translation"),
    [
        (
            "a@b.example is the last owner of the node; add another owner first",
            "a@b.example ist der letzte Besitzer des Knotens; bitte zuerst einen anderen Besitzer hinzufügen",
        ),
        ("no such node, or it is closed to you", "diesen Feed gibt es nicht, oder er ist geschlossen"),
        ("there is a node {name} already", "den Knoten {name} gibt es schon"),
        ("a text (of) nobody+", "a text (of) nobody+"),
        ("pubsub#title: one value", "pubsub#title: ein einziger Wert"),
        ("pubsub#item_expire: a whole number from 1 to 9", "pubsub#item_expire: eine ganze Zahl von 1 bis 9"),
        ("pubsub#none: pubsub#none: ", "pubsub#none: pubsub#none: "),
        ("", ""),
    ],
)
def test_error_is_translated_with_its_values(text: str, translation: str) -> None:
    """The text of an error has its values already. Braces and other characters of a value mean nothing."""
    assert Texts("de").message(text) == translation
    assert Texts("en").message(text) == text


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("title", ("a", "b")),
        ("title", ("\0",)),
        ("max_items", ("3",)),
        ("item_expire", ("5",)),
        ("persist_items", ("false",)),
        ("max_payload_size", ("0",)),
        ("purge_offline", ("true",)),
        ("language", ("x y",)),
        ("contact", ("@",)),
        ("subscribe", ("maybe",)),
        ("publish_model", ("nobody",)),
        ("access_model", ("presence",)),
        ("access_model", ("roster",)),
        ("access_model", ("nobody",)),
        ("body_xslt", ("x",)),
    ],
)
def test_errors_of_options_are_translated(name: str, values: tuple[str, ...]) -> None:
    """The administration shows them in the language of the page, whole: a value may be a text of its own."""
    with pytest.raises(FeedError) as error:
        NodeOptions(NodeKind.FEED).apply({f"pubsub#{name}": values}, OptionLimits())
    text = error.value.text
    translation = Texts("de").message(text)
    assert translation.partition(": ")[0] == f"pubsub#{name}" or name == "access_model"
    rest = translation.removeprefix(f"pubsub#{name}: ")
    assert rest != text.removeprefix(f"pubsub#{name}: ")
    assert not {"a", "the", "it", "send", "for", "of", "is"} & set(re.findall(r"\w+", rest)), translation
