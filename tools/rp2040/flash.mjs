// The flash chip and the serial interface in front of it: a W25Q-like NOR, as far as the boot ROM, the second stage and
// the ROM's flash functions use it (RP2040 data sheet 4.10; W25Q16JV data sheet 8).
//
// Rules of NOR: a program clears bits and never sets one, within one page; an erase sets a whole sector. A power cut in
// the middle of either leaves a mixture, drawn from a seeded generator.

export const SECTOR_BYTES = 4096;
const PAGE_BYTES = 256;

/** The power went away. */
export class PowerCut extends Error {}

/** A small seeded generator (SplitMix64 on 64 bits), so that a run repeats. */
export class Random {
  constructor(seed) {
    this.state = BigInt.asUintN(64, BigInt(seed));
  }
  next() {
    this.state = BigInt.asUintN(64, this.state + 0x9e3779b97f4a7c15n);
    let z = this.state;
    z = BigInt.asUintN(64, (z ^ (z >> 30n)) * 0xbf58476d1ce4e5b9n);
    z = BigInt.asUintN(64, (z ^ (z >> 27n)) * 0x94d049bb133111ebn);
    return Number((z ^ (z >> 31n)) & 0xffffffffn);
  }
  below(bound) {
    return this.next() % bound;
  }
}

/** The chip: what is stored, and the commands that it knows. */
export class NorFlash {
  /** @param bytes what is stored, whose length is the chip's: 2 to 16 MiB */
  constructor(bytes) {
    this.bytes = bytes;
    /** Erases and programs so far. */
    this.operations = 0;
    /** The operation in the middle of which the power goes, if it does. */
    this.cutAt = Infinity;
    this.random = new Random(1);
    /** Told of each byte range that changes. */
    this.onChange = () => {};
    this.powerUp();
  }

  powerUp() {
    this.writeEnabled = false;
    this.status2 = 0x02;
    this.command = [];
  }

  /** The chip is selected: a command begins. */
  select() {
    this.command = [];
  }

  /** One byte goes in, and one comes out. */
  exchange(byte) {
    this.command.push(byte);
    const [code, a, b, c] = this.command;
    const at = this.command.length - 1;
    const address = ((a << 16) | (b << 8) | c) >>> 0;
    switch (code) {
      case 0x9f: // JEDEC identification: maker, type, capacity
        return [0xff, 0xef, 0x40, Math.log2(this.bytes.length)][at] ?? 0xff;
      case 0x05: // status 1: never busy, since a command is done when it ends
        return at === 0 ? 0xff : this.writeEnabled ? 0x02 : 0x00;
      case 0x35: // status 2: quad enabled
        return at === 0 ? 0xff : this.status2;
      case 0x03: // read
        return at < 4 ? 0xff : this.bytes[(address + at - 4) % this.bytes.length];
      default:
        return 0xff;
    }
  }

  /** The chip is deselected: what was commanded is done. */
  deselect() {
    const [code, a, b, c] = this.command;
    const data = this.command.slice(4);
    const address = ((a << 16) | (b << 8) | c) >>> 0;
    const length = this.command.length;
    this.command = [];
    switch (code) {
      case 0x06:
        this.writeEnabled = true;
        break;
      case 0x04:
        this.writeEnabled = false;
        break;
      case 0x01:
        if (length >= 3) this.status2 = data.length ? 0x02 : this.status2;
        this.writeEnabled = false;
        break;
      case 0x31:
        this.writeEnabled = false;
        break;
      case 0x02:
        this.change(() => this.program(address, data));
        break;
      case 0x20:
        this.change(() => this.erase(address, SECTOR_BYTES));
        break;
      case 0x52:
        this.change(() => this.erase(address, 32 * 1024));
        break;
      case 0xd8:
        this.change(() => this.erase(address, 64 * 1024));
        break;
      default:
        break;
    }
  }

  change(operation) {
    if (!this.writeEnabled) throw new Error("the flash is written without a write enable");
    this.writeEnabled = false;
    this.operations += 1;
    this.isCut = this.operations === this.cutAt;
    operation();
    if (this.isCut) throw new PowerCut(`in flash operation ${this.operations}`);
  }

  program(address, data) {
    const page = address - (address % PAGE_BYTES);
    if (address + data.length > this.bytes.length) throw new Error("a program beyond the flash");
    const whole = this.isCut ? this.random.below(data.length + 1) : data.length;
    for (let index = 0; index < data.length; index += 1) {
      const at = page + ((address - page + index) % PAGE_BYTES);
      if (index < whole) this.bytes[at] &= data[index];
      // The byte at the cut has any of the bits cleared that were to be.
      else if (index === whole) this.bytes[at] &= data[index] | this.random.below(256);
    }
    this.onChange(page, PAGE_BYTES);
  }

