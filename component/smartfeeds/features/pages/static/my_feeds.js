// Looks whether what the reader follows has newer entries than the page, and offers them. Nothing moves by itself.
"use strict";

(() => {
  const LOOK_MS = 30_000;
  const list = document.getElementById("entries");
  const fresh = document.getElementById("fresh");
  const news = document.getElementById("news");

  async function look() {
    if (document.hidden || !fresh.hidden) return;
    const response = await fetch(location.href, { headers: { Accept: "application/json" } });
    if (!response.ok) return;
    const { newest } = await response.json();
    // Keys have 16 digits, which a number of a script can hold.
    if (Number(newest) <= Number(list.dataset.newest)) return;
    fresh.textContent = news.textContent = fresh.dataset.text;
    fresh.hidden = false;
  }

  // A request that fails is repeated by the next one.
  const again = () => look().catch(() => {});
  setInterval(again, LOOK_MS);
  document.addEventListener("visibilitychange", again);
})();
