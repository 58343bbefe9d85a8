// Keeps a feed's page up to date: the event stream says that something changed, and the change itself is fetched as a
// page of this same feed, which the server has cleaned. Nothing here makes markup of text.
// An entry on the page changes where it is. Entries that are not on the page wait until the reader presses the button
// with their number, so nothing moves while somebody reads.
"use strict";

(() => {
  const KEEP = 300; // entries on the page; what is older is a page away
  const AGAIN_MS = 10_000; // the pause after a refusal, and up to twice that: not all pages return at once
  const list = document.getElementById("entries");
  const state = document.getElementById("state");
  const news = document.getElementById("news");
  const pill = document.getElementById("pill");
  // Entries that wait, by the id of their element, the newest last: the element, and the kind of the change.
  const waiting = new Map();
  let overflow = false; // more than KEEP wait: the page is loaded again instead
  let since = list ? list.dataset.since : "";
  let source = null;
  let timer = 0;
  let fetching = false;
  let wanted = false;

  function tell(name) {
    state.hidden = false;
    if (state.dataset.state === name) return;
    state.dataset.state = name;
    state.textContent = state.dataset[name];
  }

  function connect() {
    clearTimeout(timer);
    if (source) source.close();
    tell(state.dataset.state === "lost" ? "lost" : "joining");
    source = new EventSource(address());
    source.onopen = () => tell("live");
    source.onmessage = update;
    source.onerror = (event) => {
      if (event.data) {
        // The server's last word: the feed is gone, or not for us any more.
        source.close();
        tell("ended");
        return;
      }
      // The browser comes back by itself with Last-Event-ID, unless it was refused.
      if (source.readyState === EventSource.CLOSED) again();
      else tell("lost");
    };
  }

  function address() {
    return `${list.dataset.stream}&since=${encodeURIComponent(since)}`;
  }

  function again() {
    disconnect();
    tell("lost");
    timer = setTimeout(connect, AGAIN_MS * (1 + Math.random()));
  }

  function disconnect() {
    clearTimeout(timer);
    if (source) source.close();
    source = null;
  }

  // One request at a time; what comes meanwhile is fetched by the next one.
  async function update() {
    wanted = true;
    if (fetching) return;
    fetching = true;
    while (wanted) {
      wanted = false;
      try {
        const page = await fetchPage();
        const there = page.getElementById("entries");
        if (!there) continue;
        apply(page, there);
        wanted = wanted || there.dataset.more === "yes";
      } catch {
        again();
        break;
      }
    }
    fetching = false;
  }

  // XMLHttpRequest parses by itself: no text is handed to a parser from here (trusted-types 'none').
  function fetchPage() {
    return new Promise((resolve, reject) => {
      const request = new XMLHttpRequest();
      request.open("GET", address());
      request.setRequestHeader("Accept", "text/html");
      request.responseType = "document";
      request.onload = () => (request.status === 200 && request.response ? resolve(request.response) : reject());
      request.onerror = reject;
      request.send();
    });
  }

  function apply(page, there) {
    const told = { new: 0, edited: 0, deleted: 0, left: 0 };
    // A page has its newest entry on top.
    for (const fetched of [...there.querySelectorAll(":scope > article")].reverse()) {
      const kind = place(document.importNode(fetched, true));
      if (kind) told[kind] += 1;
    }
    since = there.dataset.since;
    document.getElementById("total").textContent = page.getElementById("total").textContent;
    announce(told);
    const empty = document.querySelector(".empty");
    if (empty && waiting.size) {
      empty.remove();
      for (const { article } of waiting.values()) list.prepend(article);
      waiting.clear();
    }
    wait();
    list.dispatchEvent(new CustomEvent("entries", { bubbles: true }));
  }

  // Puts a changed entry on the page or among those that wait, and returns the kind of the change, "" for none.
  function place(article) {
    const former = document.getElementById(article.id);
    const deleted = article.classList.contains("deleted");
    const edited = article.classList.contains("edited");
    const order = list.dataset.order;
    const kind = deleted ? (article.classList.contains("left") ? "left" : "deleted") : edited || former ? "edited" : "new";
    article.classList.add("fresh");
    if (former) {
      replace(former, article, deleted);
      return kind;
    }
    const before = waiting.get(article.id);
    waiting.delete(article.id);
    // Only a page of all changes has deleted entries that nobody saw; only new ones belong on top of the others.
    if (deleted ? order !== "modified" : order === "created" && edited && !before) return "";
    waiting.set(article.id, { article, kind: before && before.kind === "new" && !deleted ? "new" : kind });
    return kind;
  }

  function replace(former, article, deleted) {
    if (deleted) strike(article, former);
    // The entry keeps its place on the page, and the position of that place.
    article.dataset.modified = former.dataset.modified;
    const focused = former.contains(document.activeElement);
    former.replaceWith(article);
    if (!focused) return;
    article.tabIndex = -1;
    article.focus({ preventScroll: true });
  }

  function wait() {
    for (const id of waiting.keys()) {
      if (waiting.size <= KEEP) break;
      waiting.delete(id);
      overflow = true;
    }
    const counts = {};
    for (const { kind } of waiting.values()) counts[kind] = (counts[kind] || 0) + 1;
    pill.textContent = wording(counts);
    pill.hidden = !waiting.size;
  }

  function reveal() {
    if (overflow) {
      location.reload();
      return;
    }
    const articles = [...waiting.values()].map((one) => one.article);
    for (const article of articles) list.prepend(article);
    waiting.clear();
    wait();
    trim();
    list.dispatchEvent(new CustomEvent("entries", { bubbles: true }));
    const newest = list.firstElementChild;
    newest.tabIndex = -1;
    newest.focus({ preventScroll: true });
    scrollTo(0, 0);
  }

  function strike(article, former) {
    const title = former.querySelector(":scope > h2");
    if (!title) return;
    const struck = document.createElement("del");
    struck.textContent = title.textContent;
    const heading = article.querySelector("h2");
    heading.replaceChildren(struck);
    heading.classList.remove("unseen");
  }

  function trim() {
    const articles = [...list.children];
    const key = list.dataset.order === "created" ? "created" : "modified";
    let end = KEEP;
    // Entries of one moment stay together: the next page ends before that moment.
    while (end < articles.length && articles[end].dataset[key] === articles[end - 1].dataset[key]) end += 1;
    if (end >= articles.length) return;
    const older = new URL(list.dataset.pages, location.href);
    older.searchParams.set("until", articles[end - 1].dataset[key]);
    for (const article of articles.slice(end)) article.remove();
    for (const link of document.querySelectorAll("a.older, link[rel=next]")) link.href = older;
    // A page that began without older ones has them now.
    for (const pager of document.querySelectorAll("nav.pager[hidden]")) pager.hidden = false;
  }

  function wording(counts) {
    const parts = Object.entries(counts).filter(([, count]) => count);
    return parts.map(([kind, count]) => news.dataset[kind].replace("{count}", count)).join(", ");
  }

  function announce(told) {
    const text = wording(told);
    if (text) news.textContent = text;
  }

  if (!list || !list.dataset.stream || !state) return;
  pill.addEventListener("click", reveal);
  connect();
  // A page that nobody sees holds no connection: a browser has six for a host. Coming back it takes up where it was.
  document.addEventListener("visibilitychange", () => (document.hidden ? disconnect() : connect()));
  addEventListener("pagehide", disconnect);
  addEventListener("pageshow", (event) => event.persisted && connect());
})();
