//! The functions of WASI 0.2 by the names that `tenure build` looks for: `PACKAGE/INTERFACE@0.2#FUNCTION`, with the types that the
//! canonical ABI lowers them to. `into` is where a result goes that is no single number.
//!
//! As in preview 1, those whose names begin with `streams:` are for programs that have standard streams alone.

use super::lower::{
    behind, descriptor, error_code, handle, put_byte, put_long, put_terminal, settle,
};
use super::streams::Standard;
use super::{clocks, environment, filesystem, host_calls, pollables, streams};
use crate::clock;
use crate::descriptor::FLAG_APPEND;
use crate::errno::Errno;
use crate::files::Files;
use crate::process;
use filesystem::{NewTime, Path};

fn files() -> &'static mut Files {
    Files::current()
}

/// A program that is a component begins.
#[unsafe(export_name = "component:begin")]
extern "C" fn begin(cause: u32) {
    host_calls::begin();
    pollables::begin();
    process::begin(cause);
    files().begin();
}

#[unsafe(export_name = "streams:component:begin")]
extern "C" fn streams_begin(cause: u32) {
    host_calls::begin();
    pollables::begin();
    process::begin(cause);
}

/// A program's `run` has returned: `result`, whose second case is a failure.
#[unsafe(export_name = "component:returned")]
extern "C" fn returned(case: u32) {
    if case != 0 {
        process::exit(case);
    }
}

/// Room for a host call of the program's to fill.
#[unsafe(export_name = "component:room")]
extern "C" fn room(capacity: u32) -> u32 {
    host_calls::take(capacity)
}

#[unsafe(export_name = "component:filled")]
extern "C" fn filled(status: i32, capacity: u32, is_whole: u32, into: u32) {
    host_calls::put_filled(status, capacity, is_whole != 0, into);
}

#[unsafe(export_name = "component:status")]
extern "C" fn status(status: i32, into: u32) {
    host_calls::put_status(status, into);
}

#[unsafe(export_name = "wasi:cli/environment@0.2#get-arguments")]
extern "C" fn get_arguments(into: u32) {
    environment::arguments(into);
}

#[unsafe(export_name = "wasi:cli/environment@0.2#get-environment")]
extern "C" fn get_environment(into: u32) {
    environment::variables(into);
}

/// A program names its files from `/` on.
#[unsafe(export_name = "wasi:cli/environment@0.2#initial-cwd")]
extern "C" fn initial_cwd(into: u32) {
    put_byte(into, 0);
}

/// `result` has two cases, of which the second is a failure.
#[unsafe(export_name = "wasi:cli/exit@0.2#exit")]
extern "C" fn exit(status: u32) {
    process::exit(status);
}

#[unsafe(export_name = "wasi:cli/exit@0.2#exit-with-code")]
extern "C" fn exit_with_code(code: u32) {
    process::exit(code);
}

#[unsafe(export_name = "wasi:cli/stdin@0.2#get-stdin")]
extern "C" fn get_stdin() -> u32 {
    handle(0)
}

#[unsafe(export_name = "wasi:cli/stdout@0.2#get-stdout")]
extern "C" fn get_stdout() -> u32 {
    handle(1)
}

#[unsafe(export_name = "wasi:cli/stderr@0.2#get-stderr")]
extern "C" fn get_stderr() -> u32 {
    handle(2)
}

#[unsafe(export_name = "wasi:cli/terminal-stdin@0.2#get-terminal-stdin")]
extern "C" fn get_terminal_stdin(into: u32) {
    put_terminal(0, into);
}

#[unsafe(export_name = "wasi:cli/terminal-stdout@0.2#get-terminal-stdout")]
extern "C" fn get_terminal_stdout(into: u32) {
    put_terminal(1, into);
}

#[unsafe(export_name = "wasi:cli/terminal-stderr@0.2#get-terminal-stderr")]
extern "C" fn get_terminal_stderr(into: u32) {
    put_terminal(2, into);
}

#[unsafe(export_name = "wasi:cli/terminal-input@0.2#[resource-drop]terminal-input")]
extern "C" fn drop_terminal_input(_terminal: u32) {}

#[unsafe(export_name = "wasi:cli/terminal-output@0.2#[resource-drop]terminal-output")]
extern "C" fn drop_terminal_output(_terminal: u32) {}

