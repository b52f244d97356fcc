/**
 * Tenure for AssemblyScript: what a machine can do.
 *
 * A machine is a program whose exported functions others call; `entry`, if there is one, runs once when it starts:
 *
 *     import { log, parameter, reply } from "tenure";
 *
 *     export function entry(): void {
 *       log.info("it starts");
 *     }
 *
 *     export function greet(): void {
 *       const whom = parameter();
 *       reply("Hello, " + (whom === null ? "world" : whom) + "!");
 *     }
 *
 * A function that is called has no parameters and no result of its own. Between calls a machine keeps its variables, and
 * after a loss of power its tree alone. A number below zero that a function returns is a `HostError`; `errorText` says it
 * in words. `console` and `trace` write to the log, and the device seeds `Math.random`.
 */

import * as host from "./tenure/generated/host";
import { HostError } from "./tenure/generated/host";

export { HostError, errorText } from "./tenure/generated/host";

// By itself the collector waits until half a page of memory is in use; behind its first collection it goes by what is in use.
__collect();

// ---- the call being served ----

/** Its parameter, or null if it has none. */
export function parameter(): string | null {
  const bytes = parameterBytes();
  return bytes === null ? null : text(bytes);
}

/** Its parameter as bytes. */
export function parameterBytes(): ArrayBuffer | null {
  const length = host.parameter_length();
  if (length < 0) return null;
  const into = new ArrayBuffer(length);
  return host.parameter_read(0, address(into), length) < 0 ? null : into;
}

/** Sets its result. The last one counts. */
export function reply(value: string): i32 {
  return replyBytes(String.UTF8.encode(value));
}

/** Sets its result to bytes. */
export function replyBytes(value: ArrayBuffer): i32 {
  return host.reply(address(value), value.byteLength);
}

/**
 * Makes it fail once the function returns, with a message in the log; the machine goes on. The device's owner gets the
 * message, too, and with `errors = "callers"` in tenure.toml every caller.
 */
export function fail(message: string): void {
  log.error(message);
  reply(message);
  host.fail();
}

/** The public key of the machine that made it; null if the device itself did. */
export function caller(): ArrayBuffer | null {
  const key = new ArrayBuffer(KEY_BYTES);
  return host.caller(address(key), KEY_BYTES) == KEY_BYTES ? key : null;
}

/** Ends it as failed and stops the machine, with a message in the log. */
export function stop(message: string): void {
  const bytes = String.UTF8.encode(message);
  host.abort(address(bytes), bytes.byteLength);
}

// ---- the log ----

export namespace log {
  export function error(message: string): void {
    line(0, message);
  }

  export function warning(message: string): void {
    line(1, message);
  }

  export function info(message: string): void {
    line(2, message);
  }

  export function debug(message: string): void {
    line(3, message);
  }
}

/** Writes a line of the log, cut at 256 bytes. */
function line(level: u32, message: string): void {
  const bytes = String.UTF8.encode(message);
  host.log(level, address(bytes), bytes.byteLength);
}

// ---- the machine's tree: values at dotted paths ("a.b.c") that survive a loss of power ----

export namespace tree {
  /** The text at the path, or null if there is none. */
  export function get(path: string): string | null {
    const bytes = getBytes(path);
    return bytes === null ? null : text(bytes);
  }

  /** The bytes at the path. */
  export function getBytes(path: string): ArrayBuffer | null {
    const name = String.UTF8.encode(path);
    let into = new ArrayBuffer(0);
    while (true) {
      const length = host.tree_get(address(name), name.byteLength, address(into), into.byteLength);
      if (length < 0) return null;
      if (length <= into.byteLength) return into;
      into = new ArrayBuffer(length);
    }
  }

  /** Stores a text, replacing what was at the path. Once it returns 0 it is safe. */
  export function set(path: string, value: string): i32 {
    return store(path, 1, String.UTF8.encode(value));
  }

  /** Stores bytes. */
  export function setBytes(path: string, value: ArrayBuffer): i32 {
    return store(path, 0, value);
  }

