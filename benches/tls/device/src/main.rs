//! A TLS client on a bare Cortex-M whose UART is the server's byte stream: one full handshake with chain
//! validation, a request and its answer; prints what that took.
//!
//! With the feature `server` the request is for a page, and the device then serves one over its second UART. It
//! prints its memory while the client is connected, and after all. With the feature `resumption` it connects a second
//! time, over its second UART, by the ticket of the first.
//!
//! `TENURE_ANCHOR` names the authority's certificate when it is built, `TENURE_BUFFER` the buffer's bytes;
//! `TENURE_LEAF`, `TENURE_MIDDLE` and `TENURE_KEY` the server's chain and key.
#![no_std]
#![no_main]

#[cfg(feature = "server")]
mod server;
#[cfg(feature = "resumption")]
#[path = "ticket.rs"]
mod ticket;
#[cfg(not(feature = "resumption"))]
#[path = "no_ticket.rs"]
mod ticket;
mod uart;

use core::alloc::{GlobalAlloc, Layout};
use core::panic::PanicInfo;
use core::ptr::{read_volatile, write_volatile};

use cortex_m::peripheral::syst::SystClkSource;
use semihosting::io::Write as _;
use semihosting::process::exit;
use tenure_crypto::{Group, Software};
use tenure_hal::{Entropy, EntropyError};
use tenure_tls::x509::{Anchor, ServerName, UnixTime};
use tenure_tls::{Client, ClientConfig, Event, Now, Suite, Trust};
use ticket::Kept;
use uart::Uart;

static ANCHOR: &[u8] = include_bytes!(env!("TENURE_ANCHOR"));
/// The bytes that are asked for: a line, which the server sends back reversed, or a page and what stands before it.
const MESSAGE_BYTES: usize = 1024;
const BUFFER_BYTES: usize = number(env!("TENURE_BUFFER"));
/// The clock ticks at 25 MHz; with `-icount shift=0` an instruction takes a nanosecond.
const INSTRUCTIONS_PER_TICK: u64 = 40;
const PAINT: u32 = 0xc5c5_c5c5;
/// Within the validity of what the benchmark makes; the build sets no clock.
const NOW: Now = Now { uptime_ms: 0, date: Some(UnixTime(number(env!("TENURE_DATE")) as i64)) };

/// There is no heap: whatever asks for one ends the measurement.
struct NoHeap;

// SAFETY: it hands out no memory.
unsafe impl GlobalAlloc for NoHeap {
    unsafe fn alloc(&self, _: Layout) -> *mut u8 {
        exit(8)
    }

    unsafe fn dealloc(&self, _: *mut u8, _: Layout) {}
}

#[global_allocator]
static HEAP: NoHeap = NoHeap;

static mut BUFFER: [u8; BUFFER_BYTES] = [0; BUFFER_BYTES];

const fn number(text: &str) -> usize {
    let (bytes, mut value, mut at) = (text.as_bytes(), 0, 0);
    while at < bytes.len() {
        value = value * 10 + (bytes[at] - b'0') as usize;
        at += 1;
    }
    value
}

unsafe extern "C" {
    static mut __sdata: u32;
    static mut __ebss: u32;
    static mut __sheap: u32;
    static _stack_start: u32;
}

/// Numbers for measuring alone: nobody may take them for random.
struct Predictable(u64);

impl Entropy for Predictable {
    fn fill(&mut self, bytes: &mut [u8]) -> Result<(), EntropyError> {
        for byte in bytes {
            self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            *byte = (self.0 >> 56) as u8;
        }
        Ok(())
    }
}

/// Counts the instructions of what it is asked to run, waiting for the server left out.
#[derive(Default)]
struct Meter {
    ticks: u64,
}