#[unsafe(export_name = "wasi:clocks/monotonic-clock@0.2#now")]
extern "C" fn monotonic_now() -> u64 {
    clock::since_boot()
}

#[unsafe(export_name = "wasi:clocks/monotonic-clock@0.2#resolution")]
extern "C" fn monotonic_resolution() -> u64 {
    clock::NANOSECONDS_PER_MICROSECOND
}

#[unsafe(export_name = "wasi:clocks/monotonic-clock@0.2#subscribe-instant")]
extern "C" fn subscribe_instant(when: u64) -> u32 {
    pollables::at(when)
}

#[unsafe(export_name = "wasi:clocks/monotonic-clock@0.2#subscribe-duration")]
extern "C" fn subscribe_duration(length: u64) -> u32 {
    pollables::after(length)
}

/// There is no error for a device that doesn't know the time: it is 1970 there.
#[unsafe(export_name = "wasi:clocks/wall-clock@0.2#now")]
extern "C" fn wall_now(into: u32) {
    clocks::put_time(into, clock::unix_time().unwrap_or(0));
}

#[unsafe(export_name = "wasi:clocks/wall-clock@0.2#resolution")]
extern "C" fn wall_resolution(into: u32) {
    clocks::put_time(into, clock::NANOSECONDS_PER_SECOND);
}

#[unsafe(export_name = "wasi:random/random@0.2#get-random-bytes")]
extern "C" fn get_random_bytes(length: u64, into: u32) {
    clocks::random_bytes(length, into);
}

#[unsafe(export_name = "wasi:random/random@0.2#get-random-u64")]
extern "C" fn get_random_u64() -> u64 {
    clocks::random_long()
}

#[unsafe(export_name = "wasi:random/insecure@0.2#get-insecure-random-bytes")]
extern "C" fn get_insecure_random_bytes(length: u64, into: u32) {
    clocks::random_bytes(length, into);
}

#[unsafe(export_name = "wasi:random/insecure@0.2#get-insecure-random-u64")]
extern "C" fn get_insecure_random_u64() -> u64 {
    clocks::random_long()
}

#[unsafe(export_name = "wasi:random/insecure-seed@0.2#insecure-seed")]
extern "C" fn insecure_seed(into: u32) {
    put_long(into, clocks::random_long());
    put_long(behind(into, 8), clocks::random_long());
}

#[unsafe(export_name = "wasi:io/error@0.2#[method]error.to-debug-string")]
extern "C" fn error_to_debug_string(error: u32, into: u32) {
    streams::describe(streams::error_of(error), into);
}

#[unsafe(export_name = "wasi:io/error@0.2#[resource-drop]error")]
extern "C" fn drop_error(_error: u32) {}

#[unsafe(export_name = "wasi:io/poll@0.2#[method]pollable.ready")]
extern "C" fn pollable_ready(pollable: u32) -> u32 {
    pollables::is_ready(pollable).into()
}

#[unsafe(export_name = "wasi:io/poll@0.2#[method]pollable.block")]
extern "C" fn pollable_block(pollable: u32) {
    pollables::block(pollable);
}

#[unsafe(export_name = "wasi:io/poll@0.2#poll")]
extern "C" fn poll(list: u32, count: u32, into: u32) {
    pollables::poll(list, count, into);
}

#[unsafe(export_name = "wasi:io/poll@0.2#[resource-drop]pollable")]
extern "C" fn drop_pollable(pollable: u32) {
    pollables::drop(pollable);
}

#[unsafe(export_name = "wasi:io/streams@0.2#[method]input-stream.read")]
extern "C" fn input_read(stream: u32, length: u64, into: u32) {
    streams::read(files(), stream, length, into);
}

#[unsafe(export_name = "streams:wasi:io/streams@0.2#[method]input-stream.read")]
extern "C" fn streams_input_read(stream: u32, length: u64, into: u32) {
    streams::read(&mut Standard, stream, length, into);
}

#[unsafe(export_name = "wasi:io/streams@0.2#[method]input-stream.blocking-read")]
extern "C" fn input_blocking_read(stream: u32, length: u64, into: u32) {
    streams::read(files(), stream, length, into);
}

