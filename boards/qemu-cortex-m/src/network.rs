//! The network card: SMSC's LAN9118, as smoltcp wants a device.
//!
//! "Datasheet" is SMSC's of the LAN9118, revision 1.3. The card keeps frames in queues of its own;
//! a frame passes through the registers of its queues word by word.

use alloc::boxed::Box;

use smoltcp::phy::{Device, DeviceCapabilities, Medium, RxToken, TxToken};
use smoltcp::time::Instant;

use tenure_board_qemu_cortex_m::registers::Registers;

// SAFETY: the card of the machine (Arm DAI 0385D, table 3-1).
const CARD: Registers = unsafe { Registers::at(0x4020_0000) };

// Registers, datasheet 5.3.
const RECEIVED_DATA: usize = 0x00;
const TRANSMIT_DATA: usize = 0x20;
const RECEIVED_STATUS: usize = 0x40;
const TRANSMIT_STATUS: usize = 0x48;
const INTERRUPT_CONFIGURATION: usize = 0x54;
const INTERRUPT_STATUS: usize = 0x58;
const INTERRUPT_ENABLE: usize = 0x5C;
const BYTE_ORDER: usize = 0x64;
const QUEUE_LEVELS: usize = 0x68;
const TRANSMIT_CONFIGURATION: usize = 0x70;
const HARDWARE_CONFIGURATION: usize = 0x74;
const RECEIVED_LEVEL: usize = 0x7C;
const TRANSMIT_LEVEL: usize = 0x80;
const MAC_COMMAND: usize = 0xA4;
const MAC_DATA: usize = 0xA8;

/// The value that `BYTE_ORDER` reads as.
const LITTLE_ENDIAN: u32 = 0x8765_4321;
/// The card is being reset, datasheet 5.3.9.
const RESET: u32 = 1;
/// Interrupts on, active high, push-pull: 5.3.2.
const INTERRUPT_ON: u32 = 1 << 8 | 1 << 4 | 1;
/// More frames have arrived than the level says, which is none: 5.3.3 and 5.3.7.
const FRAME_ARRIVED: u32 = 1 << 3;
/// 5.3.8.
const TRANSMITTER_ON: u32 = 1 << 1;
/// One whole frame in one buffer: 3.12.2.
const WHOLE_FRAME: u32 = 1 << 13 | 1 << 12;
/// A frame arrived with an error: 3.13.3.
const FRAME_DAMAGED: u32 = 1 << 15;

// Registers of the card's MAC, 5.4, reached through a command.
const MAC_CONTROL: u32 = 1;
const MAC_ADDRESS_HIGH: u32 = 2;
const MAC_ADDRESS_LOW: u32 = 3;
const MAC_BUSY: u32 = 1 << 31;
const MAC_READ: u32 = 1 << 30;
/// Transmitter and receiver on, both directions at a time: 5.4.1.
const MAC_ON: u32 = 1 << 20 | 1 << 3 | 1 << 2;

const WORD_BYTES: usize = 4;
const FRAME_BYTES: usize = 1514;
/// The checksum behind a frame that arrives.
const CHECKSUM_BYTES: usize = 4;
const BUFFER_BYTES: usize = (FRAME_BYTES + CHECKSUM_BYTES).next_multiple_of(WORD_BYTES);
/// Bytes that a frame takes of the transmit queue beside its own: two command words, rounding up.
const COMMAND_BYTES: usize = 3 * WORD_BYTES;

/// The machine's card.
pub(crate) struct Lan9118 {
    buffer: Box<[u8; BUFFER_BYTES]>,
}

impl Lan9118 {
    /// Takes the card into use, if it answers.
    pub(crate) fn find() -> Option<Self> {
        if CARD.read(BYTE_ORDER) != LITTLE_ENDIAN {
            return None;
        }
        CARD.write(HARDWARE_CONFIGURATION, RESET);
        while CARD.read(HARDWARE_CONFIGURATION) & RESET != 0 {}
        CARD.write(TRANSMIT_CONFIGURATION, TRANSMITTER_ON);
        mac_write(MAC_CONTROL, MAC_ON);
        CARD.write(QUEUE_LEVELS, 0);
        CARD.write(INTERRUPT_STATUS, u32::MAX);
        CARD.write(INTERRUPT_ENABLE, FRAME_ARRIVED);
        CARD.write(INTERRUPT_CONFIGURATION, INTERRUPT_ON);
        Some(Self { buffer: Box::new([0; BUFFER_BYTES]) })
    }

