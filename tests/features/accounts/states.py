"""What becomes of the state of this feature in memory when several processes run (`unit/test_process_state.py`)."""

from support.process_state import Checked

STATES = {
    "sign_ins.SignIns": Checked(
        "features/accounts/test_sign_in_processes.py::test_confirmation_reaches_the_browser_at_another_process"
    ),
}
