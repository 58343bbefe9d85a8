"""What becomes of the state of this feature in memory when several processes run (`unit/test_process_state.py`)."""

from support.process_state import LOCAL, OWNED, WORK

STATES = {
    "source_entries._Memory": WORK,
    "source_entries._Page": WORK,
    "history._Walk": WORK,
    "poller.Poller": OWNED,  # PG-075
    "push_inbox.PushInbox": LOCAL,  # the documents that hubs have sent to this process
    "subscriber.Subscriber": OWNED,
}
