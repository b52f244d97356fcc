//! C functions over tenure-tls: connections in memory that the caller lends, over a buffer that the
//! caller lends. Nothing allocates, blocks or reads a clock.
//!
//! `include/tenure_tls.h` is generated from these files; its comments are these.
//!
//! Invariants:
//! - A function whose arguments can't be right says so, and changes nothing.
//! - No input of a peer and no argument panics: the core's fuzz targets search for one. Were there one
//!   nevertheless, the program would end by C's `abort`.
#![no_std]

mod objects;
mod place;
mod types;

use core::alloc::{GlobalAlloc, Layout};
use core::fmt::Write as _;
use core::{ptr, slice};

use tenure_tls::{Error, group_number};
use zeroize::Zeroize;

use self::objects::{Text, are_apart, bytes, bytes_mut, is_object};
pub use self::place::TenureTls;
use self::place::{End, now_of, result_of};
pub use self::types::*;

/// The longest list of a configuration.
pub const TENURE_TLS_LIST_MAX: usize = 8;
/// As many bytes of memory as a connection needs on any processor; `tenure_tls_memory_bytes` says
/// exactly how many. The buffer is extra.
pub const TENURE_TLS_MEMORY_BYTES: usize = 4096;
/// The memory of a connection begins at a multiple of this.
pub const TENURE_TLS_MEMORY_ALIGNMENT: usize = 16;

const _: () = assert!(size_of::<TenureTls>() <= TENURE_TLS_MEMORY_BYTES);
const _: () = assert!(align_of::<TenureTls>() <= TENURE_TLS_MEMORY_ALIGNMENT);

/// C's `abort`, which firmware defines if its C library doesn't.
#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    unsafe extern "C" {
        fn abort() -> !;
    }
    // SAFETY: it takes nothing, and never returns.
    unsafe { abort() }
}

/// There is no heap: the crates below know the type of one, and ask for nothing.
struct NoHeap;

// SAFETY: it hands out no memory.
unsafe impl GlobalAlloc for NoHeap {
    unsafe fn alloc(&self, _: Layout) -> *mut u8 {
        ptr::null_mut()
    }

    unsafe fn dealloc(&self, _: *mut u8, _: Layout) {}
}

#[global_allocator]
static HEAP: NoHeap = NoHeap;

/// Calls the same method of a client or a server.
macro_rules! either {
    ($end:expr, $it:ident => $call:expr) => {
        match $end {
            End::Client($it) => $call,
            End::Server($it) => $call,
        }
    };
}

/// How many bytes of memory a connection needs, without its buffer.
#[must_use]
#[unsafe(no_mangle)]
pub extern "C" fn tenure_tls_memory_bytes() -> usize {
    size_of::<TenureTls>()
}

/// Makes a client's connection in `memory`, over `buffer`, and writes where it is to `tls`.
///
/// Both belong to the connection until `tenure_tls_wipe`.
///
/// # Safety
/// Pointers that are not null must be valid: `memory` and `buffer` for their lengths, what `config`
/// points to for as long as the connection lives.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tenure_tls_client(
    memory: *mut u8,
    memory_len: usize,
    buffer: *mut u8,
    buffer_len: usize,
    config: *const TenureTlsClientConfig,
    now: *const TenureTlsNow,
    tls: *mut *mut TenureTls,
) -> TenureTlsResult {
    if !is_place((memory, memory_len), (buffer, buffer_len)) || tls.is_null() {
        return TenureTlsResult::BadArgument;
    }
    // SAFETY: as the caller promises; the memory is large enough, aligned, and apart from the buffer.
    unsafe {
        let (Some(config), Some(now)) = (config.as_ref(), now.as_ref()) else {
            return TenureTlsResult::BadArgument;
        };
        let place = memory.cast::<TenureTls>();
        let buffer = bytes_mut(buffer, buffer_len);
        let written = TenureTls::write_client(place, buffer, config, &now_of(now));
        finish(place, config.random, written, tls)
    }
}

