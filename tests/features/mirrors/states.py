"""What becomes of the state of this feature in memory when several processes run (`unit/test_process_state.py`)."""

from support.process_state import OWNED

STATES = {
    "mirror_peer.PeerMemory": OWNED,
    "mirror_state.MirrorStateStore": OWNED,  # PG-074
    "mirrors.Mirrors": OWNED,  # PG-074
}
