"""Index the language of every item, for the view filter `lang`.

All items are indexed again. The facets of a present version only grow, so the past versions of the index are kept. The
languages of past versions are unknown: an item whose language changed before the upgrade is not shown as having left a
view of its former language.
"""

from alembic import op

revision = "0011"
down_revision = "0010"


def upgrade() -> None:
    # -2^63: before every item. Filtered views of the node wait until its index is up to date again.
    op.execute("UPDATE node SET indexed_us = -9223372036854775808, indexed_no = 0, stale = (total > 0)")
