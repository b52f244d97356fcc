// The values that the page shows, as they change: "NOW TARGET" in each event.
new EventSource("live").onmessage = event => {
  const [now, target] = event.data.split(" ");
  document.querySelector("#now").textContent = `${now} °C`;
  document.querySelector("output").textContent = `${target} °C`;
};
