"""What becomes of the state of this feature in memory when several processes run (`unit/test_process_state.py`)."""

from support.process_state import PAGES

STATES = {"frames.Frames": PAGES}

PURE = {"files": {"_frame_files", "_script"}}
