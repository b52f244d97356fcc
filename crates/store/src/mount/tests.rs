//! Flashes that somebody made by hand, with checksums that are right.

use super::*;
use crate::record::{EMPTY_VALUE_CRC, Head, Seat, ValueKind};
use crate::{SetError, TreeId};
use tenure_hal::FlashGeometry;
use tenure_hal::simulated::RamFlash;

const SMALL: FlashGeometry =
    FlashGeometry { sector_bytes: 1024, sector_count: 4, program_bytes: 4 };

fn with_header(sequence: u32, oldest: u32) -> RamFlash {
    let mut flash = RamFlash::new(SMALL);
    let header = SectorHeader::new(SMALL, 0, sequence, oldest).emit();
    flash.program(sequence % 4 * 1024, &header).unwrap();
    flash
}

#[test]
fn headers_with_senseless_numbers_are_none() {
    for (sequence, oldest) in [(u32::MAX, 5), (u32::MAX, u32::MAX), (5, 6), (5, 0), (0, 0), (3, 1)]
    {
        let mounted = Store::mount(with_header(sequence, oldest));
        assert!(mounted.is_err(), "{sequence} {oldest}");
    }
    let (mut store, report) = Store::mount(with_header(1000, 1)).unwrap();
    assert_eq!(report.keys, 0);
    for round in 0..500u32 {
        let value = round.to_le_bytes();
        match store.set(TreeId(0), "a", ValueKind::Bytes, &value) {
            Ok(()) | Err(SetError::Full) => {}
            Err(error) => panic!("{error}"),
        }
    }
}

#[test]
fn records_with_senseless_paths_are_passed_over() {
    let paths: [&[u8]; 5] = [b"", b".", b"a..b", b"\xFF", b"a.\xC3"];
    for path in paths {
        let mut flash = with_header(4, 4);
        let head = Head {
            action: Action::Set(ValueKind::Text),
            origin: Origin::Alone,
            is_sealed: false,
            is_odd: false,
            tree: 1,
            path_length: path.len() as u8,
            value_length: 0,
            value_crc: EMPTY_VALUE_CRC,
        };
        let mut record = [0xFF; 20];
        head.emit(path, Seat { salt: 0, sequence: 4, offset: 28 }, &mut record);
        flash.program(28, &record).unwrap();
        let (mut store, report) = Store::mount(flash).unwrap();
        assert_eq!((report.keys, report.damaged_records), (0, 1), "{path:?}");
        assert!(store.children(TreeId(1), "").unwrap().is_empty());
    }
}
