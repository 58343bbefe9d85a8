"""Prints the texts of the bot that catalogues translate, as a template for gettext (`msgmerge`).

A translator runs:

    python tools/bot_texts.py > /tmp/bot.pot
    cd component/smartfeeds/bot/locale/de/LC_MESSAGES
    msgmerge --update bot.po /tmp/bot.pot
    msgfmt --check -o bot.mo bot.po
"""

import ast
import json
from collections.abc import Iterator
from pathlib import Path

BOT = Path(__file__).parents[1] / "component" / "smartfeeds" / "bot"
# The functions that take a text, and how many texts they take at which place.
TEXT_ARGUMENTS = {"N_": slice(0, 1), "say": slice(0, 1), "count": slice(1, 3)}


def bot_texts() -> list[tuple[str, ...]]:
    """Returns each text of the bot once: one text, or its singular and its plural."""
    return sorted({texts for path in sorted(BOT.glob("*.py")) for texts in _texts_of(ast.parse(path.read_text()))})


def _texts_of(tree: ast.Module) -> Iterator[tuple[str, ...]]:
    for call in ast.walk(tree):
        if not isinstance(call, ast.Call):
            continue
        name = getattr(call.func, "id", getattr(call.func, "attr", ""))
        texts = [one.value for one in call.args[TEXT_ARGUMENTS.get(name, slice(0))] if isinstance(one, ast.Constant)]
        if texts and all(isinstance(text, str) for text in texts):
            yield tuple(str(text) for text in texts)


if __name__ == "__main__":
    print('msgid ""\nmsgstr "Content-Type: text/plain; charset=UTF-8\\n"\n')
    for one in bot_texts():
        print(f"msgid {json.dumps(one[0], ensure_ascii=False)}")
        if len(one) == 1:
            print('msgstr ""\n')
        else:
            print(f'msgid_plural {json.dumps(one[1], ensure_ascii=False)}\nmsgstr[0] ""\nmsgstr[1] ""\n')