    /// The address that the card has read from its EEPROM.
    pub(crate) fn hardware_address(&self) -> [u8; 6] {
        let [a, b, c, d] = mac_read(MAC_ADDRESS_LOW).to_le_bytes();
        let [e, f, ..] = mac_read(MAC_ADDRESS_HIGH).to_le_bytes();
        [a, b, c, d, e, f]
    }

    /// Ends the interrupt; called before what has arrived is taken.
    pub(crate) fn acknowledge_interrupt(&mut self) {
        CARD.write(INTERRUPT_STATUS, FRAME_ARRIVED);
    }

    /// Takes the next sound frame out of the card; gives its length.
    fn arrived(&mut self) -> Option<usize> {
        while frames_waiting() > 0 {
            let status = CARD.read(RECEIVED_STATUS);
            let length = (status >> 16 & 0x3FFF) as usize;
            let mut read = 0;
            while read < length {
                let word = CARD.read(RECEIVED_DATA).to_le_bytes();
                if let Some(room) = self.buffer.get_mut(read..read + WORD_BYTES) {
                    room.copy_from_slice(&word);
                }
                read += WORD_BYTES;
            }
            let sound = status & FRAME_DAMAGED == 0;
            if sound && (CHECKSUM_BYTES..=FRAME_BYTES + CHECKSUM_BYTES).contains(&length) {
                return Some(length - CHECKSUM_BYTES);
            }
        }
        None
    }
}

/// How many frames the card holds.
fn frames_waiting() -> u32 {
    CARD.read(RECEIVED_LEVEL) >> 16 & 0xFF
}

/// Whether the transmit queue has room for the longest frame.
fn can_send() -> bool {
    // The card's word on frames that it has sent must be taken, or its queue of that fills up.
    while CARD.read(TRANSMIT_LEVEL) >> 16 & 0xFF > 0 {
        CARD.read(TRANSMIT_STATUS);
    }
    let free = CARD.read(TRANSMIT_LEVEL) & 0xFFFF;
    free as usize >= FRAME_BYTES + COMMAND_BYTES
}

fn send(frame: &[u8]) {
    let length = frame.len() as u32;
    CARD.write(TRANSMIT_DATA, WHOLE_FRAME | length);
    CARD.write(TRANSMIT_DATA, length);
    for part in frame.chunks(WORD_BYTES) {
        let mut word = [0; WORD_BYTES];
        word[..part.len()].copy_from_slice(part);
        CARD.write(TRANSMIT_DATA, u32::from_le_bytes(word));
    }
}

fn mac_read(register: u32) -> u32 {
    CARD.write(MAC_COMMAND, MAC_BUSY | MAC_READ | register);
    while CARD.read(MAC_COMMAND) & MAC_BUSY != 0 {}
    CARD.read(MAC_DATA)
}

fn mac_write(register: u32, word: u32) {
    CARD.write(MAC_DATA, word);
    CARD.write(MAC_COMMAND, MAC_BUSY | register);
    while CARD.read(MAC_COMMAND) & MAC_BUSY != 0 {}
}

/// A frame that has arrived.
pub(crate) struct Arrived<'a>(&'a [u8]);

impl RxToken for Arrived<'_> {
    fn consume<R, F: FnOnce(&[u8]) -> R>(self, take: F) -> R {
        take(self.0)
    }
}

/// Room for a frame that leaves.
pub(crate) struct Leaves;

impl TxToken for Leaves {
    fn consume<R, F: FnOnce(&mut [u8]) -> R>(self, length: usize, fill: F) -> R {
        let mut frame = [0; FRAME_BYTES];
        let result = fill(&mut frame[..length]);
        send(&frame[..length]);
        result
    }
}

impl Device for Lan9118 {
    type RxToken<'a> = Arrived<'a>;
    type TxToken<'a> = Leaves;

    fn receive(&mut self, _: Instant) -> Option<(Arrived<'_>, Leaves)> {
        // Each frame may want an answer.
        if !can_send() {
            return None;
        }
        let length = self.arrived()?;
        Some((Arrived(&self.buffer[..length]), Leaves))
    }

    fn transmit(&mut self, _: Instant) -> Option<Leaves> {
        can_send().then_some(Leaves)
    }

    fn capabilities(&self) -> DeviceCapabilities {
        let mut capabilities = DeviceCapabilities::default();
        capabilities.medium = Medium::Ethernet;
        capabilities.max_transmission_unit = FRAME_BYTES;
        capabilities
    }
}
