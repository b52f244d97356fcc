//! Bills that are true are proved; a device that bills more than its machine used is caught.

use std::time::Duration;

use tenure_audit::{AuditError, Audited, Item, Judgement, audit};
use tenure_journal::{Mark, Page, Record};
use tenure_package::Receipt;
use tenure_wire::Budget;
use tenure_wire::usage::Usage;

use crate::device::{Device, FUEL_MAX};

/// A sensor: each event is stored, and published in turn.
const SENSOR: &str = r#"
  (data (i32.const 0) "device.t") (data (i32.const 16) "read") (data (i32.const 32) "last")
  (data (i32.const 48) "sensor.t")
  (func (export "entry")
    (drop (call $subscribe (i32.const 0) (i32.const 8) (i32.const 0) (i32.const 8)
      (i32.const 16) (i32.const 4))))
  (func (export "read") (local $length i32)
    (local.set $length (call $parameter_read (i32.const 0) (i32.const 1024) (i32.const 64)))
    (drop (call $tree_set (i32.const 32) (i32.const 4) (i32.const 0) (i32.const 1024) (local.get $length)))
    (drop (call $publish (i32.const 48) (i32.const 8) (i32.const 1024) (local.get $length))))"#;

/// A device with a sensor and three receipts, the last but one of which `lie` has changed.
fn billed(lie: impl FnOnce(&mut Usage)) -> Device {
    let mut device = Device::new(20_000);
    let budget = Budget { memory_bytes: 128 * 1024, ..Budget::default() };
    device.install_journaled(SENSOR, budget);
    let mut lie = Some(lie);
    for period in 0..3 {
        for minute in 0..50 {
            let reading = format!("{period}{minute}.5");
            device.publish("device.t", reading.as_bytes());
            device.settle(100);
            device.pass(Duration::from_millis(200));
        }
        match lie.take_if(|_| period == 1) {
            Some(lie) => device.bill(lie),
            None => device.bill(|_| {}),
        }
    }
    device.finish();
    device
}

fn audited(device: &Device) -> Result<Audited, AuditError> {
    audit(&device.receipts, &device.journal, &device.code(), FUEL_MAX, &mut ())
}

fn judgement(audited: &Audited, item: Item) -> Judgement {
    let of_item =
        audited.findings.iter().find(|finding| (finding.receipt, finding.item) == (1, item));
    of_item.unwrap().judgement
}

#[test]
fn true_bill_is_proved_unit_by_unit() {
    let device = billed(|_| {});
    let audited = audited(&device).unwrap();
    assert_eq!(audited.wrong().count(), 0, "{audited:?}");
    assert_eq!(audited.uncovered, [0], "the journal began after the machine did");
    for item in
        [Item::Fuel, Item::Messages, Item::FlashWrites, Item::FlashBytes, Item::Began, Item::Ended]
    {
        assert_eq!(judgement(&audited, item), Judgement::Proved, "{item:?}");
    }
    for item in [Item::Memory, Item::Stored, Item::Code, Item::Run] {
        let judgement = judgement(&audited, item);
        assert!(matches!(judgement, Judgement::Within { .. }), "{item:?}: {judgement:?}");
    }
    for item in [Item::Turns, Item::Air] {
        assert_eq!(judgement(&audited, item), Judgement::Told, "{item:?}");
    }
    let fuel = audited.findings.iter().find(|finding| finding.item == Item::Fuel).unwrap();
    assert!(fuel.signed > 100_000, "{fuel:?}");
    let messages = audited.findings.iter().find(|finding| finding.item == Item::Messages).unwrap();
    assert_eq!(messages.signed, 50);
    assert_eq!(tenure_kernel::fuel_of_turns(1), 444, "docs/bills.md says so");
}

/// A change of what a device signs.
type Lie = fn(&mut Usage);

#[test]
fn each_amount_that_is_more_than_was_used_is_found() {
    let lies: [(Item, Lie); 8] = [
        (Item::Fuel, |usage| usage.fuel += 1),
        (Item::Messages, |usage| usage.messages += 1),
        (Item::FlashWrites, |usage| usage.flash_writes += 1),
        (Item::FlashBytes, |usage| usage.flash_bytes += 1),
        (Item::Memory, |usage| usage.memory_bytes_peak = 129 * 1024),
        (Item::Stored, |usage| usage.stored_byte_ms *= 2),
        (Item::Code, |usage| usage.code_byte_ms *= 20),
        (Item::Run, |usage| usage.run_us = 20_000_000),
    ];
    for (item, lie) in lies {
        let device = billed(lie);
        let audited = audited(&device).unwrap();
        let judgement = judgement(&audited, item);
        assert!(matches!(judgement, Judgement::Wrong { .. }), "{item:?}: {judgement:?}");
        assert_eq!(audited.wrong().count(), 1, "and no other: {audited:?}");
    }
}

