"""Requests that cost a service far more than they cost their sender, by what makes them so."""

from collections.abc import Mapping
from types import MappingProxyType

from smartfeeds.formats.atom import ATOM_NS
from support.component import DATA, OWNER, PS

NODE = "evil"
_WORDS = " ".join(f"word{number}x" for number in range(6_000))[:58_000]
_HTML = "&lt;p class=&quot;a&quot;&gt;Some &lt;b&gt;text&lt;/b&gt; &amp;amp; &lt;a href=&quot;h&quot;&gt;l&lt;/a&gt;"


def publish(payload: str) -> str:
    """The child of an IQ of type set that publishes an item without an id."""
    return f"<pubsub xmlns='{PS}'><publish node='{NODE}'><item>{payload}</item></publish></pubsub>"


def atom(inner: str) -> str:
    """An entry."""
    return f"<entry xmlns='{ATOM_NS}'><title>t</title>{inner}</entry>"


def content(text: str, kind: str = "text") -> str:
    """An entry with this content."""
    return atom(f"<content type='{kind}'>{text}</content>")


def _many(text: str, count: int) -> str:
    return " ".join(text.format(number) for number in range(count))


def _form(count: int) -> str:
    fields = "".join(f"<field var='pubsub#f{number}'><value>1</value></field>" for number in range(count))
    return (
        f"<pubsub xmlns='{OWNER}'><configure node='{NODE}'><x xmlns='{DATA}' type='submit'>{fields}</x></configure>"
        "</pubsub>"
    )


def _affiliations(count: int) -> str:
    entries = "".join(f"<affiliation jid='u{number}@x.example' affiliation='member'/>" for number in range(count))
    return f"<pubsub xmlns='{OWNER}'><affiliations node='{NODE}'>{entries}</affiliations></pubsub>"


# What each is, to be the child of an IQ of type set.
FLOODS: Mapping[str, str] = MappingProxyType(
    {
        "400 KB of CDATA": publish(content(f"<![CDATA[{'x' * 400_000}]]>")),
        "sections of CDATA": publish(content("<![CDATA[x&<iq>]]>" * 15_000)),
        "2 MB": publish(content("x" * 2_000_000)),
        "900 KB": publish(content("x" * 900_000)),
        "5,000 attributes": publish("<x xmlns='u' " + _many("a{}='v'", 5_000) + "/>"),
        "form of 3,000 fields": _form(3_000),
        "nested stanzas": publish(atom("<x>" + "<iq><message/></iq>" * 8_000 + "</x>")),
        "2,000 affiliations": _affiliations(2_000),
        "58 KB": publish(content("z" * 58_000)),
        "60 KB of words": publish(content(_WORDS)),
        "HTML entries": publish(content(_HTML * 450, "html")),
        "1,000 levels": publish(atom("<a>" * 1_000 + "</a>" * 1_000)),
        "20,000 levels": publish(atom("<a>" * 20_000 + "</a>" * 20_000)),
        "10,000 namespaces": publish("<x xmlns='u' " + _many("xmlns:p{0}='u{0}'", 10_000) + "/>"),
        "2,000 new names": publish(atom("<x>" + _many("<n{}/>", 2_000) + "</x>")),
        "12,000 elements": publish(atom("<x>" + "<a/>" * 12_000 + "</x>")),
        "200 KB": publish(content("x" * 200_000)),
    }
)
