//! The loader's log and the header of a firmware, as this version writes them: a loader stays for a device's
//! life, so every later firmware has to write what it reads.

use tenure_boot::{BootLog, Failure, Header, Image, Slot, State, Trial};
use tenure_hal::simulated::RamFlash;
use tenure_hal::{Flash, FlashGeometry, ResetCause};
use tenure_testbed::frozen;

const GEOMETRY: FlashGeometry =
    FlashGeometry { sector_bytes: 256, sector_count: 2, program_bytes: 4 };

fn kept(name: &str, written: &[u8]) -> Vec<u8> {
    frozen(env!("CARGO_MANIFEST_DIR"), name, written)
}

fn log_of(bytes: &[u8]) -> BootLog<RamFlash> {
    let mut flash = RamFlash::new(GEOMETRY);
    flash.program(0, bytes).unwrap();
    BootLog::open(flash).unwrap()
}

#[test]
fn log_of_version_1_is_written_and_read() {
    let (good, other) = (Image::new(Slot::A, 1, b"first"), Image::new(Slot::B, 2, b"second"));
    let failed = Trial::Failed(Failure::Reset(ResetCause::Watchdog));
    let states = [None, Some((other, Trial::Ready)), Some((other, failed))];
    let mut log = BootLog::open(RamFlash::new(GEOMETRY)).unwrap();
    for other in states {
        log.append(State { good, other }).unwrap();
    }
    let bytes = kept("log-1", log.into_flash().bytes());
    assert_eq!(log_of(&bytes).state(), Some(State { good, other: Some((other, failed)) }));

    let mut later = bytes;
    for record in later.chunks_mut(64).filter(|record| record.starts_with(b"TNB\x01")) {
        record[3] += 1;
    }
    assert_eq!(log_of(&later).state(), None);
}

#[test]
fn header_of_a_firmware_is_written_and_read() {
    let header = Header::new("qemu-riscv32", 0x8010_0000, 3);
    let bytes = kept("header", &header.to_bytes());
    assert_eq!(Header::from_bytes(&bytes), Some(header));
}
