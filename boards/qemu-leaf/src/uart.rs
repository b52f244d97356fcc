//! The three UARTs: Arm's PL011 as Luminary built it in (LM3S6965 data sheet, chapter 13). The first is
//! the console, the others are lines.

use core::fmt;

use tenure_hal::LinkError;
use tenure_mesh::Port;

use crate::inbox::Inbox;
use crate::registers::Registers;

const DATA: usize = 0x00;
const FLAGS: usize = 0x18;
const DIVISOR: usize = 0x24;
const DIVISOR_FRACTION: usize = 0x28;
const LINE_CONTROL: usize = 0x2C;
const CONTROL: usize = 0x30;
const INTERRUPT_MASK: usize = 0x38;
const INTERRUPT_CLEAR: usize = 0x44;

const TRANSMIT_FULL: u32 = 1 << 5;
const RECEIVE_EMPTY: u32 = 1 << 4;
/// Eight bits, no parity, queues of 16 bytes.
const EIGHT_BITS_QUEUED: u32 = 0b11 << 5 | 1 << 4;
const ENABLED: u32 = 1 << 9 | 1 << 8 | 1;
/// Something has come, or has been there for a while.
const RECEIVED: u32 = 1 << 6 | 1 << 4;
/// 115,200 bits a second at 50 MHz: 27 and 8/64.
const DIVIDED_BY: (u32, u32) = (27, 8);

/// One of the UARTs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Uart(Registers);

// SAFETY: UART 0, 1 and 2 of the chip (data sheet, table 2-1).
const CONSOLE: Uart = Uart(unsafe { Registers::at(0x4000_C000) });
// SAFETY: as above.
const MESH: Uart = Uart(unsafe { Registers::at(0x4000_D000) });
// SAFETY: as above.
const SERVICE: Uart = Uart(unsafe { Registers::at(0x4000_E000) });

/// Bytes that have come over each line and weren't taken yet.
static FROM_MESH: Inbox = Inbox::new();
static FROM_SERVICE: Inbox = Inbox::new();

/// Lets the UARTs send, and the lines receive.
pub(crate) fn init() {
    CONSOLE.init();
    for line in [MESH, SERVICE] {
        line.init();
        line.0.write(INTERRUPT_MASK, RECEIVED);
    }
}

/// The handler of a line's interrupt: takes all that its UART holds.
pub(crate) fn take_from_mesh() {
    MESH.take_into(&FROM_MESH);
}

/// As [`take_from_mesh`].
pub(crate) fn take_from_service() {
    SERVICE.take_into(&FROM_SERVICE);
}

/// Whether something has come that wasn't taken yet. Asked with interrupts off.
pub(crate) fn has_arrived() -> bool {
    !FROM_MESH.is_empty() || !FROM_SERVICE.is_empty()
}

impl Uart {
    fn init(self) {
        self.0.write(CONTROL, 0);
        self.0.write(DIVISOR, DIVIDED_BY.0);
        self.0.write(DIVISOR_FRACTION, DIVIDED_BY.1);
        self.0.write(LINE_CONTROL, EIGHT_BITS_QUEUED);
        self.0.write(CONTROL, ENABLED);
    }

    fn take_into(self, inbox: &Inbox) {
        self.0.write(INTERRUPT_CLEAR, RECEIVED);
        while self.0.read(FLAGS) & RECEIVE_EMPTY == 0 {
            // A byte that finds no room is lost, and with it the frame: it will be sent again.
            inbox.push(self.0.read(DATA) as u8);
        }
    }

    fn try_send(self, byte: u8) -> bool {
        let has_room = self.0.read(FLAGS) & TRANSMIT_FULL == 0;
        if has_room {
            self.0.write(DATA, byte.into());
        }
        has_room
    }
}

/// The console.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Console;

impl fmt::Write for Console {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        for byte in text.bytes() {
            while !CONSOLE.try_send(byte) {}
        }
        Ok(())
    }
}

/// One of the two lines.
#[derive(Debug)]
pub(crate) struct Line {
    uart: Uart,
    inbox: &'static Inbox,
}

impl Line {
    /// The line to the next device, which frames of the mesh cross.
    pub(crate) const MESH: Self = Self { uart: MESH, inbox: &FROM_MESH };
    /// The line at which its owner sits, or another device.
    pub(crate) const SERVICE: Self = Self { uart: SERVICE, inbox: &FROM_SERVICE };
}

impl Port for Line {
    fn read(&mut self, into: &mut [u8]) -> Result<usize, LinkError> {
        let taken = into.iter_mut().zip(core::iter::from_fn(|| self.inbox.pop()));
        Ok(taken.map(|(room, byte)| *room = byte).count())
    }

    fn write(&mut self, bytes: &[u8]) -> Result<usize, LinkError> {
        Ok(bytes.iter().take_while(|byte| self.uart.try_send(**byte)).count())
    }
}
