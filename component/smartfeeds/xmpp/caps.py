"""Service discovery information, and its name as entity capabilities: what a client can do, by the hash (XEP-0115).

A presence names the information by its hash. The service requests the information once, verifies the hash, and uses it
for every client that sends the same hash.
"""

import base64
import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

from smartfeeds.xmpp import namespaces as ns
from smartfeeds.xmpp.elements import Element
from smartfeeds.xmpp.forms import FORM_TYPE, X

INFO_QUERY = ns.tag(ns.DISCO_INFO, "query")
# Elements of a response. Known clients have some hundred features, so a greater response is an attack.
PARTS_MAX = 2_000
_LANGUAGE = ns.tag("http://www.w3.org/XML/1998/namespace", "lang")
_PARTS = {name: ns.tag(ns.DISCO_INFO, name) for name in ("identity", "feature")}
_FIELD, _VALUE = ns.tag(ns.DATA, "field"), ns.tag(ns.DATA, "value")
NOTIFY = "+notify"  # the end of a feature that requests notifications of a node (XEP-0060 section 9.2)
# The names of hash functions: those of IANA, which XEP-0115 uses, and those of hashlib.
_HASHES = {"sha-1": "sha1", "sha-224": "sha224", "sha-256": "sha256", "sha-384": "sha384", "sha-512": "sha512"}


class CapsKey(NamedTuple):
    """The name of capabilities: the hash function and the hash. Clients with the same hash share it."""

    hash: str
    ver: str


class Caps(NamedTuple):
    """The capabilities that a presence names. The information is requested from the node `node#ver`."""

    key: CapsKey
    node: str


class Identity(NamedTuple):
    """An identity of service discovery."""

    category: str
    type: str
    language: str = ""
    name: str = ""


# A form of service discovery (XEP-0128): its FORM_TYPE, and the values of its other fields.
DiscoForm = tuple[str, tuple[tuple[str, tuple[str, ...]], ...]]


def _is_request(feature: str) -> bool:
    return feature.endswith(NOTIFY)


@dataclass(frozen=True, slots=True)
class DiscoInfo:
    """Service discovery information."""

    identities: tuple[Identity, ...]
    features: tuple[str, ...]
    forms: tuple[DiscoForm, ...] = ()

    @property
    def notified_nodes(self) -> tuple[str, ...]:
        """The names of the nodes whose notifications the client requests."""
        return tuple(name.removesuffix(NOTIFY) for name in self.features if _is_request(name) and name != NOTIFY)

    @property
    def is_well_formed(self) -> bool:
        """Whether no identity, feature or FORM_TYPE occurs twice (XEP-0115 section 5.4), and no other information with
        the same hash requests other nodes.

        The verification string does not show what a part is. So information without `news+notify` could have the hash
        of a client that requests it: in the name of an identity after a `<`, or as a FORM_TYPE (XEP-0115 section 7).
        """
        identities = [each[:3] for each in self.identities]
        form_types = [form_type for form_type, _ in self.forms]
        is_repeated = any(len(set(names)) != len(names) for names in (identities, self.features, form_types))
        parts = list(self._parts())
        requests = sum(part.endswith(NOTIFY) for part in parts)
        is_ambiguous = any("<" in part for part in parts) or requests != sum(map(_is_request, self.features))
        return not (is_repeated or is_ambiguous)

    def verification(self, function: str) -> str | None:
        """Returns the verification string (XEP-0115 section 5.1), or None for an unknown hash function."""
        name = _HASHES.get(function)
        if name is None:
            return None
        text = "".join(f"{part}<" for part in self._parts())
        return base64.b64encode(hashlib.new(name, text.encode("utf-8", "surrogatepass")).digest()).decode()

    def _parts(self) -> Iterable[str]:
        # Code points and UTF-8 bytes have the same order, which is the collation i;octet.
        yield from ("/".join(each) for each in sorted(self.identities))
        yield from sorted(self.features)
        for form_type, fields in sorted(self.forms):
            yield form_type
            for var, values in sorted(fields):
                yield var
                yield from sorted(values)


def read_info(response: Element) -> DiscoInfo | None:
    """Returns the information in a response; None if the response has none or more than `PARTS_MAX` elements."""
    query = response.find(INFO_QUERY)
    if response.get("type") != "result" or query is None or sum(1 for _ in query.iter()) > PARTS_MAX:
        return None
    identities = tuple(
        Identity(each.get("category", ""), each.get("type", ""), each.get(_LANGUAGE, ""), each.get("name", ""))
        for each in query.iterchildren(_PARTS["identity"])
    )
    features = tuple(each.get("var", "") for each in query.iterchildren(_PARTS["feature"]))
    forms = (_read_form(each) for each in query.iterchildren(X))
    return DiscoInfo(identities, features, tuple(form for form in forms if form is not None))


def _read_form(form: Element) -> DiscoForm | None:
    """Returns a form, or None if it has no hidden FORM_TYPE: such a form is no part of the hash."""
    form_type, fields = None, []
    for field in form.iterchildren(_FIELD):
        values = tuple(value.text or "" for value in field.iterchildren(_VALUE))
        if field.get("var") != FORM_TYPE:
            fields.append((field.get("var", ""), values))
        elif field.get("type") == "hidden" and values:
            form_type = values[0]
    return None if form_type is None else (form_type, tuple(fields))
