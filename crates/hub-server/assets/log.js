// Shows a device's log as it grows. Lines are set as text, so that nothing in them is obeyed.
"use strict";
const LINES_MAX = 500;
let stream = null;
document.addEventListener("submit", (event) => {
  const form = event.target.closest("form[data-stream]");
  if (!form) return;
  event.preventDefault();
  const [button, status] = ["button", "[role=status]"].map(one => form.querySelector(one));
  const say = (text) => { status.textContent = text; };
  const end = (text) => { stream.close(); stream = null; button.textContent = "Watch the log"; say(text); };
  if (stream) { end("Stopped."); return; }
  const shown = document.getElementById("log-lines");
  const add = (text, level) => {
    const isAtEnd = shown.scrollTop + shown.clientHeight >= shown.scrollHeight - 8;
    const line = document.createElement("span");
    line.textContent = text + "\n";
    line.className = level;
    shown.append(line);
    while (shown.childElementCount > LINES_MAX) shown.firstElementChild.remove();
    if (isAtEnd) shown.scrollTop = shown.scrollHeight;
  };
  shown.replaceChildren();
  shown.hidden = false;
  button.textContent = "Stop";
  say("Waiting for the device…");
  const machine = form.querySelector("select").value;
  stream = new EventSource(`${form.dataset.stream}?machine=${encodeURIComponent(machine)}`);
  stream.addEventListener("message", ({ data }) => {
    const line = JSON.parse(data);
    const time = line.unix_s === null ? `${line.at_ms} ms` : new Date(line.unix_s * 1000).toISOString().slice(0, 19) + "Z";
    say("Live.");
    add(`${time} ${line.machine} ${line.level}: ${line.message}`, line.level);
  });
  stream.addEventListener("lost", ({ data }) => add(`… ${JSON.parse(data).lines} lines are missing here …`, "warning"));
  stream.addEventListener("end", () => end("You are signed out, or the device isn't yours any more."));
  stream.addEventListener("error", () => {
    if (stream.readyState === EventSource.CLOSED) end("The hub refused: too many logs are watched, or you are signed out.");
    else say("The hub is away; trying again…");
  });
});
