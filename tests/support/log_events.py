"""The log events of the program, read from its source: calls of structlog's loggers and the fields that they pass."""

import ast
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

LEVELS = {"debug", "info", "warning", "error", "exception"}
_LOGGERS = {"log", "_log"}


@dataclass(slots=True)
class LogCalls:
    """The calls that log one event: their levels, and the fields of any of them."""

    levels: set[str] = field(default_factory=set)
    fields: set[str] = field(default_factory=set)


def log_calls(package: Path) -> dict[str, LogCalls]:
    """The events of all modules that create a logger of structlog, by name.

    Raises ValueError for a call whose event or whose logger this function cannot determine.
    """
    events: dict[str, LogCalls] = defaultdict(LogCalls)
    for path in sorted(package.rglob("*.py")):
        text = path.read_text("utf-8")
        if "structlog.get_logger()" not in text:
            continue
        for function in ast.walk(ast.parse(text)):
            if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
                for level, names, fields in _calls(function, path):
                    for name in names:
                        events[name].levels |= level
                        events[name].fields |= fields
    return dict(events)


def _calls(function: ast.AST, path: Path) -> Iterator[tuple[set[str], set[str], set[str]]]:
    """The levels, the events and the fields of each call in a function."""
    values = _texts_of_variables(function)
    methods = _methods_of_variables(function)
    for node in ast.walk(function):
        if not isinstance(node, ast.Call):
            continue
        if not _levels(node.func, methods):
            continue
        fields = {keyword.arg for keyword in node.keywords if keyword.arg not in (None, "exc_info")}
        if _levels(node.func, methods) == {"exception"} or any(keyword.arg == "exc_info" for keyword in node.keywords):
            fields.add("exception")
        for called, event in _alternatives(node):
            names = _texts(event, values) if event is not None else set()
            if not names:
                raise ValueError(f"{path.name}:{node.lineno}: the event of this call is no constant")
            written = {"error" if level == "exception" else level for level in _levels(called, methods)}
            yield written, names, {str(name) for name in fields}


def _alternatives(call: ast.Call) -> list[tuple[ast.expr, ast.expr | None]]:
    """The called methods with their events: two pairs if one condition selects both the method and the event."""
    event = call.args[0] if call.args else None
    called = call.func
    if isinstance(called, ast.IfExp) and isinstance(event, ast.IfExp) and ast.dump(called.test) == ast.dump(event.test):
        return [(called.body, event.body), (called.orelse, event.orelse)]
    return [(called, event)]


def _levels(called: ast.expr, methods: dict[str, set[str]]) -> set[str]:
    if isinstance(called, ast.IfExp):
        return _levels(called.body, methods) | _levels(called.orelse, methods)
    if isinstance(called, ast.IfExp):
        return _levels(called.body, methods) | _levels(called.orelse, methods)
    if isinstance(called, ast.Name):
        return methods.get(called.id, set())
    is_log = isinstance(called, ast.Attribute) and isinstance(called.value, ast.Name) and called.value.id in _LOGGERS
    return {called.attr} & LEVELS if is_log and isinstance(called, ast.Attribute) else set()


def _methods_of_variables(function: ast.AST) -> dict[str, set[str]]:
    """The levels of variables that are set to a method of a logger."""
    return {name: levels for name, value in _assignments(function) if (levels := _levels(value, {}))}


def _texts_of_variables(function: ast.AST) -> dict[str, set[str]]:
    texts: dict[str, set[str]] = defaultdict(set)
    for name, value in _assignments(function):
        texts[name] |= _texts(value, {})
    return texts


def _assignments(function: ast.AST) -> Iterator[tuple[str, ast.expr]]:
    for node in ast.walk(function):
        if not isinstance(node, ast.Assign):
            continue
        for target in node.targets:
            pairs: list[tuple[ast.expr, ast.expr]] = [(target, node.value)]
            if isinstance(target, ast.Tuple) and isinstance(node.value, ast.Tuple):
                pairs = list(zip(target.elts, node.value.elts, strict=True))
            yield from ((name.id, value) for name, value in pairs if isinstance(name, ast.Name))


def _texts(value: ast.expr, variables: dict[str, set[str]]) -> set[str]:
    """The constant texts that an expression may have."""
    if isinstance(value, ast.IfExp):
        return _texts(value.body, variables) | _texts(value.orelse, variables)
    if isinstance(value, ast.Name):
        return variables.get(value.id, set())
    return {value.value} if isinstance(value, ast.Constant) and isinstance(value.value, str) else set()
