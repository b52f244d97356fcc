// The firmware's flash image, from the boot ROM on. Deterministic: a run repeats to the instruction.
//
// BOOTROM=… FLASH=… node --test, in the folder to which `cargo xtask board rp2040 --check` copies this one

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { Device, NorFlash, PowerCut } from "./chip.mjs";

const words = readFileSync(process.env.BOOTROM);
const rom = new Uint32Array(words.buffer.slice(words.byteOffset, words.byteOffset + words.length));
const image = readFileSync(process.env.FLASH);

const MS = 1e6;
/** Long enough for a first boot, which derives the device's keys. */
const BOOT_NANOS = 1500 * MS;

function deviceWith(flash, seed = 1) {
  const device = new Device(rom, flash, seed);
  device.text = "";
  device.onByte = (line, byte) => {
    if (line === 1 && byte !== 0) device.text += String.fromCharCode(byte);
  };
  return device;
}

const freshFlash = () => new NorFlash(new Uint8Array(image));

/** Runs until the console shows `words`, or fails after `nanos`. */
function runUntilText(device, words, nanos = BOOT_NANOS) {
  const end = device.nanos + nanos;
  while (!device.text.includes(words)) {
    assert.ok(device.nanos < end, `no "${words}" in: ${device.text}`);
    device.runUntil(device.nanos + 10 * MS);
  }
}

const keyOf = (text) => /key (\S+)/.exec(text)?.[1];

test("from the boot ROM to a device that listens, twice the same to the instruction", () => {
  const [one, other] = [0, 1].map(() => {
    const device = deviceWith(freshFlash());
    runUntilText(device, "not enrolled");
    return device;
  });
  assert.match(one.text, /started by power on/);
  assert.ok(keyOf(one.text));
  assert.equal(one.text, other.text);
  assert.equal(one.instructions, other.instructions);
  assert.deepEqual(one.flash.bytes, other.flash.bytes);
});

test("a ring oscillator that is stuck is refused, and no key is made of it", () => {
  const device = new Device(rom, freshFlash());
  let text = "";
  device.onByte = (line, byte) => {
    if (line === 1 && byte !== 0) text += String.fromCharCode(byte);
  };
  device.isRingStuck = true;
  device.powerOn();
  const end = device.nanos + BOOT_NANOS;
  while (!text.includes("error:") && device.nanos < end) device.runUntil(device.nanos + 10 * MS);
  assert.match(text, /random/);
  assert.doesNotMatch(text, /listens/);
});

test("the power is cut in flash operations of the first boot, and each time the next boot listens", () => {
  const whole = deviceWith(freshFlash());
  runUntilText(whole, "not enrolled");
  const operations = whole.flash.operations;
  assert.ok(operations > 0);
  const cuts = [1, Math.ceil(operations / 2), operations];
  for (const cutAt of new Set(cuts)) {
    const flash = freshFlash();
    flash.cutAt = cutAt;
    const device = deviceWith(flash);
    assert.throws(() => runUntilText(device, "not enrolled"), PowerCut, `cut ${cutAt}`);
    const after = deviceWith(flash, 2);
    runUntilText(after, "not enrolled");
    const again = deviceWith(flash, 3);
    runUntilText(again, "not enrolled");
    assert.equal(keyOf(again.text), keyOf(after.text), `cut ${cutAt}: the key isn't kept`);
  }
});

test("a watchdog that isn't fed starts the device anew, which says so", () => {
  const device = deviceWith(freshFlash());
  runUntilText(device, "not enrolled");
  const kept = keyOf(device.text);
  device.text = "";
  // The core stands still, as in a loop that never comes round.
  const { core } = device.chip;
  core.executeInstruction = () => 1;
  const frozen = device.chip;
  while (device.chip === frozen) device.runUntil(device.nanos + 1000 * MS);
  runUntilText(device, "not enrolled");
  assert.match(device.text, /started by watchdog/);
  assert.equal(keyOf(device.text), kept);
});