/// Makes a server's connection in `memory`, over `buffer`, and writes where it is to `tls`.
///
/// Both belong to the connection until `tenure_tls_wipe`. Early data is refused.
///
/// # Safety
/// As `tenure_tls_client`, and `ticket_key` must be null or valid for 32 bytes.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tenure_tls_server(
    memory: *mut u8,
    memory_len: usize,
    buffer: *mut u8,
    buffer_len: usize,
    config: *const TenureTlsServerConfig,
    now: *const TenureTlsNow,
    tls: *mut *mut TenureTls,
) -> TenureTlsResult {
    if !is_place((memory, memory_len), (buffer, buffer_len)) || tls.is_null() {
        return TenureTlsResult::BadArgument;
    }
    // SAFETY: as in `tenure_tls_client`.
    unsafe {
        let (Some(config), Some(now)) = (config.as_ref(), now.as_ref()) else {
            return TenureTlsResult::BadArgument;
        };
        let place = memory.cast::<TenureTls>();
        let buffer = bytes_mut(buffer, buffer_len);
        let written = TenureTls::write_server(place, buffer, config, &now_of(now));
        finish(place, config.random, written, tls)
    }
}

/// Ends the connection without a word to the peer, and wipes its memory and its buffer, which are the
/// caller's again. Null is nothing to wipe.
///
/// # Safety
/// `tls` must be null or a connection, and is none afterwards.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tenure_tls_wipe(tls: *mut TenureTls) {
    if tls.is_null() {
        return;
    }
    // SAFETY: as the caller promises; nobody borrows the end, and nothing is used after it.
    unsafe {
        ptr::drop_in_place(&raw mut (*tls).end);
        wipe(tls);
    }
}

/// Handles what was received up to the next event, and writes that to `event`.
///
/// To be called again until it is `TENURE_TLS_EVENT_IDLE`. After each call, and also where it fails,
/// `tenure_tls_output` is to be sent: it may hold the alert that tells the peer.
///
/// # Safety
/// Pointers that are not null must be valid, `tls` a connection.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tenure_tls_poll(
    tls: *mut TenureTls,
    now: *const TenureTlsNow,
    event: *mut TenureTlsEvent,
) -> TenureTlsResult {
    // SAFETY: as the caller promises.
    let (Some(parts), Some(now)) = (unsafe { parts(tls) }, unsafe { now.as_ref() }) else {
        return TenureTlsResult::BadArgument;
    };
    if event.is_null() {
        return TenureTlsResult::BadArgument;
    }
    let polled = either!(parts.end, it => it.poll(parts.security, &now_of(now)));
    match polled {
        Ok(happened) => {
            // SAFETY: as the caller promises.
            unsafe { event.write(event_of(happened)) };
            TenureTlsResult::Ok
        }
        Err(error) => parts.failed(error),
    }
}

/// When `tenure_tls_poll` must be called even if nothing comes in, in milliseconds of uptime;
/// `UINT64_MAX` for never.
///
/// # Safety
/// `tls` must be null or a connection.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tenure_tls_deadline_ms(tls: *mut TenureTls) -> u64 {
    // SAFETY: as the caller promises.
    let Some(parts) = (unsafe { parts(tls) }) else { return u64::MAX };
    either!(parts.end, it => it.deadline_ms()).unwrap_or(u64::MAX)
}

/// Ends the connection by `TENURE_TLS_RESULT_DEADLINE` at `uptime_ms`, unless another is set before;
/// `UINT64_MAX` is never. That of the handshake can't be moved.
///
/// # Safety
/// `tls` must be null or a connection.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tenure_tls_set_deadline_ms(tls: *mut TenureTls, uptime_ms: u64) {
    let uptime_ms = (uptime_ms != u64::MAX).then_some(uptime_ms);
    // SAFETY: as the caller promises.
    if let Some(parts) = unsafe { parts(tls) } {
        either!(parts.end, it => it.set_deadline_ms(uptime_ms));
    }
}

