// Offers the newer entries of what the reader follows. The service holds the request until there are some. Nothing
// moves by itself.
"use strict";

(() => {
  const AGAIN_MS = 10_000; // the pause after a request that failed, and up to twice that: not all pages return at once
  const list = document.getElementById("entries");
  const fresh = document.getElementById("fresh");
  const news = document.getElementById("news");
  let held = null; // aborts the request
  let timer = 0;

  function connect() {
    disconnect();
    if (document.hidden || !fresh.hidden) return;
    held = new AbortController();
    wait(held.signal);
  }

  function disconnect() {
    clearTimeout(timer);
    if (held) held.abort();
    held = null;
  }

  async function wait(signal) {
    try {
      // Keys have 16 digits, which a number of a script can hold.
      while (Number(await newest(signal)) <= Number(list.dataset.newest));
    } catch {
      if (!signal.aborted) timer = setTimeout(connect, AGAIN_MS * (1 + Math.random()));
      return;
    }
    fresh.textContent = news.textContent = fresh.dataset.text;
    fresh.hidden = false;
  }

  async function newest(signal) {
    const address = `${fresh.href}?since=${list.dataset.newest}`;
    const response = await fetch(address, { headers: { Accept: "application/json" }, signal });
    if (!response.ok) throw new Error(response.statusText);
    return (await response.json()).newest;
  }

  connect();
  // A page that nobody sees holds no connection: a browser has six for a host.
  document.addEventListener("visibilitychange", connect);
  addEventListener("pagehide", disconnect);
  addEventListener("pageshow", (event) => event.persisted && connect());
})();