  function store(path: string, kind: u32, value: ArrayBuffer): i32 {
    const name = String.UTF8.encode(path);
    return host.tree_set(address(name), name.byteLength, kind, address(value), value.byteLength);
  }

  /** Deletes what is at the path and below; returns how many values went. */
  export function remove(path: string): i32 {
    const name = String.UTF8.encode(path);
    return host.tree_delete(address(name), name.byteLength);
  }

  /** The names of what is right below the path ("": the root), in order. */
  export function list(path: string): string[] {
    const name = String.UTF8.encode(path);
    let into = new ArrayBuffer(0);
    while (true) {
      const length = host.tree_list(address(name), name.byteLength, address(into), into.byteLength);
      if (length <= 0) return [];
      if (length <= into.byteLength) break;
      into = new ArrayBuffer(length);
    }
    const names = text(into).split("\0");
    names.pop();
    return names;
  }
}

// ---- secrets that the tenant keeps on the device ----

/** The secret of that name, or null. Read it where it is used: it may change while the machine runs. */
export function secret(name: string): string | null {
  const called = String.UTF8.encode(name);
  let into = new ArrayBuffer(0);
  while (true) {
    const length = host.secret_read(address(called), called.byteLength, address(into), into.byteLength);
    if (length < 0) return null;
    if (length <= into.byteLength) return text(into);
    into = new ArrayBuffer(length);
  }
}

// ---- calling other machines ----

/** The outcome of a call. */
export class Result {
  /** 0, or why the call failed: a `HostError`. */
  error: i32 = 0;
  /** The result, or null if it is null. After a failure what the called machine says of it, if it tells its callers. */
  bytes: ArrayBuffer | null = null;

  /** The result as a text. */
  get value(): string | null {
    const bytes = this.bytes;
    return bytes === null ? null : text(bytes);
  }
}

/** The most that a machine says of a failure. */
const WORDS_BYTES: u32 = 512;

/**
 * Calls a function of the machine `target` ("name", "name@device", "#key", or the URL of a server outside), and waits for
 * its result while other machines run. Null is no parameter; a deadline of 0 is the device's own.
 */
export function call(target: string, name: string, value: string | null = null, deadline_ms: u32 = 0): Result {
  return callBytes(target, name, value === null ? null : String.UTF8.encode(value), deadline_ms);
}

/** As `call`, with bytes. */
export function callBytes(target: string, name: string, value: ArrayBuffer | null, deadline_ms: u32 = 0): Result {
  const to = String.UTF8.encode(target), called = String.UTF8.encode(name);
  const status = host.call(
    address(to), to.byteLength, address(called), called.byteLength,
    value === null ? 0 : address(value), value === null ? 0 : value.byteLength, deadline_ms
  );
  const result = new Result();
  if (status == HostError.Null) return result;
  if (status < 0) result.error = status;
  const room = status < 0 ? WORDS_BYTES : status;
  const into = new ArrayBuffer(room);
  const length = host.result_read(0, address(into), room);
  if (status >= 0 || length > 0) result.bytes = into.slice(0, max(length, 0));
  return result;
}

/** A call to be queued. Fields that are left out are null, the default, or none. */
export class Task {
  /** Empty: this machine. */
  target: string = "";
  parameter: string | null = null;
  /** Functions of this machine, called with the result or with the reason of the failure. */
  onSuccess: string = "";
  onFailure: string = "";
  deadline_ms: u32 = 0;
  retries: u32 = 0;

  constructor(public name: string) {}
}

/** Queues a call and goes on; returns its number, or an error. */
export function queue(task: Task): i32 {
  const to = String.UTF8.encode(task.target), called = String.UTF8.encode(task.name);
  const success = String.UTF8.encode(task.onSuccess), failure = String.UTF8.encode(task.onFailure);
  const given = task.parameter;
  const value = given === null ? null : String.UTF8.encode(given);
  return host.queue(
    address(to), to.byteLength, address(called), called.byteLength,
    value === null ? 0 : address(value), value === null ? 0 : value.byteLength,
    address(success), success.byteLength, address(failure), failure.byteLength,
    task.deadline_ms, task.retries
  );
}

