"""The state of the database server, read by the statements of its engine."""

from smartfeeds.store.database_state import DatabaseState
from smartfeeds.store.sql_nodes import NodeReads


class ServerReads(NodeReads):
    """The part of ReadTx that is about the server."""

    def database_state(self) -> DatabaseState | None:
        """Returns the state of the server; None if the database is a file. It waits for no lock."""
        return self.db.database_state()
