"""Prints the texts that catalogues translate, as a template for gettext (`msgmerge`).

A translator runs:

    python tools/texts.py > /tmp/smartfeeds.pot
    cd component/smartfeeds/locale/de/LC_MESSAGES
    msgmerge --update --backup=none --no-wrap --no-fuzzy-matching smartfeeds.po /tmp/smartfeeds.pot
    msgattrib --no-wrap --no-obsolete -o smartfeeds.po smartfeeds.po
    msgfmt --check -o smartfeeds.mo smartfeeds.po
"""

import ast
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from jinja2 import Environment

from smartfeeds.app.sides import all_resources
from smartfeeds.core.options import REFUSED_MODELS
from smartfeeds.features.administration.pages import OPTION_LABELS
from smartfeeds.texts import ERROR_CONTEXT

PACKAGE = Path(__file__).parents[1] / "component" / "smartfeeds"
MODULES = tuple(
    path for folder in ("chat", "features", "http", "service") for path in PACKAGE.glob(f"{folder}/**/*.py")
)
# Where the errors are raised that people meet on pages.
ERROR_MODULES = (
    # The addresses of most of these are made by pages: nobody types them.
    *set(PACKAGE.glob("features/pages/*.py")).difference(
        PACKAGE / "features/pages" / f"{name}.py"
        for name in ("image_requests", "river", "river_http", "search", "settings")
    ),
    *(PACKAGE / "http" / f"{name}.py" for name in ("calls", "multipart", "paths", "resources", "router")),
    *(
        PACKAGE / "service" / f"{name}.py"
        for name in (
            *("affiliations", "answers", "context", "managed_nodes", "node_people", "nodes", "placing"),
            *("item_writes", "pulls", "resources", "standing", "subscriptions"),
        )
    ),
    *(PACKAGE / path for path in ("core/access.py", "core/frame_origins.py", "core/options.py", "formats/post.py")),
    *(
        PACKAGE / "features" / path
        for path in (
            *("accounts/listing.py", "accounts/pages.py", "accounts/sessions.py", "accounts/sign_ins.py"),
            *("accounts/tokens.py", "administration/http.py"),
            *("accounts/resources.py", "administration/tables.py"),
            *("administration/pages.py", "administration/plots.py", "authoring/editor.py", "authoring/requests.py"),
            *("following/pages.py", "polling/follower.py", "polling/following.py", "polling/uploaded_lists.py"),
            *("authoring/form_parts.py", "authoring/uploads.py", "conflicts/http.py", "conflicts/requests.py"),
            *("embedding/guests.py", "embedding/requests.py"),
        )
    ),
)
TEMPLATES = tuple(PACKAGE.glob("features/*/templates/*.html"))
# The functions that take a text, and how many texts they take at which place.
TEXT_ARGUMENTS = {"N_": slice(0, 1), "say": slice(0, 1), "count": slice(1, 3)}
ERROR_ARGUMENTS = {
    **dict.fromkeys(("FeedError", "HttpError", "InsufficientScopeError", "_refuse", "_fixed"), slice(1, 2)),
    **dict.fromkeys(("ValueError", "content_too_large"), slice(0, 1)),
}
# Functions that return a part of the text of an error.
ERROR_FUNCTIONS = frozenset({"how_to_generic"})
# With fewer characters beside its values, such as `{name}: {why}`, a form cannot be recognised by its words.
FEWEST_CHARACTERS = 12

Texts = tuple[str, ...]


def texts() -> list[Texts]:
    """Returns each text once: one text, or its singular and its plural."""
    words = (word for resource in all_resources() for column in resource.columns for word in column.words)
    of_tables = ((text,) for text in (*OPTION_LABELS.values(), *words, *REFUSED_MODELS.values()))
    of_modules = (text for path in MODULES for text in _texts_of(path, TEXT_ARGUMENTS))
    of_errors = (text for path in ERROR_MODULES for text in _texts_of(path, ERROR_ARGUMENTS))
    of_values = ((text,) for path in ERROR_MODULES for text in _errors_with_values(path))
    return sorted({*of_tables, *of_modules, *of_errors, *of_values, *_texts_of_templates()})


def _errors_with_values(path: Path) -> Iterator[str]:
    """The texts of errors that are written as an f-string: `{item.id} is missing` becomes `{id} is missing`."""
    for text in _parts_of_errors(path):
        words = sum(len(str(part.value)) for part in text.values if isinstance(part, ast.Constant))
        if words >= FEWEST_CHARACTERS:
            yield ERROR_CONTEXT + _form_of(text)


def _parts_of_errors(path: Path) -> Iterator[ast.JoinedStr]:
    for node in ast.walk(ast.parse(path.read_text())):
        name = getattr(node.func, "id", "") if isinstance(node, ast.Call) else ""
        values: Sequence[ast.AST | None] = ()
        if isinstance(node, ast.Call) and name in ERROR_ARGUMENTS:
            values = node.args[ERROR_ARGUMENTS[name]]
        elif isinstance(node, ast.FunctionDef) and node.name in ERROR_FUNCTIONS:
            values = [step.value for step in node.body if isinstance(step, ast.Return)]
        yield from (value for value in values if isinstance(value, ast.JoinedStr))


def _form_of(text: ast.JoinedStr) -> str:
    parts: list[str] = []
    for number, part in enumerate(text.values):
        if isinstance(part, ast.Constant):
            parts.append(str(part.value).replace("{", "{{").replace("}", "}}"))
        elif isinstance(part, ast.FormattedValue):
            name = getattr(part.value, "id", getattr(part.value, "attr", "value")).lower()
            parts.append(f"{{{name}}}" if f"{{{name}}}" not in parts else f"{{{name}{number}}}")
    return "".join(parts)


def _texts_of(path: Path, text_arguments: Mapping[str, slice]) -> Iterator[Texts]:
    for call in ast.walk(ast.parse(path.read_text())):
        if not isinstance(call, ast.Call):
            continue
        name = getattr(call.func, "id", getattr(call.func, "attr", ""))
        arguments = call.args[text_arguments.get(name, slice(0))]
        values = [argument.value for argument in arguments if isinstance(argument, ast.Constant)]
        if values and all(isinstance(value, str) for value in values):
            yield tuple(str(value) for value in values)


def _texts_of_templates() -> Iterator[Texts]:
    environment = Environment(extensions=["jinja2.ext.i18n"], trim_blocks=True, lstrip_blocks=True, autoescape=True)
    environment.policies["ext.i18n.trimmed"] = True
    for path in TEMPLATES:
        for _, _, message in environment.extract_translations(path.read_text()):  # type: ignore[attr-defined]
            values = (message,) if isinstance(message, str) else message or ()
            # A text that a variable holds is marked where it is written (`N_`).
            if marked := tuple(value for value in values if value is not None):
                yield marked


if __name__ == "__main__":
    print('msgid ""\nmsgstr "Content-Type: text/plain; charset=UTF-8\\n"\n')
    for text in texts():
        context, _, first = text[0].rpartition("\x04")
        if context:
            print(f"msgctxt {json.dumps(context)}")
        print(f"msgid {json.dumps(first, ensure_ascii=False)}")
        if len(text) == 1:
            print('msgstr ""\n')
        else:
            print(f'msgid_plural {json.dumps(text[1], ensure_ascii=False)}\nmsgstr[0] ""\nmsgstr[1] ""\n')
