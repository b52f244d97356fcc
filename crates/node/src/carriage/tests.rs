use super::*;

const ATTIC: NodeId = NodeId::from_bytes([1; 6]);
const CELLAR: NodeId = NodeId::from_bytes([2; 6]);

fn at(seconds: u64) -> Instant {
    Instant::from_micros(seconds * 1_000_000)
}

#[test]
fn datagrams_are_kept_for_each_tool_that_speaks_to_their_sender() {
    let mut carriages = Carriages::default();
    assert!(!carriages.keep(at(0), ATTIC, b"early"), "nobody speaks to it");
    for (tool, to) in [(1, ATTIC), (2, ATTIC), (3, CELLAR)] {
        assert!(carriages.of(at(0), tool, to).arrived.is_empty());
    }
    assert!(carriages.keep(at(1), ATTIC, b"answer"));
    for (tool, to, count) in [(1, ATTIC, 1), (2, ATTIC, 1), (3, CELLAR, 0)] {
        assert_eq!(carriages.of(at(1), tool, to).arrived.len(), count);
    }
}

#[test]
fn a_tool_that_fetches_nothing_loses_the_oldest_and_is_forgotten() {
    let mut carriages = Carriages::default();
    carriages.of(at(0), 1, ATTIC);
    for number in 0..100 {
        assert!(carriages.keep(at(1), ATTIC, &[number; 1_000]));
    }
    let arrived = &carriages.of(at(1), 1, ATTIC).arrived;
    assert!(arrived.len() == CARRIED_BYTES_MAX / 1_004, "{}", arrived.len());
    assert_eq!(arrived.back(), Some(&alloc::vec![99; 1_000]));
    assert!(!carriages.keep(at(1) + PATIENCE, ATTIC, b"late"));
}

#[test]
fn more_tools_than_there_is_room_for_forget_the_one_that_was_used_longest_ago() {
    let mut carriages = Carriages::default();
    for tool in 0..CARRIAGES_MAX as u32 {
        carriages.of(at(0), tool, ATTIC);
    }
    carriages.of(at(1), 0, ATTIC);
    carriages.of(at(1), 99, ATTIC);
    let tools: Vec<u32> = carriages.0.iter().map(|carriage| carriage.tool).collect();
    assert_eq!(tools, [2, 3, 0, 99]);
}
