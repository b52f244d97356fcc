//! The functions of `wasi_snapshot_preview1`, with the types that it gives them, and those that `tenure build` calls when a
//! program begins and ends.
//!
//! A program that opens no paths has standard streams alone. It is linked with those whose names begin with `streams:`, where
//! there is one, and needs neither room nor code for files.

use crate::clock;
use crate::descriptor::stream_state;
use crate::errno::{Errno, number};
use crate::files::Files;
use crate::open::Manner;
use crate::poll;
use crate::process;
use crate::stat::{Times, stat_stream};
use crate::stdio;
use crate::user::{each_range, put, put_word};

const INPUT: u32 = 0;
const ERROR: u32 = 2;

/// Writes a number of four bytes that came out well.
fn counted(result: Result<u32, Errno>, into: u32) -> u32 {
    number(result.and_then(|count| put_word(into, count)))
}

/// Writes a number of eight bytes that came out well.
fn placed(result: Result<u64, Errno>, into: u32) -> u32 {
    number(result.and_then(|place| put(into, place.to_le_bytes())))
}

fn files() -> &'static mut Files {
    Files::current()
}

/// A program begins: 0 as its machine starts, 1 for a call, 2 as a library.
#[unsafe(export_name = "begin")]
extern "C" fn begin(cause: u32) {
    process::begin(cause);
    files().begin();
}

#[unsafe(export_name = "streams:begin")]
extern "C" fn streams_begin(cause: u32) {
    process::begin(cause);
}

/// A program has ended.
#[unsafe(export_name = "end")]
extern "C" fn end() {
    let failed = files().nodes.keep_all();
    if let Some(node) = failed {
        process::complain_of_file(files(), node);
    }
    process::end(failed.is_none());
}

#[unsafe(export_name = "streams:end")]
extern "C" fn streams_end() {
    process::end(true);
}

#[unsafe(no_mangle)]
extern "C" fn args_get(places: u32, bytes: u32) -> u32 {
    number(process::arguments(places, bytes))
}

#[unsafe(no_mangle)]
extern "C" fn args_sizes_get(count: u32, bytes: u32) -> u32 {
    number(process::argument_sizes(count, bytes))
}

#[unsafe(no_mangle)]
extern "C" fn environ_get(places: u32, bytes: u32) -> u32 {
    number(process::variables(places, bytes))
}

#[unsafe(no_mangle)]
extern "C" fn environ_sizes_get(count: u32, bytes: u32) -> u32 {
    number(process::variable_sizes(count, bytes))
}

#[unsafe(no_mangle)]
extern "C" fn clock_res_get(id: u32, into: u32) -> u32 {
    number(clock::resolution(id, into))
}

#[unsafe(no_mangle)]
extern "C" fn clock_time_get(id: u32, _precision: u64, into: u32) -> u32 {
    number(clock::time(id, into))
}

#[unsafe(no_mangle)]
extern "C" fn random_get(into: u32, length: u32) -> u32 {
    number(clock::random(into, length))
}

#[unsafe(no_mangle)]
extern "C" fn sched_yield() -> u32 {
    clock::yield_now();
    0
}

#[unsafe(no_mangle)]
extern "C" fn proc_exit(code: u32) {
    process::exit(code);
}

#[unsafe(no_mangle)]
extern "C" fn proc_raise(_signal: u32) -> u32 {
    number(Err(Errno::NOTSUP))
}

#[unsafe(no_mangle)]
extern "C" fn poll_oneoff(subscriptions: u32, events: u32, count: u32, happened: u32) -> u32 {
    let files = files();
    number(poll::wait(subscriptions, events, count, happened, |fd| files.is_open(fd)))
}

#[unsafe(export_name = "streams:poll_oneoff")]
extern "C" fn streams_poll_oneoff(
    subscriptions: u32,
    events: u32,
    count: u32,
    happened: u32,
) -> u32 {
    number(poll::wait(subscriptions, events, count, happened, |fd| fd <= ERROR))
}

#[unsafe(no_mangle)]
extern "C" fn fd_advise(fd: u32, _offset: u64, _length: u64, advice: u32) -> u32 {
    const ADVICES: u32 = 6;
    let result = if advice < ADVICES { Ok(()) } else { Err(Errno::INVAL) };
    number(result.and_then(|()| files().file_of(fd).map(drop)))
}

/// No room can be had beforehand.
#[unsafe(no_mangle)]
extern "C" fn fd_allocate(fd: u32, _offset: u64, _length: u64) -> u32 {
    number(files().file_of(fd).and(Err(Errno::NOTSUP)))
}

#[unsafe(no_mangle)]
extern "C" fn fd_close(fd: u32) -> u32 {
    number(files().close(fd))
}

#[unsafe(export_name = "streams:fd_close")]
extern "C" fn streams_fd_close(fd: u32) -> u32 {
    number(stream(fd))
}

#[unsafe(no_mangle)]
extern "C" fn fd_datasync(fd: u32) -> u32 {
    number(files().sync(fd))
}

