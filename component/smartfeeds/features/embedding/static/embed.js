// Shows a feed of this service in a frame, in the place of this script element:
//   <script src="https://feeds.example.org/embed.js" data-feed="comments"></script>
// The other attributes are in-reply-to, view, max, theme, language, replies and title, each with data- in front.
// The owner of the feed lists the sites that may show it; the browser shows the frame on no other site.
"use strict";

(() => {
  const HIGHEST = 100000; // pixels
  const PATIENCE_MS = 5000; // a frame that the browser shows says after its load how high it is
  const script = document.currentScript;
  if (!script || !script.dataset.feed) return;
  const { feed, view, inReplyTo, max, theme, language, replies, title } = script.dataset;
  const service = new URL(".", script.src);
  const name = encodeURIComponent(feed);

  const address = new URL(`embed/${name}/`, service);
  address.search = view || "";
  for (const [key, value] of Object.entries({ "in-reply-to": inReplyTo, max, theme, language, replies })) {
    if (value) address.searchParams.append(key, value);
  }
  address.searchParams.set("site", location.origin);

  const frame = document.createElement("iframe");
  frame.src = address;
  frame.title = title || feed;
  frame.loading = "lazy";
  // The frame cannot lead this page elsewhere. Links in it open pages of their own.
  frame.sandbox = "allow-scripts allow-same-origin allow-forms allow-popups allow-popups-to-escape-sandbox";
  frame.style.cssText = "display: block; visibility: hidden; width: 100%; height: 12rem; border: 0; color-scheme: normal;";
  // Readers have the link until the frame says that it is shown: the browser does not say that it refused to show it.
  const link = document.createElement("a");
  link.href = new URL(`feeds/${name}/`, service);
  link.textContent = title || `${feed} (${service.host})`;

  let shown = false;
  addEventListener("message", (event) => {
    if (event.origin !== service.origin || event.source !== frame.contentWindow) return;
    const { smartfeeds, height } = Object(event.data);
    if (smartfeeds !== "height" || !(height > 0 && height <= HIGHEST)) return;
    shown = true;
    link.remove();
    frame.style.visibility = "visible";
    frame.style.height = `${Math.ceil(height)}px`;
  });
  frame.addEventListener("load", () => setTimeout(() => {
    if (shown) return;
    frame.remove();
    console.warn(`${feed}: not shown here. Its owner lists ${location.origin} in the option frame_origins.`);
  }, PATIENCE_MS));

  if (document.body) script.after(link, frame);
  else addEventListener("DOMContentLoaded", () => document.body.append(link, frame));
})();
