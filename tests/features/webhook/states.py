"""What becomes of the state of this feature in memory when several processes run (`unit/test_process_state.py`)."""

from support.process_state import OWNED

STATES = {
    "webhooks.Webhooks": OWNED,
}
