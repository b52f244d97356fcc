/**
 * Tenure for JavaScript: what a machine can do.
 *
 * A machine is a program whose exported functions others call; `entry`, if there is one, runs once when it starts:
 *
 *     import { log, tree } from "tenure";
 *
 *     export function entry() {
 *       log.info("it starts");
 *     }
 *
 *     export function greet(whom = "world") {
 *       return `Hello, ${whom}!`;
 *     }
 *
 * A function that is called gets the call's parameter: a text, undefined if there is none, or a Uint8Array if it isn't text
 * in UTF-8. What it returns is the result: a text, bytes, nothing, or JSON of anything else. What it throws fails the call,
 * with message, file and line in the log; the machine goes on. Between calls a machine keeps its variables, and after a loss
 * of power its tree alone.
 *
 * Host calls that fail throw an Error, whose `code` is the number in docs/host-calls.md. `console` writes to the log, and
 * the device seeds Math.random.
 */
declare module "tenure" {
  /** A text, bytes, or what becomes JSON. */
  type Value = string | Uint8Array | ArrayBuffer | number | boolean | object;
  /** An exported function of this machine, or its name. */
  type Handler = string | Function;

  // ---- the call being served ----

  /** Its parameter as bytes, or null if it has none. */
  function parameterBytes(): Uint8Array | null;
  /** Sets its result, as returning it does. The last one counts. */
  function reply(value: Value): void;
  /** The public key of the machine that made it; null if the device itself did. */
  function caller(): Uint8Array | null;
  /** Ends it as failed and stops the machine, with a message in the log. */
  function stop(message: string): never;

  // ---- the log: lines of 256 bytes ----

  const log: {
    error(...words: unknown[]): void;
    warning(...words: unknown[]): void;
    info(...words: unknown[]): void;
    debug(...words: unknown[]): void;
  };

  // ---- the machine's tree: values at dotted paths ("a.b.c") that survive a loss of power ----

  const tree: {
    /** The text at the path, or null if there is none; bytes if it isn't text. */
    get(path: string): string | null;
    getBytes(path: string): Uint8Array | null;
    /** Stores a value, replacing what was at the path. Once it returns it is safe. */
    set(path: string, value: Value): void;
    /** Deletes what is at the path and below; returns how many values went. */
    remove(path: string): number;
    /** The names of what is right below the path ("": the root), in order. */
    list(path: string): string[];
  };

  // ---- secrets that the tenant keeps on the device ----

  /** The secret of that name, or null; without the right to it an error is thrown. Read it where it is used: it may change while the machine runs. */
  function secret(name: string): string | null;

  // ---- calling other machines ----

  /**
   * Calls a function of the machine `target` ("name", "name@device", "#key", or the URL of a server outside), and waits for
   * its result while other machines run. A deadline of 0 is the device's own.
   */
  function call(target: string, name: string, parameter?: Value, deadlineMs?: number): string | null;
  /** As `call`, with the result as bytes. */
  function callBytes(target: string, name: string, parameter?: Value, deadlineMs?: number): Uint8Array | null;
  /** Queues a call and goes on; returns its number. The target is this machine if it is left out. */
  function queue(task: {
    name: string;
    target?: string;
    parameter?: Value;
    /** Called with the result, or with the reason of the failure. */
    onSuccess?: Handler;
    onFailure?: Handler;
    deadlineMs?: number;
    retries?: number;
  }): number;
  /** The number of the queued call whose callback is being served. */
  function callbackOf(): number;

  // ---- timers: functions of this machine called later, or again and again ----

  /** A machine has eight timers at most, one for each function. Setting one again as it is changes nothing. */
  const timers: {
    /** Calls the function once, after so many milliseconds. */
    after(delayMs: number, handler: Handler): void;
    /** Calls the function after each `periodMs` milliseconds, 10 at least. */
    every(periodMs: number, handler: Handler): void;
    /** Calls the function at a time in seconds since 1970-01-01 00:00 UTC, and then after each period if that isn't 0. */
    at(unixTimeS: number, periodMs: number, handler: Handler): void;
    /** Calls the function at each time of `times`: "06:30", or the five fields of crontab. */
    schedule(times: string, handler: Handler): void;
    /** Ends the timer of the function. */
    cancel(handler: Handler): void;
  };

  // ---- events: readings of the device's sensors, and what machines tell one another ----

  const events: {
    /** Publishes an event; returns how many subscriptions have it in their queues. */
    publish(topic: string, payload: Value): number;
    /**
     * Subscribes to a topic, to all below one ("door.*") or to all ("*"). Each event is a call of the handler, with the
     * payload as its parameter; without a handler `next` gives it. Subscriptions end when the machine restarts: make them in
     * `entry`. The policy says which event is dropped when the queue, of `depth` events, is full.
     */
    subscribe(
      topic: string, handler?: Handler, policy?: "drop-oldest" | "drop-newest" | "latest-only", depth?: number
    ): void;
    unsubscribe(topic: string): void;
    /** Waits for the next event of the subscriptions without a handler; null if none comes in time. */
    next(timeoutMs?: number): { topic: string; payload: string; dropped: number } | null;
    /** The topic of the event that is being handled, or null. */
    topic(): string | null;
    /** How many events a subscription dropped in all; without a topic, before the event that is being handled. */
    dropped(topic?: string): number;
  };

  // ---- keys and peers ----

  /** This machine's public key. */
  function publicKey(): Uint8Array;
  /** The public key of the machine that a target names, or null. */
  function resolve(target: string): Uint8Array | null;
  /** The keys of the machines that this device knows, 32 bytes each: 1 those on it, 2 those elsewhere, 3 all. */
  function peers(which?: 1 | 2 | 3): Uint8Array;

  // ---- time, chance and budgets ----

  /** Microseconds since the device booted. */
  function uptimeUs(): number;
  /** Seconds since 1970-01-01 00:00 UTC, or null if the device doesn't know. */
  function unixTimeS(): number | null;
  /** Waits while other machines run. */
  function sleepMs(durationMs: number): void;
  /** Lets other machines run. */
  function yieldNow(): void;
  /** Random bytes fit for keys. */
  function random(length: number): Uint8Array;
  /** The rest of a budget now: 0 fuel, 1 bytes to flash, 2 messages, 3 bytes in messages, 4 bytes stored, 5 queue. */
  function budgetLeft(budget: 0 | 1 | 2 | 3 | 4 | 5): number;
  /** Asks for a higher tier for a critical section, for so much fuel; tier 0 ends it. Returns the tier to come. */
  function raiseTier(tier: number, fuel: number): number;
}

/** Writes to the log. */
declare const console: {
  error(...words: unknown[]): void;
  warn(...words: unknown[]): void;
  info(...words: unknown[]): void;
  log(...words: unknown[]): void;
  debug(...words: unknown[]): void;
};

declare const performance: {
  /** Milliseconds since the device booted. */
  now(): number;
};