/// Signs the receipts anew, without a commitment to a journal.
fn uncommitted(device: &Device, change: impl Fn(&mut Receipt)) -> Vec<Vec<u8>> {
    let receipts = device.receipts.iter().scan(tenure_package::NO_RECEIPT, |previous, bytes| {
        let (receipt, _) = Receipt::verify(bytes).unwrap();
        let mut receipt = Receipt { previous: *previous, ..receipt };
        change(&mut receipt);
        let signed = receipt.sign(&device.key).unwrap();
        *previous = tenure_package::digest_of_receipt(&signed);
        Some(signed)
    });
    receipts.collect()
}

/// Changes each mark of a journal.
fn with_marks(device: &mut Device, change: impl Fn(&mut Mark)) {
    for bytes in &mut device.journal.pages {
        let mut page = Page::parse(bytes).unwrap();
        if let Some(Record::Mark(mark)) = page.records.last_mut() {
            change(mark);
        }
        *bytes = page.to_bytes().unwrap();
    }
    device.sign();
}

#[test]
fn fuel_that_is_left_to_be_billed_later_is_no_more_than_the_machine_can_owe() {
    const MADE_UP: u64 = 1_000_000_000;
    let audited = |device: &Device, receipts: &[Vec<u8>]| {
        audit(receipts, &device.journal, &device.code(), FUEL_MAX, &mut ())
    };
    // The first receipt, whose period isn't covered, leaves it to the next one, which bills it.
    let mut device = billed(|_| {});
    with_marks(&mut device, |mark| {
        mark.unpaid += if mark.receipt == Some(0) { MADE_UP } else { 0 };
    });
    let receipts = uncommitted(&device, |receipt| {
        receipt.usage.fuel += if receipt.number == 1 { MADE_UP } else { 0 };
    });
    let error = audited(&device, &receipts).unwrap_err();
    assert!(matches!(error, AuditError::Unpaid { fuel, .. } if fuel >= MADE_UP), "{error}");

    // The same as what the machine owed when the journal began.
    let mut device = billed(|_| {});
    let mut page = Page::parse(&device.journal.pages[0]).unwrap();
    page.start.as_mut().unwrap().owed = MADE_UP;
    device.journal.pages[0] = page.to_bytes().unwrap();
    with_marks(&mut device, |_| {});
    let error = audited(&device, &uncommitted(&device, |_| {})).unwrap_err();
    assert_eq!(error, AuditError::Unpaid { page: page.number, fuel: MADE_UP });

    // More than there was to be billed, though the machine might owe it: in the last page it used nothing.
    let mut device = billed(|_| {});
    let bytes = device.journal.pages.last_mut().unwrap();
    let mut page = Page::parse(bytes).unwrap();
    let Some(Record::Mark(mark)) = page.records.last_mut() else { panic!("it ends with a mark") };
    mark.unpaid += 50_000;
    let left = mark.unpaid;
    *bytes = page.to_bytes().unwrap();
    device.sign();
    let error = audited(&device, &uncommitted(&device, |_| {})).unwrap_err();
    assert_eq!(error, AuditError::Unpaid { page: page.number, fuel: left });
}

#[test]
fn receipts_and_journals_that_do_not_belong_together_are_refused_by_name() {
    let device = billed(|_| {});
    let mut cut = device.journal.clone();
    cut.pages.truncate(1);
    let error = audit(&device.receipts, &cut, &device.code(), FUEL_MAX, &mut ()).unwrap_err();
    assert!(matches!(error, AuditError::Cut { .. }), "{error}");
    let mut other = device.journal.clone();
    other.previous = tenure_wire::Digest([1; 32]);
    let error = audit(&device.receipts, &other, &device.code(), FUEL_MAX, &mut ()).unwrap_err();
    assert_eq!(error, AuditError::OtherJournal { receipt: 0 });
    let mut elsewhere = device.journal.clone();
    elsewhere.device = tenure_wire::VerifyingKey([7; 32]);
    let error = audit(&device.receipts, &elsewhere, &device.code(), FUEL_MAX, &mut ()).unwrap_err();
    assert_eq!(error, AuditError::OtherDevice);
    let left_out = [device.receipts[0].clone(), device.receipts[2].clone()];
    let error = audit(&left_out, &device.journal, &device.code(), FUEL_MAX, &mut ()).unwrap_err();
    assert!(matches!(error, AuditError::Receipt(_)), "{error}");
    let mut nobodys = device.journal.clone();
    nobodys.machine = tenure_wire::MachineId([7; 12]);
    let error = audit(&device.receipts, &nobodys, &device.code(), FUEL_MAX, &mut ()).unwrap_err();
    assert_eq!(error, AuditError::NoReceipts);
}

#[test]
fn device_that_hides_what_its_machine_was_told_is_found_by_the_replay() {
    let mut device = billed(|_| {});
    // The journal has one event less; the receipts, made anew, would commit to it.
    let place = device.journal.pages.len() / 2;
    let mut page = tenure_journal::Page::parse(&device.journal.pages[place]).unwrap();
    let task = page.records.iter().position(|record| record.kind() == "task").unwrap();
    page.records.remove(task);
    device.journal.pages[place] = page.to_bytes().unwrap();
    let receipts = uncommitted(&device, |_| {});
    let error = audit(&receipts, &device.journal, &device.code(), FUEL_MAX, &mut ()).unwrap_err();
    assert!(matches!(error, AuditError::Replay(error) if error.is_difference()));
}
