// Keeps a page current: asks for it again every five seconds, and shows it if it changed.
"use strict";
let tag = null;
async function refresh() {
  const isBusy = document.hidden || document.activeElement?.matches("input, main button");
  if (!isBusy) {
    try {
      const answer = await fetch(location.href, { headers: tag ? { "If-None-Match": tag } : {} });
      if (answer.redirected || answer.status === 401) { location.reload(); return; }
      if (answer.status === 200) {
        const page = new DOMParser().parseFromString(await answer.text(), "text/html");
        const main = page.querySelector("main");
        if (tag && main) document.querySelector("main").replaceWith(main);
        tag = answer.headers.get("ETag");
      }
    } catch { /* The hub is away; the page shows what it was. */ }
  }
  setTimeout(refresh, 5000);
}
refresh();
