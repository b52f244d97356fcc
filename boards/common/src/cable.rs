//! A cable between two cards, for tests.

use alloc::collections::VecDeque;
use alloc::rc::Rc;
use alloc::vec;
use alloc::vec::Vec;
use core::cell::RefCell;

use smoltcp::phy::{Device, DeviceCapabilities, Medium, RxToken, TxToken};

/// Frames on the way in one direction.
pub(crate) type Frames = Rc<RefCell<VecDeque<Vec<u8>>>>;

/// One end of a cable.
pub(crate) struct Card {
    pub(crate) arriving: Frames,
    pub(crate) leaving: Frames,
}

pub(crate) struct Arrived(Vec<u8>);

impl RxToken for Arrived {
    fn consume<R, F: FnOnce(&[u8]) -> R>(self, take: F) -> R {
        take(&self.0)
    }
}

pub(crate) struct Leaves<'a>(&'a Frames);

impl TxToken for Leaves<'_> {
    fn consume<R, F: FnOnce(&mut [u8]) -> R>(self, length: usize, fill: F) -> R {
        let mut frame = vec![0; length];
        let result = fill(&mut frame);
        self.0.borrow_mut().push_back(frame);
        result
    }
}

impl Device for Card {
    type RxToken<'a> = Arrived;
    type TxToken<'a> = Leaves<'a>;

    fn receive(&mut self, _: smoltcp::time::Instant) -> Option<(Arrived, Leaves<'_>)> {
        let frame = self.arriving.borrow_mut().pop_front()?;
        Some((Arrived(frame), Leaves(&self.leaving)))
    }

    fn transmit(&mut self, _: smoltcp::time::Instant) -> Option<Leaves<'_>> {
        Some(Leaves(&self.leaving))
    }

    fn capabilities(&self) -> DeviceCapabilities {
        let mut capabilities = DeviceCapabilities::default();
        capabilities.medium = Medium::Ethernet;
        capabilities.max_transmission_unit = 1514;
        capabilities
    }
}
