"""The use cases over the store that a configuration names.

The whole service is built on this, and commands that need the store alone load nothing else.
"""

from collections.abc import Callable, Collection
from functools import reduce
from operator import or_

from smartfeeds import system
from smartfeeds.app.config import Settings, policies_of
from smartfeeds.core.options import OptionLimits
from smartfeeds.core.stores import NO_PSYCOPG
from smartfeeds.errors import ConfigError
from smartfeeds.features import FEATURES
from smartfeeds.formats.atom import read_traits
from smartfeeds.service.context import NewReply, Policy
from smartfeeds.service.feeds import KERNEL, FeedService
from smartfeeds.service.use_cases import UseCases
from smartfeeds.store import row_readers
from smartfeeds.store.base import OpenMode, Store
from smartfeeds.store.lock import Release, lock_database, no_lock
from smartfeeds.store.row_readers import RowReader
from smartfeeds.store.sqlite import SqliteStore


def policy_of(settings: Settings) -> Policy:
    """Returns the policy of the service that the settings describe."""
    pubsub, limits = settings.pubsub, settings.limits
    return Policy(
        domain=settings.component.jid,
        default_kind=pubsub.default_kind,
        creators=frozenset(pubsub.creators),
        contacts=frozenset(pubsub.contacts),
        admins=frozenset(pubsub.admins),
        auto_create=pubsub.auto_create,
        owners_subscribe_others=pubsub.owners_subscribe_others,
        hides_closed=pubsub.closed_nodes == "hide",
        page_default=pubsub.page_default,
        page_max=pubsub.page_max,
        page_bytes=pubsub.page_bytes,
        span_cursors=settings.compat.span_cursors,
        subscriptions_per_jid=limits.subscriptions_per_jid,
        subscriptions_per_jid_and_node=limits.subscriptions_per_jid_and_node,
        filters_per_jid=limits.filters_per_jid,
        nodes_per_jid=limits.nodes_per_jid,
        subscriptions_per_domain=limits.subscriptions_per_domain,
        nodes_per_domain=limits.nodes_per_domain,
        restarts=settings.run.restarts,
        base_url=settings.http.base_url if settings.http.listen else "",
        contacts_per_jid=limits.contacts_per_jid,
        contacts_per_domain=limits.contacts_per_domain,
        files_bytes_per_jid=limits.files_bytes_per_jid,
        sources_per_jid=limits.sources_per_jid,
        of_features=policies_of(settings),
        options=OptionLimits(
            max_payload_size_bytes=pubsub.max_payload_size_bytes, presence_access="*" not in pubsub.contacts
        ),
    )


def all_use_cases() -> UseCases:
    """Returns the use cases of the kernel and of all features, with their hooks."""
    sides = [feature.store() for feature in FEATURES]
    use_cases = [side.use_cases for side in sides if side.use_cases is not None]
    hooks = [UseCases(hooks=side.hooks) for side in sides if side.hooks is not None]
    return reduce(or_, [*use_cases, *hooks], KERNEL)


def all_row_readers() -> list[RowReader]:
    """Returns how the rows of the kernel and of all features are read."""
    return [*row_readers.KERNEL, *(reader for feature in FEATURES for reader in feature.row_readers())]


def lock_store(settings: Settings, purpose: str) -> Release:
    """Locks a store that one process at a time may serve. Returns the function that releases the lock.

    Raises StoreError if another process serves the store.
    """
    return no_lock if settings.store.is_shared else lock_database(settings.store.path, purpose)


def open_store(settings: Settings, mode: OpenMode = OpenMode.SERVE) -> Store:
    """The store of the settings, which the caller opens. psycopg is imported only for PostgreSQL, because it is an
    optional dependency.

    Raises ConfigError if it is not installed, or if the password of the database cannot be read.
    """
    if not settings.store.is_shared:
        return SqliteStore(settings.store.path, read_traits, mode=mode)
    try:
        from smartfeeds.store.postgres import PostgresStore
    except ImportError as error:
        raise ConfigError(f"store.url: {NO_PSYCOPG} ({error})") from None
    return PostgresStore(settings.store.address, read_traits, mode=mode)


def open_service(
    settings: Settings,
    on_change: Callable[[Collection[int]], None],
    clock: Callable[[], int] | None = None,
    mode: OpenMode = OpenMode.SERVE,
    on_reply: Callable[[NewReply], None] | None = None,
) -> FeedService:
    """The service over the store of the settings, which the caller opens. `clock`: `system.now_us` if it is None."""
    store = open_store(settings, mode)
    return FeedService(
        store,
        policy_of(settings),
        clock=clock or system.now_us,
        new_id=system.new_id,
        on_change=on_change,
        on_reply=on_reply,
        use_cases=all_use_cases(),
    )
