"""The statements of callbacks, for the test of plans (`store/test_postgres_plans.py`)."""

from smartfeeds.features.callbacks import rows
from smartfeeds.features.callbacks.registration import Callback, CallbackKind
from smartfeeds.store.base import ReadTx, WriteTx

KIND = CallbackKind("hub", lambda _callback: None)
SAMPLES: dict[object, object] = {CallbackKind: KIND}


def read(tx: ReadTx) -> None:
    rows.due(tx, KIND, 5, 10, without_hosts=("a",))
    rows.count(tx, KIND, node_no=1)
    rows.count(tx, KIND, host="h")


def write(tx: WriteTx) -> None:
    callback = Callback(KIND.name, 1, "https://r.example/cb", "https://f.example/", "r.example", 10, 500)
    stored = rows.put(tx, callback)
    rows.put(tx, stored)
    rows.note_deliveries(tx, [(stored.callback_no, 5, "ok")])
    rows.remove(tx, stored.callback_no)
