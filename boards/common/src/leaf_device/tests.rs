use alloc::format;
use alloc::rc::Rc;
use alloc::string::String;
use core::cell::{Cell, RefCell};
use core::sync::atomic::{AtomicUsize, Ordering};

use tenure_hal::simulated::{RamFlash, Sequence};
use tenure_hal::{FlashGeometry, UnixTime};
use tenure_mesh::{Deframer, frame_for_serial};
use tenure_rpc::{Config, Endpoint, Event};
use tenure_wire::{PublicKey, VerifyingKey};

use super::*;

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

const HEAP_BYTES: usize = 36_000;
static USED_BYTES: AtomicUsize = AtomicUsize::new(0);
static LONGEST_PIECE_BYTES: AtomicUsize = AtomicUsize::new(HEAP_BYTES);

fn heap() -> HeapUse {
    let used_bytes = USED_BYTES.load(Ordering::Relaxed);
    HeapUse { used_bytes, peak_bytes: used_bytes, total_bytes: HEAP_BYTES }
}

fn settings() -> RamFlash {
    let owner = format!("{}/{}", VerifyingKey([1; 32]), PublicKey([2; 32]));
    let mut sector = format!("name=leaf\nowner={owner}\n").into_bytes();
    sector.resize(4096, 0xFF);
    RamFlash::with_bytes(geometry(1), sector)
}

fn geometry(sector_count: u32) -> FlashGeometry {
    FlashGeometry { sector_bytes: 4096, sector_count, program_bytes: 4 }
}

/// The answer over the service line once somebody asks there who the leaf is.
fn is_answered(
    device: &mut LeafDevice<RamFlash, Cable, Watch, Sequence, String>,
    service: &Cable,
    clock: &Watch,
) -> bool {
    let mut entropy = Sequence(5);
    let now = clock.now();
    let mut asking = Endpoint::<()>::new(Config::default(), now, &mut entropy).unwrap();
    asking.identify(now, (), now + Duration::from_secs(2)).unwrap();
    let mut line = Vec::new();
    while let Some(((), datagram)) = asking.transmit() {
        frame_for_serial(&datagram, &mut line);
    }
    service.arriving.borrow_mut().extend(line);
    device.turn();
    device.turn();
    let mut deframer = Deframer::new(FRAME_BYTES_MAX);
    for byte in core::mem::take(&mut *service.leaving.borrow_mut()) {
        if let Some(Ok(frame)) = deframer.push(byte) {
            asking.receive(now, &mut entropy, (), frame);
        }
    }
    matches!(asking.event(), Some(Event::Identified { identity: Some(_), .. }))
}

#[test]
fn arrivals_without_room_are_left_and_taken_again_once_there_is_room() {
    let (service, clock) = (Cable::default(), Watch(Rc::new(Cell::new(Instant::BOOT))));
    let board = LeafBoard {
        settings: settings(),
        store: RamFlash::new(geometry(8)),
        mesh: Cable::default(),
        service: service.clone(),
        clock: clock.clone(),
        entropy: Sequence(1),
        console: String::new(),
        heap,
        has_piece: |bytes| bytes <= LONGEST_PIECE_BYTES.load(Ordering::Relaxed),
    };
    let mut device = LeafDevice::start(board).unwrap();
    assert!(is_answered(&mut device, &service, &clock));
    // A byte less than there must be.
    USED_BYTES.store(HEAP_BYTES - ROOM_BYTES + 1, Ordering::Relaxed);
    assert!(!is_answered(&mut device, &service, &clock), "it has no room for an answer");
    assert!(!service.arriving.borrow().is_empty(), "what came is left in the line");
    assert!(!device.is_starved(), "that is nothing yet");
    USED_BYTES.fetch_sub(1, Ordering::Relaxed);
    assert!(is_answered(&mut device, &service, &clock));
    assert!(service.arriving.borrow().is_empty());
    LONGEST_PIECE_BYTES.store(PIECE_BYTES - 1, Ordering::Relaxed);
    assert!(!is_answered(&mut device, &service, &clock), "what it has is in small pieces");
    LONGEST_PIECE_BYTES.store(PIECE_BYTES, Ordering::Relaxed);
    assert!(is_answered(&mut device, &service, &clock));

    USED_BYTES.store(HEAP_BYTES, Ordering::Relaxed);
    device.turn();
    clock.0.set(clock.now() + STARVED_MAX);
    device.turn();
    assert!(device.is_starved(), "its watchdog isn't fed any more");
    USED_BYTES.store(0, Ordering::Relaxed);
    device.turn();
    assert!(!device.is_starved());
}
