"""What becomes of the state of this feature in memory when several processes run (`unit/test_process_state.py`)."""

from support.process_state import Checked

STATES = {
    "waiting.NewsWaiters": Checked(
        "features/following/test_waiting.py::test_change_by_another_process_is_found_by_looking"
    ),
}
