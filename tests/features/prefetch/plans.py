"""The statements of enclosures, for the test of plans (`store/test_postgres_plans.py`)."""

from smartfeeds.features.prefetch import rows
from smartfeeds.features.prefetch.enclosure import Enclosure, EnclosureState, EnclosureUse, FileArrival
from smartfeeds.store.base import ReadTx, WriteTx

URL = "https://a.example/1.mp3"


def read(tx: ReadTx) -> None:
    rows.known(tx, ("a",), complete=False)


def write(tx: WriteTx) -> None:
    enclosure = rows.add(
        tx, Enclosure(0, URL, "a.example:443", "d", "audio/mpeg", None, EnclosureState.WAITING, "", 5, 5)
    )
    rows.put(tx, enclosure)
    use = EnclosureUse(enclosure.enclosure_no, 1, "i2", "feed1", 5)
    rows.put_use(tx, use)
    rows.remove_uses(tx, [use])
    rows.remove(tx, enclosure.enclosure_no)
    rows.add_arrival(tx, FileArrival(0, 5, "feed1", "i2", URL, 1, 1.0, ""), 1)