/** The number of the queued call whose callback is being served, or an error. */
export function callbackOf(): i32 {
  return host.callback_of();
}

// ---- timers: functions of this machine called later, or again and again ----
//
// A machine has eight timers at most, one for each function. Setting one again as it is changes nothing, so `entry` may do
// it at each start. Each returns 0 or an error.

export namespace timers {
  /** Calls the function once, after so many milliseconds. */
  export function after(delay_ms: u32, name: string): i32 {
    const called = String.UTF8.encode(name);
    return host.timer_after(address(called), called.byteLength, 0, 0, delay_ms, 0);
  }

  /** Calls the function after each `period_ms` milliseconds, 10 at least. */
  export function every(period_ms: u32, name: string): i32 {
    const called = String.UTF8.encode(name);
    return host.timer_after(address(called), called.byteLength, 0, 0, period_ms, period_ms);
  }

  /**
   * Calls the function at a time of day, in seconds since 1970-01-01 00:00 UTC, and then after each `period_ms`
   * milliseconds if that isn't 0.
   */
  export function at(unix_time_s: u32, period_ms: u32, name: string): i32 {
    const called = String.UTF8.encode(name);
    return host.timer_at(address(called), called.byteLength, 0, 0, unix_time_s, period_ms);
  }

  /** Calls the function at each time of `times`: "06:30", or the five fields of crontab. */
  export function schedule(times: string, name: string): i32 {
    const called = String.UTF8.encode(name), when = String.UTF8.encode(times);
    return host.timer_schedule(address(called), called.byteLength, 0, 0, address(when), when.byteLength);
  }

  /** Ends the timer of the function. */
  export function cancel(name: string): i32 {
    const called = String.UTF8.encode(name);
    return host.timer_cancel(address(called), called.byteLength);
  }
}

// ---- events: readings of the device's sensors, and what machines tell one another ----

/** The event that is dropped when a queue is full. */
export enum Policy {
  DropOldest,
  DropNewest,
  LatestOnly,
}

/** An event that was waited for. */
export class Received {
  topic: string = "";
  payload: string = "";
  /** How many events were dropped between the one before and this one. */
  dropped: i32 = 0;
}

export namespace events {
  /** Waits for ever. */
  export const FOR_EVER: u32 = 0xffffffff;

  /** Publishes an event; returns how many subscriptions have it in their queues, or an error. */
  export function publish(topic: string, payload: string): i32 {
    return publishBytes(topic, String.UTF8.encode(payload));
  }

  /** Publishes bytes. */
  export function publishBytes(topic: string, payload: ArrayBuffer): i32 {
    const to = String.UTF8.encode(topic);
    return host.publish(address(to), to.byteLength, address(payload), payload.byteLength);
  }

  /**
   * Subscribes to a topic, to all below one ("door.*") or to all ("*"). Each event is a call of this machine's `handler`,
   * with the payload as its parameter; where that is empty, `next` gives it. Subscriptions end when the machine restarts:
   * make them in `entry`.
   */
  export function subscribe(topic: string, handler: string, policy: Policy = Policy.DropOldest, depth: u32 = 8): i32 {
    const to = String.UTF8.encode(topic), called = String.UTF8.encode(handler);
    return host.subscribe(address(to), to.byteLength, policy, depth, address(called), called.byteLength);
  }

  export function unsubscribe(topic: string): i32 {
    const to = String.UTF8.encode(topic);
    return host.unsubscribe(address(to), to.byteLength);
  }

  /** Waits for the next event of the subscriptions without a handler; null if none comes in time. */
  export function next(timeout_ms: u32): Received | null {
    const length = host.event_next(timeout_ms);
    if (length < 0) return null;
    const payload = new ArrayBuffer(length);
    host.event_read(0, address(payload), length);
    const event = new Received();
    event.topic = topic();
    event.payload = text(payload);
    event.dropped = host.event_dropped();
    return event;
  }

