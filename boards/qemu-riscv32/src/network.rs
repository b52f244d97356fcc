//! The network card: virtio-net, as smoltcp wants a device.

use alloc::boxed::Box;
use core::array;
use core::cell::Cell;
use core::ops::Range;

use smoltcp::phy::{Device, DeviceCapabilities, Medium, RxToken, TxToken};
use smoltcp::time::Instant;
use virtio_drivers::device::net::VirtIONetRaw;
use virtio_drivers::transport::DeviceType;
use virtio_drivers::transport::mmio::MmioTransport;

use crate::virtio::{self, Direct};

/// A frame with its header, rounded up; the driver takes no shorter buffer for what arrives.
const BUFFER_BYTES: usize = 1536;
const FRAME_BYTES: usize = 1514;
/// Frames that may arrive between two turns.
const ARRIVING: usize = 6;
const QUEUE: usize = 8;

type Buffer = Box<[u8; BUFFER_BYTES]>;
type Raw = VirtIONetRaw<Direct, MmioTransport<'static>, QUEUE>;

/// The machine's card.
pub(crate) struct VirtioCard {
    interrupt: u32,
    /// Lent to the card, with the token that it knows each by; `None` while we read one.
    arriving: [Option<(u16, Buffer)>; ARRIVING],
    /// A buffer that has been read.
    read: Cell<Option<Buffer>>,
    sender: Sender,
}

/// The half that sends.
struct Sender {
    raw: Raw,
    buffer: Buffer,
    /// The token of what the card hasn't sent yet.
    under_way: Option<u16>,
}

impl VirtioCard {
    /// The first that the machine has.
    pub(crate) fn find() -> Option<Self> {
        let (transport, interrupt) = virtio::find(DeviceType::Network)?;
        let mut raw = VirtIONetRaw::new(transport).ok()?;
        let arriving = array::from_fn(|_| lend(&mut raw, Box::new([0; BUFFER_BYTES])));
        let sender = Sender { raw, buffer: Box::new([0; BUFFER_BYTES]), under_way: None };
        Some(Self { interrupt, arriving, read: Cell::new(None), sender })
    }

    /// The number of its interrupt.
    pub(crate) fn interrupt(&self) -> u32 {
        self.interrupt
    }

    pub(crate) fn hardware_address(&self) -> [u8; 6] {
        self.sender.raw.mac_address()
    }

    pub(crate) fn acknowledge_interrupt(&mut self) {
        self.sender.raw.ack_interrupt();
    }

    /// A frame that has arrived: its buffer, and where in it the frame lies.
    fn arrived(&mut self) -> Option<(Buffer, Range<usize>)> {
        let token = self.sender.raw.poll_receive()?;
        let lent = |slot: &&mut Option<(u16, Buffer)>| {
            slot.as_ref().is_some_and(|(number, _)| *number == token)
        };
        let (_, mut buffer) = self.arriving.iter_mut().find(lent)?.take()?;
        // SAFETY: the buffer that was lent under this token.
        let received = unsafe { self.sender.raw.receive_complete(token, &mut buffer[..]) };
        match received {
            Ok((header, length)) if header + length <= BUFFER_BYTES => {
                Some((buffer, header..header + length))
            }
            _ => {
                self.give_back(buffer);
                None
            }
        }
    }

    fn give_back(&mut self, buffer: Buffer) {
        if let Some(slot) = self.arriving.iter_mut().find(|slot| slot.is_none()) {
            *slot = lend(&mut self.sender.raw, buffer);
        }
    }
}

/// Lends the card a buffer to fill; the queue has room for all of them.
fn lend(raw: &mut Raw, mut buffer: Buffer) -> Option<(u16, Buffer)> {
    // SAFETY: the buffer is kept, untouched and in its place, until it is completed.
    let token = unsafe { raw.receive_begin(&mut buffer[..]) }.ok()?;
    Some((token, buffer))
}

impl Sender {
    /// Whether the buffer is free.
    fn is_free(&mut self) -> bool {
        if let Some(token) = self.under_way
            && self.raw.poll_transmit() == Some(token)
        {
            // SAFETY: the buffer that was lent under this token.
            let _ = unsafe { self.raw.transmit_complete(token, &self.buffer[..]) };
            self.under_way = None;
        }
        self.under_way.is_none()
    }
}

/// A frame that has arrived.
pub(crate) struct Arrived<'a> {
    buffer: Option<Buffer>,
    frame: Range<usize>,
    read: &'a Cell<Option<Buffer>>,
}

impl Drop for Arrived<'_> {
    fn drop(&mut self) {
        self.read.set(self.buffer.take());
    }
}

impl RxToken for Arrived<'_> {
    fn consume<R, F: FnOnce(&[u8]) -> R>(self, take: F) -> R {
        take(self.buffer.as_ref().map_or(&[], |buffer| &buffer[self.frame.clone()]))
    }
}

/// Room for a frame that leaves.
pub(crate) struct Leaves<'a>(&'a mut Sender);

impl TxToken for Leaves<'_> {
    fn consume<R, F: FnOnce(&mut [u8]) -> R>(self, length: usize, fill: F) -> R {
        let Sender { raw, buffer, under_way } = self.0;
        let header = raw.fill_buffer_header(&mut buffer[..]).unwrap_or(0);
        let result = fill(&mut buffer[header..header + length]);
        // SAFETY: the buffer isn't touched before `is_free` has taken it back.
        *under_way = unsafe { raw.transmit_begin(&buffer[..header + length]) }.ok();
        result
    }
}

impl Device for VirtioCard {
    type RxToken<'a> = Arrived<'a>;
    type TxToken<'a> = Leaves<'a>;

    fn receive(&mut self, _: Instant) -> Option<(Arrived<'_>, Leaves<'_>)> {
        if let Some(buffer) = self.read.take() {
            self.give_back(buffer);
        }
        // Each frame may want an answer.
        if !self.sender.is_free() {
            return None;
        }
        let (buffer, frame) = self.arrived()?;
        let arrived = Arrived { buffer: Some(buffer), frame, read: &self.read };
        Some((arrived, Leaves(&mut self.sender)))
    }

    fn transmit(&mut self, _: Instant) -> Option<Leaves<'_>> {
        self.sender.is_free().then_some(Leaves(&mut self.sender))
    }

    fn capabilities(&self) -> DeviceCapabilities {
        let mut capabilities = DeviceCapabilities::default();
        capabilities.medium = Medium::Ethernet;
        capabilities.max_transmission_unit = FRAME_BYTES;
        capabilities
    }
}