/// The free part of the buffer, to be filled with received bytes from its front, and its length.
///
/// It is empty while data waits to be consumed, or output to be sent.
///
/// # Safety
/// Pointers that are not null must be valid, `tls` a connection. The result is valid until the next
/// call with this connection.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tenure_tls_space(tls: *mut TenureTls, len: *mut usize) -> *mut u8 {
    // SAFETY: as the caller promises.
    let parts = unsafe { parts(tls) };
    let space = parts.map_or(&mut [][..], |parts| either!(parts.end, it => it.space()));
    // SAFETY: as the caller promises.
    unsafe { write_length(len, space.len()) };
    space.as_mut_ptr()
}

/// Says that the transport received the first `len` bytes of `tenure_tls_space`.
///
/// # Safety
/// `tls` must be null or a connection.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tenure_tls_received(tls: *mut TenureTls, len: usize) {
    // SAFETY: as the caller promises.
    if let Some(parts) = unsafe { parts(tls) } {
        either!(parts.end, it => it.received(len));
    }
}

/// Says that the transport receives no more. That is an error, if the peer didn't close before.
///
/// # Safety
/// `tls` must be null or a connection.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tenure_tls_end_of_input(tls: *mut TenureTls) -> TenureTlsResult {
    // SAFETY: as the caller promises.
    let Some(parts) = (unsafe { parts(tls) }) else { return TenureTlsResult::BadArgument };
    match either!(parts.end, it => it.end_of_input(parts.security)) {
        Ok(()) => TenureTlsResult::Ok,
        Err(error) => parts.failed(error),
    }
}

/// The bytes that the transport is to send, and their length.
///
/// # Safety
/// As `tenure_tls_space`.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tenure_tls_output(tls: *mut TenureTls, len: *mut usize) -> *const u8 {
    // SAFETY: as the caller promises.
    let parts = unsafe { parts(tls) };
    let output = parts.map_or(&[][..], |parts| either!(parts.end, it => it.output()));
    // SAFETY: as the caller promises.
    unsafe { write_length(len, output.len()) };
    output.as_ptr()
}

/// Says that the transport sent the first `len` bytes of `tenure_tls_output`.
///
/// # Safety
/// `tls` must be null or a connection.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tenure_tls_sent(tls: *mut TenureTls, len: usize) {
    // SAFETY: as the caller promises.
    if let Some(parts) = unsafe { parts(tls) } {
        either!(parts.end, it => it.sent(len));
    }
}

/// The data of the peer that is not consumed, and its length.
///
/// # Safety
/// As `tenure_tls_space`.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tenure_tls_data(tls: *mut TenureTls, len: *mut usize) -> *mut u8 {
    // SAFETY: as the caller promises.
    let parts = unsafe { parts(tls) };
    let data = parts.map_or(&mut [][..], |parts| either!(parts.end, it => it.data()));
    // SAFETY: as the caller promises.
    unsafe { write_length(len, data.len()) };
    data.as_mut_ptr()
}

/// Consumes the first `len` bytes of `tenure_tls_data`.
///
/// # Safety
/// `tls` must be null or a connection.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tenure_tls_consume(tls: *mut TenureTls, len: usize) {
    // SAFETY: as the caller promises.
    if let Some(parts) = unsafe { parts(tls) } {
        either!(parts.end, it => it.consume(len));
    }
}

