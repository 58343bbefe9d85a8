// Replaces the link to an image with the image when it is clicked. Without this script the link opens the image.
"use strict";

document.addEventListener("click", (event) => {
  const link = event.target.closest("a.picture.load");
  // A click with a modifier opens the image in another tab, as for every link.
  if (!link || event.button !== 0 || event.ctrlKey || event.metaKey || event.shiftKey || event.altKey) return;
  event.preventDefault();
  const image = document.createElement("img");
  image.alt = link.dataset.label;
  image.src = link.href;
  // The link stays if the image cannot be loaded, so that its label is not lost.
  image.addEventListener("load", () => link.replaceWith(image));
  image.addEventListener("error", () => link.classList.add("failed"));
});
