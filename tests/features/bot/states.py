"""What becomes of the state of this feature in memory when several processes run (`unit/test_process_state.py`)."""

from support.process_state import LOCAL, OWNED, Checked

STATES = {
    "delivery.ChatSender": OWNED,
    "room_verifier.RoomVerifier": LOCAL,  # what addresses are; each process asks for itself, once a minute
    "rooms.Rooms": Checked("features/bot/test_room_processes.py::test_each_process_answers_what_it_receives"),
}

PURE = {
    "schedule": {"_zones"},
}
