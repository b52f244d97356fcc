//! The functions of WASI 0.3, and those of the canonical ABI that components with asynchronous functions import, by the names that
//! `tenure build` looks for: `PACKAGE/INTERFACE@0.3#FUNCTION`, and `async:` before the ABI's.

use core::arch::wasm32::unreachable;

use super::lower::{behind, put_byte, put_long, put_terminal};
use super::tasks::Tasks;
use super::{clocks, environment};
use crate::clock;
use crate::process;

/// Bytes of a `result<_, error-code>`, of which all futures of `wasi:cli` are.
const RESULT_BYTES: u32 = 2;
/// What a task returns that isn't done: it lets others run.
const YIELDS: u32 = 1;
/// Where a set's number is in what a task returns.
const SET_SHIFT: u32 = 4;

fn tasks() -> &'static mut Tasks {
    Tasks::current()
}

#[unsafe(export_name = "async:begin")]
extern "C" fn begin() {
    tasks().begin();
}

/// The task has returned, and isn't done: the event that it goes on with.
#[unsafe(export_name = "async:resume")]
extern "C" fn resume(code: u32) -> u32 {
    let tasks = tasks();
    if code & ((1 << SET_SHIFT) - 1) == YIELDS {
        clock::yield_now();
        tasks.event = (0, 0);
        return 0;
    }
    let (event, of, says) = tasks.wait(code >> SET_SHIFT);
    tasks.event = (of, says);
    event
}

/// Which number that event is of.
#[unsafe(export_name = "async:event-of")]
extern "C" fn event_of() -> u32 {
    tasks().event.0
}

/// What it says.
#[unsafe(export_name = "async:event-says")]
extern "C" fn event_says() -> u32 {
    tasks().event.1
}

#[unsafe(export_name = "async:context-get-0")]
extern "C" fn context_get() -> u32 {
    tasks().context
}

#[unsafe(export_name = "async:context-set-0")]
extern "C" fn context_set(word: u32) {
    tasks().context = word;
}

#[unsafe(export_name = "async:waitable-set-new")]
extern "C" fn waitable_set_new() -> u32 {
    tasks().new_set()
}

#[unsafe(export_name = "async:waitable-set-drop")]
extern "C" fn waitable_set_drop(set: u32) {
    tasks().drop_handle(set);
}

#[unsafe(export_name = "async:waitable-join")]
extern "C" fn waitable_join(number: u32, set: u32) {
    tasks().join(number, set);
}

#[unsafe(export_name = "async:waitable-set-wait")]
extern "C" fn waitable_set_wait(set: u32, into: u32) -> u32 {
    let event = tasks().wait(set);
    Tasks::put_event(event, into)
}

#[unsafe(export_name = "async:waitable-set-poll")]
extern "C" fn waitable_set_poll(set: u32, into: u32) -> u32 {
    let event = tasks().poll(set);
    Tasks::put_event(event, into)
}

#[unsafe(export_name = "async:subtask-drop")]
extern "C" fn subtask_drop(number: u32) {
    tasks().drop_handle(number);
}

#[unsafe(export_name = "async:subtask-cancel")]
extern "C" fn subtask_cancel(number: u32) -> u32 {
    tasks().cancel_subtask(number)
}

#[unsafe(export_name = "async:thread-yield")]
extern "C" fn thread_yield() -> u32 {
    clock::yield_now();
    0
}

/// A program has one task, and no further one is kept from beginning.
#[unsafe(export_name = "async:backpressure-inc")]
extern "C" fn backpressure_inc() {}

#[unsafe(export_name = "async:backpressure-dec")]
extern "C" fn backpressure_dec() {}

/// Nobody asks a task to be cancelled.
#[unsafe(export_name = "async:task-cancel")]
extern "C" fn task_cancel() {
    unreachable()
}

#[unsafe(export_name = "async:stream-new")]
extern "C" fn stream_new() -> u64 {
    tasks().new_channel(false, 1)
}

#[unsafe(export_name = "async:stream-new-unit")]
extern "C" fn stream_new_unit() -> u64 {
    tasks().new_channel(false, 0)
}

#[unsafe(export_name = "async:future-new")]
extern "C" fn future_new() -> u64 {
    tasks().new_channel(true, RESULT_BYTES)
}

#[unsafe(export_name = "async:stream-read")]
extern "C" fn stream_read(number: u32, start: u32, count: u32) -> u32 {
    tasks().read(number, start, count)
}

#[unsafe(export_name = "async:future-read")]
extern "C" fn future_read(number: u32, at: u32) -> u32 {
    tasks().read(number, at, 1)
}

#[unsafe(export_name = "async:stream-write")]
extern "C" fn stream_write(number: u32, start: u32, count: u32) -> u32 {
    tasks().write(number, start, count)
}

#[unsafe(export_name = "async:future-write")]
extern "C" fn future_write(number: u32, at: u32) -> u32 {
    tasks().write(number, at, 1)
}

#[unsafe(export_name = "async:stream-cancel-read")]
extern "C" fn stream_cancel_read(number: u32) -> u32 {
    tasks().cancel(number)
}

#[unsafe(export_name = "async:stream-cancel-write")]
extern "C" fn stream_cancel_write(number: u32) -> u32 {
    tasks().cancel(number)
}

#[unsafe(export_name = "async:stream-drop-readable")]
extern "C" fn stream_drop_readable(number: u32) {
    tasks().drop_reader(number);
}

#[unsafe(export_name = "async:stream-drop-writable")]
extern "C" fn stream_drop_writable(number: u32) {
    tasks().drop_writer(number);
}

#[unsafe(export_name = "async:future-cancel-read")]
extern "C" fn future_cancel_read(number: u32) -> u32 {
    tasks().cancel(number)
}

