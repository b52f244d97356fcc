//! A machine's journal in flash: a ring that its tenant fetches whole, whatever happens to the device's power.

use std::time::Duration;

use tenure_crypto::StaticSecret;
use tenure_hal::Instant;
use tenure_hal::simulated::Sequence;
use tenure_package::{Journal, JournalPlace, JournalQuery, JournalRequest, SealedPiece};
use tenure_wire::PublicKey;
use tenure_wire::control::{Answer, Function, JournalKeep, LogPage, LogQuery, decode_answer};

use crate::leases::{Lease, anybody};
use crate::snapshots::ask;
use crate::terms::KEEPER;
use crate::world::World;

/// The size of the ring: so small that a few dozen calls drop its oldest pages.
const RING_BYTES: u32 = 8 * 1024;

/// A device whose machine `keeper` keeps a journal.
fn world() -> (World, PublicKey) {
    let mut world = World::new(|_| {});
    let key = world.install_lease(Lease::of("keeper", KEEPER, anybody()));
    // One that hasn't begun may fill its memory, for which so small a ring is refused.
    use_it(&mut world, &key, 1);
    keep(&mut world, RING_BYTES).unwrap();
    (world, key)
}

/// Has the machine keep a journal of so many bytes.
fn keep(world: &mut World, bytes: u32) -> Answer<()> {
    keep_of(world, "keeper", bytes)
}

fn keep_of(world: &mut World, machine: &str, bytes: u32) -> Answer<()> {
    let keep = JournalKeep { machine: machine.parse().unwrap(), bytes };
    ask::<()>(world, Function::journal_keep.name(), &keep)
}

/// The number of bytes that a refusal says are needed.
fn needed(refused: Answer<()>) -> u32 {
    bytes_behind("needs at least ", refused)
}

fn bytes_behind(words: &str, refused: Answer<()>) -> u32 {
    let text = refused.unwrap_err().to_string();
    let (_, rest) = text.split_once(words).unwrap_or_else(|| panic!("{text}"));
    rest.split(' ').next().unwrap().parse().unwrap()
}

/// Has the machine asked a few times, so that its pages grow.
fn use_it(world: &mut World, key: &PublicKey, times: usize) {
    for _ in 0..times {
        let _ = world.call(0, key, "kept", Some(&[7; 200]));
    }
}

/// The journal as its tenant gets it.
fn fetch(world: &mut World) -> Answer<Journal> {
    let tenant = Lease::of("keeper", KEEPER, anybody()).tenant;
    let secret = StaticSecret::generate(&mut Sequence(5)).unwrap();
    let query = JournalQuery {
        device: world.node.device_key(),
        machine: "keeper".parse().unwrap(),
        key: secret.public_key(),
    };
    let signed = query.sign(&tenant).unwrap();
    let device = world.node.device_machine();
    let (mut journal, mut from) = (None, JournalPlace { page: 0, offset: 0 });
    loop {
        let request = JournalRequest { query: signed.clone(), from }.to_bytes().unwrap();
        let answer = world.call(0, &device, Function::journal.name(), Some(&request));
        let sealed: Vec<u8> = decode_answer::<Vec<u8>>(&answer.unwrap().unwrap())?;
        let sealed: SealedPiece = postcard::from_bytes(&sealed).unwrap();
        let piece = sealed.open((&query, &tenant.verifying_key()), from, &secret).unwrap();
        let kept = journal.get_or_insert_with(|| Journal {
            device: query.device,
            machine: piece.machine,
            previous: piece.previous,
            pages: Vec::new(),
            head: Vec::new(),
        });
        if from.offset == 0 {
            kept.pages.push(Vec::new());
        }
        let page = kept.pages.last_mut().unwrap();
        page.extend(piece.bytes);
        from = match page.len() < piece.page_bytes as usize {
            true => JournalPlace { page: piece.page, offset: page.len() as u32 },
            false => JournalPlace { page: piece.page + 1, offset: 0 },
        };
        if from.offset == 0 && from.page == piece.pages {
            kept.head = piece.head;
            return Ok(journal.unwrap());
        }
    }
}

/// What is fetched is chained, signed and begins with the machine's state.
fn check(journal: &Journal) {
    let journal = Journal::parse(&journal.to_bytes().unwrap()).unwrap();
    let pages = journal.pages().unwrap();
    assert!(pages[0].start.is_some());
    let bytes: usize = journal.pages.iter().map(Vec::len).sum();
    assert!(bytes <= RING_BYTES as usize + 2048, "{bytes}");
}