impl Meter {
    fn run<T>(&mut self, job: impl FnOnce() -> T) -> T {
        let before = cortex_m::peripheral::SYST::get_current();
        let result = job();
        let after = cortex_m::peripheral::SYST::get_current();
        // It counts down, in 24 bits.
        self.ticks += u64::from(before.wrapping_sub(after) & 0x00ff_ffff);
        result
    }

    fn instructions(&self) -> u64 {
        self.ticks * INSTRUCTIONS_PER_TICK
    }
}

#[cortex_m_rt::entry]
fn main() -> ! {
    let mut peripherals = cortex_m::Peripherals::take().unwrap_or_else(|| exit(2));
    peripherals.SYST.set_clock_source(SystClkSource::Core);
    peripherals.SYST.set_reload(0x00ff_ffff);
    peripherals.SYST.clear_current();
    peripherals.SYST.enable_counter();
    let bottom = (&raw mut __sheap).addr();
    paint_stack(bottom);
    let mut meter = Meter::default();
    let mut kept = Kept::none();
    let handshake = converse(&mut meter, 0, &mut kept);
    #[cfg(feature = "resumption")]
    {
        let first = meter.instructions();
        let handshake = converse(&mut meter, 1, &mut kept) - first;
        print("resumption_handshake_instructions", handshake);
        print("resumption_instructions", meter.instructions() - first);
        meter.ticks = first / INSTRUCTIONS_PER_TICK;
    }
    #[cfg(feature = "server")]
    {
        let client = meter.instructions();
        server::serve(&mut meter);
        print("server_instructions", meter.instructions() - client);
        meter.ticks = client / INSTRUCTIONS_PER_TICK;
        dump("after");
    }
    let untouched = (bottom..).step_by(4).take_while(|at| {
        // SAFETY: a word between the statics and the top of the stack.
        unsafe { read_volatile(*at as *const u32) == PAINT }
    });
    let top = (&raw const _stack_start).addr();
    let stack = top - bottom - 4 * untouched.count();
    let statics = (&raw mut __ebss).addr() - (&raw mut __sdata).addr();
    print("handshake_instructions", handshake);
    print("connection_instructions", meter.instructions());
    print("stack_ram", stack as u64);
    print("buffer_ram", BUFFER_BYTES as u64);
    print("all_ram", (stack + statics) as u64);
    exit(0)
}

#[inline(never)]
fn paint_stack(bottom: usize) {
    const SPARED_BYTES: usize = 64;
    let top = cortex_m::register::msp::read() as usize - SPARED_BYTES;
    for at in (bottom..top).step_by(4) {
        // SAFETY: below the stack pointer, above the statics: nobody's yet.
        unsafe { write_volatile(at as *mut u32, PAINT) };
    }
}

/// One connection over the UART `line`, resumed by the ticket that was kept; returns the instructions up to the end of its
/// handshake.
#[inline(never)]
fn converse(meter: &mut Meter, line: usize, kept: &mut Kept) -> u64 {
    let mut uart = Uart::enable(line);
    let before = kept.clone();
    let mut security = Software::new(Predictable(1));
    let Ok(anchor) = Anchor::from_certificate(ANCHOR) else { exit(3) };
    let anchors = [anchor];
    let config = ClientConfig {
        server_name: ServerName::Dns("server.test"),
        trust: Trust::Anchors { anchors: &anchors, without_date: &[] },
        suites: &[Suite::ChaCha20Poly1305Sha256],
        groups: &[Group::X25519],
        application_protocols: &[],
        identity: None,
        pre_shared_key: before.pre_shared_key(),
        early_data: false,
        handshake_ms_max: 10_000,
    };
    let buffer = &raw mut BUFFER;
    // SAFETY: the only reference while this function runs.
    let buffer = unsafe { &mut *buffer };
    let Ok(mut client) = Client::new(buffer, &config, &NOW) else { exit(4) };
    let (mut handshake, mut received) = (0, 0);
    loop {
        let event = meter.run(|| client.poll(&mut security, &NOW));
        let sent = client.output().len();
        uart.write(client.output());
        client.sent(sent);
        match event {
            Ok(Event::Connected) => {
                handshake = meter.instructions();
                #[cfg(feature = "resumption")]
                if client.is_resumed() != (line == 1) {
                    exit(10);
                }
                #[cfg(feature = "server")]
                dump("connected");
                let message = request();
                let taken = meter.run(|| client.send(&mut security, &message));
                if taken != Ok(message.len()) {
                    exit(5);
                }
                uart.write(client.output());
                client.sent(usize::MAX);
            }
            Ok(Event::Data) => {
                let length = client.data().len();
                received += length;
                #[cfg(feature = "server")]
                print_raw("page", client.data());
                client.consume(length);
                if received >= MESSAGE_BYTES {
                    meter.run(|| client.close(&mut security));
                    uart.write(client.output());
                    return handshake;
                }
            }
            Ok(Event::Idle) => {
                let length = receive_record(&mut uart, client.space());
                client.received(length);
            }
            #[cfg(feature = "resumption")]
            Ok(Event::Ticket) => {
                if let Some(ticket) = client.ticket() {
                    kept.keep(&ticket);
                }
            }
            Ok(_) => {}
            Err(_) => exit(6),
        }
    }
}

