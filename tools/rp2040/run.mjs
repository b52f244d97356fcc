// Runs one device as `cargo xtask board rp2040` wants it: flash in a file, both UARTs at terminal devices, the console on
// standard output. Ends when it is killed, which is cutting the power.
//
// node run.mjs BOOTROM FLASH MESH-TTY SERVICE-TTY

import { closeSync, fsyncSync, openSync, readFileSync, readSync, writeSync } from "node:fs";
import { Device, NorFlash } from "./chip.mjs";

const [bootrom, flashFile, ...lines] = process.argv.slice(2);
if (lines.length !== 2) {
  console.error("usage: node run.mjs BOOTROM FLASH MESH-TTY SERVICE-TTY");
  process.exit(2);
}

/** Simulated nanoseconds between two looks at the lines. */
const SLICE_NANOS = 1_000_000;
/** How far simulated time may run ahead of the clock on the wall. */
const AHEAD_NANOS = 2_000_000;

const words = readFileSync(bootrom);
const rom = new Uint32Array(words.buffer.slice(words.byteOffset, words.byteOffset + words.length));
const file = openSync(flashFile, "r+");
const flash = new NorFlash(new Uint8Array(readFileSync(flashFile)));
flash.onChange = (offset, length) => {
  writeSync(file, flash.bytes, offset, length, offset);
  fsyncSync(file);
};

const O_NOCTTY = 0o400;
const O_NONBLOCK = 0o4000;
const ttys = lines.map((path) => openSync(path, 2 | O_NOCTTY | O_NONBLOCK));
const device = new Device(rom, flash, Number(process.hrtime.bigint() & 0xffffffffn));

/** What each UART has sent and its line has not taken, and what came and the UART has not taken. */
const leaving = [[], []];
const arriving = [[], []];

/** The console is text between zeros on the second line; frames have bytes that are no text. */
let text = [];
function show(byte) {
  if (byte !== 0) {
    text.push(byte);
    return;
  }
  const isText = text.length > 0 && text.every((it) => it === 10 || it === 13 || (it >= 32 && it !== 127));
  if (isText) process.stdout.write(Buffer.from(text));
  text = [];
}

device.onByte = (line, byte) => {
  leaving[line].push(byte);
  if (line === 1) show(byte);
};

function carry() {
  ttys.forEach((tty, line) => {
    const buffer = Buffer.alloc(4096);
    try {
      const length = readSync(tty, buffer);
      arriving[line].push(...buffer.subarray(0, length));
    } catch (error) {
      if (error.code !== "EAGAIN" && error.code !== "EIO") throw error;
    }
    if (leaving[line].length) {
      try {
        leaving[line].splice(0, writeSync(tty, Buffer.from(leaving[line])));
      } catch (error) {
        // A line that nobody reads loses what it has no room for.
        if (error.code !== "EAGAIN" && error.code !== "EIO") throw error;
        leaving[line] = leaving[line].slice(-4096);
      }
    }
    // At 115,200 bits a second, eleven bytes come in a millisecond.
    arriving[line].splice(0, 11).forEach((byte) => device.feed(line, byte));
  });
}

const startedAt = process.hrtime.bigint();
function turn() {
  try {
    carry();
    device.runUntil(device.nanos + SLICE_NANOS);
  } catch (error) {
    console.error(`the chip stopped: ${error.message}`);
    closeSync(file);
    process.exit(1);
  }
  const ahead = device.nanos - Number(process.hrtime.bigint() - startedAt);
  if (ahead > AHEAD_NANOS) setTimeout(turn, ahead / 1e6);
  else setImmediate(turn);
}
turn();