#[unsafe(export_name = "async:future-cancel-write")]
extern "C" fn future_cancel_write(number: u32) -> u32 {
    tasks().cancel(number)
}

#[unsafe(export_name = "async:future-drop-readable")]
extern "C" fn future_drop_readable(number: u32) {
    tasks().drop_reader(number);
}

#[unsafe(export_name = "async:future-drop-writable")]
extern "C" fn future_drop_writable(number: u32) {
    tasks().drop_writer(number);
}

#[unsafe(export_name = "wasi:cli/environment@0.3#get-arguments")]
extern "C" fn get_arguments(into: u32) {
    environment::arguments(into);
}

#[unsafe(export_name = "wasi:cli/environment@0.3#get-environment")]
extern "C" fn get_environment(into: u32) {
    environment::variables(into);
}

#[unsafe(export_name = "wasi:cli/environment@0.3#get-initial-cwd")]
extern "C" fn get_initial_cwd(into: u32) {
    put_byte(into, 0);
}

#[unsafe(export_name = "wasi:cli/exit@0.3#exit")]
extern "C" fn exit(status: u32) {
    process::exit(status);
}

#[unsafe(export_name = "wasi:cli/exit@0.3#exit-with-code")]
extern "C" fn exit_with_code(code: u32) {
    process::exit(code);
}

#[unsafe(export_name = "wasi:cli/stdin@0.3#read-via-stream")]
extern "C" fn stdin_read_via_stream(into: u32) {
    tasks().input(into);
}

#[unsafe(export_name = "wasi:cli/stdout@0.3#write-via-stream")]
extern "C" fn stdout_write_via_stream(stream: u32) -> u32 {
    tasks().give(stream, 1)
}

#[unsafe(export_name = "wasi:cli/stderr@0.3#write-via-stream")]
extern "C" fn stderr_write_via_stream(stream: u32) -> u32 {
    tasks().give(stream, 2)
}

#[unsafe(export_name = "wasi:cli/terminal-stdin@0.3#get-terminal-stdin")]
extern "C" fn get_terminal_stdin(into: u32) {
    put_terminal(0, into);
}

#[unsafe(export_name = "wasi:cli/terminal-stdout@0.3#get-terminal-stdout")]
extern "C" fn get_terminal_stdout(into: u32) {
    put_terminal(1, into);
}

#[unsafe(export_name = "wasi:cli/terminal-stderr@0.3#get-terminal-stderr")]
extern "C" fn get_terminal_stderr(into: u32) {
    put_terminal(2, into);
}

#[unsafe(export_name = "wasi:cli/terminal-input@0.3#[resource-drop]terminal-input")]
extern "C" fn drop_terminal_input(_terminal: u32) {}

#[unsafe(export_name = "wasi:cli/terminal-output@0.3#[resource-drop]terminal-output")]
extern "C" fn drop_terminal_output(_terminal: u32) {}

#[unsafe(export_name = "wasi:clocks/monotonic-clock@0.3#now")]
extern "C" fn monotonic_now() -> u64 {
    clock::since_boot()
}

#[unsafe(export_name = "wasi:clocks/monotonic-clock@0.3#get-resolution")]
extern "C" fn monotonic_resolution() -> u64 {
    clock::NANOSECONDS_PER_MICROSECOND
}

#[unsafe(export_name = "wasi:clocks/monotonic-clock@0.3#wait-until")]
extern "C" fn wait_until(when: u64) {
    clock::sleep(when.saturating_sub(clock::since_boot()));
}

#[unsafe(export_name = "wasi:clocks/monotonic-clock@0.3#wait-for")]
extern "C" fn wait_for(length: u64) {
    clock::sleep(length);
}

#[unsafe(export_name = "wasi:clocks/monotonic-clock@0.3#[async-lower]wait-until")]
extern "C" fn begin_wait_until(when: u64) -> u32 {
    tasks().until(when)
}

#[unsafe(export_name = "wasi:clocks/monotonic-clock@0.3#[async-lower]wait-for")]
extern "C" fn begin_wait_for(length: u64) -> u32 {
    tasks().until(clock::since_boot().saturating_add(length))
}

/// There is no error for a device that doesn't know the time: it is 1970 there.
#[unsafe(export_name = "wasi:clocks/system-clock@0.3#now")]
extern "C" fn system_now(into: u32) {
    clocks::put_time(into, clock::unix_time().unwrap_or(0));
}

#[unsafe(export_name = "wasi:clocks/system-clock@0.3#get-resolution")]
extern "C" fn system_resolution() -> u64 {
    clock::NANOSECONDS_PER_SECOND
}

#[unsafe(export_name = "wasi:random/random@0.3#get-random-bytes")]
extern "C" fn get_random_bytes(length: u64, into: u32) {
    clocks::random_bytes(length, into);
}

#[unsafe(export_name = "wasi:random/random@0.3#get-random-u64")]
extern "C" fn get_random_u64() -> u64 {
    clocks::random_long()
}

#[unsafe(export_name = "wasi:random/insecure@0.3#get-insecure-random-bytes")]
extern "C" fn get_insecure_random_bytes(length: u64, into: u32) {
    clocks::random_bytes(length, into);
}

#[unsafe(export_name = "wasi:random/insecure@0.3#get-insecure-random-u64")]
extern "C" fn get_insecure_random_u64() -> u64 {
    clocks::random_long()
}

#[unsafe(export_name = "wasi:random/insecure-seed@0.3#get-insecure-seed")]
extern "C" fn insecure_seed(into: u32) {
    put_long(into, clocks::random_long());
    put_long(behind(into, 8), clocks::random_long());
}
