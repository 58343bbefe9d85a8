"""Writing over HTTP: the editor, files, Micropub and Markdown."""

from smartfeeds.app.feature import Feature, Host, Running


def _run(host: Host) -> Running:
    if not host.settings.http.listen:
        return Running()
    from smartfeeds.features.authoring.rights import entry_forms

    return Running(parts=(entry_forms(host.handle, host.settings.component.jid),))


AUTHORING = Feature("authoring", needs=("pages",), run=_run)
