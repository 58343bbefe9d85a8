"""The paths of frames, of the script that puts one into a page, and of the replies of guests."""

from dataclasses import dataclass

from smartfeeds.core.urls import EMBED, GUESTS
from smartfeeds.features.embedding.files import GET_FRAME_FILE, GET_SCRIPT, SCRIPT, get_file, get_script
from smartfeeds.features.embedding.frames import SEND_REPLY, SHOW_FRAME, Frames
from smartfeeds.features.embedding.moderation import DECIDE_GUESTS, SHOW_GUESTS, Moderation
from smartfeeds.features.embedding.resources import SCHEMAS
from smartfeeds.http.side import HttpSide, Route, SiteTools


@dataclass(frozen=True, slots=True)
class EmbeddingHandlers:
    """The objects that hold the handlers."""

    frames: Frames
    moderation: Moderation


def _handlers(tools: SiteTools) -> EmbeddingHandlers:
    return EmbeddingHandlers(Frames(tools), Moderation(tools))


_ROUTES: tuple[Route[EmbeddingHandlers], ...] = (
    Route("GET", SCRIPT, "embed", GET_SCRIPT, lambda _: get_script),
    Route("GET", f"{EMBED}{{name}}/", "embed", SHOW_FRAME, lambda h: h.frames.show),
    Route("POST", f"{EMBED}{{name}}/", "embed", SEND_REPLY, lambda h: h.frames.post),
    Route("GET", f"{GUESTS}{{name}}/", "guests", SHOW_GUESTS, lambda h: h.moderation.show),
    Route("POST", f"{GUESTS}{{name}}/", "guests", DECIDE_GUESTS, lambda h: h.moderation.decide),
    Route("GET", f"{EMBED}{{file}}", "static", GET_FRAME_FILE, lambda _: get_file),
)
HTTP = HttpSide(_ROUTES, _handlers, schemas=SCHEMAS)
