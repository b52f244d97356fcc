// The language, part by part: what it gives here and in Node.js is compared.

import { Point, Point3, sum } from "./shapes.js";

export function language() {
  const out = [];
  const say = (...words) => out.push(words.join(" "));
  const { a, b: { c = 5 } = {}, ...rest } = { a: 1, d: 3, e: 4 };
  say(a, c, JSON.stringify(rest));
  const p = new Point3(1, 2, 3);
  say(p.size, p instanceof Point, String(p), Point.origin().x);
  for (const [name, value] of Object.entries({ x: 1, y: 2 })) say(name, value);
  for (const letter of "hé") say(letter);
  say([3, 1, 2].sort((x, y) => x - y).map((x) => x ** 2).filter((x) => x > 1).reduce((x, y) => x + y, 0));
  say([1, 2, 3].includes(2), [1, 2, 3].find((x) => x > 1), [1, 2, 3].findIndex((x) => x > 5), Array.from({ length: 3 }, (_, i) => i * 2));
  say("tenure".startsWith("ten"), "tenure".endsWith("x"), "tenure".includes("nur"), "7".padStart(3, "0"), "7".padEnd(3, "ab"));
  say(Number.isInteger(5.0), Number.isInteger(5.5), Object.values({ a: 1 }), JSON.stringify(Object.assign({ a: 1 }, { b: 2 }, null)));
  say("a-b-c".replace(/-/g, "+"), /(\d+)-(\d+)/.exec("12-34").slice(1).join(), "x,y".split(","), "ABC".toLowerCase());
  let i = 0; label: for (;;) { while (true) { i++; if (i > 3) break label; if (i > 1) continue label; } }
  say(i, sum(1, 2, 3), typeof undefined, void 0 ?? "nullish", null?.x);
  switch (i) { case 4: say("four"); break; default: say("other"); }
  try { null.x; } catch (error) { say(error.name, error instanceof TypeError); } finally { say("finally"); }
  const fs = []; for (let k = 0; k < 3; k++) fs.push(() => k); say(fs.map((f) => f()));
  say(0.1 + 0.2, 1e21, 5 / 3, -0, NaN, (255).toString(16), (1.005).toFixed(2), Math.max(1, 2));
  say(`multi
line`, "\u{1F600}".length, "a\tb");
  const o = { get twice() { return 2; }, ["k" + 1]: 1, m() { return this.k1; } }; say(o.twice, o.m(), "k1" in o, delete o.k1, "k1" in o);
  say(new Uint8Array([1, 2, 300]).join(), new Float64Array(2).length);
  return out.join("|");
}
