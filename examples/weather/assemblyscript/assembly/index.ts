// Keeps what the thermometer says, and compares it with the thermostat.

import { call, errorText, events, log, parameter, Policy, reply, timers, tree } from "tenure";

/** The readings that are kept. */
const READINGS = 4;

export function entry(): void {
  events.subscribe("device.temperature", "on_temperature", Policy.LatestOnly);
  timers.every(1000, "on_compare");
}

/** tenure call weather report */
export function report(): void {
  const history = tree.get("history"), verdict = tree.get("verdict");
  const compared = verdict === null ? "not compared yet" : verdict;
  reply(history === null ? "no reading yet" : history + ": " + compared);
}

/** The thermometer's reading comes as a call. One like the last is no news. */
export function on_temperature(): void {
  const degrees = parameter();
  if (degrees === null) return;
  const readings = kept();
  if (readings.length > 0 && readings[readings.length - 1] == degrees) return;
  readings.push(degrees);
  tree.set("history", readings.slice(-READINGS).join(" "));
}

/** The timer's call. */
export function on_compare(): void {
  const readings = kept();
  if (readings.length == 0) return;
  const asked = call("thermostat", "read");
  const target = asked.value;
  if (target === null) return log.warning("no target: " + errorText(asked.error));
  const isColder = tenths(readings[readings.length - 1]) < tenths(target);
  const verdict = (isColder ? "colder than " : "warmer than ") + target;
  if (tree.get("verdict") != verdict) tree.set("verdict", verdict);
}

function kept(): string[] {
  const history = tree.get("history");
  return history === null ? [] : history.split(" ");
}

/** "21.5" as tenths of a degree. */
function tenths(text: string): i32 {
  return <i32>parseInt(text.replace(".", ""));
}