#[cfg(not(feature = "server"))]
fn request() -> [u8; MESSAGE_BYTES] {
    let mut message = [b'a'; MESSAGE_BYTES];
    message[MESSAGE_BYTES - 1] = b'\n';
    message
}

#[cfg(feature = "server")]
fn request() -> [u8; 27] {
    *b"GET /page.html HTTP/1.0\r\n\r\n"
}

/// Waits for one whole record, and returns how many bytes of `space` it takes.
fn receive_record(uart: &mut Uart, space: &mut [u8]) -> usize {
    const HEADER_BYTES: usize = 5;
    if space.len() < HEADER_BYTES {
        exit(7);
    }
    uart.read(&mut space[..HEADER_BYTES]);
    let length = usize::from(u16::from_be_bytes([space[3], space[4]]));
    let fitting = length.min(space.len() - HEADER_BYTES);
    uart.read(&mut space[HEADER_BYTES..HEADER_BYTES + fitting]);
    HEADER_BYTES + fitting
}

/// Prints all memory as it is.
#[cfg(feature = "server")]
#[inline(never)]
fn dump(name: &str) {
    const RAM: usize = 0x2000_0000;
    const RAM_BYTES: usize = 32 << 10;
    const CHUNK_BYTES: usize = 32;
    for start in (RAM..RAM + RAM_BYTES).step_by(CHUNK_BYTES) {
        // SAFETY: memory, of which any byte may be read.
        let chunk: [u8; CHUNK_BYTES] =
            core::array::from_fn(|at| unsafe { read_volatile((start + at) as *const u8) });
        print_raw(name, &chunk);
    }
}

/// Prints `name`, the length of `bytes`, and `bytes` as they are.
#[cfg(feature = "server")]
fn print_raw(name: &str, bytes: &[u8]) {
    print(name, bytes.len() as u64);
    let Ok(mut output) = semihosting::io::stdout() else { exit(9) };
    if output.write_all(bytes).is_err() {
        exit(9);
    }
}

/// Prints `name` and `value` in hexadecimal digits. Formatting would count as flash that no device needs.
fn print(name: &str, value: u64) {
    let mut digits = [0; 16];
    for (place, digit) in digits.iter_mut().enumerate() {
        *digit = b"0123456789abcdef"[(value >> (60 - 4 * place)) as usize & 15];
    }
    let Ok(mut output) = semihosting::io::stdout() else { exit(9) };
    for part in [name.as_bytes(), b" ", &digits, b"\n"] {
        if output.write_all(part).is_err() {
            exit(9);
        }
    }
}

#[panic_handler]
fn panic(_: &PanicInfo<'_>) -> ! {
    exit(1)
}
