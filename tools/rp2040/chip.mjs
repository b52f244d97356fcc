// An RP2040 as a board has it: rp2040js for core and peripherals, and what that lacks: flash behind its serial interface,
// chip select, reset causes, the ring oscillator's random bit, receive requests of the UARTs, and memory that isn't there.

import { BasePeripheral, ConsoleLogger, LogLevel, RP2040 } from "rp2040js";
import { NorFlash, PowerCut, Random, SerialInterface } from "./flash.mjs";

export { NorFlash, PowerCut, Random };

const FLASH_BASE = 0x10000000;
const SRAM_BASE = 0x20000000;
const SRAM_BYTES = 264 * 1024;

/** The program did what would stop a real chip, or make it fault. */
export class Stopped extends Error {}

/** A register bank that keeps what is written. */
class Plain extends BasePeripheral {
  constructor(chip, name, initial = {}) {
    super(chip, name);
    this.values = new Map(Object.entries(initial).map(([at, value]) => [Number(at), value]));
  }
  readUint32(offset) {
    return this.values.get(offset) ?? 0;
  }
  writeUint32(offset, value) {
    this.values.set(offset, value >>> 0);
  }
}

/** The pads' functions: the select line's override reaches the flash. */
class QspiPads extends Plain {
  constructor(chip, serial) {
    super(chip, "IO_QSPI");
    this.serial = serial;
  }
  writeUint32(offset, value) {
    super.writeUint32(offset, value);
    const GPIO_QSPI_SS_CTRL = 0x0c;
    if (offset === GPIO_QSPI_SS_CTRL) this.serial.force([undefined, 1, 0, 1][(value >>> 8) & 3]);
  }
}

/** The ring oscillator: stable, with a random bit of a seeded generator, or stuck for tests. */
class RingOscillator extends Plain {
  constructor(chip, random) {
    super(chip, "ROSC");
    this.random = random;
    this.bits = 0;
    this.left = 0;
    this.isStuck = false;
  }
  readUint32(offset) {
    if (offset === 0x18) return 0x80001000; // STATUS: stable, enabled
    if (offset !== 0x1c) return super.readUint32(offset);
    if (this.isStuck) return 1;
    if (this.left === 0) [this.bits, this.left] = [this.random.next(), 32];
    this.left -= 1;
    return (this.bits >>> this.left) & 1;
  }
}

/** A device: flash that stays, RAM and scratch registers that outlive a reset, and the chip between two resets. */
export class Device {
  /**
   * @param bootrom the chip's boot ROM, as 4,096 words
   * @param flash a NorFlash
   * @param seed of the ring oscillator and of noise in RAM
   */
  constructor(bootrom, flash, seed = 1) {
    this.bootrom = bootrom;
    this.flash = flash;
    this.random = new Random(seed);
    /** Told of each byte that a UART sends: its number, the byte. */
    this.onByte = () => {};
    /** Told of each reset. */
    this.onReset = () => {};
    /** Nanoseconds of simulated time before the last reset. */
    this.pastNanos = 0;
    this.instructions = 0;
    this.isRingStuck = false;
    this.powerOn();
  }

  /** Power comes: RAM holds noise, and no register anything. */
  powerOn() {
    this.flash.powerUp();
    this.#start(undefined);
    const words = new Uint32Array(this.chip.sram.buffer);
    for (let index = 0; index < words.length; index += 1) words[index] = this.random.next();
  }

  /** Power goes and comes; instructions count from here. */
  powerCycle() {
    this.pastNanos += this.chip.clock.nanos;
    this.instructions = 0;
    this.powerOn();
  }

