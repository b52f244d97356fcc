//! Leases that end, are renewed, and expire, on a device that knows no time.

use std::time::Duration;

use tenure_package::{Receipt, ReceiptChain};
use tenure_rpc::NoResult;
use tenure_store::{TreeId, ValueKind};
use tenure_wire::control::{
    Answer, ControlError, Function, LeaseNumber, ListMachines, MachineList, MachineStatus,
    ReceiptForget, ReceiptPage, ReceiptQuery, Remove, Renew, TellTime, Trash, TrashRestore,
    TrashedMachine, decode_answer,
};
use tenure_wire::{PublicKey, Term};

use crate::leases::{Lease, anybody};
use crate::snapshots::ask;
use crate::world::World;

/// Keeps what it is told, and takes a long time over `wait`.
pub(crate) const KEEPER: &str = r#"(module
    (import "tenure" "tree_set" (func $set (param i32 i32 i32 i32 i32) (result i32)))
    (import "tenure" "tree_get" (func $get (param i32 i32 i32 i32) (result i32)))
    (import "tenure" "reply" (func $reply (param i32 i32) (result i32)))
    (import "tenure" "sleep_ms" (func $sleep_ms (param i32)))
    (memory 1) (data (i32.const 8) "key")
    (func (export "keep")
      (drop (call $set (i32.const 8) (i32.const 3) (i32.const 1) (i32.const 8) (i32.const 3))))
    (func (export "kept")
      (drop (call $reply (i32.const 64)
        (call $get (i32.const 8) (i32.const 3) (i32.const 64) (i32.const 9)))))
    (func (export "wait") (call $sleep_ms (i32.const 100000000))))"#;
const SIGNED: u64 = 1_000_000;
/// Where the node keeps ledgers.
const SEALED_TREE: TreeId = TreeId(u16::MAX - 1);

fn term(lasts_s: u64) -> Term {
    let ends_unix_s = Some(SIGNED + lasts_s);
    Term { signed_unix_s: SIGNED, ends_unix_s, grace_s: 1_000, receipts_every_s: 0 }
}

fn install(world: &mut World, term: Term) -> PublicKey {
    let mut lease = Lease::of("keeper", KEEPER, anybody());
    lease.term = term;
    world.install_lease(lease)
}

fn keeper(world: &mut World) -> Option<MachineStatus> {
    let list: MachineList = ask(world, Function::list.name(), &ListMachines { skip: 0 }).unwrap();
    list.machines.into_iter().find(|machine| machine.name.as_str() == "keeper")
}

pub(crate) fn trash(world: &mut World) -> Vec<TrashedMachine> {
    ask::<Trash>(world, Function::trash.name(), &()).unwrap().machines
}

fn receipts(world: &mut World) -> Vec<Receipt> {
    let page: ReceiptPage =
        ask(world, Function::receipts.name(), &ReceiptQuery { skip: 0 }).unwrap();
    page.receipts.iter().map(|bytes| Receipt::verify(bytes).unwrap().0).collect()
}

#[test]
fn a_lease_that_ends_stops_its_machine_tells_its_callers_and_keeps_its_data() {
    let mut world = World::new(|_| {});
    let key = install(&mut world, term(500));
    world.call(0, &key, "keep", None).unwrap();
    let waiting = world.start_call(0, &key, "wait", None, Duration::from_secs(900));
    world.pass(Duration::from_secs(1));
    world.skip(Duration::from_secs(400));
    assert_eq!(keeper(&mut world).unwrap().state, "waiting");
    world.skip(Duration::from_secs(100));
    world.pass(Duration::from_secs(2));
    assert_eq!(world.take_result(0, waiting), Some(Err(NoResult::LeaseOver)));
    let status = keeper(&mut world).unwrap();
    assert_eq!((status.state.as_str(), status.memory_bytes), ("lease over", 0));
    assert!(status.stored_bytes > 0);
    assert_eq!(world.call(0, &key, "kept", None), Err(NoResult::LeaseOver));
    let bills = receipts(&mut world);
    assert_eq!(bills.len(), 1, "what it used until then");
    assert!((500_000..510_000).contains(&bills[0].counted_ms), "{}", bills[0].counted_ms);

    let renew = world.renewal("keeper", term(5_000), 2);
    ask::<()>(&mut world, Function::renew.name(), &renew).unwrap();
    assert_eq!(world.call(0, &key, "kept", None), Ok(Some(b"key".to_vec())));
    let again: Answer<()> = ask(&mut world, Function::renew.name(), &renew);
    assert!(matches!(again, Err(ControlError::Refused(_))), "once only: {again:?}");
}

