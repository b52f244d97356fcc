//! A word counts on a device if its owner, or a tenant, signed it for that device: each refusal has a test here that
//! fails without it.

use tenure_boot::{BootLog, HEADER_BYTES, Header, Image, Slot, State};
use tenure_crypto::{Seed, SigningKey};
use tenure_hal::simulated::Sequence;
use tenure_kernel::MACHINE_FORMAT;
use tenure_node::FirmwareParts;
use tenure_package::{Package, Placement, Release, Renewal, SecretChange, SecretQuery};
use tenure_wire::capability::PeerPattern;
use tenure_wire::control::{
    Answer, ControlError, FirmwareBegin, FirmwareStatus, Function, GrantQuery, GrantReport,
    InstallChunk, ListMachines, MachineList, Renew, SecretList,
};
use tenure_wire::host_call::HostError;
use tenure_wire::{Budget, Capabilities, Digest, Share, Term, VerifyingKey};

use crate::leases::{Lease, anybody};
use crate::snapshots::ask;
use crate::world::{Fuse, WiredFlash, World};

const ECHO: &str = r#"(module (memory 1) (func (export "echo")))"#;

fn tenant() -> SigningKey {
    SigningKey::from_bytes(&[9; 32])
}

/// The owner's placement of a package on a device.
fn placement(package: &[u8], device: VerifyingKey) -> Placement {
    Placement {
        package: Package::parse(package).unwrap().digest(),
        device,
        machine: "echo".parse().unwrap(),
        budget: Budget::default(),
        share: Share::default(),
        grants: Capabilities::default(),
        term: Term::default(),
        sequence: 1,
    }
}

fn package_of(text: &str, grants: Capabilities, world: &World) -> Vec<u8> {
    Lease::of("echo", text, grants).sign(&world.owner(), world.node.device_key()).package
}

fn place(world: &mut World, package: &[u8], placement: &Placement) -> Answer<()> {
    let signed = placement.sign(&world.owner()).unwrap();
    world.try_install(package, &signed).map(drop)
}