  /** The topic of the event that is being handled. */
  export function topic(): string {
    const into = new ArrayBuffer(TOPIC_BYTES);
    const length = host.event_topic(address(into), TOPIC_BYTES);
    return length < 0 ? "" : text(into.slice(0, length));
  }

  /** How many events the subscription to a topic has dropped in all. */
  export function dropped(topic: string): i32 {
    const to = String.UTF8.encode(topic);
    return host.topic_dropped(address(to), to.byteLength);
  }
}

// ---- keys and peers ----

const KEY_BYTES: i32 = 32;
const TOPIC_BYTES: i32 = 64;

/** This machine's public key. */
export function publicKey(): ArrayBuffer {
  const key = new ArrayBuffer(KEY_BYTES);
  host.public_key(address(key), KEY_BYTES);
  return key;
}

/** The public key of the machine that a target names, or null. */
export function resolve(target: string): ArrayBuffer | null {
  const to = String.UTF8.encode(target), key = new ArrayBuffer(KEY_BYTES);
  return host.resolve(address(to), to.byteLength, address(key), KEY_BYTES) < 0 ? null : key;
}

// ---- time and chance ----

/** Microseconds since the device booted. */
export function uptimeUs(): i64 {
  return host.uptime_us();
}

/** Seconds since 1970-01-01 00:00 UTC, or -1 if the device doesn't know. */
export function unixTimeS(): i64 {
  return host.unix_time_s();
}

/** Waits while other machines run. */
export function sleepMs(duration_ms: u32): void {
  host.sleep_ms(duration_ms);
}

/** Lets other machines run. */
export function yieldNow(): void {
  host.yield_now();
}

/** Random bytes fit for keys. */
export function random(length: i32): ArrayBuffer {
  const into = new ArrayBuffer(length);
  host.random(address(into), length);
  return into;
}

/** The seed of `Math.random`. */
export function seed(): f64 {
  return reinterpret<f64>(load<u64>(address(random(8))));
}

export enum Budget {
  Fuel,
  FlashBytes,
  Messages,
  MessageBytes,
  StoredBytes,
  Queue,
}

/** The rest of a budget now, or an error. */
export function budgetLeft(budget: Budget): i32 {
  return host.budget_left(budget);
}

/**
 * Asks for a higher tier for a critical section, for so much fuel; tier 0 ends it. Returns the tier that the machine has
 * from its next turn on, or an error.
 */
export function raiseTier(tier: u32, fuel: u32): i32 {
  return host.raise_tier(tier, fuel);
}

// ---- what the host calls have in common ----

// @ts-ignore: the compiler's
@inline
function address(bytes: ArrayBuffer): usize {
  return changetype<usize>(bytes);
}

function text(bytes: ArrayBuffer): string {
  return String.UTF8.decode(bytes);
}

// ---- functions that the build puts in the place of AssemblyScript's own, which are a browser's ----

/** `console`: lines of the log. */
export namespace consoleOfDevice {
  export function assert<T>(condition: T, message: string = ""): void {
    if (!condition) line(0, "Assertion failed: " + message);
  }

  export function log(message: string = ""): void {
    info(message);
  }

  export function debug(message: string = ""): void {
    line(3, message);
  }

  export function info(message: string = ""): void {
    line(2, message);
  }

  export function warn(message: string = ""): void {
    line(1, message);
  }

  export function error(message: string = ""): void {
    line(0, message);
  }
}

/** `trace`: a line of the log with up to five numbers. */
export function traceOfDevice(
  message: string, count: i32 = 0, a: f64 = 0, b: f64 = 0, c: f64 = 0, d: f64 = 0, e: f64 = 0
): void {
  const numbers = [a, b, c, d, e];
  for (let at = 0; at < min(count, 5); at++) message += " " + numbers[at].toString();
  line(3, message);
}