#[test]
fn device_time_counts_over_restarts_and_a_machine_goes_with_its_grace() {
    let mut world = World::new(|_| {});
    let key = install(&mut world, term(500));
    world.call(0, &key, "keep", None).unwrap();
    for _ in 0..2 {
        world.skip(Duration::from_secs(310));
        world = world.off_for(Duration::from_secs(5));
        world.pass(Duration::from_secs(1));
    }
    assert_eq!(keeper(&mut world).unwrap().state, "lease over");
    assert_eq!(world.call(0, &key, "kept", None), Err(NoResult::LeaseOver));
    world.skip(Duration::from_secs(700));
    assert!(keeper(&mut world).is_some(), "its data is kept");
    world.skip(Duration::from_secs(300));
    assert!(keeper(&mut world).is_none(), "it is in the trash");
    assert_eq!(receipts(&mut world).len(), 2, "until its end, and for what was kept");
    let mut world = world.off_for(Duration::from_secs(5));
    world.pass(Duration::from_secs(1));
    assert!(keeper(&mut world).is_none());
    let trash = trash(&mut world);
    assert_eq!(trash.len(), 1, "and can be fetched back");
    let week = 7 * 24 * 3600;
    assert!((week - 10..=week).contains(&trash[0].left_s), "{}", trash[0].left_s);
}

/// The owner tells that it is so many seconds after the leases were signed.
fn tell(world: &mut World, seconds: u64) {
    let told = TellTime { unix_s: SIGNED + seconds };
    ask::<()>(world, Function::time.name(), &told).unwrap();
}

#[test]
fn a_lease_ends_on_time_on_a_device_that_was_off_once_its_owner_tells_the_time() {
    let mut world = World::new(|_| {});
    let key = install(&mut world, term(500));
    world.call(0, &key, "keep", None).unwrap();
    let mut world = world.off_for(Duration::from_secs(400));
    world.pass(Duration::from_secs(1));
    tell(&mut world, 410);
    // An earlier word changes nothing: it may be one that was held back.
    tell(&mut world, 20);
    assert_eq!(keeper(&mut world).unwrap().lease_unix_s, SIGNED + 410);
    world.skip(Duration::from_secs(80));
    assert_ne!(keeper(&mut world).unwrap().state, "lease over");
    world.skip(Duration::from_secs(20));
    assert_eq!(keeper(&mut world).unwrap().state, "lease over");
    tell(&mut world, 2_000_000_000);
    world.skip(Duration::from_secs(990));
    assert!(
        keeper(&mut world).is_some(),
        "its grace counts from when the device learned of the end"
    );
    world.skip(Duration::from_secs(10));
    assert!(keeper(&mut world).is_none(), "and while the device is on");
}

#[test]
fn an_owners_wrong_clock_that_ended_a_lease_is_put_right_by_the_right_one() {
    let mut world = World::new(|_| {});
    let key = install(&mut world, term(500));
    world.call(0, &key, "keep", None).unwrap();
    tell(&mut world, 300_000_000);
    assert_eq!(keeper(&mut world).unwrap().state, "lease over");
    world.skip(Duration::from_secs(100));
    tell(&mut world, 105);
    assert_ne!(keeper(&mut world).unwrap().state, "lease over");
    assert_eq!(world.call(0, &key, "kept", None), Ok(Some(b"key".to_vec())));
    let mut world = world.off_for(Duration::from_secs(1));
    world.pass(Duration::from_secs(1));
    assert_ne!(keeper(&mut world).unwrap().state, "lease over", "after a restart, too");
}

#[test]
fn the_next_number_of_a_lease_is_the_one_after_that_in_force_whatever_the_clock_says() {
    let mut world = World::new(|_| {});
    install(&mut world, term(500));
    let ask_number = |world: &mut World| {
        let query = LeaseNumber { machine: "keeper".parse().unwrap() };
        ask::<u64>(world, Function::lease_number.name(), &query).unwrap()
    };
    assert_eq!(ask_number(&mut world), 1);
    let renew = world.renewal("keeper", term(600), 4_000_000_000_000);
    ask::<()>(&mut world, Function::renew.name(), &renew).unwrap();
    let last = ask_number(&mut world);
    assert_eq!((last, keeper(&mut world).unwrap().lease_number), (4_000_000_000_000, last));
    let renew = world.renewal("keeper", term(700), last + 1);
    ask::<()>(&mut world, Function::renew.name(), &renew).unwrap();
    for for_good in [false, true] {
        let remove = Remove { machine: "keeper".parse().unwrap(), for_good };
        ask::<()>(&mut world, Function::remove.name(), &remove).unwrap();
        assert_eq!(ask_number(&mut world), last + 1, "one that was removed counts on");
        if !for_good {
            let restore = TrashRestore { machine: trash(&mut world)[0].id };
            ask::<()>(&mut world, Function::trash_restore.name(), &restore).unwrap();
        }
    }
}

#[test]
fn nobody_but_the_owner_tells_a_device_the_time() {
    let mut world = World::new(|_| {});
    install(&mut world, term(500));
    let (stranger, device) = (world.stranger(), world.node.device_machine());
    let told = postcard::to_allocvec(&TellTime { unix_s: SIGNED + 9_999 }).unwrap();
    let answer =
        world.call(stranger, &device, Function::time.name(), Some(&told)).unwrap().unwrap();
    let answer: Answer<()> = decode_answer(&answer);
    assert_eq!(answer, Err(ControlError::NotOwner));
    assert_ne!(keeper(&mut world).unwrap().state, "lease over");
}

