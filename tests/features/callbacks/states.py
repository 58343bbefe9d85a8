"""What becomes of the state of this feature in memory when several processes run (`unit/test_process_state.py`)."""

from support.process_state import LOCAL, OWNED

STATES = {
    "consumers.CallbackConsumers": LOCAL,  # labels for metrics; the store lists the consumers
    "last_deliveries.DeliveryResults": OWNED,
}
