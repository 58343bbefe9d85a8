"""Data of persons in registrations of callbacks (`service.personal`)."""

from smartfeeds.service.hooks import Hooks
from smartfeeds.service.personal import MENTION, ROW, TEXT, Personal, PersonalTable

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
