"""Data of persons in registrations of callbacks (`service.personal`)."""

from smartfeeds.service.context import Hooks, Personal
from smartfeeds.service.personal import MENTION, ROW, TEXT, PersonalTable

CALLBACK = PersonalTable(
    "callback",
    "callback_no",
    {
        "url": MENTION,
        "topic": MENTION,
        "reader": ROW,
        "settings": TEXT,
        "question": TEXT,
        "result": TEXT,
    },
    frozenset({"kind", "host", "token_id"}),
)
HOOKS = Hooks(personal=(Personal((CALLBACK,)),))
