"""Registrations of workstations at the cloud (RSS-019 to RSS-028; A-131 to A-135).

There is one registration for each callback and document of a feed in a view. The same registration again renews it.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from smartfeeds.core.consumers import Failure, failure_of
from smartfeeds.core.model import Node
from smartfeeds.core.times import US_PER_S
from smartfeeds.errors import Condition, FeedError
from smartfeeds.features.callbacks import rows as callback_rows
from smartfeeds.features.callbacks.cloud_protocol import (
    LIFE_S,
    CloudCallback,
    CloudProtocol,
    CloudRequestError,
    CloudTerms,
    dump_terms,
    load_terms,
    read_callback,
)
from smartfeeds.features.callbacks.registration import Callback, CallbackKind, SubscriptionPhase
from smartfeeds.features.callbacks.registrations import NOBODY, check_limits, locate_topic, remove_registration
from smartfeeds.features.callbacks.settings import WebhooksSettings
from smartfeeds.features.callbacks.topics import Topic
from smartfeeds.service.consumers import add_consumer
from smartfeeds.service.context import Context
from smartfeeds.store.base import ReadTx, WriteTx


def _check(callback: Callback) -> None:
    read_callback(callback.url)
    if callback.active or callback.settings:
        load_terms(callback.settings)


CLOUD = CallbackKind("cloud", _check)


@dataclass(frozen=True, slots=True)
class CloudTopic:
    """A document of a feed in a view. `key` is its address, the same for all spellings; `url` is the one that the
    workstation uses."""

    topic: Topic
    key: str
    url: str


@dataclass(frozen=True, slots=True)
class CloudRegistration:
    """A callback on a host, and the topics to register it for, each once."""

    callback: CloudCallback
    host: str
    topics: tuple[CloudTopic, ...]


def no_feed(url: str) -> str:
    """Returns why an address is refused that names no feed that everybody may read."""
    return f"{url} is not a feed of this server."


def topics_for(pairs: Sequence[tuple[Topic, str]], site_url: str) -> tuple[CloudTopic, ...]:
    """Returns the topics of pairs of topic and URL. Of several spellings of one topic the first counts."""
    topics: dict[str, CloudTopic] = {}
    for topic, url in pairs:
        key = replace(topic, query=topic.view_text).url(site_url)
        topics.setdefault(key, CloudTopic(topic, key, url))
    return tuple(topics.values())


def check_registration(
    tx: ReadTx, context: Context, registration: CloudRegistration, settings: WebhooksSettings
) -> list[tuple[CloudTopic, Node, Callback | None]]:
    """Returns the feed of each topic, and the former registration, which may be that of a deleted feed of this name.

    All topics or none (A-134). Raises CloudRequestError with one text for feeds that do not exist and for those that
    are closed, and for a callback that there is no room for.
    """
    places = []
    for topic in registration.topics:
        try:
            node = locate_topic(tx, context, topic.topic, NOBODY)
        except FeedError:
            raise CloudRequestError(no_feed(topic.url)) from None
        former = callback_rows.callback_for(tx, CLOUD, registration.callback.text, topic.key)
        if former is None or former.node_no != node.node_no:
            _check_room(tx, node, registration.host, settings)
        places.append((topic, node, former))
    return places


def _check_room(tx: ReadTx, node: Node, host: str, settings: WebhooksSettings) -> None:
    try:
        check_limits(tx, CLOUD, settings, node.node_no, host)
    except FeedError as error:
        raise CloudRequestError(f"{error.text}.") from None


def store_registration(
    tx: WriteTx, context: Context, registration: CloudRegistration, settings: WebhooksSettings
) -> list[Callback]:
    """Stores a registration, or renews it. A new one begins behind the newest change.

    Raises CloudRequestError; nothing is stored then.
    """
    rows = []
    for topic, node, former in check_registration(tx, context, registration, settings):
        if former is not None and former.node_no != node.node_no:
            remove_registration(tx, former)
            former = None
        if former is None:
            text, now_us = registration.callback.text, context.now_us
            # A list of topics may need more room than there was for the first one.
            _check_room(tx, node, registration.host, settings)
            former = Callback(CLOUD.name, node.node_no, text, topic.key, registration.host, now_us, now_us)
        terms = CloudTerms(topic.topic.suffix, topic.topic.query, topic.url)
        expires_us = context.now_us + LIFE_S * US_PER_S
        row = callback_rows.put(tx, replace(former, active=True, expires_us=expires_us, settings=dump_terms(terms)))
        add_consumer(tx, row.consumer, topic.topic.view.order)
        rows.append(row)
    return rows


def topic_of(callback: Callback, node: Node) -> Topic:
    """Returns the topic of a registration, whatever the name of its feed is now."""
    terms = load_terms(callback.settings)
    return Topic(node.name, terms.suffix, terms.query)


def drop_registration(tx: WriteTx, callback_no: int) -> Callback:
    """Ends a registration for the operator. Raises FeedError(ITEM_NOT_FOUND)."""
    callback = callback_rows.callback(tx, callback_no)
    if callback is None or callback.kind != CLOUD.name:
        raise FeedError(
            Condition.ITEM_NOT_FOUND,
            f"there is no registration {callback_no}; smartfeeds cloud list shows the numbers",
        )
    remove_registration(tx, callback)
    return callback


@dataclass(frozen=True, slots=True)
class CloudStatus:
    """A registration for people. `url` is the address that the workstation is notified of."""

    callback: Callback
    node: str
    url: str
    protocol: CloudProtocol
    failure: Failure | None = None

    @property
    def phase(self) -> SubscriptionPhase:
        """Whether the last notification failed."""
        return SubscriptionPhase.ACTIVE if self.failure is None else SubscriptionPhase.RETRYING


def cloud_statuses(tx: ReadTx, _context: Context, after_no: int, limit: int) -> list[CloudStatus]:
    """Returns registrations by number."""
    return [_status(tx, callback) for callback in callback_rows.callbacks(tx, CLOUD, after_no, limit)]


def _status(tx: ReadTx, callback: Callback) -> CloudStatus:
    node = tx.node_by_no(callback.node_no)
    return CloudStatus(
        callback,
        "" if node is None else node.name,
        load_terms(callback.settings).url,
        read_callback(callback.url).protocol,
        failure_of(tx.wait(callback.consumer)),
    )
