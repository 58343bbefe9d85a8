"""Store the failure of a mirror in the form of a delivery's failure, and the number of the node that it fills."""

from smartfeeds.store.migrations import run_script

revision = "0013"
down_revision = "0012"

# A failure without a time was never stored, but the former schema allowed it. Number 0 stands for the node that exists.
_STATEMENT = """
UPDATE mirror
SET state = json_set(
    json_remove(state, '$.WAY.failed_us'), '$.WAY.node_no', 0,
    '$.WAY.failure', CASE json_extract(state, '$.WAY.failure') WHEN '' THEN NULL ELSE json_object(
        'count', 1, 'since_us', COALESCE(json_extract(state, '$.WAY.failed_us'), 0),
        'next_us', COALESCE(json_extract(state, '$.WAY.failed_us'), 0),
        'error', json_extract(state, '$.WAY.failure')
    ) END
)
WHERE json_extract(state, '$.WAY.failure') IS NOT NULL;
"""


def upgrade() -> None:
    run_script("".join(_STATEMENT.replace("WAY", way) for way in ("in", "out")))
