"""How many nodes and subscriptions the JIDs of a domain have, kept and not counted."""

from smartfeeds.store.migrations import run_script

revision = "0005"
down_revision = "0004"

_SCRIPT = """
INSERT INTO tally (name, value)
SELECT 'nodes@' || substr(creator, instr(creator, '@') + 1), count(*) FROM node WHERE state = 'live' GROUP BY 1;
INSERT INTO tally (name, value)
SELECT 'subscriptions@' || substr(bare, instr(bare, '@') + 1), count(*) FROM subscription GROUP BY 1;
"""


def upgrade() -> None:
    run_script(_SCRIPT)