#[unsafe(export_name = "streams:wasi:io/streams@0.2#[method]input-stream.blocking-read")]
extern "C" fn streams_input_blocking_read(stream: u32, length: u64, into: u32) {
    streams::read(&mut Standard, stream, length, into);
}

#[unsafe(export_name = "wasi:io/streams@0.2#[method]input-stream.skip")]
extern "C" fn input_skip(stream: u32, length: u64, into: u32) {
    streams::skip(files(), stream, length, into);
}

#[unsafe(export_name = "streams:wasi:io/streams@0.2#[method]input-stream.skip")]
extern "C" fn streams_input_skip(stream: u32, length: u64, into: u32) {
    streams::skip(&mut Standard, stream, length, into);
}

#[unsafe(export_name = "wasi:io/streams@0.2#[method]input-stream.blocking-skip")]
extern "C" fn input_blocking_skip(stream: u32, length: u64, into: u32) {
    streams::skip(files(), stream, length, into);
}

#[unsafe(export_name = "streams:wasi:io/streams@0.2#[method]input-stream.blocking-skip")]
extern "C" fn streams_input_blocking_skip(stream: u32, length: u64, into: u32) {
    streams::skip(&mut Standard, stream, length, into);
}

#[unsafe(export_name = "wasi:io/streams@0.2#[method]input-stream.subscribe")]
extern "C" fn input_subscribe(_stream: u32) -> u32 {
    pollables::READY
}

#[unsafe(export_name = "wasi:io/streams@0.2#[method]output-stream.check-write")]
extern "C" fn output_check_write(stream: u32, into: u32) {
    streams::check(files(), stream, into);
}

#[unsafe(export_name = "streams:wasi:io/streams@0.2#[method]output-stream.check-write")]
extern "C" fn streams_output_check_write(stream: u32, into: u32) {
    streams::check(&mut Standard, stream, into);
}

#[unsafe(export_name = "wasi:io/streams@0.2#[method]output-stream.write")]
extern "C" fn output_write(stream: u32, start: u32, length: u32, into: u32) {
    streams::write(files(), stream, start, length, into);
}

#[unsafe(export_name = "streams:wasi:io/streams@0.2#[method]output-stream.write")]
extern "C" fn streams_output_write(stream: u32, start: u32, length: u32, into: u32) {
    streams::write(&mut Standard, stream, start, length, into);
}

#[unsafe(export_name = "wasi:io/streams@0.2#[method]output-stream.blocking-write-and-flush")]
extern "C" fn output_blocking_write_and_flush(stream: u32, start: u32, length: u32, into: u32) {
    streams::write(files(), stream, start, length, into);
}

#[unsafe(export_name = "streams:wasi:io/streams@0.2#[method]output-stream.blocking-write-and-flush")]
extern "C" fn streams_output_blocking_write_and_flush(
    stream: u32,
    start: u32,
    length: u32,
    into: u32,
) {
    streams::write(&mut Standard, stream, start, length, into);
}

#[unsafe(export_name = "wasi:io/streams@0.2#[method]output-stream.flush")]
extern "C" fn output_flush(stream: u32, into: u32) {
    streams::flush(files(), stream, into);
}

#[unsafe(export_name = "streams:wasi:io/streams@0.2#[method]output-stream.flush")]
extern "C" fn streams_output_flush(stream: u32, into: u32) {
    streams::flush(&mut Standard, stream, into);
}

#[unsafe(export_name = "wasi:io/streams@0.2#[method]output-stream.blocking-flush")]
extern "C" fn output_blocking_flush(stream: u32, into: u32) {
    streams::flush(files(), stream, into);
}

#[unsafe(export_name = "streams:wasi:io/streams@0.2#[method]output-stream.blocking-flush")]
extern "C" fn streams_output_blocking_flush(stream: u32, into: u32) {
    streams::flush(&mut Standard, stream, into);
}

#[unsafe(export_name = "wasi:io/streams@0.2#[method]output-stream.subscribe")]
extern "C" fn output_subscribe(_stream: u32) -> u32 {
    pollables::READY
}

#[unsafe(export_name = "wasi:io/streams@0.2#[method]output-stream.write-zeroes")]
extern "C" fn output_write_zeroes(stream: u32, length: u64, into: u32) {
    streams::write_zeroes(files(), stream, length, into);
}

