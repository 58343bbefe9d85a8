"""An import ends with its command, so its objects are short-lived (`unit/test_process_state.py`)."""

SHORT_LIVED = ("",)
