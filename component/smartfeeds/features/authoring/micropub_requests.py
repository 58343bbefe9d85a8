"""Requests of Micropub clients as values: from JSON and from forms (Micropub 3.3 to 3.5)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from smartfeeds.errors import Condition, FeedError
from smartfeeds.features.authoring.form_parts import FormParts
from smartfeeds.formats import microformats
from smartfeeds.formats.json_text import Json
from smartfeeds.formats.microformats import ENTRY_TYPE, Properties

TOKEN_FIELD = "access_token"  # noqa: S105 - the name of a field
_COMMANDS = frozenset({"action", "url", "h", TOKEN_FIELD, "post-status", "visibility"})
# Values that ask for something else than a public entry.
_USUAL = {"post-status": "published", "visibility": "public"}


@dataclass(frozen=True, slots=True)
class MicropubRequest:
    """A request of a client: an action with its parameters, or the properties of a new entry."""

    properties: Properties
    commands: Mapping[str, Json]
    action: str = "create"


def request_of_json(value: Json) -> MicropubRequest:
    """A request in JSON (Micropub 3.3.2, 3.4, 3.5). Raises FeedError(BAD_REQUEST)."""
    if not isinstance(value, dict):
        raise FeedError(Condition.BAD_REQUEST, "the body is a JSON object with a type or an action")
    action = value.get("action")
    if action is not None:
        return MicropubRequest({}, value, str(action))
    if value.get("type") != [ENTRY_TYPE]:
        raise FeedError(Condition.BAD_REQUEST, f'type: the service takes ["{ENTRY_TYPE}"] only')
    properties = values_of(value.get("properties", {}), "properties")
    commands = {name: values[0] for name, values in properties.items() if _is_command(name) and values}
    _check_public(commands)
    return MicropubRequest(properties, commands)


def request_of_form(pairs: Sequence[tuple[str, str]], parts: FormParts | None = None) -> MicropubRequest:
    """A request in a form (Micropub 3.3.1). Raises FeedError(BAD_REQUEST)."""
    properties: dict[str, list[Json]] = {}
    commands: dict[str, Json] = {}
    for name, value in pairs:
        name = name.removesuffix("[]")
        if _is_command(name):
            commands.setdefault(name, value)
        elif name.endswith("[html]"):
            properties.setdefault(name.removesuffix("[html]"), []).append({"html": value})
        elif value:
            properties.setdefault(name, []).append(value)
    if commands.get("h", "entry") != "entry":
        raise FeedError(Condition.BAD_REQUEST, "h: the service takes entry only")
    _check_public(commands)
    for _, link in parts.files if parts is not None else ():
        properties.setdefault(microformats.file_property(link), []).append(link)
    return MicropubRequest(properties, commands, str(commands.get("action", "create")))


def _check_public(commands: Mapping[str, Json]) -> None:
    """Raises FeedError(BAD_REQUEST) for a draft or a private entry: ignoring the wish would publish it."""
    for name, usual in _USUAL.items():
        if commands.get(name, usual) != usual:
            raise FeedError(
                Condition.BAD_REQUEST, f"{name}: the service takes {usual} only, because it publishes at once"
            )


def _is_command(name: str) -> bool:
    return name in _COMMANDS or name.startswith("mp-")


def command(request: MicropubRequest, name: str) -> str:
    """A command that is a text; "" if it is missing. Raises FeedError(BAD_REQUEST)."""
    value = request.commands.get(name, "")
    if isinstance(value, list) and len(value) == 1:
        value = value[0]
    if not isinstance(value, str):
        raise FeedError(Condition.BAD_REQUEST, f"{name} is one text")
    return value


def values_of(value: Json, name: str) -> Properties:
    """Properties with arrays of values. Raises FeedError(BAD_REQUEST)."""
    if not isinstance(value, dict) or not all(isinstance(values, list) for values in value.values()):
        raise FeedError(Condition.BAD_REQUEST, f"{name} is an object whose members are arrays of values")
    return value


def is_names(value: Json) -> bool:
    """Whether a value is an array of texts."""
    return isinstance(value, list) and all(isinstance(name, str) for name in value)


def lists_of(pairs: Sequence[tuple[str, str]]) -> Mapping[str, list[str]]:
    """The values of each field of a form or query, in their order."""
    lists: dict[str, list[str]] = {}
    for name, value in pairs:
        lists.setdefault(name.removesuffix("[]"), []).append(value)
    return lists


def first_of(lists: Mapping[str, list[str]], name: str) -> str:
    """The first value of a field, "" without one."""
    return lists.get(name, [""])[0]
