// The machine `{{name}}`: greets whoever calls it, and counts how often it did.

import { log, parameter, reply, tree } from "tenure";

/** Runs once when the machine starts. */
export function entry(): void {
  log.info("{{name}} has started");
}

/** tenure call {{name}} greet Ada */
export function greet(): void {
  const whom = parameter();
  const before = tree.get("greetings");
  const count = (before === null ? 0 : <i32>parseInt(before)) + 1;
  tree.set("greetings", count.toString());
  reply(`Hello, ${whom === null ? "world" : whom}! You are number ${count}.`);
}
