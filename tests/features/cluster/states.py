"""What becomes of the state of this feature in memory when several processes run (`unit/test_process_state.py`)."""

from support.process_state import LOCAL

STATES = {
    "letters.Letterbox": LOCAL,
    "ownership.SharedOwnership": LOCAL,
    "letter_table.HeardLetters": LOCAL,
    "lock_session.LockSession": LOCAL,
    "canary.Canary": LOCAL,
}