#[unsafe(export_name = "streams:wasi:io/streams@0.2#[method]output-stream.write-zeroes")]
extern "C" fn streams_output_write_zeroes(stream: u32, length: u64, into: u32) {
    streams::write_zeroes(&mut Standard, stream, length, into);
}

#[unsafe(export_name = "wasi:io/streams@0.2#[method]output-stream.blocking-write-zeroes-and-flush")]
extern "C" fn output_blocking_write_zeroes_and_flush(stream: u32, length: u64, into: u32) {
    streams::write_zeroes(files(), stream, length, into);
}

#[unsafe(export_name = "streams:wasi:io/streams@0.2#[method]output-stream.blocking-write-zeroes-and-flush")]
extern "C" fn streams_output_blocking_write_zeroes_and_flush(stream: u32, length: u64, into: u32) {
    streams::write_zeroes(&mut Standard, stream, length, into);
}

#[unsafe(export_name = "wasi:io/streams@0.2#[method]output-stream.splice")]
extern "C" fn output_splice(stream: u32, from: u32, length: u64, into: u32) {
    streams::splice(files(), stream, from, length, into);
}

#[unsafe(export_name = "streams:wasi:io/streams@0.2#[method]output-stream.splice")]
extern "C" fn streams_output_splice(stream: u32, from: u32, length: u64, into: u32) {
    streams::splice(&mut Standard, stream, from, length, into);
}

#[unsafe(export_name = "wasi:io/streams@0.2#[method]output-stream.blocking-splice")]
extern "C" fn output_blocking_splice(stream: u32, from: u32, length: u64, into: u32) {
    streams::splice(files(), stream, from, length, into);
}

#[unsafe(export_name = "streams:wasi:io/streams@0.2#[method]output-stream.blocking-splice")]
extern "C" fn streams_output_blocking_splice(stream: u32, from: u32, length: u64, into: u32) {
    streams::splice(&mut Standard, stream, from, length, into);
}

/// A descriptor goes, with what was written by it counting from then on. That it couldn't be kept is said nowhere but in the log:
/// to drop something doesn't fail.
fn drop_descriptor(of: u32) {
    if files().close(descriptor(of)).is_err() {
        crate::stdio::complain(b"a file could not be kept when its descriptor was dropped");
    }
}

#[unsafe(export_name = "wasi:io/streams@0.2#[resource-drop]input-stream")]
extern "C" fn drop_input_stream(stream: u32) {
    drop_stream(stream);
}

#[unsafe(export_name = "streams:wasi:io/streams@0.2#[resource-drop]input-stream")]
extern "C" fn streams_drop_input_stream(_stream: u32) {}

#[unsafe(export_name = "wasi:io/streams@0.2#[resource-drop]output-stream")]
extern "C" fn drop_output_stream(stream: u32) {
    drop_stream(stream);
}

#[unsafe(export_name = "streams:wasi:io/streams@0.2#[resource-drop]output-stream")]
extern "C" fn streams_drop_output_stream(_stream: u32) {}

/// Standard streams stay: a program may ask for them again.
fn drop_stream(stream: u32) {
    const FIRST_FILE: u32 = 3;
    if descriptor(stream) >= FIRST_FILE {
        drop_descriptor(stream);
    }
}

#[unsafe(export_name = "wasi:filesystem/types@0.2#[method]descriptor.read-via-stream")]
extern "C" fn read_via_stream(of: u32, offset: u64, into: u32) {
    filesystem::stream(files(), of, offset, 0, into);
}

#[unsafe(export_name = "wasi:filesystem/types@0.2#[method]descriptor.write-via-stream")]
extern "C" fn write_via_stream(of: u32, offset: u64, into: u32) {
    filesystem::stream(files(), of, offset, 0, into);
}

#[unsafe(export_name = "wasi:filesystem/types@0.2#[method]descriptor.append-via-stream")]
extern "C" fn append_via_stream(of: u32, into: u32) {
    filesystem::stream(files(), of, 0, FLAG_APPEND, into);
}

#[unsafe(export_name = "wasi:filesystem/types@0.2#[method]descriptor.advise")]
extern "C" fn advise(of: u32, _offset: u64, _length: u64, _advice: u32, into: u32) {
    settle(into, 1, files().file_of(descriptor(of)).map(drop));
}

