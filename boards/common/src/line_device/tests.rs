use alloc::format;
use alloc::rc::Rc;
use alloc::string::String;
use core::cell::{Cell, RefCell};

use tenure_hal::simulated::{RamFlash, Sequence};
use tenure_hal::{FlashError, FlashGeometry, ResetCause, UnixTime};
use tenure_mesh::{Deframer, frame_for_serial};
use tenure_rpc::{Config as RpcConfig, Endpoint, Event};
use tenure_wire::{PublicKey, VerifyingKey};

use super::*;
use crate::layout::Layout;

/// One end of a line: bytes that come, and bytes that leave.
#[derive(Clone, Default)]
struct Cable {
    arriving: Rc<RefCell<Vec<u8>>>,
    leaving: Rc<RefCell<Vec<u8>>>,
}

impl Port for Cable {
    fn read(&mut self, into: &mut [u8]) -> Result<usize, LinkError> {
        let mut arriving = self.arriving.borrow_mut();
        let length = arriving.len().min(into.len());
        into[..length].copy_from_slice(&arriving[..length]);
        arriving.drain(..length);
        Ok(length)
    }

    fn write(&mut self, bytes: &[u8]) -> Result<usize, LinkError> {
        self.leaving.borrow_mut().extend_from_slice(bytes);
        Ok(bytes.len())
    }
}

#[derive(Clone)]
struct Watch(Rc<Cell<Instant>>);

impl Clock for Watch {
    fn now(&self) -> Instant {
        self.0.get()
    }

    fn unix_time(&self) -> Option<UnixTime> {
        None
    }
}

struct Supply;

impl Power for Supply {
    fn reset_cause(&self) -> ResetCause {
        ResetCause::PowerOn
    }

    fn retained(&mut self) -> &mut [u8] {
        &mut []
    }

    fn feed_watchdog(&mut self) {}

    fn deep_sleep(&mut self, _: Option<Instant>) {}

    fn reset(&mut self) {}
}

impl Retained for Supply {
    fn write(&mut self, _: &[u8]) {}
}

/// One flash with a handle for each part.
#[derive(Clone)]
struct Shared(Rc<RefCell<RamFlash>>);

impl Flash for Shared {
    fn geometry(&self) -> FlashGeometry {
        self.0.borrow().geometry()
    }

    fn read(&mut self, offset: u32, into: &mut [u8]) -> Result<(), FlashError> {
        self.0.borrow_mut().read(offset, into)
    }

    fn program(&mut self, offset: u32, bytes: &[u8]) -> Result<(), FlashError> {
        self.0.borrow_mut().program(offset, bytes)
    }

    fn erase(&mut self, sector: u32) -> Result<(), FlashError> {
        self.0.borrow_mut().erase(sector)
    }

    fn mapped(&self) -> Option<&[u8]> {
        None
    }
}

fn heap() -> HeapUse {
    HeapUse { used_bytes: 0, peak_bytes: 0, total_bytes: 1 << 20 }
}

/// A flash of 2 MiB with settings in it.
fn flash() -> Shared {
    let geometry = FlashGeometry { sector_bytes: 4096, sector_count: 512, program_bytes: 4 };
    let mut flash = RamFlash::new(geometry);
    let owner = format!("{}/{}", VerifyingKey([1; 32]), PublicKey([2; 32]));
    let mut sector = format!("name=pico\nowner={owner}\n").into_bytes();
    sector.resize(sector.len().next_multiple_of(4), 0xFF);
    flash.program(tenure_boot::map::SETTINGS.offset(), &sector).unwrap();
    Shared(Rc::new(RefCell::new(flash)))
}

/// The frames that left by a line since it was looked at last.
fn left_by(line: &Cable) -> Vec<Vec<u8>> {
    let mut deframer = Deframer::new(FRAME_BYTES_MAX);
    let bytes = core::mem::take(&mut *line.leaving.borrow_mut());
    bytes.into_iter().filter_map(|byte| Some(deframer.push(byte)?.ok()?.to_vec())).collect()
}

#[test]
fn a_node_answers_at_the_line_at_which_it_is_asked_and_at_no_other() {
    let clock = Watch(Rc::new(Cell::new(Instant::BOOT)));
    let cables = [Cable::default(), Cable::default()];
    let flash = flash();
    let board = LineBoard {
        model: ("test", Duration::from_secs(8), [0x1001_0000, 0x100F_0000]),
        flash: Layout::TWO_MIB.divide(|| flash.clone()).unwrap(),
        lines: cables.to_vec(),
        greeted: 0,
        clock: clock.clone(),
        entropy: Sequence(1),
        console: String::new(),
        power: Supply,
        retained: Box::new(Supply),
        heap,
    };
    let mut device = LineDevice::start(board, crate::small_class).unwrap();
    assert!(device.console.contains("device pico listens on its lines"));
    for asked in [0, 1] {
        let (now, mut entropy) = (clock.now(), Sequence(5 + asked as u64));
        let mut asking = Endpoint::<()>::new(RpcConfig::default(), now, &mut entropy).unwrap();
        asking.identify(now, (), now + Duration::from_secs(2)).unwrap();
        let mut bytes = Vec::new();
        while let Some(((), datagram)) = asking.transmit() {
            frame_for_serial(&datagram, &mut bytes);
        }
        cables[asked].arriving.borrow_mut().extend(bytes);
        device.turn();
        device.turn();
        for frame in left_by(&cables[asked]) {
            asking.receive(now, &mut entropy, (), &frame);
        }
        let event = asking.event();
        assert!(matches!(event, Some(Event::Identified { identity: Some(_), .. })), "line {asked}");
        assert!(left_by(&cables[1 - asked]).is_empty(), "line {asked}");
    }
}
