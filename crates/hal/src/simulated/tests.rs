use super::*;
use crate::Partition;
use core::cell::RefCell;

const SMALL: FlashGeometry = FlashGeometry { sector_bytes: 64, sector_count: 4, program_bytes: 4 };

#[test]
fn program_clears_bits_and_never_sets_one() {
    let mut flash = RamFlash::new(SMALL);
    flash.program(4, &[0x0F; 4]).unwrap();
    flash.program(4, &[0x0A; 4]).unwrap();
    assert_eq!(flash.program(4, &[0x0A, 0x0A, 0x1A, 0x00]), Err(FlashError::NotErased));
    assert_eq!(flash.bytes()[4..8], [0x0A; 4], "a refused program writes nothing");
    flash.erase(0).unwrap();
    assert!(flash.bytes().iter().all(|byte| *byte == 0xFF));
}

#[test]
fn what_is_out_of_range_or_misaligned_is_refused() {
    let mut flash = RamFlash::new(SMALL);
    assert_eq!(flash.program(2, &[0; 4]), Err(FlashError::Misaligned));
    assert_eq!(flash.program(4, &[0; 3]), Err(FlashError::Misaligned));
    assert_eq!(flash.program(256, &[0; 4]), Err(FlashError::OutOfRange));
    assert_eq!(flash.read(255, &mut [0; 2]), Err(FlashError::OutOfRange));
    assert_eq!(flash.erase(4), Err(FlashError::OutOfRange));
}

#[test]
fn a_cut_tears_one_operation_and_refuses_all_after_it() {
    for seed in 0..200 {
        let mut flash = RamFlash::new(SMALL);
        flash.cut_power_after(1, seed);
        flash.program(0, &[0; 16]).unwrap();
        assert_eq!(flash.program(16, &[0; 16]), Err(FlashError::Hardware));
        assert_eq!(flash.read(0, &mut [0; 1]), Err(FlashError::Hardware));
        assert_eq!(flash.erase(0), Err(FlashError::Hardware));
        flash.restore_power();
        assert_eq!(flash.bytes()[..16], [0; 16]);
        assert!(flash.bytes()[32..].iter().all(|byte| *byte == 0xFF), "seed {seed}");
        let torn = &flash.bytes()[16..32];
        let whole = torn.iter().take_while(|byte| **byte == 0).count();
        let mixed_end = (whole / 4 * 4 + 4).min(16);
        assert!(torn[mixed_end..].iter().all(|byte| *byte == 0xFF), "seed {seed}: {torn:?}");
    }
}

#[test]
fn a_torn_erase_touches_its_own_sector_alone() {
    for seed in 0..200 {
        let mut flash = RamFlash::with_bytes(SMALL, vec![0x55; 256]);
        flash.cut_power_after(0, seed);
        assert_eq!(flash.erase(1), Err(FlashError::Hardware));
        assert!(flash.bytes()[..64].iter().chain(&flash.bytes()[128..]).all(|byte| *byte == 0x55));
    }
}

/// What four bytes at `offset` read as at twenty starts.
fn at_starts(flash: &mut RamFlash, offset: usize) -> Vec<[u8; 4]> {
    let mut found = Vec::new();
    for _ in 0..20 {
        flash.cut_power();
        flash.restore_power();
        found.push(*flash.bytes()[offset..].first_chunk().unwrap());
    }
    found
}

#[test]
fn torn_unit_reads_otherwise_at_each_start_until_zeros_are_programmed_over_it() {
    let mut differed = 0;
    for seed in 0..50 {
        let mut flash = RamFlash::new(SMALL);
        flash.cut_power_after(0, seed);
        assert!(flash.program(4, &[0x0F; 4]).is_err());
        let found = at_starts(&mut flash, 4);
        assert!(found.iter().flatten().all(|byte| byte & 0x0F == 0x0F), "seed {seed}: {found:?}");
        assert!(at_starts(&mut flash, 8).iter().all(|unit| *unit == [0xFF; 4]));
        differed += usize::from(found.iter().any(|unit| *unit != found[0]));

        let stored = *flash.bytes()[4..].first_chunk::<4>().unwrap();
        flash.program(4, &stored.map(|byte| byte & 0x3F)).unwrap();
        let found = at_starts(&mut flash, 4);
        assert!(found.iter().flatten().all(|byte| byte & 0xC0 == 0), "seed {seed}: {found:?}");
        flash.program(4, &[0; 4]).unwrap();
        assert!(at_starts(&mut flash, 4).iter().all(|unit| *unit == [0; 4]), "seed {seed}");
    }
    assert!(differed > 15, "{differed} of 50");
}

#[test]
fn sector_whose_erasure_was_cut_reads_otherwise_until_it_is_erased() {
    for seed in 0..50 {
        let mut flash = RamFlash::with_bytes(SMALL, vec![0x55; 256]);
        flash.cut_power_after(0, seed);
        assert!(flash.erase(1).is_err());
        let found = at_starts(&mut flash, 64);
        assert!(found.contains(&[0x55; 4]) && found.contains(&[0xFF; 4]), "seed {seed}: {found:?}");
        flash.erase(1).unwrap();
        assert!(at_starts(&mut flash, 64).iter().all(|unit| *unit == [0xFF; 4]), "seed {seed}");
    }
}

#[test]
fn partitions_share_a_device_and_keep_to_themselves() {
    let device = RefCell::new(RamFlash::new(SMALL));
    let mut first = Partition::new(&device, 0, 1).unwrap();
    let mut second = Partition::new(&device, 1, 3).unwrap();
    assert!(Partition::new(&device, 2, 3).is_err());
    assert!(Partition::new(&device, u32::MAX, 2).is_err());

    assert_eq!(second.geometry().bytes(), 192);
    second.program(0, &[7; 4]).unwrap();
    first.program(60, &[1; 4]).unwrap();
    assert_eq!(first.program(64, &[1; 4]), Err(FlashError::OutOfRange));
    assert_eq!(first.read(61, &mut [0; 4]), Err(FlashError::OutOfRange));
    assert_eq!(first.erase(1), Err(FlashError::OutOfRange));
    first.erase(0).unwrap();

    let device = device.into_inner();
    assert_eq!(device.bytes()[64..68], [7; 4]);
    let second = Partition::new(device, 1, 3).unwrap();
    assert_eq!(second.mapped().unwrap()[..5], [7, 7, 7, 7, 0xFF]);
}