#[unsafe(export_name = "wasi:filesystem/types@0.2#[method]descriptor.sync-data")]
extern "C" fn sync_data(of: u32, into: u32) {
    settle(into, 1, files().sync(descriptor(of)));
}

#[unsafe(export_name = "wasi:filesystem/types@0.2#[method]descriptor.sync")]
extern "C" fn sync(of: u32, into: u32) {
    settle(into, 1, files().sync(descriptor(of)));
}

#[unsafe(export_name = "wasi:filesystem/types@0.2#[method]descriptor.get-flags")]
extern "C" fn get_flags(of: u32, into: u32) {
    filesystem::flags(files(), of, into);
}

#[unsafe(export_name = "wasi:filesystem/types@0.2#[method]descriptor.get-type")]
extern "C" fn get_type(of: u32, into: u32) {
    filesystem::kind(files(), of, into);
}

#[unsafe(export_name = "wasi:filesystem/types@0.2#[method]descriptor.set-size")]
extern "C" fn set_size(of: u32, size: u64, into: u32) {
    settle(into, 1, files().resize(descriptor(of), size));
}

#[unsafe(export_name = "wasi:filesystem/types@0.2#[method]descriptor.set-times")]
extern "C" fn set_times(
    of: u32,
    accessed_case: u32,
    accessed_seconds: u64,
    accessed_nanoseconds: u32,
    modified_case: u32,
    modified_seconds: u64,
    modified_nanoseconds: u32,
    into: u32,
) {
    let accessed = NewTime {
        case: accessed_case,
        seconds: accessed_seconds,
        nanoseconds: accessed_nanoseconds,
    };
    let modified = NewTime {
        case: modified_case,
        seconds: modified_seconds,
        nanoseconds: modified_nanoseconds,
    };
    let times = filesystem::times(accessed, modified);
    settle(into, 1, files().set_times_open(descriptor(of), times));
}

#[unsafe(export_name = "wasi:filesystem/types@0.2#[method]descriptor.read")]
extern "C" fn read(of: u32, length: u64, offset: u64, into: u32) {
    filesystem::read(files(), of, length, offset, into);
}

#[unsafe(export_name = "wasi:filesystem/types@0.2#[method]descriptor.write")]
extern "C" fn write(of: u32, start: u32, length: u32, offset: u64, into: u32) {
    filesystem::write(files(), of, Path { start, length }, offset, into);
}

#[unsafe(export_name = "wasi:filesystem/types@0.2#[method]descriptor.read-directory")]
extern "C" fn read_directory(of: u32, into: u32) {
    filesystem::read_directory(files(), of, into);
}

#[unsafe(export_name = "wasi:filesystem/types@0.2#[method]descriptor.create-directory-at")]
extern "C" fn create_directory_at(of: u32, start: u32, length: u32, into: u32) {
    settle(into, 1, files().make_folder_at(descriptor(of), start, length));
}

#[unsafe(export_name = "wasi:filesystem/types@0.2#[method]descriptor.stat")]
extern "C" fn stat(of: u32, into: u32) {
    filesystem::stat(files().state_open(descriptor(of)), into);
}

#[unsafe(export_name = "wasi:filesystem/types@0.2#[method]descriptor.stat-at")]
extern "C" fn stat_at(of: u32, lookup: u32, start: u32, length: u32, into: u32) {
    filesystem::stat(files().state_at(descriptor(of), lookup, start, length), into);
}

#[unsafe(export_name = "wasi:filesystem/types@0.2#[method]descriptor.set-times-at")]
extern "C" fn set_times_at(
    of: u32,
    lookup: u32,
    start: u32,
    length: u32,
    accessed_case: u32,
    accessed_seconds: u64,
    accessed_nanoseconds: u32,
    modified_case: u32,
    modified_seconds: u64,
    modified_nanoseconds: u32,
    into: u32,
) {
    let accessed = NewTime {
        case: accessed_case,
        seconds: accessed_seconds,
        nanoseconds: accessed_nanoseconds,
    };
    let modified = NewTime {
        case: modified_case,
        seconds: modified_seconds,
        nanoseconds: modified_nanoseconds,
    };
    let times = filesystem::times(accessed, modified);
    let set = files().set_times_path(descriptor(of), lookup, start, length, times);
    settle(into, 1, set);
}

