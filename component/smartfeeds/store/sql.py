"""The SQL store's transactions: `base.ReadTx` and `base.WriteTx` over an `engine.Engine`, for every SQL database."""

from smartfeeds.store.sql_counts import CountReads
from smartfeeds.store.sql_documents import DocumentReads, DocumentWrites
from smartfeeds.store.sql_items import ItemWrites
from smartfeeds.store.sql_mirrors import MirrorReads, MirrorWrites
from smartfeeds.store.sql_people import PeopleReads, PeopleWrites
from smartfeeds.store.sql_push import PushReads, PushWrites
from smartfeeds.store.sql_tokens import TokenReads, TokenWrites


class SqlReadTx(CountReads, DocumentReads, MirrorReads, PeopleReads, PushReads, TokenReads):
    """Reads over one snapshot."""


class SqlWriteTx(ItemWrites, CountReads, DocumentWrites, MirrorWrites, PeopleWrites, PushWrites, TokenWrites):
    """Reads and writes of one group of works.

    `settle` must be called before the commit, `forget` after the commit or the rollback. `changes` tells whether a
    work has changed anything yet.
    """
