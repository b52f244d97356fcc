//! Raw frames of the mesh beside IP on one Ethernet card.
//!
//! The IP stack polls the card. Frames of the mesh's EtherType are taken out before it sees them, and
//! those that leave wait until it has polled. Both queues are short, and what is too much is lost, as
//! it might be on the way.

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::rc::Rc;
use alloc::vec::Vec;
use core::cell::RefCell;

use smoltcp::phy::{Device, DeviceCapabilities, RxToken, TxToken};
use smoltcp::time::Instant;
use tenure_hal::ethernet::{
    MacAddress, PACKET_BYTES_MAX, PACKET_HEADER_BYTES, is_packet, packet_header, parse_packet,
};
use tenure_hal::{Link, LinkError};

#[cfg(test)]
mod tests;

const FRAME_BYTES: usize = PACKET_HEADER_BYTES + PACKET_BYTES_MAX;
/// Frames that wait to be taken, and to be sent.
const ARRIVED_MAX: usize = 8;
const LEAVING_MAX: usize = 8;
/// The most frames of the mesh that one look at the card takes: more than a card holds, so that none is
/// left there without another interrupt.
const TAKEN_MAX: usize = 128;

#[derive(Default)]
struct Queues {
    arrived: VecDeque<Vec<u8>>,
    leaving: VecDeque<Vec<u8>>,
}

/// A card without the mesh's frames, for the IP stack.
pub(crate) struct TappedCard<D> {
    card: D,
    queues: Rc<RefCell<Queues>>,
    frame: Box<[u8; FRAME_BYTES]>,
}

/// The mesh's frames alone.
pub(crate) struct FrameLink {
    queues: Rc<RefCell<Queues>>,
    address: MacAddress,
}

/// Divides a card with that address.
pub(crate) fn tap<D: Device>(card: D, address: MacAddress) -> (TappedCard<D>, FrameLink) {
    let queues = Rc::new(RefCell::new(Queues::default()));
    let frame = Box::new([0; FRAME_BYTES]);
    (TappedCard { card, queues: queues.clone(), frame }, FrameLink { queues, address })
}

impl<D: Device> TappedCard<D> {
    /// The card.
    pub(crate) fn card(&mut self) -> &mut D {
        &mut self.card
    }

    /// Sends the mesh's frames that wait, as far as the card takes them.
    pub(crate) fn flush(&mut self, now: Instant) {
        while !self.queues.borrow().leaving.is_empty() {
            let Some(token) = self.card.transmit(now) else { return };
            let Some(frame) = self.queues.borrow_mut().leaving.pop_front() else { return };
            token.consume(frame.len(), |room| room.copy_from_slice(&frame));
        }
    }

    /// Takes the next frame that isn't the mesh's out of the card; gives its length.
    fn take_other(&mut self, now: Instant) -> Option<usize> {
        for _ in 0..TAKEN_MAX {
            let (token, _) = self.card.receive(now)?;
            let frame = &mut self.frame;
            let length = token.consume(|bytes| {
                let room = frame.get_mut(..bytes.len())?;
                room.copy_from_slice(bytes);
                Some(bytes.len())
            });
            let Some(length) = length else { continue };
            if !is_packet(&self.frame[..length]) {
                return Some(length);
            }
            let mut queues = self.queues.borrow_mut();
            if queues.arrived.len() < ARRIVED_MAX {
                queues.arrived.push_back(self.frame[..length].to_vec());
            }
        }
        None
    }
}

/// A frame that has arrived.
pub(crate) struct Other<'a>(&'a [u8]);

impl RxToken for Other<'_> {
    fn consume<R, F: FnOnce(&[u8]) -> R>(self, take: F) -> R {
        take(self.0)
    }
}

impl<D: Device> Device for TappedCard<D> {
    type RxToken<'a>
        = Other<'a>
    where
        D: 'a;
    type TxToken<'a>
        = D::TxToken<'a>
    where
        D: 'a;

    fn receive(&mut self, now: Instant) -> Option<(Other<'_>, D::TxToken<'_>)> {
        let length = self.take_other(now)?;
        // A card that can't send now has given no frame before; if it can't any more, this one is lost.
        let answer = self.card.transmit(now)?;
        Some((Other(&self.frame[..length]), answer))
    }

    fn transmit(&mut self, now: Instant) -> Option<D::TxToken<'_>> {
        self.card.transmit(now)
    }

    fn capabilities(&self) -> DeviceCapabilities {
        self.card.capabilities()
    }
}

impl Link for FrameLink {
    type Address = MacAddress;

    fn datagram_bytes_max(&self) -> usize {
        PACKET_BYTES_MAX
    }

    fn send(&mut self, to: &MacAddress, datagram: &[u8]) -> Result<(), LinkError> {
        if datagram.len() > PACKET_BYTES_MAX {
            return Err(LinkError::TooLong);
        }
        let mut queues = self.queues.borrow_mut();
        if queues.leaving.len() >= LEAVING_MAX {
            return Err(LinkError::Busy);
        }
        let header = packet_header(*to, self.address, datagram.len());
        queues.leaving.push_back([&header, datagram].concat());
        Ok(())
    }

    fn receive(&mut self, into: &mut [u8]) -> Result<Option<(usize, MacAddress)>, LinkError> {
        while let Some(frame) = self.queues.borrow_mut().arrived.pop_front() {
            if let Some((datagram, from)) = parse_packet(&frame)
                && let Some(into) = into.get_mut(..datagram.len())
            {
                into.copy_from_slice(datagram);
                return Ok(Some((datagram.len(), from)));
            }
        }
        Ok(None)
    }
}
