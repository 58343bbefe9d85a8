"""The rules that choose the enclosures of a source (RSS-034; PRE-010 to PRE-012)."""

import re
from dataclasses import dataclass
from typing import Final

from smartfeeds.errors import ConfigError

_UNITS: Final = {"": 1, "k": 1_000, "m": 1_000_000, "g": 1_000_000_000}
_SIZE: Final = re.compile(r"([0-9]{1,15})([kmg]?)b?")
_ALLOWED: Final = {"yes": True, "no": False}
_CONDITIONS: Final = ("type", "host", "max", "word")
_RULE_HELP: Final = "write it as 'yes type=audio/* host=*.example.org max=10MB word=news' or 'no ...'"


@dataclass(frozen=True, slots=True)
class Rule:
    """Allows or refuses enclosures to which all its conditions apply; "" and None are no condition. `media_type` and
    `host` are patterns with `*`."""

    allows: bool
    media_type: str = ""
    host: str = ""
    max_bytes: int | None = None
    word: str = ""


def parse_size(text: str) -> int:
    """Reads a size such as `10MB` or `500k`. Raises ConfigError."""
    match = _SIZE.fullmatch(text.strip().lower())
    if match is None:
        raise ConfigError(f"{text!r} is not a size; write it as 10MB")
    return int(match[1]) * _UNITS[match[2]]


def parse_rule(text: str) -> Rule:
    """Reads a rule such as `yes type=audio/* max=10MB`. Raises ConfigError."""
    word, *parts = text.split() or [""]
    pairs = [part.partition("=") for part in parts]
    conditions = {name: value for name, _, value in pairs}
    if word not in _ALLOWED or len(conditions) < len(pairs) or not all(conditions.values()):
        raise ConfigError(f"the rule {text!r} cannot be read; {_RULE_HELP}")
    if not conditions.keys() <= set(_CONDITIONS):
        raise ConfigError(f"the rule {text!r} has a condition that does not exist; use {', '.join(_CONDITIONS)}")
    return Rule(
        _ALLOWED[word],
        conditions.get("type", "").lower(),
        conditions.get("host", "").lower(),
        parse_size(conditions["max"]) if "max" in conditions else None,
        conditions.get("word", "").lower(),
    )