/// Encrypts as much of `data` as fits into the buffer, in one record, and writes how much that was to
/// `sent`: nothing before the handshake is over, but for early data.
///
/// # Safety
/// Pointers that are not null must be valid, `tls` a connection, `data` for `len`.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tenure_tls_send(
    tls: *mut TenureTls,
    data: *const u8,
    len: usize,
    sent: *mut usize,
) -> TenureTlsResult {
    // SAFETY: as the caller promises.
    let Some(parts) = (unsafe { parts(tls) }) else { return TenureTlsResult::BadArgument };
    if !is_object(data, len) || sent.is_null() {
        return TenureTlsResult::BadArgument;
    }
    // SAFETY: as the caller promises.
    let data = unsafe { bytes(data, len) };
    match either!(parts.end, it => it.send(parts.security, data)) {
        Ok(taken) => {
            // SAFETY: as the caller promises.
            unsafe { sent.write(taken) };
            TenureTlsResult::Ok
        }
        Err(error) => parts.failed(error),
    }
}

/// Says that this end sends no more. The peer may go on.
///
/// # Safety
/// `tls` must be null or a connection.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tenure_tls_close(tls: *mut TenureTls) {
    // SAFETY: as the caller promises.
    if let Some(parts) = unsafe { parts(tls) } {
        either!(parts.end, it => it.close(parts.security));
    }
}

/// Changes the own keys, and asks the peer to change its own if `asks`.
///
/// # Safety
/// `tls` must be null or a connection.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tenure_tls_update_keys(
    tls: *mut TenureTls,
    asks: bool,
) -> TenureTlsResult {
    // SAFETY: as the caller promises.
    let Some(parts) = (unsafe { parts(tls) }) else { return TenureTlsResult::BadArgument };
    match either!(parts.end, it => it.update_keys(parts.security, asks)) {
        Ok(()) => TenureTlsResult::Ok,
        Err(error) => result_of(error),
    }
}

/// Sends a ticket, by which the client may come back; only a server can.
///
/// # Safety
/// Pointers that are not null must be valid, `tls` a connection.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tenure_tls_send_ticket(
    tls: *mut TenureTls,
    now: *const TenureTlsNow,
) -> TenureTlsResult {
    // SAFETY: as the caller promises.
    let (Some(parts), Some(now)) = (unsafe { parts(tls) }, unsafe { now.as_ref() }) else {
        return TenureTlsResult::BadArgument;
    };
    let End::Server(server) = parts.end else { return TenureTlsResult::Configuration };
    match server.send_ticket(parts.security, &now_of(now)) {
        Ok(()) => TenureTlsResult::Ok,
        Err(error) => result_of(error),
    }
}

/// Writes the ticket that `TENURE_TLS_EVENT_TICKET` announced to `ticket`.
///
/// # Safety
/// Pointers that are not null must be valid, `tls` a connection.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tenure_tls_ticket_of(
    tls: *mut TenureTls,
    ticket: *mut TenureTlsTicket,
) -> TenureTlsResult {
    // SAFETY: as the caller promises.
    let Some(parts) = (unsafe { parts(tls) }) else { return TenureTlsResult::BadArgument };
    let End::Client(client) = parts.end else { return TenureTlsResult::Configuration };
    let Some(announced) = client.ticket() else { return TenureTlsResult::Configuration };
    let mut key = [0; 64];
    let Some(front) = key.get_mut(..announced.key.len()) else {
        return TenureTlsResult::Configuration;
    };
    front.copy_from_slice(&announced.key);
    let (identity, key_len) = (announced.identity, announced.key.len());
    if ticket.is_null() {
        return TenureTlsResult::BadArgument;
    }
    // SAFETY: as the caller promises.
    unsafe {
        ticket.write(TenureTlsTicket {
            identity: TenureTlsBytes { bytes: identity.as_ptr(), len: identity.len() },
            key,
            key_len,
            suite: announced.suite.number(),
            lifetime_s: announced.lifetime_s,
            age_add: announced.age_add,
            early_data_bytes_max: announced.early_data_bytes_max,
        });
    }
    key.zeroize();
    TenureTlsResult::Ok
}

