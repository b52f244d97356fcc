//! The orders against walks through all devices, and the steps of a question in fleets of several sizes.

use tenure_crypto::{SigningKey, machine_id};
use tenure_hal::Entropy as _;
use tenure_hal::simulated::{Random, socket_at};
use tenure_wire::Signature;
use tenure_wire::datagram::Epoch;
use tenure_wire::directory::Enrolment;

use super::*;

const NOW: u64 = 1_800_000_000;

fn key(number: u32) -> PublicKey {
    let mut key = [7; 32];
    key[..4].copy_from_slice(&number.to_le_bytes());
    PublicKey(key)
}

fn owner(number: u8) -> VerifyingKey {
    VerifyingKey([number; 32])
}

fn address(host: u32, port: u16) -> Address {
    let Address::Udp(mut socket) = Address::Udp(socket_at(host)) else { unreachable!() };
    socket.set_port(port);
    Address::Udp(socket)
}

/// A record whose signatures nobody looks at here.
fn record(name: u32, of: u8, machines: &[u32], expires_unix_s: u64) -> DeviceRecord {
    let device_key = SigningKey::from_bytes(&[2; 32]).verifying_key();
    let machine = |(place, number): (usize, &u32)| {
        (alloc::format!("machine-{place}").parse().unwrap(), key(*number))
    };
    DeviceRecord {
        owner: owner(of),
        enrolment: Enrolment { device: device(name), device_key, number: 1 },
        enrolment_signature: Signature::from_bytes(&[0; 64]),
        sequence: 1,
        expires_unix_s,
        epoch: Epoch([1; 8]),
        addresses: Vec::new(),
        device_machine: key(1_000_000 + name),
        machines: machines.iter().enumerate().map(machine).collect(),
        succession: None,
    }
}

fn device(number: u32) -> Name {
    alloc::format!("device-{number:05}").parse().unwrap()
}

fn put(listed: &mut Listed, record: DeviceRecord, seen_at: Address) {
    let signed = SignedRecord { bytes: Vec::new(), signature: Signature::from_bytes(&[0; 64]) };
    listed.put(record, signed, seen_at);
}

fn found(listed: &mut Listed, asking: u32, query: &Query, unix_s: u64) -> Option<Name> {
    let entry = listed.find_for(&key(1_000_000 + asking), query, unix_s)?;
    Some(entry.record.enrolment.device.clone())
}

/// Whether all answers are those of a walk through the table.
fn check_answers(listed: &mut Listed, asking: u32, machine: u32, unix_s: u64) {
    let table = listed.table().clone();
    let in_force = || table.entries().filter(|entry| entry.is_in_force(unix_s));
    let own = table.device(&device(asking)).map(|entry| entry.record.owner);
    let id = machine_id(&key(machine));
    for query in [Query::Key(key(machine)), Query::Id(id)] {
        let holders = || in_force().filter(|entry| entry.holds(&query));
        let of_own = holders().find(|entry| Some(entry.record.owner) == own);
        let name = |entry: &Entry| entry.record.enrolment.device.clone();
        let answer = found(listed, asking, &query, unix_s);
        match of_own {
            Some(holder) => assert_eq!(answer, Some(name(holder)), "the asking one's owner's"),
            None => {
                let is_holder = |one: &Name| holders().any(|entry| name(entry) == *one);
                assert_eq!(answer.is_some(), holders().next().is_some());
                assert!(answer.is_none_or(|one| is_holder(&one)), "one that holds it");
            }
        }
    }
    let all: Vec<PublicKey> =
        in_force().flat_map(|entry| entry.record.machines.iter().map(|(_, key)| *key)).collect();
    for skip in [0, machine as usize, all.len().saturating_sub(2), all.len()] {
        let (page, total) = listed.machines(skip, 5, unix_s);
        let page: Vec<PublicKey> = page.into_iter().map(|machine| machine.key).collect();
        let walked: Vec<PublicKey> = all.iter().skip(skip).take(5).copied().collect();
        assert_eq!((page, total), (walked, all.len()), "after {skip}");
    }
    let of_owner = table.entries().filter(|entry| entry.record.owner == owner(1)).count();
    assert_eq!(listed.count_of_owner(&owner(1)), of_owner);
    let host = host_of(&address(1, 5));
    let of_host = table.entries().filter(|entry| host_of(&entry.seen_at) == host).count();
    assert_eq!(listed.count_of_host(&address(1, 77)), of_host);
    let ended = table.entries().filter(|entry| entry.record.expires_unix_s < unix_s).count();
    assert_eq!(listed.ended_before(unix_s).len(), ended);
}

#[test]
fn answers_are_those_of_a_walk_whatever_is_listed_ends_and_is_forgotten() {
    let mut random = Random::new(11);
    let mut draw = |below: u32| {
        let mut bytes = [0; 4];
        random.fill(&mut bytes).unwrap();
        u32::from_le_bytes(bytes) % below
    };
    let mut listed = Listed::new(Vec::new(), 1_000, [1; 32]);
    let mut unix_s = NOW;
    let mut empty = 0;
    for _ in 0..4_000 {
        let name = draw(40);
        match draw(8) {
            0 => listed.forget(&device(name)),
            // The clock goes on, and is set back now and then.
            1 => unix_s += u64::from(draw(30)),
            2 => unix_s -= u64::from(draw(20)),
            _ => {
                let machines: Vec<u32> = (0..draw(4)).map(|_| draw(12)).collect();
                let expires = unix_s + u64::from(draw(60));
                let record = record(name, draw(4) as u8, &machines, expires);
                put(&mut listed, record, address(draw(3), draw(9) as u16));
            }
        }
        check_answers(&mut listed, draw(40), draw(12), unix_s);
        empty += usize::from(listed.machines(0, 1, unix_s).1 == 0);
    }
    assert!(empty < 400, "most of the time there was something to find: {empty}");
}

