"""What is fixed before the service runs: commands, settings, metrics, the schema, routes, log events, chat commands."""

import json
import math
import sqlite3
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any, Final

import click
from click.testing import CliRunner
from prometheus_client.metrics import MetricWrapperBase

import smartfeeds
from smartfeeds.app.config import CONFIGURATION, ENV_DELIMITER, ENV_PREFIX
from smartfeeds.app.sides import chat_tables, declare_metrics
from smartfeeds.chat.commands import joined_commands
from smartfeeds.cli import main
from smartfeeds.features.bot.commands import COMMANDS
from smartfeeds.store import migrate
from smartfeeds.telemetry import FAST_S, REGISTRY, Durations
from smartfeeds.texts import LANGUAGES, Texts
from support.log_events import log_calls
from support.routes import TABLE
from surfaces.world import World

Surface = Callable[[World], Awaitable[str | bytes]]

WIDTH: Final = 80  # of the help texts


def lines(texts: Iterable[str]) -> str:
    """Sorted lines."""
    return "\n".join(sorted(texts)) + "\n"


async def help_texts(_: World) -> str:
    """The help of each command and group."""
    runner = CliRunner()
    return "\n".join(
        f"$ {' '.join(('smartfeeds', *path))} --help\n"
        f"{runner.invoke(main, [*path, '--help'], prog_name='smartfeeds', terminal_width=WIDTH).output}"
        for path in sorted(_paths(main))
    )


def _paths(command: click.Command, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    yield path
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            inner = command.get_command(context, name)
            assert inner is not None
            yield from _paths(inner, (*path, name))


async def settings(_: World) -> str:
    """Each key with its environment variable, and its type, bounds and default as JSON Schema."""
    schema = CONFIGURATION.model_json_schema()
    rows = []
    for section, value in _plain(schema, schema["$defs"])["properties"].items():
        is_list = value.get("type") == "array"  # the section may occur several times
        model = value["items"] if is_list else value
        for key, kind in model["properties"].items():
            name = f"[[{section}]].{key}" if is_list else f"{section}.{key}"
            variable = f"{ENV_PREFIX}{section}{'' if is_list else f'{ENV_DELIMITER}{key}'}".upper()
            required = " required" if key in model.get("required", ()) else ""
            rows.append(f"{name} {variable} {json.dumps(kind, sort_keys=True)}{required}")
    return lines(rows)


def _plain(schema: Any, definitions: Mapping[str, Any]) -> Any:
    """A schema without references, titles and descriptions."""
    if isinstance(schema, list):
        return [_plain(part, definitions) for part in schema]
    if not isinstance(schema, dict):
        return schema
    if "$ref" in schema:
        named = definitions[schema["$ref"].rpartition("/")[2]]
        return _plain({**named, **{name: value for name, value in schema.items() if name != "$ref"}}, definitions)
    plain = {}
    for name, value in schema.items():
        if name == "properties":
            plain[name] = {key: _plain(kind, definitions) for key, kind in value.items()}
        elif name not in ("$defs", "title", "description"):
            plain[name] = _plain(value, definitions)
    return plain


async def metrics(_: World) -> str:
    """Each metric with its type, labels, bounds of buckets and help."""
    declare_metrics()
    rows = []
    for collector in REGISTRY._collector_to_names:
        described = list(collector.describe()) if hasattr(collector, "describe") else []
        for family in described or collector.collect():
            source = collector if isinstance(collector, MetricWrapperBase) else family
            labels = ",".join(getattr(source, "_labelnames", ()))
            bounds = (*FAST_S, math.inf) if isinstance(collector, Durations) else getattr(source, "_upper_bounds", ())
            buckets = ",".join(f"{bound:g}" for bound in bounds)
            rows.append(f"{family.name} {family.type} {{{labels}}} [{buckets}] {family.documentation}")
    return lines(rows)


async def sqlite_schema(_: World) -> str:
    """The schema that SQLite has stored of a new database."""
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
        migrate.prepare(connection, Path("new.db"))
        rows = connection.execute("SELECT type, name, tbl_name, coalesce(sql, '') FROM sqlite_master").fetchall()
    return "\n".join(f"-- {kind} {name} of {table}\n{sql}\n" for kind, name, table, sql in sorted(rows))


async def postgres_schema(_: World) -> str:
    """The blocks of the script that creates a database of PostgreSQL, without comments."""
    script = migrate.schema("postgres")
    text = "\n".join(line.rstrip() for line in script.splitlines() if not line.startswith("--"))
    return "\n\n".join(sorted(block.strip("\n") for block in text.split("\n\n") if block.strip())) + "\n"


async def routes(_: World) -> str:
    """Each method and path with the scope that a token needs, the label in the metrics and the operation."""
    rows = []
    for route in TABLE:
        operation = route.operation
        scope = "-" if operation.scope is None else operation.scope.name.lower()
        flags = [
            name
            for name in ("cors", "any_site", "guests", "for_people", "for_hubs", "plain_errors")
            if getattr(operation, name)
        ]
        rows.append(
            f"{route.path} {route.method} {scope} http_{route.metric} {operation.name} {' '.join(flags)}".rstrip()
        )
    return lines(rows)


async def log_events(_: World) -> str:
    """Each event that the program can log, with its levels and fields."""
    calls = log_calls(Path(smartfeeds.__file__).parent)
    return lines(
        [
            f"{name} {','.join(sorted(call.levels))} {' '.join(sorted(call.fields))}".rstrip()
            for name, call in calls.items()
        ]
    )


async def chat_commands(_: World) -> str:
    """The chat commands with their other names, rights in rooms, and texts in each language."""
    blocks = []
    for row in joined_commands(COMMANDS, chat_tables()):
        aliases = [f"  alias {language}: {' '.join(words)}" for language, words in sorted(row.aliases.items())]
        texts = [
            f"  {language}: {Texts(language).say(row.usage)} - {Texts(language).say(row.summary)}"
            for language in LANGUAGES
        ]
        head = f"{row.name} ({row.rights.name.lower()}{', hidden' if row.hidden else ''})"
        blocks.append("\n".join([head, *aliases, *texts]))
    return lines(blocks)


PROGRAM: Final[Mapping[str, Surface]] = {
    "help.txt": help_texts,
    "settings.txt": settings,
    "metrics.txt": metrics,
    "schema-sqlite.txt": sqlite_schema,
    "schema-postgres.txt": postgres_schema,
    "routes.txt": routes,
    "log-events.txt": log_events,
    "chat-commands.txt": chat_commands,
}
