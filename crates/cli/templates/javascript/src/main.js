// The machine `{{name}}`: greets whoever calls it, and counts how often it did.

import { log, tree } from "tenure";

/** Runs once when the machine starts. */
export function entry() {
  log.info("{{name}} has started");
}

/** tenure call {{name}} greet Ada */
export function greet(whom = "world") {
  const count = Number(tree.get("greetings")) + 1;
  tree.set("greetings", count);
  return `Hello, ${whom}! You are number ${count}.`;
}
