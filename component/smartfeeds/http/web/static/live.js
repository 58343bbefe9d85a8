// Keeps a feed's page up to date: the event stream says that something changed, and the change itself is fetched as a
// page of this same feed, which the server has cleaned. Nothing here makes markup of text.
"use strict";

(() => {
  const KEEP = 300; // entries on the page; what is older is a page away
  const AGAIN_MS = 10000; // a stream that was refused is asked for again after this time
  const list = document.getElementById("entries");
  const state = document.getElementById("state");
  const news = document.getElementById("news");
  const words = {
    joining: "connecting…",
    live: "live",
    lost: "connection lost, trying again…",
    ended: "no longer live",
  };
  let since = list ? list.dataset.since : "";
  let source = null;
  let timer = 0;
  let fetching = false;
  let wanted = false;

  function tell(name) {
    state.hidden = false;
    if (state.dataset.state === name) return;
    state.dataset.state = name;
    state.textContent = words[name];
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
    timer = setTimeout(connect, AGAIN_MS);
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
    const empty = document.querySelector(".empty");
    if (empty && list.firstElementChild) empty.remove();
    trim();
    announce(told);
    list.dispatchEvent(new CustomEvent("entries", { bubbles: true }));
  }

  function place(article) {
    const former = document.getElementById(article.id);
    const deleted = article.classList.contains("deleted");
    const gone = article.classList.contains("left") ? "left" : "deleted";
    const order = list.dataset.order;
    article.classList.add("fresh");
    if (!former) {
      // Only a page of all changes has deleted entries that nobody saw; only new ones belong on top of the others.
      if (deleted ? order !== "modified" : order === "created" && article.classList.contains("edited")) return "";
      list.prepend(article);
      return deleted ? gone : article.classList.contains("edited") ? "edited" : "new";
    }
    if (deleted) strike(article, former);
    if (!deleted && order !== "created") {
      former.remove();
      list.prepend(article);
    } else {
      // It stays where it was, so that it is seen to change; and keeps the place of what was there.
      article.dataset.modified = former.dataset.modified;
      former.replaceWith(article);
    }
    return deleted ? gone : "edited";
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

  function announce(told) {
    const parts = Object.entries(told).filter(([, count]) => count);
    if (parts.length) news.textContent = parts.map(([kind, count]) => `${count} ${kind}`).join(", ");
  }

  if (!list || !list.dataset.stream || !state) return;
  connect();
  // A page that nobody sees holds no connection: a browser has six for a host. Coming back it takes up where it was.
  document.addEventListener("visibilitychange", () => (document.hidden ? disconnect() : connect()));
  addEventListener("pagehide", disconnect);
  addEventListener("pageshow", (event) => event.persisted && connect());
})();