  /** The watchdog resets the chip. */
  #reset() {
    const kept = {
      sram: this.chip.sram.slice(),
      scratch: this.watchdog.scratchData.slice(),
      reason: this.watchdog.reason,
    };
    this.pastNanos += this.chip.clock.nanos;
    this.#start(kept);
    this.onReset(kept.reason);
  }

  #start(kept) {
    const chip = new RP2040();
    this.chip = chip;
    this.resetWanted = false;
    chip.logger = new ConsoleLogger(LogLevel.Error, false);
    chip.logger.warn = () => {};
    // An alarm is a nanosecond away at least: a counter's remainder is lost in rounding, and it would ring for ever.
    const link = chip.clock.linkAlarm.bind(chip.clock);
    chip.clock.linkAlarm = (nanos, alarm) => link(Math.max(1, nanos), alarm);
    this.serial = new SerialInterface(this.flash);
    this.ring = new RingOscillator(chip, this.random);
    this.ring.isStuck = this.isRingStuck;
    Object.assign(chip.peripherals, {
      0x18000: this.serial,
      0x14000: new Plain(chip, "XIP_CTRL", { 0x08: 0x2 }), // STAT: the stream's queue is empty
      0x40018: new QspiPads(chip, this.serial),
      0x40060: this.ring,
      0x40064: new Plain(chip, "VREG_AND_CHIP_RESET", { 0: 0xb1, 8: kept ? 0 : 0x100 }),
    });
    this.watchdog = chip.peripherals[0x40058];
    this.watchdog.onWatchdogTrigger = () => {
      this.resetWanted = true;
    };
    if (kept) {
      chip.sram.set(kept.sram);
      this.watchdog.scratchData.set(kept.scratch);
      this.watchdog.reason = kept.reason;
    }
    // The pulls of the flash's pads hold select and data lines up, so that nobody seems to hold BOOTSEL.
    const readSio = chip.sio.readUint32.bind(chip.sio);
    const GPIO_HI_IN = 0x08;
    chip.sio.readUint32 = (offset) => (offset === GPIO_HI_IN ? 0x3e : readSio(offset));
    chip.uart.forEach((uart, number) => this.#connect(uart, number));
    this.#guard(chip);
    chip.bootrom.set(this.bootrom);
    chip.core.reset();
  }

  /** A UART whose receiver asks for a transfer as long as it holds something. */
  #connect(uart, number) {
    uart.onByte = (byte) => this.onByte(number, byte);
    const { dma } = this.chip;
    const update = () => (uart.rxFIFO.empty ? dma.clearDREQ(uart.dreq.rx) : dma.setDREQ(uart.dreq.rx));
    const feed = uart.feedByte.bind(uart);
    uart.feedByte = (byte) => {
      if (uart.rxFIFO.full) return; // an overrun
      feed(byte);
      update();
    };
    const read = uart.readUint32.bind(uart);
    uart.readUint32 = (offset) => {
      const value = read(offset);
      if (offset === 0) update();
      return value;
    };
    const write = uart.writeUint32.bind(uart);
    uart.writeUint32 = (offset, value) => (offset === 0x48 ? undefined : write(offset, value)); // DMACR
  }

  /** Memory that isn't there faults, flash can't be stored to, and isn't there while it is written. */
  #guard(chip) {
    const { core } = chip;
    const at = () => `at ${(core.PC >>> 0).toString(16)}`;
    const size = this.flash.bytes.length;
    chip.flash = this.flash.bytes;
    chip.flash16 = new Uint16Array(chip.flash.buffer, chip.flash.byteOffset, size / 2);
    chip.flashView = new DataView(chip.flash.buffer, chip.flash.byteOffset, size);
    for (const width of [8, 16, 32]) {
      const bytes = width / 8;
      const read = chip[`readUint${width}`].bind(chip);
      const write = chip[`writeUint${width}`].bind(chip);
      const isUnmapped = (address) =>
        (address >= SRAM_BASE + SRAM_BYTES && address < 0x40000000) ||
        (address >= 0x14004000 && address < 0x18000000) ||
        (address >= 0x18004000 && address < SRAM_BASE) ||
        (address >= 0x60000000 && address < 0xd0000000);
      const guardedRead = (address) => {
        address >>>= 0;
        if (address % bytes) throw new Stopped(`an unaligned read of ${address.toString(16)} ${at()}`);
        if (address >= FLASH_BASE && address < 0x14000000 && !this.serial.isWindow) {
          throw new Stopped(`flash is read at ${address.toString(16)} while it is away, ${at()}`);
        }
        if (isUnmapped(address)) throw new Stopped(`a read of nothing, ${address.toString(16)} ${at()}`);
        return read(address);
      };
      const openRead = (address) => {
        address >>>= 0;
        if (address % bytes) throw new Stopped(`an unaligned read of ${address.toString(16)} ${at()}`);
        if (isUnmapped(address)) throw new Stopped(`a read of nothing, ${address.toString(16)} ${at()}`);
        return read(address);
      };
      chip[`writeUint${width}`] = (address, value) => {
        address >>>= 0;
        if (address % bytes) throw new Stopped(`an unaligned write of ${address.toString(16)} ${at()}`);
        if (address < 0x14000000) {
          throw new Stopped(`a store to ${address.toString(16)}, which is read-only, ${at()}`);
        }
        if (isUnmapped(address)) throw new Stopped(`a store to nothing, ${address.toString(16)} ${at()}`);
        write(address, value);
      };
      const previous = this.serial.onMode;
      this.serial.onMode = (isWindow) => {
        previous(isWindow);
        chip[`readUint${width}`] = isWindow ? openRead : guardedRead;
      };
    }
    this.serial.onMode(false);
    const check = core.checkForInterrupts.bind(core);
    // With PRIMASK set, `wfi` ends and no handler runs (ARMv6-M manual, B1.5.14).
    core.checkForInterrupts = () =>
      core.PM ? core.waiting && (core.pendingInterrupts & core.enabledInterrupts) !== 0 : check();
  }

  /** Nanoseconds of simulated time since the device was made. */
  get nanos() {
    return this.pastNanos + this.chip.clock.nanos;
  }

  /** Runs until `nanos`, or until the power is cut, which it throws. */
  runUntil(nanos) {
    while (this.nanos < nanos) {
      this.#slice(nanos);
      if (this.resetWanted) this.#reset();
    }
  }

  #slice(nanos) {
    const { chip } = this;
    const { core, clock } = chip;
    const end = nanos - this.pastNanos;
    while (clock.nanos < end && !this.resetWanted) {
      if (core.waiting) {
        if (core.pendingInterrupts & core.enabledInterrupts) {
          core.waiting = false;
          continue;
        }
        const next = clock.nextAlarm ? clock.nanosToNextAlarm : Infinity;
        // A nanosecond at least: less may be lost in the rounding of a large number, and time would stand still.
        clock.tick(Math.max(1, Math.min(next, end - clock.nanos)));
      } else {
        const cycles = core.executeInstruction();
        this.instructions += 1;
        clock.tick((cycles * 1e9) / chip.clkSys);
      }
    }
  }

  /** A byte arrives at a UART. */
  feed(number, byte) {
    this.chip.uart[number].feedByte(byte);
  }
}
