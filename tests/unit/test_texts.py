"""The texts for people in all languages."""

import re

import pytest

from smartfeeds.core.model import NodeKind
from smartfeeds.core.options import NodeOptions, OptionLimits
from smartfeeds.errors import FeedError
from smartfeeds.texts import Texts, choose_language


def test_value_is_never_read_as_a_format() -> None:
    assert Texts("en").say("{title} (edited)", title="{0.__class__} %s {title}") == "{0.__class__} %s {title} (edited)"


def test_counts_have_a_singular() -> None:
    for language, texts in (("en", ["1 subscriber", "2 subscribers"]), ("de", ["1 Abonnent", "2 Abonnenten"])):
        assert [Texts(language).count(n, "{number} subscriber", "{number} subscribers") for n in (1, 2)] == texts


def test_choose_language() -> None:
    assert choose_language(["de-AT"]) == "de"
    assert choose_language(["fr", "DE"]) == "de"
    assert choose_language(["../de", "", "x" * 9]) == "en"


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
