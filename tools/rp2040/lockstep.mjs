// Runs one device for the process at its standard input, which says what arrives and how long to go on, and so sets the
// pace: no clock of the wall is looked at, and a run repeats to the instruction.
//
// node lockstep.mjs BOOTROM FLASH SEED
//
// A request, its numbers little-endian: microseconds (u32), then for each UART a length (u16) and the bytes that arrive.
// The most microseconds that a u32 holds cut the power and bring it back instead, before the answer.
// The number below it, and then a count (u32), cut the power in the middle of that flash operation from there on, and bring
// it back at once; that has no answer.
// An answer: instructions since power came (u64), flash operations (u32) and such cuts so far (u32), then for each UART a length (u32) and the bytes that it sent. Closing
// the input ends it. A chip that stops ends it too, with the reason on standard error.

import { readFileSync, readSync, writeSync } from "node:fs";
import { Device, NorFlash, PowerCut } from "./chip.mjs";

const [bootrom, flash, seed] = process.argv.slice(2);
if (seed === undefined) {
  console.error("usage: node lockstep.mjs BOOTROM FLASH SEED");
  process.exit(2);
}

const words = readFileSync(bootrom);
const rom = new Uint32Array(words.buffer.slice(words.byteOffset, words.byteOffset + words.length));
const device = new Device(rom, new NorFlash(new Uint8Array(readFileSync(flash))), Number(seed));
const leaving = [[], []];
device.onByte = (line, byte) => leaving[line].push(byte);

/** Exactly so many bytes of a request; ends the process when there are no more requests. */
function take(length) {
  const bytes = Buffer.alloc(length);
  for (let at = 0; at < length; ) {
    const count = readSync(0, bytes, at, length - at);
    if (count === 0) process.exit(0);
    at += count;
  }
  return bytes;
}

function put(bytes) {
  for (let at = 0; at < bytes.length; ) at += writeSync(1, bytes, at);
}

function answer() {
  const head = Buffer.alloc(16);
  head.writeBigUInt64LE(BigInt(device.instructions));
  head.writeUInt32LE(device.flash.operations, 8);
  head.writeUInt32LE(cuts, 12);
  const parts = leaving.map((bytes) => {
    const length = Buffer.alloc(4);
    length.writeUInt32LE(bytes.length);
    return Buffer.concat([length, Buffer.from(bytes.splice(0))]);
  });
  put(Buffer.concat([head, ...parts]));
}

const POWER_CYCLE = 0xffffffff;
const CUT = 0xfffffffe;

let cuts = 0;

/** Runs on, and from its start on once more when the power is cut. */
function runUntil(nanos) {
  try {
    device.runUntil(nanos);
  } catch (error) {
    if (!(error instanceof PowerCut)) throw error;
    cuts += 1;
    device.powerCycle();
    device.runUntil(nanos);
  }
}

let until = 0;
try {
  for (;;) {
    const micros = take(4).readUInt32LE();
    if (micros === POWER_CYCLE) {
      device.powerCycle();
      answer();
      continue;
    }
    if (micros === CUT) {
      device.flash.cutAt = device.flash.operations + take(4).readUInt32LE();
      continue;
    }
    until += micros * 1000;
    for (const line of [0, 1]) {
      for (const byte of take(take(2).readUInt16LE())) device.feed(line, byte);
    }
    runUntil(until);
    answer();
  }
} catch (error) {
  console.error(`the chip stopped: ${error.message}`);
  process.exit(1);
}
