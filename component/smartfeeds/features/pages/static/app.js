// What every page has: times in the reader's zone, the choice of the theme, menus that close, and keys.
// Everything works without it. Nothing here makes markup of text.
"use strict";

(() => {
  const MINUTE_MS = 60_000;
  const RELATIVE_MS = 7 * 24 * 60 * MINUTE_MS; // an older time is shown as a date
  const STEPS = [
    ["day", 24 * 60 * MINUTE_MS],
    ["hour", 60 * MINUTE_MS],
    ["minute", MINUTE_MS],
  ];
  const language = document.documentElement.lang || undefined;
  // The words are in the language of the page; the order of a date is that of the reader's country where both agree.
  const locale = navigator.language.split("-")[0] === language ? navigator.language : language;
  const exact = new Intl.DateTimeFormat(locale, { dateStyle: "full", timeStyle: "short" });
  const short = new Intl.DateTimeFormat(locale, { dateStyle: "medium", timeStyle: "short" });
  const clock = new Intl.DateTimeFormat(locale, { timeStyle: "short" });
  const distance = new Intl.RelativeTimeFormat(locale, { numeric: "auto" });

  function wording(moment) {
    const age = Date.now() - moment;
    if (age < -MINUTE_MS || age >= RELATIVE_MS) return short.format(moment);
    const [unit, length] = STEPS.find(([, step]) => age >= step) || ["second", Infinity];
    return distance.format(-Math.floor(age / length) || 0, unit);
  }

  // Times inside the text of an entry are the words of its author.
  function showTimes(root) {
    for (const time of root.querySelectorAll("time[datetime]")) {
      const moment = new Date(time.dateTime);
      if (Number.isNaN(moment.getTime()) || time.closest(".body")) continue;
      time.title = exact.format(moment);
      time.textContent = "exact" in time.dataset ? short.format(moment) : wording(moment);
    }
    // An entry that was edited on the day of its publication shows the day once.
    for (const edit of root.querySelectorAll(".meta .what time")) {
      const former = edit.closest(".meta").querySelector("time");
      edit.hidden = former !== edit && former.textContent === edit.textContent;
    }
    // SVG has no element for times: the hours below a plot, and the title of a bar.
    for (const text of root.querySelectorAll("svg [data-time]")) {
      const moment = new Date(text.dataset.time);
      text.textContent = text.localName === "title" ? short.format(moment) + text.dataset.more : clock.format(moment);
    }
    for (const zone of root.querySelectorAll("[data-zone]")) zone.textContent = exact.resolvedOptions().timeZone;
  }

  // ---- theme ----

  const root = document.documentElement;
  const themes = ["", "light", "dark"];
  const themeForms = document.querySelectorAll("form.theme"); // in the bar, and in its menu

  function changeTheme(event) {
    event.preventDefault();
    const form = event.currentTarget;
    const theme = form.querySelector("button").value;
    const body = new URLSearchParams(new FormData(form));
    body.set("theme", theme);
    if (theme) root.dataset.theme = theme;
    else delete root.dataset.theme;
    const next = themes[(themes.indexOf(theme) + 1) % themes.length];
    for (const other of themeForms) other.querySelector("button").value = next;
    // The theme is shown already; if the request fails, only the next page has the former one.
    fetch(form.action, { method: "POST", body, redirect: "manual", keepalive: true }).catch(() => {});
  }

  // ---- menus ----

  const menus = () => document.querySelectorAll("details.menu[open]");

  document.addEventListener("click", (event) => {
    for (const menu of menus()) if (!menu.contains(event.target)) menu.open = false;
    const copy = event.target.closest("[data-copy]");
    if (copy) copyText(copy);
  });

  function closeMenus() {
    for (const menu of menus()) {
      const inside = menu.contains(document.activeElement);
      menu.open = false;
      if (inside) menu.querySelector("summary").focus();
    }
  }

  async function copyText(button) {
    const field = document.getElementById(button.dataset.copy);
    field.select();
    // Pages that come without TLS have no clipboard; there the selection is copied.
    if (navigator.clipboard) await navigator.clipboard.writeText(field.value).catch(() => document.execCommand("copy"));
    else document.execCommand("copy");
    button.textContent = button.dataset.done;
  }

  // ---- keys ----

  const help = document.getElementById("keys");

  function move(step) {
    const entries = [...document.querySelectorAll("main article")].filter((one) => !one.hidden);
    const present = entries.findIndex((one) => one.contains(document.activeElement));
    const entry = entries[present < 0 ? (step > 0 ? 0 : -1) : present + step];
    if (!entry) return;
    entry.tabIndex = -1;
    entry.focus({ preventScroll: true });
    entry.scrollIntoView({ block: "start" });
  }

  function openEntry() {
    const entry = document.activeElement.closest("article");
    if (!entry) return;
    // An entry without a visible title has the link at its time.
    const link = entry.querySelector("a.open, :scope > h2 a, :scope > h3 a") || entry.querySelector("a.when");
    if (link) link.click();
  }

  function focusSearch() {
    const box = document.querySelector("main input[type=search]");
    if (box) box.focus();
    else document.querySelector(".places a[rel=search]").click();
  }

  const actions = {
    j: () => move(1),
    k: () => move(-1),
    o: openEntry,
    "/": focusSearch,
    "?": () => help.showModal(),
  };

  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape") closeMenus();
    if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing || help.open) return;
    if (event.target.closest("input, textarea, select, [contenteditable]")) return;
    const action = Object.hasOwn(actions, event.key) && actions[event.key];
    if (!action) return;
    event.preventDefault();
    action();
  });

  for (const copy of document.querySelectorAll("[data-copy]")) copy.hidden = false;
  showTimes(document);
  setInterval(() => showTimes(document), MINUTE_MS);
  for (const form of themeForms) form.addEventListener("submit", changeTheme);
  const button = document.getElementById("show-keys");
  button.hidden = false;
  button.addEventListener("click", () => help.showModal());
  // The script of a live page shows the times of the entries that it adds.
  document.addEventListener("entries", (event) => showTimes(event.target));
})();
