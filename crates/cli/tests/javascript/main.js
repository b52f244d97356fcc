// A machine that does one thing after the other, and fails in each way.

import {
  budgetLeft, call, callBytes, caller, events, parameterBytes, peers, publicKey, queue, random, reply, resolve, secret,
  timers, tree, unixTimeS, uptimeUs,
} from "tenure";
export { language } from "./language.js";

let started = 0;

export function entry() {
  started++;
  try {
    // The pretended device has neither events nor timers.
    events.subscribe("device.temperature", on_temperature, "latest-only");
  } catch (error) {
    console.log(error.message, error.code, { started }, [1, null]);
  }
}

export function on_temperature() {}

export function all() {
  tree.set("a.one", "1");
  tree.set("a.two", new Uint8Array([50, 50]));
  tree.set("a.three", { x: 1.5 });
  const names = tree.list("a").join(" ");
  const three = JSON.parse(tree.get("a.three")).x, two = tree.getBytes("a.two").length;
  const gone = tree.remove("a");
  const told = call("friend", "tell", "me"), nothing = call("friend", "nothing");
  return `${names} ${three} ${two} ${gone} ${told} ${nothing} ${tree.get("none")} ${tree.list("none").length}`;
}

export function absent() {
  try {
    callBytes("nobody", "x", "");
  } catch (error) {
    return { message: error.message, code: error.code };
  }
}

export function secretly() {
  try {
    return secret("none");
  } catch (error) {
    return error.message;
  }
}

export function various() {
  const queued = queue({ target: "friend", name: "tell", parameter: [1], onSuccess: "all", retries: 2 });
  return [
    publicKey().length, random(5).length, uptimeUs() >= 0, unixTimeS() === null || unixTimeS() > 0, caller()?.length ?? 0,
    Math.random() < 1, peers().length % 32, resolve("nobody"), typeof queued, budgetLeft(4) >= 0,
  ];
}

export function kind(value) {
  return `${typeof value} ${value instanceof Uint8Array}`;
}

export function bytes() {
  return parameterBytes().subarray(1);
}

export function twice() {
  reply("first");
  reply("second");
}

export function none() {}

export function json(text) {
  return JSON.parse(text);
}

export function deep() {
  return inner(2);
}

function inner(left) {
  if (left > 0) return inner(left - 1);
  const nothing = undefined;
  return nothing.property;
}

export const arrow = () => {
  throw new RangeError("from an arrow");
};

export function words() {
  throw "just words";
}

export function long() {
  throw new Error("é".repeat(300));
}

export function object() {
  throw { code: 7 };
}

export function custom() {
  class Odd extends Error {
    constructor(message) {
      super(message);
      this.name = "Odd";
    }
  }
  throw new Odd("one");
}

export function unanswered() {
  call("nobody", "x");
}

export function nameless() {
  timers.every(1000, () => {});
}

export function dynamic(text) {
  return new RegExp(text).test("aa");
}

export function hold() {
  const all = [];
  for (;;) all.push("y".repeat(1000) + all.length);
}

export function recurse() {
  return recurse() + 1;
}

export function grow() {
  const kept = [];
  let [total, seed] = [0, 7];
  for (let round = 0; round < 2000; round++) {
    seed = (Math.imul(seed, 1664525) + 1013904223) >>> 0;
    const length = (seed >>> 16) % 600, at = (seed >>> 8) % 8;
    kept[Math.min(at, kept.length)] = { text: "x".repeat(length), bytes: new Uint8Array(length % 100) };
    total += length;
    if (kept.some((it) => it.text.length % 100 !== it.bytes.length)) throw new Error("moved wrongly");
  }
  return total;
}
