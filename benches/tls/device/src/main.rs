//! A TLS client on a bare Cortex-M whose UART is the server's byte stream: one full handshake with chain
//! validation, 1 KB out and back; prints what that took.
//!
//! `TENURE_ANCHOR` names the authority's certificate when it is built, `TENURE_BUFFER` the buffer's bytes.
#![no_std]
#![no_main]

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

static ANCHOR: &[u8] = include_bytes!(env!("TENURE_ANCHOR"));
/// The request: a line, which the server sends back reversed.
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

/// The first UART of an mps2 (ARM DUI 0479, CMSDK).
struct Uart;

impl Uart {
    const DATA: *mut u32 = 0x4000_4000 as *mut u32;
    const STATE: *mut u32 = 0x4000_4004 as *mut u32;
    const CONTROL: *mut u32 = 0x4000_4008 as *mut u32;
    const DIVISOR: *mut u32 = 0x4000_4010 as *mut u32;

    fn enable() -> Self {
        // SAFETY: the registers of this UART, which nothing else uses.
        unsafe {
            write_volatile(Self::DIVISOR, 16);
            write_volatile(Self::CONTROL, 3);
        }
        Self
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            // SAFETY: as above; bit 0 says that there is no room.
            unsafe {
                while read_volatile(Self::STATE) & 1 != 0 {}
                write_volatile(Self::DATA, u32::from(*byte));
            }
        }
    }

    fn read(&mut self, bytes: &mut [u8]) {
        for byte in bytes {
            // SAFETY: as above; bit 1 says that there is a byte.
            unsafe {
                while read_volatile(Self::STATE) & 2 == 0 {}
                *byte = read_volatile(Self::DATA) as u8;
            }
        }
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
    let handshake = converse(&mut meter);
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

/// One connection; returns the instructions of its handshake.
#[inline(never)]
fn converse(meter: &mut Meter) -> u64 {
    let mut uart = Uart::enable();
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
        pre_shared_key: None,
        early_data: false,
        handshake_ms_max: 10_000,
    };
    let buffer = &raw mut BUFFER;
    // SAFETY: the only reference; this function is called once.
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
                let mut message = [b'a'; MESSAGE_BYTES];
                message[MESSAGE_BYTES - 1] = b'\n';
                let taken = meter.run(|| client.send(&mut security, &message));
                if taken != Ok(MESSAGE_BYTES) {
                    exit(5);
                }
                uart.write(client.output());
                client.sent(usize::MAX);
            }
            Ok(Event::Data) => {
                let length = client.data().len();
                received += length;
                client.consume(length);
                if received >= MESSAGE_BYTES {
                    meter.run(|| client.close(&mut security));
                    uart.write(client.output());
                    return handshake;
                }
            }
            Ok(Event::Idle) => receive_record(&mut uart, &mut client),
            Ok(_) => {}
            Err(_) => exit(6),
        }
    }
}

/// Waits for one whole record.
fn receive_record(uart: &mut Uart, client: &mut Client<'_, '_>) {
    const HEADER_BYTES: usize = 5;
    let space = client.space();
    if space.len() < HEADER_BYTES {
        exit(7);
    }
    uart.read(&mut space[..HEADER_BYTES]);
    let length = usize::from(u16::from_be_bytes([space[3], space[4]]));
    let fitting = length.min(space.len() - HEADER_BYTES);
    uart.read(&mut space[HEADER_BYTES..HEADER_BYTES + fitting]);
    client.received(HEADER_BYTES + fitting);
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
