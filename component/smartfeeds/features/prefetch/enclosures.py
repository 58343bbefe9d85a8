"""Chooses the enclosures that are loaded in advance (RSS-033, A-127; PRE-010, PRE-016, PRE-030).

Only sources bring enclosures: users who publish would otherwise choose what the service loads (PD-1).
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from smartfeeds.core.model import Node
from smartfeeds.errors import ConfigError
from smartfeeds.features.polling import rows as source_rows
from smartfeeds.features.polling.enclosure_rules import Rule, parse_rule
from smartfeeds.features.polling.source import Source, host_of
from smartfeeds.features.prefetch import rows as enclosure_rows
from smartfeeds.features.prefetch.enclosure import (
    Enclosure,
    EnclosureState,
    EnclosureUse,
    Verdict,
    digest_of,
    judge,
)
from smartfeeds.features.prefetch.held_items import held_items
from smartfeeds.features.prefetch.settings import PrefetchSettings
from smartfeeds.formats.entry import EntryLink, enclosures_of
from smartfeeds.formats.feed_document import ImportedItem
from smartfeeds.service.context import Context
from smartfeeds.store.base import ReadTx, WriteTx


@dataclass(frozen=True, slots=True)
class EnclosureStatus:
    """An enclosure, and the newest item of a node that names it."""

    enclosure: Enclosure
    node: str
    item_id: str


_SEARCHED: Final = 1_000  # newest entries of a source, when older enclosures are asked for


def note_enclosures(tx: WriteTx, context: Context, source: Source, node: Node, items: Sequence[ImportedItem]) -> None:
    """Adds the enclosures of items that a source is about to store. Those that an older version of an item has are not
    new. Of the first document only the newest are added (PD-7)."""
    settings = context.policy.find(PrefetchSettings)
    if settings is None or not source.settings.prefetch:
        return
    live = [item for item in items if not item.deleted]
    stored = {item.id: item for item in tx.items(node.node_no, [item.id for item in live])}
    offers = []
    for item in live:
        former = stored.get(item.id)
        known = set() if former is None else {link.href for link in enclosures_of(former.payload)}
        dated_us = context.now_us if item.made_us is None else item.made_us
        offers += [(dated_us, item.id, link) for link in enclosures_of(item.payload) if link.href not in known]
    most = source.settings.prefetch_first if source.good_us is None else settings.files_per_source
    _add(tx, context, settings, source, offers, most)


def add_newest(tx: WriteTx, context: Context, source: Source, count: int) -> int:
    """Adds the newest enclosures of the items that a source has brought, older ones included. Returns how many there
    are. Raises ConfigError if nothing is loaded in advance."""
    settings = settings_of(context)
    node = tx.node(source.node)
    item_ids = [entry.item_id for entry in source_rows.entries(tx, source.source_no)[-_SEARCHED:]]
    items = [] if node is None else tx.items(node.node_no, item_ids)
    offers = [
        (item.created_us, item.id, link) for item in items if not item.deleted for link in enclosures_of(item.payload)
    ]
    return _add(tx, context, settings, source, offers, min(count, settings.files_per_source))


def ask_for(tx: WriteTx, context: Context, node_name: str, item_id: str) -> int:
    """Makes the enclosures of an item due now, outside the windows (PRE-008). Returns how many there are. Raises
    ConfigError if there are none, or if the rules refuse all of them."""
    settings = settings_of(context)
    node = tx.node(node_name)
    item = tx.item(node.node_no, item_id) if node is not None else None
    sources = source_rows.sources_of(tx, node_name)
    held = next((one for row in sources if (one := held_items(tx, row.source_no).get(item_id)) is not None), None)
    if held is not None:
        payload: bytes = held.item.payload
        dated_us = held.since_us if held.item.made_us is None else held.item.made_us
    elif item is not None and not item.deleted:
        payload, dated_us = item.payload, item.created_us
    else:
        raise ConfigError(f"the node {node_name} has no item {item_id}")
    source = next((row for row in sources if _has_brought(tx, row, item_id)), None)
    if source is None:
        raise ConfigError(f"the item {item_id} came from no source; only enclosures of sources are loaded")
    links = enclosures_of(payload)
    if not links:
        raise ConfigError(f"the item {item_id} has no enclosure")
    refusals = [verdict.refusal for link in links if (verdict := verdict_on(settings, source, link)).refusal]
    if len(refusals) == len(links):
        raise ConfigError(f"the enclosure of the item {item_id} is not loaded: {refusals[0]}")
    _add(tx, context, settings, source, [(dated_us, item_id, link) for link in links], len(links))
    rows = [row for link in links if (row := enclosure_rows.enclosure_at(tx, link.href)) is not None]
    for row in rows:
        if row.state is not EnclosureState.ARRIVED:
            enclosure_rows.put(
                tx,
                row._replace(
                    state=EnclosureState.WAITING, asked_us=context.now_us, failures=0, since_us=context.now_us
                ),
            )
    return len(rows)


def enclosure_statuses(tx: ReadTx, _context: Context, after_no: int, limit: int) -> list[EnclosureStatus]:
    """Enclosures by number, each once for every node; without a node if its items are gone."""
    statuses = []
    for row in enclosure_rows.enclosures(tx, after_no, limit):
        uses = {use.node: use for use in reversed(enclosure_rows.uses(tx, row.enclosure_no))}
        statuses += [EnclosureStatus(row, use.node, use.item_id) for use in uses.values()] or [
            EnclosureStatus(row, "", "")
        ]
    return statuses


def _has_brought(tx: ReadTx, source: Source, item_id: str) -> bool:
    return any(entry.item_id == item_id for entry in source_rows.entries(tx, source.source_no))


def _add(
    tx: WriteTx,
    context: Context,
    settings: PrefetchSettings,
    source: Source,
    offers: Iterable[tuple[int, str, EntryLink]],
    most: int,
) -> int:
    """Adds the newest enclosures that the rules of a source allow."""
    allowed = [offer for offer in offers if not verdict_on(settings, source, offer[2]).refusal]
    newest = sorted(allowed, key=lambda offer: offer[0], reverse=True)[:most]
    for dated_us, item_id, link in newest:
        row = enclosure_rows.enclosure_at(tx, link.href) or enclosure_rows.add(
            tx, _new_enclosure(link, dated_us, context.now_us)
        )
        if row.dated_us < dated_us:
            enclosure_rows.put(tx, row._replace(dated_us=dated_us))
        enclosure_rows.put_use(tx, EnclosureUse(row.enclosure_no, source.source_no, item_id, source.node, dated_us))
    return len(newest)


def _new_enclosure(link: EntryLink, dated_us: int, now_us: int) -> Enclosure:
    names = (link.href, host_of(link.href), digest_of(link.href))
    return Enclosure(0, *names, link.type, link.length or None, EnclosureState.WAITING, "", dated_us, now_us)


def verdict_on(settings: PrefetchSettings, source: Source, link: EntryLink) -> Verdict:
    """Returns the verdict of the rules of a source on an enclosure. A length of 0 is unknown (A-128)."""
    return judge(settings, rules_of(source), link.href, link.type, link.length or None)


def rules_of(source: Source) -> list[Rule]:
    """The rules of a source, empty if it has those of the service."""
    return [parse_rule(text) for text in source.settings.prefetch_rules]


def settings_of(context: Context) -> PrefetchSettings:
    """The settings of prefetch. Raises ConfigError without a folder (PRE-036)."""
    settings = context.policy.find(PrefetchSettings)
    if settings is None:
        raise ConfigError("nothing is loaded in advance: prefetch.folder is not set; set a folder and restart")
    return settings


def is_alive(tx: ReadTx, use: EnclosureUse) -> bool:
    """Whether the item still names the enclosure."""
    node, enclosure = tx.node(use.node), enclosure_rows.enclosure(tx, use.enclosure_no)
    item = None if node is None else tx.item(node.node_no, use.item_id)
    if item is None or item.deleted or enclosure is None:
        return False
    return any(link.href == enclosure.url for link in enclosures_of(item.payload))