#[test]
fn question_looks_at_as_few_devices_of_many_as_of_a_few() {
    for devices in [16, 20_000] {
        let mut listed = Listed::new(Vec::new(), devices as usize, [1; 32]);
        for number in 0..devices {
            // All list one machine beside their own, as somebody might who wants a hub to be slow; half have ended.
            let expires = NOW + u64::from(number % 2) * 60;
            put(&mut listed, record(number, 1, &[0, 1 + number], expires), address(number, 1));
        }
        listed.go_to(NOW + 1);
        listed.steps.take();
        let mut steps = |what: &str, most: usize, ask: &mut dyn FnMut(&mut Listed)| {
            ask(&mut listed);
            let steps = listed.steps.take();
            assert!(steps <= most, "{what}: {steps} of {devices} devices were looked at");
        };
        let last = devices - 1;
        for query in [Query::Key(key(0)), Query::Id(machine_id(&key(1 + last)))] {
            steps("a machine", 2, &mut |listed| {
                assert!(found(listed, last, &query, NOW + 1).is_some());
            });
        }
        steps("no machine", 0, &mut |listed| {
            assert_eq!(found(listed, last, &Query::Key(key(999_999)), NOW + 1), None);
        });
        steps("the end of the list", 3, &mut |listed| {
            let (page, total) = listed.machines(devices as usize - 4, 4, NOW + 1);
            assert_eq!((page.len(), total), (4, devices as usize));
        });
        steps("a renewal", 0, &mut |listed| {
            put(listed, record(last, 1, &[0, 1 + last], NOW + 70), address(last, 1));
            assert_eq!(listed.count_of_owner(&owner(1)), devices as usize);
        });
        steps("nobody to forget", 0, &mut |listed| assert_eq!(listed.ended_before(NOW).len(), 0));
        steps("the end of one record", 1, &mut |listed| {
            put(listed, record(last, 1, &[0, 1 + last], NOW + 5), address(last, 1));
            assert_eq!(found(listed, 0, &Query::Key(key(1 + last)), NOW + 6), None);
        });
    }
}

/// D-14: a clock that was ahead for a while took records until then.
#[test]
fn record_that_lasts_longer_than_any_may_is_found_by_nobody_until_it_doesnt() {
    let mut listed = Listed::new(Vec::new(), 10, [1; 32]);
    let (query, year) = (Query::Key(key(1)), 365 * 24 * 60 * 60);
    put(&mut listed, record(1, 1, &[1], NOW + year), address(1, 1));
    for (at, is_found) in [(NOW + year, true), (NOW, false), (NOW + year - 60, true), (NOW, false)]
    {
        assert_eq!(found(&mut listed, 77, &query, at).is_some(), is_found, "at {at}");
        assert_eq!(listed.machines(0, 9, at).1, usize::from(is_found), "at {at}");
    }
}

#[test]
fn whoever_lists_anothers_machine_takes_it_from_nobody_of_the_same_owner() {
    let mut listed = Listed::new(Vec::new(), 4, [1; 32]);
    let asking = 9;
    let (thief, holder) = (1, 5);
    for (name, of, machines) in [(asking, 1, &[][..]), (holder, 1, &[2]), (thief, 0, &[2])] {
        put(&mut listed, record(name, of, machines, NOW + 60), address(1, 1));
    }
    for query in [Query::Key(key(2)), Query::Id(machine_id(&key(2)))] {
        assert_eq!(found(&mut listed, asking, &query, NOW), Some(device(holder)), "{query:?}");
        assert_eq!(found(&mut listed, thief, &query, NOW), Some(device(thief)), "its own owner's");
        assert!(found(&mut listed, 77, &query, NOW).is_some(), "a stranger gets one of them");
        assert_eq!(found(&mut listed, asking, &query, NOW + 61), None, "they have ended");
    }
}

#[test]
fn devices_that_were_heard_are_in_time_until_half_of_their_records_life_and_then_late_for_a_minute()
{
    let mut listed = Listed::new(Vec::new(), 10, [1; 32]);
    let seen = |in_time, overdue, listed| Renewals { in_time, overdue, listed };
    for (number, life_s) in [(1, 60), (2, 60), (3, 3_600)] {
        put(&mut listed, record(number, 1, &[], NOW + life_s), address(1, 5));
    }
    assert_eq!(listed.renewals(NOW), seen(0, 0, 3), "nobody knows when they were heard");
    (1..=3).for_each(|number| listed.hear(&device(number), NOW));
    assert_eq!(listed.renewals(NOW + 30), seen(2, 0, 3));
    listed.hear(&device(1), NOW + 20);
    assert_eq!(listed.renewals(NOW + 31), seen(1, 1, 3));
    assert_eq!(listed.renewals(NOW + 90), seen(0, 2, 3));
    assert_eq!(listed.renewals(NOW + 101), seen(0, 0, 3), "they are gone");
    assert_eq!(listed.renewals(NOW + 1_801), seen(0, 1, 3), "and so is who sleeps for long");
    listed.hear_in_vain(&device(2), NOW + 200);
    assert_eq!(listed.renewals(NOW + 200), seen(0, 1, 3));
    listed.forget(&device(2));
    assert_eq!(listed.renewals(NOW + 200), seen(0, 0, 2));
}
