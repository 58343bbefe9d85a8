"""The names in ordinary stanzas (xep-map 246).

`names` limits how many new names peers can introduce, because the parser never frees a name. The names in this module
do not count. So a peer that uses up the limit cannot block the requests of XEP-0060 or Atom entries.
"""

from typing import Final

from smartfeeds.xmpp import namespaces as ns

# Names in stanzas of servers and clients, conditions of errors included.
_STANZAS: Final = """
    iq message presence error text body subject thread headers header show status priority c delay stanza-id
    origin-id occupant-id active composing paused inactive replace reply reactions reaction fallback request received
    response invite decline password destroy
    addresses address no-store no-copy store ping query time vCard ver command cut
    bad-request conflict feature-not-implemented forbidden gone internal-server-error item-not-found jid-malformed
    not-acceptable not-allowed not-authorized payment-required policy-violation recipient-unavailable redirect
    registration-required remote-server-not-found remote-server-timeout resource-constraint service-unavailable
    subscription-required undefined-condition unexpected-request
"""
_PUBSUB: Final = """
    pubsub publish item items retract subscribe unsubscribe subscriptions subscription affiliations affiliation options
    default create configure delete purge redirect publish-options subscribe-options event collection configuration
    set max after before index first last count order filter x title instructions field value option required reported
    metadata flip-page validate identity feature
"""
_ENTRIES: Final = """
    entry feed id title updated published author contributor name uri email category link content summary rights source
    generator icon logo subtitle in-reply-to total sync history conflicts deleted-entry comment by
    thr:in-reply-to sx:sync sx:history atom:entry atom:id atom:title atom:updated atom:published atom:author atom:name
    atom:uri atom:email atom:category atom:link atom:content atom:summary atom:rights atom:source atom:contributor
    div p br a b i u em strong span img blockquote pre code tt ul ol li dl dt dd h1 h2 h3 h4 h5 h6 hr q cite abbr
    del ins sub sup small big kbd samp var table thead tbody tfoot tr th td caption figure figcaption video audio
    attachments noticed reactions reaction geoloc lat lon mood tune nick activity
"""
_ATTRIBUTES: Final = """
    to from id type xmlns xml:lang xml:base xml:space version code by stamp hash node ver ext jid affiliation
    subscription subid publisher notify max_items var label desc action sessionid datatype index name category expiry
    term scheme href rel hreflang length title ref source uri src alt class style dir lang width height updates deleted
    noconflicts sequence when xmlns:thr xmlns:sx xmlns:atom xmlns:xml queryid timestamp
"""
# Other namespaces than those of `namespaces`.
_NAMESPACES: Final = """
    jabber:server jabber:component:accept jabber:iq:last vcard-temp vcard-temp:x:update
    urn:xmpp:time urn:xmpp:hints urn:xmpp:sid:0
    http://jabber.org/protocol/caps http://jabber.org/protocol/address http://jabber.org/protocol/geoloc
    http://jabber.org/protocol/mood http://jabber.org/protocol/tune http://jabber.org/protocol/activity
    http://jabber.org/protocol/nick http://www.w3.org/1999/xhtml http://www.w3.org/XML/1998/namespace
    http://purl.org/syndication/thread/1.0 http://feedsync.org/2007/feedsync
    urn:xmpp:pubsub-attachments:1
"""
_PREFIXES: Final = ("xmlns", "xmlns:thr", "xmlns:sx", "xmlns:atom")

# One stanza with all names, spelt as Prosody and ejabberd write stanzas: one space and single quotes.
WRITTEN: Final = b"".join(
    (
        *(f"<{name}>".encode() for part in (_STANZAS, _PUBSUB, _ENTRIES) for name in part.split()),
        b"<s",
        *(f" {name}=''".encode() for name in _ATTRIBUTES.split()),
        b">",
        *(
            f"<s {prefix}='{namespace}'>".encode()
            for prefix in _PREFIXES
            for namespace in (*_NAMESPACES.split(), *(uri for name, uri in vars(ns).items() if name.isupper()))
        ),
    )
)