/// The certificate that `TENURE_TLS_EVENT_CERTIFICATE` announced, in DER, and its length; null if there
/// is none.
///
/// # Safety
/// As `tenure_tls_space`.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tenure_tls_certificate(tls: *mut TenureTls, len: *mut usize) -> *const u8 {
    // SAFETY: as the caller promises.
    let parts = unsafe { parts(tls) };
    let certificate = parts.and_then(|parts| either!(parts.end, it => it.certificate()));
    // SAFETY: as the caller promises.
    unsafe { write_length(len, certificate.map_or(0, <[u8]>::len)) };
    certificate.map_or(ptr::null(), <[u8]>::as_ptr)
}

/// The application protocol that was agreed on, and its length; null if there is none.
///
/// # Safety
/// As `tenure_tls_space`.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tenure_tls_protocol(tls: *mut TenureTls, len: *mut usize) -> *const u8 {
    // SAFETY: as the caller promises.
    let parts = unsafe { parts(tls) };
    let protocol = parts.and_then(|parts| either!(parts.end, it => it.application_protocol()));
    // SAFETY: as the caller promises.
    unsafe { write_length(len, protocol.map_or(0, <[u8]>::len)) };
    protocol.map_or(ptr::null(), <[u8]>::as_ptr)
}

/// Whether the handshake is over, and the connection is not.
///
/// # Safety
/// `tls` must be null or a connection.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tenure_tls_is_connected(tls: *mut TenureTls) -> bool {
    // SAFETY: as the caller promises.
    unsafe { parts(tls) }.is_some_and(|parts| either!(parts.end, it => it.is_connected()))
}

/// Whether a ticket or a key that both ends were given was taken.
///
/// # Safety
/// `tls` must be null or a connection.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tenure_tls_is_resumed(tls: *mut TenureTls) -> bool {
    // SAFETY: as the caller promises.
    unsafe { parts(tls) }.is_some_and(|parts| either!(parts.end, it => it.is_resumed()))
}

/// The number of the suite (RFC 8446 §B.4), once it is chosen; 0 before.
///
/// # Safety
/// `tls` must be null or a connection.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tenure_tls_suite(tls: *mut TenureTls) -> u16 {
    // SAFETY: as the caller promises.
    let parts = unsafe { parts(tls) };
    let suite = parts.and_then(|parts| either!(parts.end, it => it.suite()));
    suite.map_or(0, |suite| suite.number())
}

/// The number of the group (RFC 8446 §4.2.7), once it is chosen; 0 before.
///
/// # Safety
/// `tls` must be null or a connection.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tenure_tls_group(tls: *mut TenureTls) -> u16 {
    // SAFETY: as the caller promises.
    let parts = unsafe { parts(tls) };
    parts.and_then(|parts| either!(parts.end, it => it.group())).map_or(0, group_number)
}

/// Fills `output` with bytes that only the two ends know, bound to `label` and `context` (RFC 8446
/// §7.5).
///
/// # Safety
/// Pointers that are not null must be valid, `tls` a connection, the others for their lengths.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tenure_tls_export(
    tls: *mut TenureTls,
    label: *const u8,
    label_len: usize,
    context: *const u8,
    context_len: usize,
    output: *mut u8,
    output_len: usize,
) -> TenureTlsResult {
    // SAFETY: as the caller promises.
    let Some(parts) = (unsafe { parts(tls) }) else { return TenureTlsResult::BadArgument };
    let are_objects = is_object(label, label_len)
        && is_object(context, context_len)
        && is_object(output, output_len)
        && are_apart((label, label_len), (output, output_len))
        && are_apart((context, context_len), (output, output_len));
    if !are_objects {
        return TenureTlsResult::BadArgument;
    }
    // SAFETY: as the caller promises; the output overlaps neither of the others.
    let exported = unsafe {
        let (label, context) = (bytes(label, label_len), bytes(context, context_len));
        either!(parts.end, it => it.export(label, context, bytes_mut(output, output_len)))
    };
    exported.map_or_else(result_of, |()| TenureTlsResult::Ok)
}

