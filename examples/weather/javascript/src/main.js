// Keeps what the thermometer says, and compares it with the thermostat.

import { call, events, timers, tree } from "tenure";

/** The readings that are kept. */
const READINGS = 4;

export function entry() {
  events.subscribe("device.temperature", on_temperature, "latest-only");
  timers.every(1000, on_compare);
}

/** tenure call weather report */
export function report() {
  const history = tree.get("history");
  return history === null ? "no reading yet" : `${history}: ${tree.get("verdict") ?? "not compared yet"}`;
}

/** The thermometer's reading comes as a call. One like the last is no news. */
export function on_temperature(degrees) {
  const readings = kept();
  if (readings[readings.length - 1] === degrees) return;
  tree.set("history", [...readings, degrees].slice(-READINGS).join(" "));
}

/** The timer's call. */
export function on_compare() {
  const readings = kept();
  if (readings.length === 0) return;
  const target = call("thermostat", "read");
  const word = Number(readings[readings.length - 1]) < Number(target) ? "colder" : "warmer";
  const verdict = `${word} than ${target}`;
  if (tree.get("verdict") !== verdict) tree.set("verdict", verdict);
}

function kept() {
  return tree.get("history")?.split(" ") ?? [];
}
