// From a division by zero back to who wrote the zero, as the makers of VS Code test adapters.
const assert = require("node:assert/strict");
const { DebugClient } = require("@vscode/debugadapter-testsupport");

const [port, record, package, division, culprit, token] = process.argv.slice(2);
const thread = { threadId: 1 };
const source = { path: "src/main.c" };
const client = new DebugClient("", "", "tenure");

/** Sends a request that lets the machine go, and waits for the stop that is expected. */
async function goes(request, reason, line) {
  const [, stack] = await Promise.all([
    client.customRequest(request, thread),
    client.assertStoppedLocation(reason, { path: /ledger\/src\/main\.c$/, line: Number(line) }),
  ]);
  return stack.body.stackFrames[0];
}

async function steps() {
  await client.start(Number(port));
  await Promise.all([
    client.waitForEvent("initialized").then(async () => {
      const breakpoints = [{ line: Number(division) }];
      const set = await client.setBreakpointsRequest({ source, breakpoints });
      assert.equal(set.body.breakpoints[0].verified, true);
      await client.configurationDoneRequest();
    }),
    client.launch({ record, packages: [package], token }),
    client.assertStoppedLocation("breakpoint", { line: Number(division) }),
  ]);
  await client.setBreakpointsRequest({ source, breakpoints: [] });
  const failed = await goes("continue", "exception", division);
  const info = await client.customRequest("dataBreakpointInfo", { name: "divisor", frameId: failed.id });
  await client.customRequest("setDataBreakpoints", { breakpoints: [{ dataId: info.body.dataId }] });
  const wrote = await goes("reverseContinue", "data breakpoint", culprit);
  assert.equal(wrote.name, "close_account");
  const number = await client.evaluateRequest({ expression: "number", frameId: wrote.id });
  assert.equal(number.body.result, "2");
  await goes("stepBack", "step", culprit);
  await assert.rejects(client.customRequest("nonsense"), /there is no request nonsense here/);
  await client.disconnectRequest();
}

steps().then(() => process.exit(0), (error) => {
  console.error(error);
  process.exit(1);
});