#[unsafe(no_mangle)]
extern "C" fn fd_sync(fd: u32) -> u32 {
    number(files().sync(fd))
}

#[unsafe(no_mangle)]
extern "C" fn fd_fdstat_get(fd: u32, into: u32) -> u32 {
    number(files().state(fd, into))
}

#[unsafe(export_name = "streams:fd_fdstat_get")]
extern "C" fn streams_fd_fdstat_get(fd: u32, into: u32) -> u32 {
    number(stream(fd).and_then(|()| stream_state(into)))
}

#[unsafe(no_mangle)]
extern "C" fn fd_fdstat_set_flags(fd: u32, flags: u32) -> u32 {
    number(files().set_flags(fd, flags))
}

#[unsafe(export_name = "streams:fd_fdstat_set_flags")]
extern "C" fn streams_fd_fdstat_set_flags(fd: u32, _flags: u32) -> u32 {
    number(stream(fd))
}

/// Rights follow from how something was opened, and aren't taken back.
#[unsafe(no_mangle)]
extern "C" fn fd_fdstat_set_rights(fd: u32, _base: u64, _inheriting: u64) -> u32 {
    number(files().descriptor(fd).map(drop).and(Err(Errno::NOTSUP)))
}

#[unsafe(no_mangle)]
extern "C" fn fd_filestat_get(fd: u32, into: u32) -> u32 {
    number(files().stat_open(fd, into))
}

#[unsafe(export_name = "streams:fd_filestat_get")]
extern "C" fn streams_fd_filestat_get(fd: u32, into: u32) -> u32 {
    number(stream(fd).and_then(|()| stat_stream(fd, into)))
}

#[unsafe(no_mangle)]
extern "C" fn fd_filestat_set_size(fd: u32, size: u64) -> u32 {
    number(files().resize(fd, size))
}

#[unsafe(no_mangle)]
extern "C" fn fd_filestat_set_times(fd: u32, accessed: u64, modified: u64, flags: u32) -> u32 {
    number(files().set_times_open(fd, Times { accessed, modified, flags }))
}

#[unsafe(no_mangle)]
extern "C" fn fd_pread(fd: u32, parts: u32, count: u32, offset: u64, read: u32) -> u32 {
    counted(files().read(fd, parts, count, offset), read)
}

#[unsafe(no_mangle)]
extern "C" fn fd_pwrite(fd: u32, parts: u32, count: u32, offset: u64, written: u32) -> u32 {
    counted(files().write(fd, parts, count, offset), written)
}

#[unsafe(no_mangle)]
extern "C" fn fd_read(fd: u32, parts: u32, count: u32, read: u32) -> u32 {
    counted(files().read_next(fd, parts, count), read)
}

#[unsafe(export_name = "streams:fd_read")]
extern "C" fn streams_fd_read(fd: u32, parts: u32, count: u32, read: u32) -> u32 {
    let is_input = if fd == INPUT { Ok(()) } else { Err(Errno::BADF) };
    counted(is_input.and_then(|()| each_range(parts, count, stdio::read)), read)
}

#[unsafe(no_mangle)]
extern "C" fn fd_write(fd: u32, parts: u32, count: u32, written: u32) -> u32 {
    counted(files().write_next(fd, parts, count), written)
}

#[unsafe(export_name = "streams:fd_write")]
extern "C" fn streams_fd_write(fd: u32, parts: u32, count: u32, written: u32) -> u32 {
    let is_output = if fd == INPUT { Err(Errno::BADF) } else { stream(fd) };
    let write = |range| stdio::write(range, fd == ERROR);
    counted(is_output.and_then(|()| each_range(parts, count, write)), written)
}

#[unsafe(no_mangle)]
extern "C" fn fd_prestat_get(fd: u32, into: u32) -> u32 {
    number(files().given(fd, into))
}

#[unsafe(export_name = "streams:fd_prestat_get")]
extern "C" fn streams_fd_prestat_get(_fd: u32, _into: u32) -> u32 {
    number(Err(Errno::BADF))
}

#[unsafe(no_mangle)]
extern "C" fn fd_prestat_dir_name(fd: u32, into: u32, room: u32) -> u32 {
    number(files().write_given_name(fd, into, room))
}

#[unsafe(export_name = "streams:fd_prestat_dir_name")]
extern "C" fn streams_fd_prestat_dir_name(_fd: u32, _into: u32, _room: u32) -> u32 {
    number(Err(Errno::BADF))
}

#[unsafe(no_mangle)]
extern "C" fn fd_readdir(fd: u32, into: u32, room: u32, cookie: u64, used: u32) -> u32 {
    counted(files().read_names(fd, into, room, cookie), used)
}

#[unsafe(no_mangle)]
extern "C" fn fd_renumber(from: u32, to: u32) -> u32 {
    number(files().renumber(from, to))
}

#[unsafe(no_mangle)]
extern "C" fn fd_seek(fd: u32, by: i64, from: u32, place: u32) -> u32 {
    placed(files().seek(fd, by, from), place)
}

