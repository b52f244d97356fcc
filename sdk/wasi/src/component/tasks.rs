//! Asynchronous calls of the component model, as WASI 0.3 has them: streams, futures, subtasks, and sets of them that a program
//! waits for. A program has one task, and whatever the device does for it is done within the call, but for clocks.
//!
//! Numbers and events are those of the canonical ABI ("Canonical ABI", `EventCode`, `CopyResult`, `Subtask.State`). What it
//! has trap traps.

use core::arch::wasm32::unreachable;

use super::lower::{behind, must, put_byte, put_word};
use crate::clock;
use crate::layout::TASKS_BYTES;
use crate::stdio;
use crate::user::{Range, item};

/// The most streams' and futures' ends, subtasks and sets at once.
const HANDLES_MAX: usize = 48;
/// The most streams and futures.
const CHANNELS_MAX: usize = 24;

/// An operation goes on; the program hears of its end by an event.
const BLOCKED: u32 = u32::MAX;
/// How an operation ended, in the low four bits; above them stands how many items it was of.
const COMPLETED: u32 = 0;
const DROPPED: u32 = 1;
const CANCELLED: u32 = 2;
const RESULT_BITS: u32 = 4;

/// Events.
const NONE: u32 = 0;
const SUBTASK: u32 = 1;
const STREAM_READ: u32 = 2;
const STREAM_WRITE: u32 = 3;
const FUTURE_READ: u32 = 4;
const FUTURE_WRITE: u32 = 5;

/// How far a subtask is.
const STARTED: u32 = 1;
const RETURNED: u32 = 2;
const CANCELLED_BEFORE_RETURNED: u32 = 4;

/// The file by which standard output is known.
const ERROR: u32 = 2;

#[link(wasm_import_module = "merger")]
unsafe extern "C" {
    /// Where the room for tasks is.
    safe fn tasks() -> u32;
}

/// What a number stands for. Zero bytes are free ones.
#[derive(Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
enum Form {
    Free,
    Set,
    /// A clock is waited for.
    Subtask,
    Reader,
    Writer,
}

#[derive(Clone, Copy)]
struct Handle {
    form: Form,
    /// Of an end: its channel.
    channel: u8,
    /// Whether there is an event that the program hasn't heard of.
    has_event: bool,
    /// Whether there is a buffer: an operation goes on.
    has_buffer: bool,
    /// The set that it is in, or 0.
    set: u32,
    /// What that event says.
    event: u32,
    start: u32,
    count: u32,
    /// When a subtask returns, in nanoseconds since the device's start.
    due: u64,
}

/// Who has an end of a channel.
#[derive(Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
enum Owner {
    Nobody,
    Program,
    Device,
}

/// A stream or a future. One whose ends are nobody's is free.
#[derive(Clone, Copy)]
struct Channel {
    reader: Owner,
    writer: Owner,
    is_future: bool,
    /// Of a future that the device writes: whether it has.
    is_resolved: bool,
    /// The numbers of the ends that are the program's.
    reader_handle: u8,
    writer_handle: u8,
    /// The future that is resolved when this stream has ended, and one; 0 without one.
    then: u8,
    /// Where the device writes what it reads: 1 or 2.
    fd: u8,
    item_bytes: u32,
}

/// All of them. Zero bytes are a state: there are none.
pub(crate) struct Tasks {
    handles: [Handle; HANDLES_MAX],
    channels: [Channel; CHANNELS_MAX],
    /// The task's word, of `context.get`.
    pub(crate) context: u32,
    /// What the last event that a task was resumed for was of, and said.
    pub(crate) event: (u32, u32),
}

const _: () = assert!(size_of::<Tasks>() <= TASKS_BYTES as usize);

fn fail(words: &[u8]) -> ! {
    stdio::complain(words);
    unreachable()
}

fn ended(result: u32, items: u32) -> u32 {
    items << RESULT_BITS | result
}

