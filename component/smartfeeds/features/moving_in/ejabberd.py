"""Nodes from the storage of ejabberd's mod_pubsub, whichever of its kinds a source is (IMP-020)."""

from collections.abc import Iterator

from smartfeeds.features.moving_in.ejabberd_dump import read_ejabberd_dump
from smartfeeds.features.moving_in.ejabberd_sql import read_ejabberd_sql
from smartfeeds.features.moving_in.foreign_database import is_database
from smartfeeds.features.moving_in.moved import MovedNode, MovedProblem


def read_ejabberd(source: str, host: str) -> Iterator[MovedNode | MovedProblem]:
    """Yields the nodes of a service. The source is a text dump of mnesia, a folder of dumped tables, a SQLite file, or
    the address of a PostgreSQL database.

    Raises DocumentError if it cannot be read, ConfigError for a wrong host or another kind of database.
    """
    yield from read_ejabberd_sql(source, host) if is_database(source) else read_ejabberd_dump(source, host)
