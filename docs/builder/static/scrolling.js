// What is wider than its place can be scrolled by keys, too.
(() => {
  const places = document.querySelectorAll("article pre, article .table-wrapper, article div.math, article dt.sig");
  const look = (place) => {
    if (place.scrollWidth > place.clientWidth) place.tabIndex = 0;
    else place.removeAttribute("tabindex");
  };
  const watch = new ResizeObserver((entries) => entries.forEach((entry) => look(entry.target)));
  const changes = new MutationObserver((entries) => entries.forEach((entry) => look(entry.target)));
  for (const place of places) {
    look(place);
    watch.observe(place);
    changes.observe(place, { childList: true });
  }
})();
