// Waits for the confirmation of a sign-in, and then continues. Without this script the page loads itself again.
"use strict";

(() => {
  const PAUSE_MS = 2000;
  const form = document.getElementById("confirmed");
  if (form) {
    form.requestSubmit();
    return;
  }
  const place = document.getElementById("waiting");
  if (!place) return;

  async function look() {
    try {
      const answer = await fetch(location.href, { headers: { Accept: "application/json" } });
      const { state } = await answer.json();
      if (state !== "waiting") {
        location.reload();
        return;
      }
    } catch {
      // The connection is away for a moment; the next look may succeed.
    }
    setTimeout(look, PAUSE_MS);
  }

  setTimeout(look, PAUSE_MS);
})();