  erase(address, length) {
    const first = address - (address % length);
    if (first + length > this.bytes.length) throw new Error("an erase beyond the flash");
    for (let at = first; at < first + length; at += 1) {
      this.bytes[at] = this.isCut ? this.bytes[at] | this.random.below(256) : 0xff;
    }
    this.onChange(first, length);
  }
}

// Registers of the serial interface (data sheet 4.10.13).
const CTRLR0 = 0x00;
const CTRLR1 = 0x04;
const SSIENR = 0x08;
const SER = 0x10;
const TXFLR = 0x20;
const RXFLR = 0x24;
const SR = 0x28;
const IDR = 0x58;
const VERSION = 0x5c;
const DR0 = 0x60;
const TMOD_EEPROM_READ = 3;

/** The serial interface: bytes by its data register to the chip, or the window into flash. */
export class SerialInterface {
  constructor(flash) {
    this.flash = flash;
    this.registers = new Map();
    this.received = [];
    /** Whether the interface selects the chip by itself, in the middle of a command. */
    this.isOpen = false;
    /** What the pad's override says of the select line: undefined, or the level that it is forced to. */
    this.forced = undefined;
    this.onMode = () => {};
  }

  get enabled() {
    return (this.registers.get(SSIENR) ?? 0) & 1;
  }

  get #reads() {
    return (((this.registers.get(CTRLR0) ?? 0) >>> 8) & 3) === TMOD_EEPROM_READ;
  }

  /** Whether flash can be read through the window now: words are fetched, address by address. */
  get isWindow() {
    const frameBits = (((this.registers.get(CTRLR0) ?? 0) >>> 16) & 0x1f) + 1;
    return Boolean(this.enabled) && this.#reads && frameBits === 32;
  }

  /** The pad's override of the select line changes (data sheet 2.19.6.2). */
  force(level) {
    if (level === this.forced) return;
    const was = this.forced;
    this.forced = level;
    if (level === 0) {
      this.close();
      this.flash.select();
    } else if (was === 0) {
      this.flash.deselect();
    }
  }

  close() {
    if (this.isOpen) {
      this.isOpen = false;
      this.flash.deselect();
    }
  }

  readUint32(offset) {
    switch (offset) {
      case SR:
        // A program that asks whether all has left: the interface lets the chip go.
        if (this.#reads && this.isOpen) this.#fetch();
        if (this.forced === undefined) this.close();
        return 0x06 | (this.received.length ? 0x08 : 0);
      case TXFLR:
        return 0;
      case RXFLR:
        return this.received.length;
      case IDR:
        return 0x51535049;
      case VERSION:
        return 0x3430312a;
      case DR0:
        return this.received.shift() ?? 0;
      default:
        return this.registers.get(offset) ?? 0;
    }
  }

  writeUint32(offset, value) {
    if (offset >= DR0 && offset < DR0 + 0x90) {
      this.send(value);
      return;
    }
    if (offset === SSIENR || offset === SER) {
      if (this.forced === undefined) this.close();
      if (offset === SSIENR && !(value & 1)) this.received = [];
    }
    this.registers.set(offset, value >>> 0);
    this.onMode(this.isWindow);
  }

  writeUint32Atomic(offset, value, kind) {
    const now = this.registers.get(offset) ?? 0;
    this.writeUint32(offset, [value, now ^ value, now | value, now & ~value][kind]);
  }

  send(value) {
    if (!this.enabled) return;
    // The second stage tells the chip to go on reading with addresses alone, 32 bits at a time: the window's matter.
    const frame = ((this.registers.get(CTRLR0) ?? 0) >>> 21) & 3;
    if (this.isWindow || frame !== 0) {
      this.received.push(0);
      return;
    }
    if (this.forced === undefined && !this.isOpen) {
      this.isOpen = true;
      this.flash.select();
    }
    const answer = this.flash.exchange(value & 0xff);
    if (!this.#reads) this.received.push(answer);
  }

  /** Behind a command in the mode that reads, the interface fetches as many bytes as it was told. */
  #fetch() {
    const count = ((this.registers.get(CTRLR1) ?? 0) & 0xffff) + 1;
    for (let index = 0; index < count; index += 1) this.received.push(this.flash.exchange(0));
  }
}
