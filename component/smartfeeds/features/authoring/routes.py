"""Writing over HTTP: every path, and what is made for the handlers."""

from dataclasses import dataclass

from smartfeeds.core import urls
from smartfeeds.features.authoring import editor, micropub
from smartfeeds.features.authoring.posts import PUT_POST, SEND_POST, PostReader
from smartfeeds.features.authoring.rendering import MarkdownTurns
from smartfeeds.features.authoring.requests import GetFile
from smartfeeds.features.authoring.rights import WriterRights
from smartfeeds.features.authoring.uploads import UploadFolder, Uploads
from smartfeeds.http.router import Handler
from smartfeeds.http.side import HttpSide, Route, SiteTools
from smartfeeds.http.stored_files import FileReplies, file_operation

_GET_FILE = file_operation("getFile", "A file that belongs to a feed, or a part of it")


@dataclass(frozen=True, slots=True)
class AuthoringHandlers:
    """The objects that hold the handlers. `publish` takes items in every media type."""

    publish: Handler
    editor: editor.Editor
    micropub: micropub.Micropub
    files: FileReplies
    uploads: Uploads


def _handlers(tools: SiteTools) -> AuthoringHandlers:
    folder = tools.parts.get(UploadFolder)
    # One for all handlers, because it counts the uploads of each user.
    uploads = Uploads(tools, folder)
    markdown = MarkdownTurns()
    rights = WriterRights(tools.handle, tools.domain)
    posts = PostReader(tools.bodies, uploads, markdown, tools.forms, rights)
    return AuthoringHandlers(
        lambda call: tools.publish(call, posts.read),
        editor.Editor(tools, markdown, uploads, rights),
        micropub.Micropub(tools, uploads),
        FileReplies(tools.handle, tools.domain, folder.files, GetFile),
        uploads,
    )


# fmt: off
_ROUTES: tuple[Route[AuthoringHandlers], ...] = (
    Route("PUT", "/entries/{name}/{id}", "entries", PUT_POST, lambda h: h.publish),
    Route("POST", "/entries/{name}/", "entries", SEND_POST, lambda h: h.publish),
    Route("GET", "/micropub/{name}", "micropub", micropub.QUERY, lambda h: h.micropub.query),
    Route("POST", "/micropub/{name}", "micropub", micropub.CREATE, lambda h: h.micropub.post),
    Route("POST", "/media/{name}", "micropub", micropub.MEDIA, lambda h: h.micropub.media),
    Route("GET", "/files/{name}/{id}", "files", _GET_FILE, lambda h: h.files.get),
    Route("GET", f"{urls.WRITE}{{name}}/", "write", editor.WRITE_PAGE, lambda h: h.editor.show),
    Route("POST", f"{urls.WRITE}{{name}}/", "write", editor.WRITE_ENTRY, lambda h: h.editor.post),
    Route("GET", f"{urls.WRITE}{{name}}/{{id}}", "write", editor.WRITE_PAGE, lambda h: h.editor.show),
    Route("POST", f"{urls.WRITE}{{name}}/{{id}}", "write", editor.WRITE_ENTRY, lambda h: h.editor.post),
    Route("GET", f"{urls.DELETE}{{name}}/{{id}}", "delete", editor.DELETE_PAGE, lambda h: h.editor.confirm),
    Route("POST", f"{urls.DELETE}{{name}}/{{id}}", "delete", editor.DELETE_ENTRY, lambda h: h.editor.delete),
)
# fmt: on
HTTP = HttpSide(_ROUTES, _handlers)