#[test]
fn ring_for_which_there_is_no_room_beside_those_that_others_were_promised_is_refused() {
    let (mut world, _) = world();
    let second = world.install_lease(Lease::of("second", KEEPER, anybody()));
    use_it(&mut world, &second, 1);
    let room = bytes_behind("has room for ", keep_of(&mut world, "second", 4 * 1024 * 1024));
    keep_of(&mut world, "second", room - 1024).unwrap();
    // Hardly a byte of that is written yet.
    let left = bytes_behind("has room for ", keep(&mut world, RING_BYTES * 2));
    assert!(left < RING_BYTES * 2, "{left}");
    keep_of(&mut world, "second", 0).unwrap();
    keep(&mut world, RING_BYTES * 2).unwrap();
}

#[test]
fn journal_is_fetched_whole_after_its_ring_has_dropped_pages() {
    let (mut world, key) = world();
    let mut first = Vec::new();
    for _ in 0..8 {
        use_it(&mut world, &key, 10);
        let journal = fetch(&mut world).unwrap();
        check(&journal);
        first.push(journal.pages().unwrap()[0].number);
    }
    assert!(first.windows(2).all(|pair| pair[0] <= pair[1]) && first[7] > 8, "{first:?}");
    let mut world = world.off_for(Duration::from_secs(5));
    use_it(&mut world, &key, 3);
    check(&fetch(&mut world).unwrap());
}

#[test]
fn journal_is_fetched_whole_after_a_power_cut_at_any_write() {
    for cut in 0.. {
        let (mut world, key) = world();
        use_it(&mut world, &key, 40);
        world.fuse.set(Some(cut));
        for _ in 0..90 {
            world.start_call(0, &key, "kept", Some(&[7; 200]), Duration::from_secs(2));
            world.pass(Duration::from_millis(50));
        }
        let was_cut = world.fuse.get() == Some(0);
        let until = world.now + Duration::from_secs(5);
        let mut world = world.off_until(until, Instant::BOOT);
        world.pass(Duration::from_secs(1));
        // Before the machine runs again, and after.
        let fetched = |world: &mut World| {
            let journal = fetch(world).unwrap_or_else(|error| panic!("cut {cut}: {error:?}"));
            check(&journal);
            journal
        };
        fetched(&mut world);
        use_it(&mut world, &key, 2);
        let journal = fetched(&mut world);
        if !was_cut {
            let first = journal.pages().unwrap()[0].number;
            assert!(cut > 60 && first > 8, "{cut}, {first}: the ring turned over within the calls");
            return;
        }
    }
}

#[test]
fn ring_that_can_not_hold_a_machines_journal_is_refused_with_the_bytes_that_can() {
    let mut world = World::new(|_| {});
    let key = world.install_lease(Lease::of("keeper", KEEPER, anybody()));
    assert!(needed(keep(&mut world, 65_536)) > 2 * 65_536, "it may fill its memory yet");
    use_it(&mut world, &key, 1);
    let bytes = needed(keep(&mut world, 1024));
    assert_eq!(needed(keep(&mut world, bytes - 1)), bytes);
    assert!(fetch(&mut world).is_err(), "what was refused isn't kept");
    keep(&mut world, bytes).unwrap();
    use_it(&mut world, &key, 3);
    check(&fetch(&mut world).unwrap());
    // A ring in force stays as it is when another is refused.
    assert!(needed(keep(&mut world, 1)) > 1);
    use_it(&mut world, &key, 3);
    check(&fetch(&mut world).unwrap());
}

/// Fills its memory when it is called, beyond what its journal had room for.
const GROWER: &str = r#"(module
    (memory 1)
    (func (export "kept"))
    (func (export "fill") (memory.fill (i32.const 64) (i32.const 7) (i32.const 10000))))"#;

#[test]
fn owner_is_told_in_the_machines_log_once_it_outgrows_its_journal() {
    let mut world = World::new(|_| {});
    let key = world.install_lease(Lease::of("keeper", GROWER, anybody()));
    use_it(&mut world, &key, 1);
    keep(&mut world, RING_BYTES).unwrap();
    let _ = world.call(0, &key, "fill", None);
    // Its ring is full before long, and would begin with the state as it is now.
    for _ in 0..12 {
        use_it(&mut world, &key, 10);
    }
    // The pages from before are there still.
    check(&fetch(&mut world).unwrap());
    let query = LogQuery { machine: Some("keeper".parse().unwrap()), from: 0, level: None };
    let page: LogPage = ask(&mut world, Function::log.name(), &query).unwrap();
    let told =
        page.lines.iter().filter(|line| line.message.contains("no journal: its journal needs"));
    assert_eq!(told.count(), 1, "{:?}", page.lines);
}