/// A value in a tree has one place.
#[unsafe(export_name = "wasi:filesystem/types@0.2#[method]descriptor.link-at")]
extern "C" fn link_at(
    _of: u32,
    _lookup: u32,
    _start: u32,
    _length: u32,
    _to: u32,
    _new: u32,
    _new_length: u32,
    into: u32,
) {
    settle(into, 1, Err(Errno::NOTSUP));
}

#[unsafe(export_name = "wasi:filesystem/types@0.2#[method]descriptor.open-at")]
extern "C" fn open_at(
    of: u32,
    lookup: u32,
    start: u32,
    length: u32,
    open: u32,
    flags: u32,
    into: u32,
) {
    filesystem::open(files(), of, lookup, Path { start, length }, open, flags, into);
}

#[unsafe(export_name = "wasi:filesystem/types@0.2#[method]descriptor.readlink-at")]
extern "C" fn readlink_at(of: u32, start: u32, length: u32, into: u32) {
    filesystem::read_link(files(), of, Path { start, length }, into);
}

#[unsafe(export_name = "wasi:filesystem/types@0.2#[method]descriptor.remove-directory-at")]
extern "C" fn remove_directory_at(of: u32, start: u32, length: u32, into: u32) {
    settle(into, 1, files().remove_folder(descriptor(of), start, length));
}

#[unsafe(export_name = "wasi:filesystem/types@0.2#[method]descriptor.unlink-file-at")]
extern "C" fn unlink_file_at(of: u32, start: u32, length: u32, into: u32) {
    settle(into, 1, files().remove_file(descriptor(of), start, length));
}

#[unsafe(export_name = "wasi:filesystem/types@0.2#[method]descriptor.rename-at")]
extern "C" fn rename_at(
    of: u32,
    start: u32,
    length: u32,
    to: u32,
    new: u32,
    new_length: u32,
    into: u32,
) {
    let (from, to) = ((descriptor(of), start, length), (descriptor(to), new, new_length));
    settle(into, 1, files().rename(from, to));
}

#[unsafe(export_name = "wasi:filesystem/types@0.2#[method]descriptor.symlink-at")]
extern "C" fn symlink_at(of: u32, text: u32, text_length: u32, start: u32, length: u32, into: u32) {
    let made = files().make_link_at(text, text_length, descriptor(of), start, length);
    settle(into, 1, made);
}

#[unsafe(export_name = "wasi:filesystem/types@0.2#[method]descriptor.is-same-object")]
extern "C" fn is_same_object(one: u32, other: u32) -> u32 {
    filesystem::is_same(files(), one, other).into()
}

#[unsafe(export_name = "wasi:filesystem/types@0.2#[method]descriptor.metadata-hash")]
extern "C" fn metadata_hash(of: u32, into: u32) {
    filesystem::hash(files().state_open(descriptor(of)), into);
}

#[unsafe(export_name = "wasi:filesystem/types@0.2#[method]descriptor.metadata-hash-at")]
extern "C" fn metadata_hash_at(of: u32, lookup: u32, start: u32, length: u32, into: u32) {
    filesystem::hash(files().state_at(descriptor(of), lookup, start, length), into);
}

#[unsafe(export_name = "wasi:filesystem/types@0.2#[resource-drop]descriptor")]
extern "C" fn drop_descriptor_resource(of: u32) {
    drop_descriptor(of);
}

#[unsafe(export_name = "wasi:filesystem/types@0.2#[method]directory-entry-stream.read-directory-entry")]
extern "C" fn read_directory_entry(stream: u32, into: u32) {
    filesystem::next_entry(files(), stream, into);
}

#[unsafe(export_name = "wasi:filesystem/types@0.2#[resource-drop]directory-entry-stream")]
extern "C" fn drop_directory_entry_stream(stream: u32) {
    drop_descriptor(stream);
}

#[unsafe(export_name = "wasi:filesystem/types@0.2#filesystem-error-code")]
extern "C" fn filesystem_error_code(error: u32, into: u32) {
    put_byte(into, 1);
    put_byte(behind(into, 1), error_code(streams::error_of(error)));
}

#[unsafe(export_name = "wasi:filesystem/preopens@0.2#get-directories")]
extern "C" fn get_directories(into: u32) {
    filesystem::folders(files(), into);
}
