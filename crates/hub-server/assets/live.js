// Keeps a page current: asks for it again every five seconds, and shows it if it changed.
"use strict";
let tag = null;
let last = document.querySelector("main").innerHTML;
async function refresh() {
  const focused = document.activeElement;
  const isBusy = document.hidden
    || (focused?.matches("input, select, main button") && !focused.matches("[data-keep] button"));
  if (!isBusy) {
    try {
      const answer = await fetch(location.href, { headers: tag ? { "If-None-Match": tag } : {} });
      if (answer.redirected || answer.status === 401) { location.reload(); return; }
      if (answer.status === 200) {
        const page = new DOMParser().parseFromString(await answer.text(), "text/html");
        const [main, shown] = [page, document].map(one => one.querySelector("main"));
        if (main && main.innerHTML !== last) {
          last = main.innerHTML;
          // A part that lives by itself stays as it is.
          for (const kept of shown.querySelectorAll("[data-keep]")) main.querySelector(`#${kept.id}`)?.replaceWith(kept);
          shown.replaceWith(main);
          if (focused?.isConnected) focused.focus({ preventScroll: true });
        }
        tag = answer.headers.get("ETag");
      }
    } catch { /* The hub is away; the page shows what it was. */ }
  }
  setTimeout(refresh, 5000);
}
refresh();
