"""The statements of erasures and block lists, for the test of plans (`store/test_postgres_plans.py`)."""

from collections import Counter

from smartfeeds.app.opening import all_use_cases
from smartfeeds.core.blocklist import ListKind
from smartfeeds.core.person import Person
from smartfeeds.features.privacy import rows
from smartfeeds.features.privacy.erasures import Erasure, ErasurePhase, ErasureSettings
from smartfeeds.features.privacy.rows import PersonRow
from smartfeeds.service.personal import PersonalData
from smartfeeds.store.base import WriteTx

PERSON = Person("u4@x.example")
PERSONAL = all_use_cases().hooks.personal_data
SAMPLES: dict[object, object] = {Person: PERSON, PersonalData: PERSONAL, ListKind: ListKind.DENY}
WHOLE = {
    # `mention_rows` and `text_rows` run the same statements before.
    "texts_left": "an erasure reads each table that may name the person, at its begin and at its end",
    "nodes_created_by": "an erasure reads all nodes, because deleted ones count too",
}


def write(tx: WriteTx) -> None:
    rows.add_blocks(tx, ListKind.DENY, ["evil.example"])
    rows.add_blocks(tx, ListKind.ALLOW, ["good.example"])
    tx.refusal("a@x", "x")
    rows.remove_blocks(tx, ListKind.DENY, ["evil.example"])
    rows.set_person_salt(tx, b"salt")
    job = Erasure(b"d" * 32, "u4@x", ErasureSettings(), ErasurePhase.NODES, 0, 5, None, Counter(), {})
    rows.put_erasure(tx, job)
    rows.remove_rows(tx, [PersonRow(PERSONAL.tables["request_form"], "whom", (1, "a@x"), "a@x")])
    rows.replace_texts(tx, [PersonRow(PERSONAL.tables["purge"], "actor", (1,), "u4@x.example")], PERSON, "gone@x")
