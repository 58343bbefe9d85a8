"""The rows of erasures and of the block lists (`service.personal`). The job changes them itself (`erasing`)."""

from smartfeeds.service.context import Hooks, Personal
from smartfeeds.service.personal import OWN, PersonalTable

TABLES = (
    PersonalTable("erasure", columns={"digest": OWN, "jid": OWN, "report": OWN}, others=frozenset({"phase"})),
    PersonalTable("block", columns={"name": OWN}, others=frozenset({"kind"})),
    PersonalTable("salt", others=frozenset({"salt"})),
)
HOOKS = Hooks(personal=(Personal(TABLES),))