fn why<T: core::fmt::Debug>(answer: Answer<T>) -> String {
    match answer {
        Err(ControlError::Refused(why)) => why,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_placement_for_another_device_is_refused() {
    let mut world = World::new(|_| {});
    let package = package_of(ECHO, Capabilities::default(), &world);
    let elsewhere = SigningKey::from_bytes(&[77; 32]).verifying_key();
    let answer = place(&mut world, &package, &placement(&package, elsewhere));
    assert!(why(answer).contains("another device"));
}

#[test]
fn a_placement_for_another_package_is_refused() {
    let mut world = World::new(|_| {});
    let package = package_of(ECHO, Capabilities::default(), &world);
    let device = world.node.device_key();
    let other = Placement { package: Digest([5; 32]), ..placement(&package, device) };
    assert!(why(place(&mut world, &package, &other)).contains("another package"));
}

#[test]
fn a_package_whose_tenants_signature_is_wrong_is_refused() {
    let mut world = World::new(|_| {});
    let device = world.node.device_key();
    let package = package_of(ECHO, Capabilities::default(), &world);
    for at in (0..64).map(|back| package.len() - 1 - back) {
        let mut changed = package.clone();
        changed[at] ^= 1;
        let Ok(parsed) = Package::parse(&changed) else { continue };
        if parsed.verify().is_err() {
            let answer = place(&mut world, &changed, &placement(&changed, device));
            assert!(why(answer).contains("sign"), "at {at}");
            return;
        }
    }
    panic!("no byte of the signature was changed");
}

#[test]
fn a_machine_has_no_right_that_its_package_did_not_ask_for() {
    let mut world = World::new(|_| {});
    let device = world.node.device_key();
    let asked = Capabilities { callers: vec![PeerPattern::Any], ..Capabilities::default() };
    let package = package_of(ECHO, asked, &world);
    let all = Placement { grants: anybody(), ..placement(&package, device) };
    place(&mut world, &package, &all).unwrap();
    let query = GrantQuery { machine: "echo".parse().unwrap() };
    let report: GrantReport = ask(&mut world, Function::grants.name(), &query).unwrap();
    assert_eq!(report.uses.len(), 1, "{:?}", report.uses);
}

#[test]
fn a_renewal_by_another_owner_or_for_another_device_is_refused() {
    let mut world = World::new(|_| {});
    world.install("echo", 8, r#"(func (export "echo"))"#);
    let (device, elsewhere) = (world.node.device_key(), VerifyingKey([8; 32]));
    let renewal = |device, key: &SigningKey| {
        let machine = "echo".parse().unwrap();
        let term = Term { grace_s: 5, ..Term::default() };
        let renewal = Renewal { device, machine, term, sequence: 2 }.sign(key).unwrap();
        Renew { renewal, ends_now: false }
    };
    let (owner, other) = (world.owner(), SigningKey::from_bytes(&[8; 32]));
    let by_other: Answer<()> = ask(&mut world, Function::renew.name(), &renewal(device, &other));
    assert!(why(by_other).contains("owner"));
    let for_other: Answer<()> =
        ask(&mut world, Function::renew.name(), &renewal(elsewhere, &owner));
    assert!(why(for_other).contains("another device"));
    ask::<()>(&mut world, Function::renew.name(), &renewal(device, &owner)).unwrap();
}

fn change_secret(world: &mut World, caller: usize, bytes: &[u8]) -> Answer<()> {
    let device = world.node.device_machine();
    let answer = world.call(caller, &device, Function::secret_change.name(), Some(bytes));
    postcard::from_bytes(&answer.unwrap().unwrap()).unwrap()
}

fn list_secrets(world: &mut World, caller: usize, query: &SecretQuery) -> Answer<SecretList> {
    let device = world.node.device_machine();
    let query = query.sign(&tenant()).unwrap();
    let answer = world.call(caller, &device, Function::secret_list.name(), Some(&query));
    postcard::from_bytes(&answer.unwrap().unwrap()).unwrap()
}

#[test]
fn an_old_change_of_a_secret_does_not_count_again() {
    let mut world = World::new(|_| {});
    world.install("echo", 8, r#"(func (export "echo"))"#);
    let (device, machine) = (world.node.device_key(), world.node.device_machine());
    let change = |version: u64, value: &[u8]| {
        let place = ("wifi".parse().unwrap(), version);
        let change = SecretChange::set(
            &mut Sequence(version),
            &tenant().verifying_key(),
            (device, &machine),
            place,
            value,
        );
        change.unwrap().sign(&tenant()).unwrap()
    };
    change_secret(&mut world, 0, &change(5, b"old")).unwrap();
    change_secret(&mut world, 0, &change(6, b"new")).unwrap();
    for old in [5, 6] {
        assert!(why(change_secret(&mut world, 0, &change(old, b"old"))).contains("higher number"));
    }
    let query = SecretQuery { device, caller: world.strangers[0].key };
    assert_eq!(list_secrets(&mut world, 0, &query).unwrap().last, 6);
}

/// A machine that tells the length of the secret that it asks for, or the status instead of it.
fn reader_of(secret: &str, sequence: u64) -> Lease {
    let text = format!(
        r#"(module
          (import "tenure" "secret_read" (func $read (param i32 i32 i32 i32) (result i32)))
          (import "tenure" "reply" (func $reply (param i32 i32) (result i32)))
          (memory (export "memory") 1)
          (data (i32.const 16) "{secret}")
          (func (export "read")
            (i32.store (i32.const 8)
              (call $read (i32.const 16) (i32.const {length}) (i32.const 64) (i32.const 64)))
            (drop (call $reply (i32.const 8) (i32.const 4)))))"#,
        length = secret.len()
    );
    let secrets = vec![secret.parse().unwrap()];
    let mut lease = Lease::of("echo", &text, Capabilities { secrets, ..anybody() });
    lease.sequence = sequence;
    lease
}

/// A version of a machine leaked what it read. Its tenant gives the secret another name in the next one, so
/// that whoever places the old version again leaks nothing.
#[test]
fn an_older_package_does_not_read_a_secret_under_its_new_name() {
    let mut world = World::new(|_| {});
    let read = |world: &mut World, machine| {
        let told = world.call(0, &machine, "read", None).unwrap().unwrap();
        i32::from_le_bytes(told.try_into().unwrap())
    };
    let machine = world.install_lease(reader_of("wifi", 1));
    world.set_secret(&tenant(), "wifi", 1, b"leaked");
    assert_eq!(read(&mut world, machine), 6);
    let device = world.node.device_key();
    let removal = SecretChange::remove(device, "wifi".parse().unwrap(), 2).sign(&tenant());
    change_secret(&mut world, 0, &removal.unwrap()).unwrap();
    world.set_secret(&tenant(), "wifi-2", 3, b"private");
    let machine = world.install_lease(reader_of("wifi-2", 2));
    assert_eq!(read(&mut world, machine), 7);
    let machine = world.install_lease(reader_of("wifi", 3));
    assert_eq!(read(&mut world, machine), HostError::NotFound as i32);
}

#[test]
fn a_tenants_query_counts_for_the_caller_and_the_device_that_it_names() {
    let mut world = World::new(|_| {});
    world.install("echo", 8, r#"(func (export "echo"))"#);
    let (tenants, thief) = (world.stranger(), world.stranger());
    let device = world.node.device_key();
    let query = SecretQuery { device, caller: world.strangers[tenants].key };
    assert!(list_secrets(&mut world, tenants, &query).is_ok());
    assert!(why(list_secrets(&mut world, thief, &query)).contains("somebody else"));
    let elsewhere = SecretQuery { device: VerifyingKey([3; 32]), ..query };
    assert!(why(list_secrets(&mut world, tenants, &elsewhere)).contains("somebody else"));
}

/// Slots, a log, and a firmware that runs from slot A.
fn with_firmware(world: &mut World, other: Option<(Image, tenure_boot::Trial)>) {
    with_firmware_linked_for(world, other, None);
}

/// As [`with_firmware`], on a chip that executes images from their slots.
fn with_firmware_linked_for(
    world: &mut World,
    other: Option<(Image, tenure_boot::Trial)>,
    linked_for: Option<[u32; 2]>,
) {
    let fuse = Fuse::default();
    let mut log = BootLog::open(WiredFlash::new(2, &fuse)).unwrap();
    log.append(State { good: Image::new(Slot::A, 1, b"first"), other }).unwrap();
    let parts = FirmwareParts {
        board: "board",
        log: log.into_flash(),
        slots: [WiredFlash::new(8, &fuse), WiredFlash::new(8, &fuse)],
        linked_for,
        trial: core::time::Duration::from_secs(60),
        maker: None,
    };
    world.node.use_firmware(parts).unwrap();
}

fn send_firmware(world: &mut World, released: &[u8], sent: &[u8]) -> Answer<()> {
    let release = Release::new("board", 2, MACHINE_FORMAT, released);
    let file = release.to_file(released, &world.owner()).unwrap();
    let signed = Release::from_file(&file).unwrap().signed.to_vec();
    ask::<()>(world, Function::firmware_begin.name(), &FirmwareBegin { release: signed })?;
    for (number, bytes) in sent.chunks(4096).enumerate() {
        let part = InstallChunk { offset: number as u32 * 4096, bytes };
        ask::<()>(world, Function::firmware_chunk.name(), &part)?;
    }
    ask(world, Function::firmware_commit.name(), &())
}

#[test]
fn a_firmware_that_is_linked_for_the_running_slot_is_refused_at_its_first_part() {
    let mut world = World::new(|_| {});
    // Slot A runs, so that the next image must be linked for slot B.
    with_firmware_linked_for(&mut world, None, Some([0x1000, 0x2000]));
    let image = |load_at| {
        let mut image = Header::new("board", load_at, MACHINE_FORMAT).to_bytes().to_vec();
        image.resize(6000, 7);
        image
    };
    let wrong = image(0x1000);
    let refused = why(send_firmware(&mut world, &wrong, &wrong));
    assert!(refused.contains("slot B is free"), "{refused}");
    let right = image(0x2000);
    send_firmware(&mut world, &right, &right).unwrap();
}

#[test]
fn a_firmware_that_is_not_what_the_owner_signed_is_not_tried() {
    let mut world = World::new(|_| {});
    with_firmware(&mut world, None);
    let mut image = Header::new("board", 0, MACHINE_FORMAT).to_bytes().to_vec();
    image.resize(6000, 7);
    let mut changed = image.clone();
    changed[HEADER_BYTES + 1000] ^= 1;
    let answer = send_firmware(&mut world, &image, &changed);
    assert!(why(answer).contains("isn't the one that was signed"));
    let status: FirmwareStatus = ask(&mut world, Function::firmware.name(), &()).unwrap();
    assert!(status.other.is_none_or(|other| !other.is_next));
    send_firmware(&mut world, &image, &image).unwrap();
    let status: FirmwareStatus = ask(&mut world, Function::firmware.name(), &()).unwrap();
    assert!(status.other.is_some_and(|other| other.is_next));
}

#[test]
fn a_firmware_on_trial_is_confirmed_by_the_owner_and_not_by_a_stranger() {
    let mut world = World::new(|_| {});
    let trial = (Image::new(Slot::B, 2, b"second"), tenure_boot::Trial::Started);
    with_firmware(&mut world, Some(trial));
    let stranger = world.stranger();
    let device = world.node.device_machine();
    world.call(stranger, &device, Function::status.name(), Some(&[])).unwrap();
    assert!(world.node.is_on_trial());
    ask::<FirmwareStatus>(&mut world, Function::firmware.name(), &()).unwrap();
    assert!(!world.node.is_on_trial());
}

#[test]
fn a_sealed_secret_opens_for_its_tenant_its_number_and_its_device_alone() {
    let device_secret = Seed::from_bytes(&[1; 32]).device_secret();
    let other_secret = Seed::from_bytes(&[2; 32]).device_secret();
    let (tenant, other) = (tenant().verifying_key(), VerifyingKey([4; 32]));
    let place = ("wifi".parse().unwrap(), 5);
    let device = (VerifyingKey([6; 32]), &device_secret.public_key());
    let change = SecretChange::set(&mut Sequence(1), &tenant, device, place, b"value").unwrap();
    assert_eq!(&**change.open(&tenant, &device_secret).unwrap().unwrap(), b"value");
    assert!(change.open(&other, &device_secret).is_err());
    assert!(change.open(&tenant, &other_secret).is_err());
    let mut later = change.clone();
    later.version = 6;
    assert!(later.open(&tenant, &device_secret).is_err());
    let mut renamed = change.clone();
    renamed.name = "door".parse().unwrap();
    assert!(renamed.open(&tenant, &device_secret).is_err());
    let mut elsewhere = change;
    elsewhere.device = other;
    assert!(elsewhere.open(&tenant, &device_secret).is_err());
}

#[test]
fn a_change_of_a_secret_for_another_device_is_refused() {
    let mut world = World::new(|_| {});
    world.install("echo", 8, r#"(func (export "echo"))"#);
    world.set_secret(&tenant(), "wifi", 1, b"value");
    let elsewhere = SigningKey::from_bytes(&[77; 32]).verifying_key();
    let removal = SecretChange::remove(elsewhere, "wifi".parse().unwrap(), 2).sign(&tenant());
    let answer = change_secret(&mut world, 0, &removal.unwrap());
    assert!(why(answer).contains("another device"));
}

#[test]
fn a_machine_has_no_more_than_its_owner_lets_it_have() {
    let mut world = World::new(|_| {});
    let package = package_of(ECHO, Capabilities::default(), &world);
    let mut placement = placement(&package, world.node.device_key());
    placement.budget.stored_bytes = 100;
    place(&mut world, &package, &placement).unwrap();
    let list: MachineList =
        ask(&mut world, Function::list.name(), &ListMachines { skip: 0 }).unwrap();
    assert_eq!(list.machines[0].budget.stored_bytes, 100);
}
