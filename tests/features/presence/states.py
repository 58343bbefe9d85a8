"""What becomes of the state of this feature in memory when several processes run (`unit/test_process_state.py`)."""

from support.process_state import LOCAL, PROCESSES, Checked

STATES = {
    "interests.Interests": Checked(
        "features/presence/test_notify.py::test_newest_item_comes_once_from_several_processes"
    ),
    "states.Availability": Checked(
        f"{PROCESSES}::test_presence_that_another_process_receives_while_the_locks_are_lost"
    ),
    "capabilities.CapabilityReader": LOCAL,
    "xmpp.Presences": LOCAL,
    "last_items.LastItems": LOCAL,  # a resource may receive the newest item once from each process
    "tasks.Tasks": LOCAL,
}
