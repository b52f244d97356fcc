//! Tests of the queues of events: order, limits and memory.

use alloc::vec;

use super::*;
use crate::ProtocolNumber;
use crate::room::STEP_BYTES;

const ENVELOPE: Envelope =
    Envelope { to: ProtocolNumber(1), event: Event::Notification { number: 1 } };

fn push(queue: &mut ByteQueue, length: usize, fill: u8) -> bool {
    queue.push(ENVELOPE, &[fill; 4], &vec![fill; length - 4])
}

#[test]
fn queue_that_grows_and_drains_keeps_order_and_bytes() {
    let mut queue = ByteQueue::new(3 * 1024);
    let (mut pushed, mut popped) = (0_u8, 0_u8);
    for round in 0..200_usize {
        let length = 4 + round * 37 % 700;
        if push(&mut queue, length, pushed) {
            pushed += 1;
        } else {
            let (_, bytes) = queue.front().unwrap();
            assert!(bytes.iter().all(|byte| *byte == popped), "round {round}");
            queue.pop();
            popped += 1;
        }
    }
    while let Some((_, bytes)) = queue.front() {
        assert!(bytes.iter().all(|byte| *byte == popped));
        queue.pop();
        popped += 1;
    }
    assert_eq!(pushed, popped);
    assert!(pushed > 100);
}

#[test]
fn queue_takes_no_more_memory_than_waits_in_it_and_a_step() {
    let mut queue = ByteQueue::new(3 * 1024);
    let mut waiting = 0;
    while push(&mut queue, 670, 0) {
        waiting += 670;
        assert!(queue.bytes.capacity() < waiting + STEP_BYTES);
    }
    // Room that popped entries left at the head is used before the queue grows.
    let peak = queue.bytes.capacity();
    for _ in 0..50 {
        queue.pop();
        assert!(push(&mut queue, 670, 0));
        assert_eq!(queue.bytes.capacity(), peak);
    }
    while queue.front().is_some() {
        queue.pop();
    }
    assert!(queue.bytes.capacity() <= 3 * 1024 / KEPT_PART);
}
