"""What becomes of the state of this feature in memory when several processes run (`unit/test_process_state.py`)."""

from support.process_state import OWNED

STATES = {
    "ess_files.Puller": OWNED,  # PG-075
    "planet.Planet": OWNED,  # PG-075
}

SHORT_LIVED = ("entries.py",)
