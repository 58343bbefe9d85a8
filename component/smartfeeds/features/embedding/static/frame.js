// The frame of a feed: keeps its entries up to date, and tells the page around it how high they are.
// The event stream says that something changed; the frame is then loaded again and its entries replace these. The
// browser parses the loaded page, so nothing here makes markup of text.
// A message goes to the one site for which the server has made this page, and it has a height only.
"use strict";

(() => {
  // A stream that was refused is asked for again after this time, and after twice the time when it was refused again.
  // Many pages may show the frame: each chooses a time of its own, so that they do not all ask a new service at once.
  const AGAIN_MS = 10000;
  const MOST_AGAIN_MS = 320000;
  const MOST_TRIES = 30; // some hours: a service that is away for longer is asked when somebody looks at the page again
  const frame = document.getElementById("frame");
  const entries = document.getElementById("entries");
  const state = document.getElementById("state");
  const language = document.documentElement.lang;
  const date = new Intl.DateTimeFormat(language, { dateStyle: "medium", timeStyle: "short" });
  let since = frame.dataset.since;
  let source = null;
  let timer = 0;
  let tries = 0;
  let loading = false;
  let wanted = false;
  let height = 0;

  function tell(name) {
    state.hidden = false;
    state.dataset.state = name;
    state.textContent = state.dataset[name];
  }

  function showTimes() {
    for (const time of entries.querySelectorAll(".meta time")) time.textContent = date.format(new Date(time.dateTime));
  }

  function tellHeight() {
    const present = Math.ceil(document.documentElement.getBoundingClientRect().height);
    if (present === height) return;
    height = present;
    parent.postMessage({ smartfeeds: "height", height }, frame.dataset.site);
  }

  function connect() {
    disconnect();
    source = new EventSource(`${frame.dataset.stream}&since=${encodeURIComponent(since)}`);
    source.onopen = () => {
      tries = 0;
      tell("live");
    };
    source.onmessage = update;
    source.onerror = (event) => {
      if (event.data) {
        // The server's last word: the feed is gone, or not for everybody any more.
        disconnect();
        tell("ended");
      } else if (source.readyState === EventSource.CLOSED) again();
      else tell("lost");
    };
  }

  function disconnect() {
    clearTimeout(timer);
    if (source) source.close();
    source = null;
  }

  function again() {
    disconnect();
    if (tries === MOST_TRIES) {
      tell("ended");
      return;
    }
    tell("lost");
    const pause = Math.min(AGAIN_MS * 2 ** tries, MOST_AGAIN_MS);
    timer = setTimeout(connect, pause * (0.5 + Math.random() / 2));
    tries += 1;
  }

  // One request at a time; what comes meanwhile is in the next one.
  async function update() {
    wanted = true;
    if (loading) return;
    loading = true;
    while (wanted) {
      wanted = false;
      try {
        show(await load());
      } catch {
        again();
        break;
      }
    }
    loading = false;
  }

  function load() {
    return new Promise((resolve, reject) => {
      const request = new XMLHttpRequest();
      request.open("GET", location.href);
      request.setRequestHeader("Accept", "text/html");
      request.responseType = "document";
      request.onload = () => (request.status === 200 && request.response ? resolve(request.response) : reject());
      request.onerror = reject;
      request.send();
    });
  }

  // Entries that did not change stay, with the focus and the pictures that they have.
  function show(page) {
    const former = new Map([...entries.querySelectorAll("article")].map((entry) => [entry.dataset.mark, entry]));
    const present = [...page.getElementById("entries").children].map(
      (entry) => former.get(entry.dataset.mark) || document.importNode(entry, true),
    );
    entries.replaceChildren(...present);
    since = page.getElementById("frame").dataset.since;
    showTimes();
  }

  function begin() {
    tries = 0;
    connect();
  }

  showTimes();
  if (frame.dataset.site && parent !== window) new ResizeObserver(tellHeight).observe(document.documentElement);
  connect();
  // A page that nobody sees holds no connection: a browser has six for a host.
  document.addEventListener("visibilitychange", () => (document.hidden ? disconnect() : begin()));
  addEventListener("pagehide", disconnect);
  addEventListener("pageshow", (event) => event.persisted && begin());
})();
