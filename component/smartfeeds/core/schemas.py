"""Form nodes: templates of forms, and the forms that users submit (XEP-0346).

A pair of nodes has the template and the submitted forms of one application. Both are generic nodes, because a data form
is no Atom entry.
"""

from smartfeeds.core.options import KIND, FormFields, NodeKind

FORM_PREFIXES = ("fdp/template/", "fdp/submitted/")


def with_kind(name: str | None, form: FormFields | None) -> FormFields | None:
    """Returns the configuration of a new node, with the kind of a form node unless the configuration has a kind."""
    if name is None or not name.startswith(FORM_PREFIXES) or (form is not None and KIND in form):
        return form
    return {**(form or {}), KIND: (NodeKind.GENERIC.value,)}
