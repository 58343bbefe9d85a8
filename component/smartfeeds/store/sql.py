"""The transactions of the SQL store: `base.ReadTx` and `base.WriteTx` over an `engine.Engine`."""

from smartfeeds.store.sql_counts import CountReads
from smartfeeds.store.sql_documents import DocumentReads, DocumentWrites
from smartfeeds.store.sql_items import ItemWrites
from smartfeeds.store.sql_mirrors import MirrorReads, MirrorWrites
from smartfeeds.store.sql_people import PeopleReads, PeopleWrites
from smartfeeds.store.sql_push import PushReads, PushWrites
from smartfeeds.store.sql_tokens import TokenReads, TokenWrites


class SqlReadTx(CountReads, DocumentReads, MirrorReads, PeopleReads, PushReads, TokenReads):
    """Reads on one snapshot."""


class SqlWriteTx(ItemWrites, CountReads, DocumentWrites, MirrorWrites, PeopleWrites, PushWrites, TokenWrites):
    """Reads and writes of one group of works.

    Call `settle` before the commit, and `forget` after the commit or the rollback. `changes` counts changes, so that
    the store knows whether a failed work must be rolled back.
    """
