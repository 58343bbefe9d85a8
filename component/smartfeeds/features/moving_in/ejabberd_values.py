"""Reads the values that ejabberd's mod_pubsub stores in mnesia and in SQL alike: options, names, dates, subscriptions
(IMP-023 to IMP-030)."""

import re
from collections.abc import Iterable, Mapping
from typing import Final

from smartfeeds.core.model import NO_OPTIONS
from smartfeeds.core.options import PUBSUB, FormFields
from smartfeeds.core.suboptions import SHOWS
from smartfeeds.core.text import counted
from smartfeeds.core.times import US_PER_S, format_datetime, within_years
from smartfeeds.features.moving_in.erlang_terms import ErlangAtom, Term
from smartfeeds.features.moving_in.moved import MovedProblem, MovedSubscription

OTHER_STORAGE: Final = "mod_pubsub may use another storage (its db_type)"
AFFILIATIONS: Final[Mapping[str, str]] = {
    "owner": "owner",
    "publisher": "publisher",
    "publish_only": "publish-only",
    "member": "member",
    "outcast": "outcast",
}
SUBSCRIPTION_STATES: Final = ("subscribed", "pending", "unconfigured")
# Options of ejabberd's plugins, which are no fields of the configuration form.
_PLUGIN_OPTIONS: Final = frozenset({"sql", "rsm", "owner"})
_ACCESS_MODEL: Final = "access_model"
# The option of a subscription that XEP-0060 writes in another way.
_SHOW_VALUES: Final = "show_values"
# In SQL the states of presence follow each other without a separator.
_SHOWS: Final = re.compile(f"(?:{'|'.join(SHOWS)})*")
# Before version 20, a list without a bound had this value.
_WITHOUT_BOUND: Final = {"infinity": "max", "unlimited": "max"}


def text_of(data: bytes) -> str:
    """Returns the text of a binary. Bytes that are no UTF-8 become surrogates, which the checks of `service` reject."""
    return data.decode("utf-8", "surrogateescape")


def option_values(name: str, value: Term) -> tuple[str, ...] | None:
    """Returns the values of a field of the configuration form, or None for a term that is no option."""
    if name == "max_items" and value in _WITHOUT_BOUND:
        return (_WITHOUT_BOUND[str(value)],)
    match value:
        case bytes():
            return (text_of(value),)
        case list():
            values = [option_values(name, part) for part in value]
            return None if None in values else tuple(text for part in values if part is not None for text in part)
        case str() | int():
            return (str(value),)
        case _:
            return None


def read_options(pairs: Iterable[tuple[str, Term]]) -> tuple[dict[str, tuple[str, ...]], list[MovedProblem]]:
    """Returns the options of a node by their full field names, and those that cannot be read.

    An access model that cannot be read has no value. Without the field the node would be open.
    """
    options: dict[str, tuple[str, ...]] = {}
    problems: list[MovedProblem] = []
    for name, value in pairs:
        if name in _PLUGIN_OPTIONS or value == ErlangAtom("undefined"):
            continue
        values = option_values(name, value)
        if values is None:
            problems.append(MovedProblem(f"option {PUBSUB}{name}", "the value cannot be read"))
        if values or name == _ACCESS_MODEL:
            options[PUBSUB + name] = values or ()
    return options, problems


def time_us(term: Term) -> int | None:
    """Returns a time in microseconds from megaseconds, seconds and microseconds (IMP-024). None for another term, and
    for a time that has no date."""
    match term:
        case (int(mega), int(seconds), int(micro)):
            return within_years((mega * 1_000_000 + seconds) * US_PER_S + micro)
    return None


def subscribe_fields(pairs: Iterable[tuple[str, Term]]) -> FormFields:
    """Returns the options of a subscription by their full field names. A value that cannot be read stays as a text,
    which the service then reports."""
    form: dict[str, tuple[str, ...]] = {}
    for name, value in pairs:
        end_us = time_us(value)
        if name == _SHOW_VALUES:
            form[f"{PUBSUB}show-values"] = _shows(value)
        elif end_us is not None:
            form[PUBSUB + name] = (format_datetime(end_us),)
        else:
            form[PUBSUB + name] = _values_or_text(name, value)
    return form


def _values_or_text(name: str, value: Term) -> tuple[str, ...]:
    values = option_values(name, value)
    return (str(value),) if values is None else values


def _shows(value: Term) -> tuple[str, ...]:
    if isinstance(value, str) and _SHOWS.fullmatch(value):
        return tuple(re.findall("|".join(SHOWS), value))
    return _values_or_text(_SHOW_VALUES, value)


def moved_subscription(
    jid: str, states: Iterable[tuple[str, str]], options: Mapping[str, FormFields]
) -> tuple[MovedSubscription | None, list[MovedProblem]]:
    """Returns the subscription of a JID to a node, None without any. `states` are the states and ids of all its
    subscriptions, `options` those of subscriptions by their ids.

    A JID may have several subscriptions. They become the one with the best state, and other options are a problem.
    """
    ranked = sorted(
        ((SUBSCRIPTION_STATES.index(state), subid) for state, subid in states if state in SUBSCRIPTION_STATES),
        key=lambda entry: entry[0],
    )
    if not ranked:
        return None, []
    (rank, first), *others = ranked
    form = options.get(first, NO_OPTIONS)
    lost = sum(options.get(subid, NO_OPTIONS) != form for _, subid in others)
    problems = (
        [MovedProblem(f"subscription {jid!r}", f"{counted(lost, 'other subscription')} had other options")]
        if lost
        else []
    )
    return MovedSubscription(jid, SUBSCRIPTION_STATES[rank], form), problems


def persists_items(options: Mapping[str, tuple[str, ...]]) -> bool:
    """Returns whether ejabberd keeps the items of a node. Its storage has items of other nodes, too (IMP-028)."""
    return options.get(f"{PUBSUB}persist_items") != ("false",)