#[test]
fn what_time_one_lease_went_by_counts_for_another_after_a_restart() {
    let mut world = World::new(|_| {});
    install(&mut world, term(5_000));
    tell(&mut world, 450);
    let mut world = world.off_for(Duration::from_secs(5));
    world.pass(Duration::from_secs(1));
    let mut lease = Lease::of("late", KEEPER, anybody());
    lease.term = term(500);
    world.install_lease(lease);
    world.skip(Duration::from_secs(60));
    let list: MachineList =
        ask(&mut world, Function::list.name(), &ListMachines { skip: 0 }).unwrap();
    let late = list.machines.into_iter().find(|machine| machine.name.as_str() == "late");
    assert_eq!(late.unwrap().state, "lease over");
}

#[test]
fn a_lease_may_have_receipts_of_its_own_period() {
    let mut world = World::new(|_| {});
    install(&mut world, Term { receipts_every_s: 60, ..Term::default() });
    for _ in 0..10 {
        world.skip(Duration::from_secs(31));
    }
    let bills = receipts(&mut world);
    assert_eq!(bills.len(), 5);
    assert!(bills.iter().all(|bill| bill.period_s == 60 && bill.counted_ms >= 60_000));
}

#[test]
fn a_renewal_to_the_past_is_refused_unless_the_owner_says_that_it_is_meant() {
    let mut world = World::new(|_| {});
    let key = install(&mut world, Term::default());
    world.call(0, &key, "keep", None).unwrap();
    let renew = world.renewal("keeper", term(0), 2);
    let refused = ask::<()>(&mut world, Function::renew.name(), &renew);
    assert!(matches!(&refused, Err(ControlError::Refused(why)) if why.contains("over already")));
    assert_eq!(world.call(0, &key, "kept", None), Ok(Some(b"key".to_vec())));
    ask::<()>(&mut world, Function::renew.name(), &Renew { ends_now: true, ..renew }).unwrap();
    assert_eq!(world.call(0, &key, "kept", None), Err(NoResult::LeaseOver));
    let mut world = world.off_for(Duration::from_secs(5));
    world.pass(Duration::from_secs(1));
    assert_eq!(world.call(0, &key, "kept", None), Err(NoResult::LeaseOver));
}

#[test]
fn a_ledger_of_another_version_costs_its_period_and_breaks_no_chain() {
    let mut world = World::new(|_| {});
    install(&mut world, Term { receipts_every_s: 60, ..Term::default() });
    for _ in 0..5 {
        world.skip(Duration::from_secs(31));
    }
    let before = receipts(&mut world);
    assert_eq!(before.len(), 2);
    world = world.with_store(|store| {
        let ledgers = store.children(SEALED_TREE, "ledgers").unwrap();
        let path = format!("ledgers.{}", ledgers[0]);
        let mut ledger = store.get(SEALED_TREE, &path).unwrap().unwrap().bytes;
        ledger[0] += 1;
        store.set(SEALED_TREE, &path, ValueKind::Bytes, &ledger).unwrap();
    });
    for _ in 0..5 {
        world.skip(Duration::from_secs(31));
    }
    let page: ReceiptPage =
        ask(&mut world, Function::receipts.name(), &ReceiptQuery { skip: 0 }).unwrap();
    let mut chain = ReceiptChain::begin(&page.receipts[0]).unwrap();
    for receipt in &page.receipts[1..] {
        chain.follow(receipt).unwrap();
    }
    assert_eq!(chain.length, 4);
}

#[test]
fn a_ledger_that_is_lost_after_its_receipts_were_fetched_begins_no_second_chain() {
    let mut world = World::new(|_| {});
    install(&mut world, Term { receipts_every_s: 60, ..Term::default() });
    for _ in 0..5 {
        world.skip(Duration::from_secs(31));
    }
    let page: ReceiptPage =
        ask(&mut world, Function::receipts.name(), &ReceiptQuery { skip: 0 }).unwrap();
    let machine = Receipt::verify(&page.receipts[0]).unwrap().0.machine;
    let mut chain = ReceiptChain::begin(&page.receipts[0]).unwrap();
    chain.follow(&page.receipts[1]).unwrap();
    let forget = ReceiptForget { machine, through: 1 };
    ask::<()>(&mut world, Function::receipts_forget.name(), &forget).unwrap();
    world = world.with_store(|store| {
        store.delete(SEALED_TREE, "ledgers").unwrap();
    });
    for _ in 0..3 {
        world.skip(Duration::from_secs(31));
    }
    let page: ReceiptPage =
        ask(&mut world, Function::receipts.name(), &ReceiptQuery { skip: 0 }).unwrap();
    chain.follow(&page.receipts[0]).unwrap();
}
