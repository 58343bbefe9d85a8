"""Entries with something to read in them, for pages that people look at."""

from xml.sax.saxutils import escape

ATOM = "http://www.w3.org/2005/Atom"


def html_entry(title: str, html: str, more: str = "") -> str:
    """An entry with content of HTML; `more` is XML of other children."""
    head = f"<title>{escape(title)}</title>" if title else ""
    return f"<entry xmlns='{ATOM}'>{head}<content type='html'>{escape(html)}</content>{more}</entry>"


def note(text: str, more: str = "") -> str:
    """An entry without a title."""
    return f"<entry xmlns='{ATOM}'><content>{escape(text)}</content>{more}</entry>"


def author(name: str, uri: str = "") -> str:
    """An author."""
    return f"<author><name>{escape(name)}</name>{f'<uri>{escape(uri)}</uri>' if uri else ''}</author>"


def tags(*terms: str) -> str:
    """Categories."""
    return "".join(f"<category term='{escape(term)}'/>" for term in terms)


PROSE = {
    "radio": note(
        "The harbour radio is back on air. Schedule: https://radio.example/today\nCall in: xmpp:studio@example.org",
        author("Noor", "https://noor.example/"),
    ),
    "bridge": html_entry(
        "The bridge opens on Saturday",
        "<p>After <em>two winters</em> of work the footbridge over the Weir is ready. It opens on Saturday at "
        "<time datetime='2026-01-10T10:00Z'>ten</time>, with music.</p><blockquote><p>It is shorter than it looked on "
        "paper, and wider than we feared.</p></blockquote><p><img src='https://pictures.example/bridge.jpg' "
        "alt='The bridge at dusk, seen from the mill'></p>",
        author("Alice", "https://alice.example/")
        + tags("town", "building")
        + "<link rel='alternate' href='https://town.example/bridge'/>"
        + "<link rel='enclosure' href='https://town.example/plan.pdf' type='application/pdf' length='1840000'/>",
    ),
    "river": html_entry(
        "River levels this week",
        "<h1>Measured at the mill</h1><p>Metres above the mark, every morning at seven.</p><table><tr><th>Day<th>Mill"
        "<th>Weir<th>Harbour</tr><tr><td>Monday<td>1.20<td>0.84<td>0.31</tr><tr><td>Tuesday<td>1.26<td>0.90<td>0.30"
        "</tr><tr><td>Wednesday<td>1.41<td>1.02<td>0.33</tr></table><p>Read them by <code>curl</code>:</p>"
        "<pre>curl -H 'Accept: application/json' https://river.example/feeds/levels/?max=3&amp;timeout=120</pre>",
        author("River watch") + tags("river", "numbers"),
    ),
    "bread": html_entry(
        "Bread, again",
        "<p>Three things that helped:</p><ol><li>More water than seems right.</li><li>Less flour on the table.</li>"
        "<li>Patience, <a href='/notes/patience'>as always</a>.</li></ol>",
        author("Bob") + tags("kitchen"),
    ),
    "arabic": html_entry("مرحبا بالعالم", "<p>هذا خبر قصير من المدينة القديمة.</p>", author("ليلى")),
}
