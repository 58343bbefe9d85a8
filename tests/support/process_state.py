"""The kinds of state in memory by their effect when several processes run (`unit/test_process_state.py`)."""

from typing import NamedTuple

OWNED = "owned: the owner of the shard has it, and reads it from the store when it takes over"
LOCAL = "local: it describes this process, its connections or its own requests"
WORK = "work: it lives for one work or one request"


class Checked(NamedTuple):
    """A cache that each use compares with the store, or that other processes send changes for; and its test."""

    test: str


class Bound(NamedTuple):
    """A limit for each process, so several processes allow several times as much; how docs/scaling.md names it."""

    words: str


CACHES = "features/cluster/test_process_caches.py"
PAGES = Checked(f"{CACHES}::test_page_shows_what_another_process_has_published")
ENTRIES = Checked(f"{CACHES}::test_entry_shows_the_version_of_another_process")
PROCESSES = "features/cluster/test_processes.py"
HOSTS = Bound("requests to one host")
