"""What becomes of the state of this feature in memory when several processes run (`unit/test_process_state.py`)."""

from support.process_state import CACHES, Checked

STATES = {
    "http.NnoLists": Checked(f"{CACHES}::test_whole_list_is_kept_for_ten_seconds"),
}