/// Writes why the connection ended to `text`, with a zero at its end, as far as it fits: at most `len`
/// bytes in all. Nothing but the zero if it didn't end by an error.
///
/// # Safety
/// Pointers that are not null must be valid, `tls` a connection, `text` for `len`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tenure_tls_error_text(tls: *mut TenureTls, text: *mut u8, len: usize) {
    // SAFETY: as the caller promises.
    let error = unsafe { parts(tls) }.and_then(|parts| *parts.error);
    if !is_object(text, len) {
        return;
    }
    // SAFETY: as the caller promises.
    let mut text = Text::new(unsafe { bytes_mut(text, len) });
    if let Some(error) = error {
        // The rest is left out where it doesn't fit.
        let _ = write!(text, "{error}");
    }
    text.finish();
}

/// The parts of a connection that change.
struct Parts<'a> {
    end: &'a mut End,
    security: &'a mut tenure_crypto::Software<place::Source>,
    error: &'a mut Option<Error>,
}

impl Parts<'_> {
    /// Keeps why the connection ended, and tells it.
    fn failed(self, error: Error) -> TenureTlsResult {
        *self.error = Some(error);
        result_of(error)
    }
}

/// # Safety
/// `tls` must be null or a connection that nobody else uses meanwhile.
unsafe fn parts<'a>(tls: *mut TenureTls) -> Option<Parts<'a>> {
    if tls.is_null() {
        return None;
    }
    // SAFETY: as the caller promises; what the end borrows lies in other fields.
    unsafe {
        Some(Parts {
            end: &mut (*tls).end,
            security: &mut (*tls).security,
            error: &mut (*tls).error,
        })
    }
}

/// Ends the making of a connection: tells where it is, or leaves nothing of it.
///
/// # Safety
/// Both pointers may be written.
unsafe fn finish(
    place: *mut TenureTls,
    random: TenureTlsRandom,
    written: Result<(), TenureTlsResult>,
    tls: *mut *mut TenureTls,
) -> TenureTlsResult {
    // SAFETY: as the caller promises.
    unsafe {
        match written {
            Ok(()) => {
                TenureTls::write_rest(place, random);
                tls.write(place);
                TenureTlsResult::Ok
            }
            Err(result) => {
                wipe(place);
                tls.write(ptr::null_mut());
                result
            }
        }
    }
}

/// # Safety
/// The memory at `place` may be written, and nothing in it is used any more.
unsafe fn wipe(place: *mut TenureTls) {
    // SAFETY: as the caller promises; bytes that were never written stay what they are until then.
    unsafe {
        let memory = place.cast::<core::mem::MaybeUninit<u8>>();
        slice::from_raw_parts_mut(memory, size_of::<TenureTls>()).zeroize();
    }
}

fn event_of(event: tenure_tls::Event) -> TenureTlsEvent {
    match event {
        tenure_tls::Event::Idle => TenureTlsEvent::Idle,
        tenure_tls::Event::Certificate => TenureTlsEvent::Certificate,
        tenure_tls::Event::Connected => TenureTlsEvent::Connected,
        tenure_tls::Event::Data => TenureTlsEvent::Data,
        tenure_tls::Event::Ticket => TenureTlsEvent::Ticket,
        tenure_tls::Event::PeerClosed => TenureTlsEvent::PeerClosed,
    }
}

/// # Safety
/// `len` must be null or valid.
unsafe fn write_length(len: *mut usize, value: usize) {
    if !len.is_null() {
        // SAFETY: as the caller promises.
        unsafe { len.write(value) };
    }
}

/// Whether a connection fits the memory, and the buffer is another.
fn is_place(memory: (*mut u8, usize), buffer: (*mut u8, usize)) -> bool {
    is_object(memory.0, memory.1)
        && is_object(buffer.0, buffer.1)
        && memory.1 >= size_of::<TenureTls>()
        && memory.0.addr().is_multiple_of(align_of::<TenureTls>())
        && are_apart((memory.0, memory.1), (buffer.0, buffer.1))
}
