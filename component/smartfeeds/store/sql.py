"""The SQL store's transactions: `base.ReadTx` and `base.WriteTx` over an `engine.Engine`, for every SQL database."""

from smartfeeds.store.sql_items import ItemReads, ItemWrites
from smartfeeds.store.sql_people import PeopleReads, PeopleWrites
from smartfeeds.store.sql_push import PushReads, PushWrites


class SqlReadTx(ItemReads, PeopleReads, PushReads):
    """Reads over one snapshot."""


class SqlWriteTx(ItemWrites, PeopleWrites, PushWrites):
    """Reads and writes of one group of works.

    `settle` must be called before the commit, `forget` after the commit or the rollback. `changes` tells whether a
    work has changed anything yet.
    """