impl Tasks {
    pub(crate) fn current() -> &'static mut Self {
        // SAFETY: the room is there, aligned, and of zeros until `begin`. Each function asks once, and hands it on.
        unsafe { &mut *(tasks() as *mut Self) }
    }

    pub(crate) fn begin(&mut self) {
        // SAFETY: zero bytes are a state.
        unsafe { core::ptr::write_bytes(self, 0, 1) };
    }

    fn handle(&mut self, number: u32) -> &mut Handle {
        match self.handles.get_mut(number.wrapping_sub(1) as usize) {
            Some(handle) if handle.form != Form::Free => handle,
            _ => unreachable(),
        }
    }

    fn channel(&mut self, index: u8) -> &mut Channel {
        match self.channels.get_mut(usize::from(index)) {
            Some(channel) => channel,
            None => unreachable(),
        }
    }

    fn add(&mut self, form: Form, channel: u8, due: u64) -> u32 {
        let Some(place) = self.handles.iter().position(|handle| handle.form == Form::Free) else {
            fail(b"too many streams, futures, waits or sets")
        };
        if let Some(handle) = self.handles.get_mut(place) {
            *handle = Handle {
                form,
                channel,
                has_event: false,
                has_buffer: false,
                set: 0,
                event: 0,
                start: 0,
                count: 0,
                due,
            };
        }
        place as u32 + 1
    }

    fn add_channel(&mut self, is_future: bool, item_bytes: u32) -> u8 {
        let is_free = |it: &Channel| it.reader == Owner::Nobody && it.writer == Owner::Nobody;
        let Some(place) = self.channels.iter().position(is_free) else {
            fail(b"too many streams and futures")
        };
        *self.channel(place as u8) = Channel {
            reader: Owner::Nobody,
            writer: Owner::Nobody,
            is_future,
            is_resolved: false,
            reader_handle: 0,
            writer_handle: 0,
            then: 0,
            fd: 0,
            item_bytes,
        };
        place as u8
    }

    /// An end of a channel for the program; its number.
    fn add_end(&mut self, channel: u8, form: Form) -> u32 {
        let number = self.add(form, channel, 0);
        let channel = self.channel(channel);
        match form {
            Form::Reader => {
                (channel.reader, channel.reader_handle) = (Owner::Program, number as u8)
            }
            _ => (channel.writer, channel.writer_handle) = (Owner::Program, number as u8),
        }
        number
    }

    /// The end of this form that a number is.
    fn end(&mut self, number: u32, form: Form) -> (Handle, Channel) {
        let handle = *self.handle(number);
        if handle.form != form {
            unreachable()
        }
        (handle, *self.channel(handle.channel))
    }

    /// `stream.new` and `future.new`: the reader's number, and above it the writer's.
    pub(crate) fn new_channel(&mut self, is_future: bool, item_bytes: u32) -> u64 {
        let channel = self.add_channel(is_future, item_bytes);
        let reader = self.add_end(channel, Form::Reader);
        let writer = self.add_end(channel, Form::Writer);
        u64::from(writer) << 32 | u64::from(reader)
    }

    /// `stream.read` and `future.read`.
    pub(crate) fn read(&mut self, number: u32, start: u32, count: u32) -> u32 {
        let (handle, channel) = self.end(number, Form::Reader);
        if handle.has_buffer || handle.has_event {
            unreachable()
        }
        match channel.writer {
            Owner::Nobody => return ended(DROPPED, 0),
            Owner::Device if channel.is_future => {
                if channel.is_resolved {
                    put_success(start);
                    return COMPLETED;
                }
            }
            Owner::Device => {
                let range = must(Range::new(start, count));
                let read = must(stdio::read(range));
                if read == 0 && count > 0 {
                    self.resolve_after(handle.channel);
                    return ended(DROPPED, 0);
                }
                return ended(COMPLETED, read);
            }
            Owner::Program => {
                let writer = *self.handle(channel.writer_handle.into());
                if writer.has_buffer {
                    let items = writer.count.min(count);
                    copy(start, writer.start, items, channel.item_bytes);
                    let result = result_of(&channel, COMPLETED, items);
                    self.happen(channel.writer_handle, result);
                    return result;
                }
            }
        }
        self.wait_with(number, start, count);
        BLOCKED
    }

    /// `stream.write` and `future.write`.
    pub(crate) fn write(&mut self, number: u32, start: u32, count: u32) -> u32 {
        let (handle, channel) = self.end(number, Form::Writer);
        if handle.has_buffer || handle.has_event {
            unreachable()
        }
        match channel.reader {
            Owner::Nobody => return ended(DROPPED, 0),
            Owner::Device => return take(&channel, start, count),
            Owner::Program => {
                let reader = *self.handle(channel.reader_handle.into());
                if reader.has_buffer {
                    let items = reader.count.min(count);
                    copy(reader.start, start, items, channel.item_bytes);
                    let result = result_of(&channel, COMPLETED, items);
                    self.happen(channel.reader_handle, result);
                    return result;
                }
            }
        }
        self.wait_with(number, start, count);
        BLOCKED
    }

    fn wait_with(&mut self, number: u32, start: u32, count: u32) {
        let handle = self.handle(number);
        (handle.has_buffer, handle.start, handle.count) = (true, start, count);
    }

    /// The operation of an end is over.
    fn happen(&mut self, number: u8, event: u32) {
        let handle = self.handle(number.into());
        (handle.has_buffer, handle.has_event, handle.event) = (false, true, event);
    }

    /// `stream.cancel-read` and its like: what became of the operation.
    pub(crate) fn cancel(&mut self, number: u32) -> u32 {
        let handle = self.handle(number);
        if handle.has_event {
            handle.has_event = false;
            return handle.event;
        }
        if !handle.has_buffer {
            unreachable()
        }
        handle.has_buffer = false;
        ended(CANCELLED, 0)
    }

    /// `stream.drop-readable`, `future.drop-readable`.
    pub(crate) fn drop_reader(&mut self, number: u32) {
        let (handle, channel) = self.end(number, Form::Reader);
        self.handle(number).form = Form::Free;
        self.channel(handle.channel).reader = Owner::Nobody;
        match channel.writer {
            Owner::Program => self.drop_peer(channel.writer_handle),
            // Whoever listens no more has heard all.
            Owner::Device => {
                self.resolve_after(handle.channel);
                self.channel(handle.channel).writer = Owner::Nobody;
            }
            Owner::Nobody => {}
        }
    }

    /// `stream.drop-writable`, `future.drop-writable`.
    pub(crate) fn drop_writer(&mut self, number: u32) {
        let (handle, channel) = self.end(number, Form::Writer);
        self.handle(number).form = Form::Free;
        self.channel(handle.channel).writer = Owner::Nobody;
        match channel.reader {
            Owner::Program => self.drop_peer(channel.reader_handle),
            Owner::Device => {
                self.resolve_after(handle.channel);
                self.channel(handle.channel).reader = Owner::Nobody;
            }
            Owner::Nobody => {}
        }
    }

    /// The other end hears that there is none any more, if it waits.
    fn drop_peer(&mut self, number: u8) {
        if self.handle(number.into()).has_buffer {
            self.happen(number, ended(DROPPED, 0));
        }
    }

    /// Resolves the future that waits for the end of a stream.
    fn resolve_after(&mut self, stream: u8) {
        let then = core::mem::take(&mut self.channel(stream).then);
        let Some(future) = then.checked_sub(1) else { return };
        let channel = self.channel(future);
        channel.is_resolved = true;
        if channel.reader == Owner::Program {
            let number = channel.reader_handle;
            let reader = *self.handle(number.into());
            if reader.has_buffer {
                put_success(reader.start);
                self.happen(number, COMPLETED);
            }
        }
    }

    /// A future that the device resolves when `stream` ends; the reader's number.
    fn future_of(&mut self, stream: u8) -> u32 {
        let future = self.add_channel(true, 0);
        self.channel(future).writer = Owner::Device;
        self.channel(stream).then = future + 1;
        self.add_end(future, Form::Reader)
    }

    /// `write-via-stream`: the device reads a stream from now on, and writes it to the descriptor `fd`; the number of the future
    /// that says how that went.
    pub(crate) fn give(&mut self, number: u32, fd: u8) -> u32 {
        let (handle, channel) = self.end(number, Form::Reader);
        self.handle(number).form = Form::Free;
        let stream = handle.channel;
        let of_device = self.channel(stream);
        (of_device.reader, of_device.fd) = (Owner::Device, fd);
        let future = self.future_of(stream);
        match channel.writer {
            Owner::Program => {
                let writer = *self.handle(channel.writer_handle.into());
                if writer.has_buffer {
                    let channel = *self.channel(stream);
                    let event = take(&channel, writer.start, writer.count);
                    self.happen(channel.writer_handle, event);
                }
            }
            _ => {
                self.resolve_after(stream);
                self.channel(stream).reader = Owner::Nobody;
            }
        }
        future
    }

    /// `read-via-stream`: a stream of the standard input and its future, as a pair of numbers.
    pub(crate) fn input(&mut self, into: u32) {
        let stream = self.add_channel(false, 1);
        self.channel(stream).writer = Owner::Device;
        put_word(into, self.add_end(stream, Form::Reader));
        put_word(behind(into, 4), self.future_of(stream));
    }

    /// An asynchronous call that returns at a time since the device's start: how far it is, and above that its number.
    pub(crate) fn until(&mut self, due: u64) -> u32 {
        if due <= clock::since_boot() {
            return RETURNED;
        }
        self.add(Form::Subtask, 0, due) << RESULT_BITS | STARTED
    }

    /// `subtask.cancel`: how far it was.
    pub(crate) fn cancel_subtask(&mut self, number: u32) -> u32 {
        let handle = self.handle(number);
        if handle.form != Form::Subtask {
            unreachable()
        }
        (handle.has_event, handle.due) = (false, u64::MAX);
        CANCELLED_BEFORE_RETURNED
    }

    /// `subtask.drop` and `waitable-set.drop`.
    pub(crate) fn drop_handle(&mut self, number: u32) {
        match self.handle(number).form {
            Form::Set | Form::Subtask => self.handle(number).form = Form::Free,
            _ => unreachable(),
        }
    }

    /// `waitable-set.new`.
    pub(crate) fn new_set(&mut self) -> u32 {
        self.add(Form::Set, 0, 0)
    }

    /// `waitable.join`; in no set is set 0.
    pub(crate) fn join(&mut self, number: u32, set: u32) {
        self.handle(number).set = set;
    }

    /// The next event of a set, if there is one: which, of what, and what it says.
    pub(crate) fn poll(&mut self, set: u32) -> (u32, u32, u32) {
        let now = clock::since_boot();
        for (place, handle) in (1..).zip(&mut self.handles) {
            if handle.form == Form::Free || handle.set != set {
                continue;
            }
            if handle.form == Form::Subtask && handle.due <= now {
                handle.due = u64::MAX;
                (handle.has_event, handle.event) = (true, RETURNED);
            }
            if !core::mem::take(&mut handle.has_event) {
                continue;
            }
            let (form, event, channel) = (handle.form, handle.event, handle.channel);
            let is_future = self.channel(channel).is_future;
            let code = match (form, is_future) {
                (Form::Reader, false) => STREAM_READ,
                (Form::Reader, true) => FUTURE_READ,
                (Form::Writer, false) => STREAM_WRITE,
                (Form::Writer, true) => FUTURE_WRITE,
                _ => SUBTASK,
            };
            return (code, place, event);
        }
        (NONE, 0, 0)
    }

    /// Waits for the next event of a set, while other machines run. A program that waits for nothing would wait for ever.
    pub(crate) fn wait(&mut self, set: u32) -> (u32, u32, u32) {
        let event = self.poll(set);
        if event.0 != NONE {
            return event;
        }
        let is_due =
            |it: &&mut Handle| it.form == Form::Subtask && it.set == set && it.due != u64::MAX;
        let Some(first) = self.handles.iter_mut().filter(is_due).min_by_key(|it| it.due) else {
            fail(b"the program waits for what never happens")
        };
        let due = core::mem::replace(&mut first.due, 0);
        clock::sleep(due.saturating_sub(clock::since_boot()));
        self.poll(set)
    }

    /// Which event that is, with its two words in the program's memory.
    pub(crate) fn put_event((code, of, says): (u32, u32, u32), into: u32) -> u32 {
        put_word(into, of);
        put_word(behind(into, 4), says);
        code
    }
}

/// The value of `result<_, error-code>` that all futures of the device's are of: it went well.
fn put_success(at: u32) {
    put_byte(at, 0);
}

/// A future's operation has no number of items.
fn result_of(channel: &Channel, result: u32, items: u32) -> u32 {
    if channel.is_future { result } else { ended(result, items) }
}

/// The device takes what was written to a stream that it reads. Of what has no room it is as if nobody read any more.
fn take(channel: &Channel, start: u32, count: u32) -> u32 {
    let range = must(Range::new(start, count));
    let mut done = 0;
    while done < count {
        match stdio::write(range.part(done, u32::MAX), u32::from(channel.fd) == ERROR) {
            Ok(written) => done += written,
            Err(_) => return ended(DROPPED, done),
        }
    }
    ended(COMPLETED, done)
}

/// Copies items from one place of the program's to another.
fn copy(to: u32, from: u32, items: u32, item_bytes: u32) {
    let bytes = must(item(0, items, item_bytes));
    let (to, from) = (must(Range::new(to, bytes)), must(Range::new(from, bytes)));
    // SAFETY: both are the program's, and what is beyond the end of the memory traps.
    unsafe { core::ptr::copy(from.as_ptr(), to.as_mut_ptr(), bytes as usize) };
}
