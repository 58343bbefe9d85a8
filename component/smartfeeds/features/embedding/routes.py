"""The paths of frames, and of the script that puts one into a page."""

from dataclasses import dataclass

from smartfeeds.core.urls import EMBED
from smartfeeds.features.embedding.files import GET_FRAME_FILE, GET_SCRIPT, SCRIPT, get_file, get_script
from smartfeeds.features.embedding.frames import SHOW_FRAME, Frames
from smartfeeds.http.side import HttpSide, Route, SiteTools


@dataclass(frozen=True, slots=True)
class EmbeddingHandlers:
    """The objects that hold the handlers."""

    frames: Frames


def _handlers(tools: SiteTools) -> EmbeddingHandlers:
    return EmbeddingHandlers(Frames(tools))


_ROUTES: tuple[Route[EmbeddingHandlers], ...] = (
    Route("GET", SCRIPT, "embed", GET_SCRIPT, lambda _: get_script),
    Route("GET", f"{EMBED}{{name}}/", "embed", SHOW_FRAME, lambda h: h.frames.show),
    Route("GET", f"{EMBED}{{file}}", "static", GET_FRAME_FILE, lambda _: get_file),
)
HTTP = HttpSide(_ROUTES, _handlers)
