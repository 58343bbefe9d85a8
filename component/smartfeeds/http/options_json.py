"""The options of a node as JSON: their names without the prefix `pubsub#`, and the kind of the node beside them."""

from collections.abc import Callable, Iterable, Mapping

from smartfeeds.core.model import NodeKind
from smartfeeds.core.nearest import nearest
from smartfeeds.core.options import KIND, LISTS, OPTIONS, PUBSUB, FieldType, FormFields, NodeOptions
from smartfeeds.errors import Condition, FeedError
from smartfeeds.formats.json_text import Json, JsonObject

KIND_NAME = "kind"
_KINDS = tuple(kind.value for kind in NodeKind)


def options_of_json(value: Json) -> FormFields:
    """The options of a new node.

    Raises FeedError(BAD_REQUEST) for an unknown name: a misspelt `access_model` must not create an open feed.
    """
    if not isinstance(value, dict):
        raise FeedError(Condition.BAD_REQUEST, 'options are a JSON object such as {"title": "News"}')
    kind = value.get(KIND_NAME, NodeKind.FEED.value)
    if kind not in _KINDS:
        raise FeedError(Condition.BAD_REQUEST, f"{KIND_NAME}: one of {', '.join(_KINDS)}")
    options = {name: member for name, member in value.items() if name != KIND_NAME}
    check_names(options)
    return {KIND: (str(kind),), **{f"{PUBSUB}{name}": form_values(name, member) for name, member in options.items()}}


def options_json(options: NodeOptions) -> JsonObject:
    """The kind and the options of a node, in the types that `PUT /feeds/NAME/` takes."""
    values = {name: options.values_of(option) for name, option in OPTIONS.items()}
    return {
        KIND_NAME: options.kind.value,
        **{name: _option_json(OPTIONS[name].type, texts) for name, texts in values.items()},
    }


def _option_json(kind: FieldType, texts: tuple[str, ...]) -> Json:
    if kind in LISTS:
        return list(texts)
    text = "".join(texts[:1])
    return text == "true" if kind is FieldType.BOOLEAN else text


def check_names(names: Iterable[str]) -> None:
    """Raises FeedError(BAD_REQUEST) for a name that no option has."""
    known = (KIND_NAME, *OPTIONS)
    for name in names:
        if name not in OPTIONS:
            short_name = name[:40]
            similar = nearest(short_name.removeprefix(PUBSUB), known, 0.5)
            hint = f"did you mean {similar}?" if similar else f"there are {', '.join(known)}"
            raise FeedError(Condition.BAD_REQUEST, f"{short_name} is no option of a feed: {hint}")


def form_values(name: str, value: Json) -> tuple[str, ...]:
    """The values of an option as a data form has them. Raises FeedError(BAD_REQUEST) for a value of another type."""
    accepts, expected = _JSON_TYPES.get(OPTIONS[name].type, _ONE_TEXT)
    if not accepts(value):
        raise FeedError(Condition.BAD_REQUEST, f"{name}: the value must be {expected}")
    values = value if isinstance(value, list) else [value]
    return tuple(str(member).lower() if isinstance(member, bool) else str(member) for member in values)


_ONE_TEXT: tuple[Callable[[Json], bool], str] = (lambda value: isinstance(value, str), "a text")
_TEXTS: tuple[Callable[[Json], bool], str] = (
    lambda value: isinstance(value, list) and all(isinstance(member, str) for member in value),
    "an array of texts",
)
# The JSON of each type of an option (the schema Options in `openapi_schemas.py`), and its name.
_JSON_TYPES: Mapping[FieldType, tuple[Callable[[Json], bool], str]] = {
    FieldType.BOOLEAN: (lambda value: isinstance(value, bool), "true or false"),
    FieldType.TEXT_SINGLE: (
        lambda value: isinstance(value, str | int) and not isinstance(value, bool),
        "a text or a whole number",
    ),
    **dict.fromkeys(LISTS, _TEXTS),
}
