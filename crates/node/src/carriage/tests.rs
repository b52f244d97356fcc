use tenure_package::Revocations;
use tenure_wire::VerifyingKey;
use tenure_wire::control::{CARRIED_UNIT_BYTES, CARRIED_UNITS_AT_ONCE, CARRIED_UNITS_PER_S};

use super::*;

const ATTIC: NodeId = NodeId::from_bytes([1; 6]);
const CELLAR: NodeId = NodeId::from_bytes([2; 6]);

fn at(seconds: u64) -> Instant {
    Instant::from_micros(seconds * 1_000_000)
}

/// The same caller's.
fn tool_of(number: u32) -> Tool {
    Tool { caller: PublicKey([1; 32]), number }
}

#[test]
fn datagrams_are_kept_for_each_tool_that_speaks_to_their_sender() {
    let mut carriages = Carriages::default();
    assert!(!carriages.keep(at(0), ATTIC, b"early"), "nobody speaks to it");
    for (tool, to) in [(1, ATTIC), (2, ATTIC), (3, CELLAR)] {
        assert!(carriages.of(at(0), tool_of(tool), to).arrived.is_empty());
    }
    assert!(carriages.keep(at(1), ATTIC, b"answer"));
    for (tool, to, count) in [(1, ATTIC, 1), (2, ATTIC, 1), (3, CELLAR, 0)] {
        assert_eq!(carriages.of(at(1), tool_of(tool), to).arrived.len(), count);
    }
}

#[test]
fn a_tool_that_fetches_nothing_loses_the_oldest_and_is_forgotten() {
    let mut carriages = Carriages::default();
    carriages.of(at(0), tool_of(1), ATTIC);
    for number in 0..100 {
        assert!(carriages.keep(at(1), ATTIC, &[number; 1_000]));
    }
    let arrived = &carriages.of(at(1), tool_of(1), ATTIC).arrived;
    assert!(arrived.len() == CARRIED_BYTES_MAX / 1_004, "{}", arrived.len());
    assert_eq!(arrived.back(), Some(&alloc::vec![99; 1_000]));
    assert!(!carriages.keep(at(1) + PATIENCE, ATTIC, b"late"));
}

#[test]
fn more_tools_than_there_is_room_for_forget_the_one_that_was_used_longest_ago() {
    let mut carriages = Carriages::default();
    for tool in 0..CARRIAGES_MAX as u32 {
        carriages.of(at(0), tool_of(tool), ATTIC);
    }
    carriages.of(at(1), tool_of(0), ATTIC);
    carriages.of(at(1), tool_of(99), ATTIC);
    let tools: Vec<u32> = carriages.0.iter().map(|carriage| carriage.tool.number).collect();
    assert_eq!(tools, [2, 3, 0, 99]);
}

const OWNER: VerifyingKey = VerifyingKey([7; 32]);

/// The pass of a tenant, which its tool has shown.
fn passage(byte: u8) -> Passage {
    let (tenant, device) = (VerifyingKey([byte; 32]), VerifyingKey([2; 32]));
    let pass = Pass { tenant, device, ends_unix_s: 0 };
    Passage { owner: OWNER, pass, caller: PublicKey([byte; 32]), to: ATTIC, ends: at(1_000) }
}

/// How many of `count` datagrams a member sends for a tenant, which has them carried ten at a time.
fn sent(passages: &mut Passages, now: Instant, byte: u8, (count, bytes): (usize, usize)) -> u32 {
    let datagrams = alloc::vec![alloc::vec![0; bytes]; 10];
    let carry = Carry { tool: 1, to: ATTIC.to_bytes(), datagrams, wait_ms: 0 };
    let standing = (&OWNER, &Revocations::default());
    let mut permit =
        || passages.permit(now, standing, &PublicKey([byte; 32]), &carry).unwrap().len();
    (0..count / 10).map(|_| permit() as u32).sum()
}

#[test]
fn a_member_sends_no_more_for_a_tenant_than_its_units_and_for_all_than_twice_that() {
    let mut passages = Passages::new();
    (1..=3).for_each(|byte| passages.show(passage(byte)));
    assert_eq!(sent(&mut passages, at(0), 1, (500, 1)), CARRIED_UNITS_AT_ONCE);
    assert_eq!(sent(&mut passages, at(1), 1, (500, 1)), CARRIED_UNITS_PER_S, "after a second");
    let long = (500, CARRIED_UNIT_BYTES + 1);
    assert_eq!(sent(&mut passages, at(100), 2, long), CARRIED_UNITS_AT_ONCE / 2, "two units each");
    assert_eq!(sent(&mut passages, at(100), 3, (500, 0)), CARRIED_UNITS_AT_ONCE, "another's own");
    assert_eq!(sent(&mut passages, at(100), 1, (500, 1)), 0, "all have had theirs together");
}

#[test]
fn tenants_tools_displace_none_of_the_owners() {
    let mut carrying = Carrying::new();
    carrying.owners.of(at(0), tool_of(1), ATTIC);
    for number in 0..3 * CARRIAGES_MAX as u32 {
        carrying.tenants.of(at(0), tool_of(number), ATTIC);
    }
    assert!(carrying.keep(at(1), ATTIC, b"answer"));
    assert_eq!(carrying.owners.of(at(1), tool_of(1), ATTIC).arrived.len(), 1);
    assert_eq!(carrying.tenants.0.len(), CARRIAGES_MAX);
    let stranger = Tool { caller: PublicKey([2; 32]), number: 1 };
    assert!(carrying.tenants.of(at(1), stranger, ATTIC).arrived.is_empty(), "the key counts too");
}