#[unsafe(export_name = "streams:fd_seek")]
extern "C" fn streams_fd_seek(fd: u32, _by: i64, _from: u32, _place: u32) -> u32 {
    number(stream(fd).and(Err(Errno::SPIPE)))
}

#[unsafe(no_mangle)]
extern "C" fn fd_tell(fd: u32, place: u32) -> u32 {
    placed(files().tell(fd), place)
}

#[unsafe(export_name = "streams:fd_tell")]
extern "C" fn streams_fd_tell(fd: u32, _place: u32) -> u32 {
    number(stream(fd).and(Err(Errno::SPIPE)))
}

#[unsafe(no_mangle)]
extern "C" fn path_create_directory(fd: u32, path: u32, length: u32) -> u32 {
    number(files().make_folder_at(fd, path, length))
}

#[unsafe(no_mangle)]
extern "C" fn path_filestat_get(fd: u32, lookup: u32, path: u32, length: u32, into: u32) -> u32 {
    number(files().stat_path(fd, lookup, path, length, into))
}

#[unsafe(no_mangle)]
extern "C" fn path_filestat_set_times(
    fd: u32,
    lookup: u32,
    path: u32,
    length: u32,
    accessed: u64,
    modified: u64,
    flags: u32,
) -> u32 {
    let times = Times { accessed, modified, flags };
    number(files().set_times_path(fd, lookup, path, length, times))
}

/// A value in a tree has one place.
#[unsafe(no_mangle)]
extern "C" fn path_link(
    _from: u32,
    _lookup: u32,
    _old: u32,
    _old_length: u32,
    _to: u32,
    _new: u32,
    _new_length: u32,
) -> u32 {
    number(Err(Errno::NOTSUP))
}

#[unsafe(no_mangle)]
extern "C" fn path_open(
    fd: u32,
    lookup: u32,
    path: u32,
    length: u32,
    open: u32,
    rights: u64,
    _inheriting: u64,
    flags: u32,
    opened: u32,
) -> u32 {
    let manner = Manner { lookup, open, rights, flags };
    counted(files().open(fd, path, length, manner), opened)
}

#[unsafe(no_mangle)]
extern "C" fn path_readlink(
    fd: u32,
    path: u32,
    length: u32,
    into: u32,
    room: u32,
    used: u32,
) -> u32 {
    number(files().read_link_at(fd, path, length, into, room, used))
}

#[unsafe(no_mangle)]
extern "C" fn path_remove_directory(fd: u32, path: u32, length: u32) -> u32 {
    number(files().remove_folder(fd, path, length))
}

#[unsafe(no_mangle)]
extern "C" fn path_rename(
    from: u32,
    old: u32,
    old_length: u32,
    to: u32,
    new: u32,
    new_length: u32,
) -> u32 {
    number(files().rename((from, old, old_length), (to, new, new_length)))
}

#[unsafe(no_mangle)]
extern "C" fn path_symlink(text: u32, text_length: u32, fd: u32, path: u32, length: u32) -> u32 {
    number(files().make_link_at(text, text_length, fd, path, length))
}

#[unsafe(no_mangle)]
extern "C" fn path_unlink_file(fd: u32, path: u32, length: u32) -> u32 {
    number(files().remove_file(fd, path, length))
}

#[unsafe(no_mangle)]
extern "C" fn sock_accept(fd: u32, _flags: u32, _accepted: u32) -> u32 {
    number(no_socket(fd))
}

#[unsafe(no_mangle)]
extern "C" fn sock_recv(
    fd: u32,
    _parts: u32,
    _count: u32,
    _flags: u32,
    _received: u32,
    _flags_out: u32,
) -> u32 {
    number(no_socket(fd))
}

#[unsafe(no_mangle)]
extern "C" fn sock_send(fd: u32, _parts: u32, _count: u32, _flags: u32, _sent: u32) -> u32 {
    number(no_socket(fd))
}

#[unsafe(no_mangle)]
extern "C" fn sock_shutdown(fd: u32, _how: u32) -> u32 {
    number(no_socket(fd))
}

#[unsafe(export_name = "streams:sock_accept")]
extern "C" fn streams_sock_accept(fd: u32, _flags: u32, _accepted: u32) -> u32 {
    number(stream(fd).and(Err(Errno::NOTSOCK)))
}

#[unsafe(export_name = "streams:sock_shutdown")]
extern "C" fn streams_sock_shutdown(fd: u32, _how: u32) -> u32 {
    number(stream(fd).and(Err(Errno::NOTSOCK)))
}

/// No descriptor is a socket.
fn no_socket(fd: u32) -> Result<(), Errno> {
    files().descriptor(fd).map(drop).and(Err(Errno::NOTSOCK))
}

/// Whether that is a standard stream, where there are no others.
fn stream(fd: u32) -> Result<(), Errno> {
    if fd <= ERROR { Ok(()) } else { Err(Errno::BADF) }
}
