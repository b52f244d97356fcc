//! A stack on a heap that has no large pieces left: orders are lost and counted, and the node lives on.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tenure_hal::Instant;
use tenure_mesh::{
    Context, Expires, Framer, FramerConfig, Handles, NodeId, Outgoing, Protocol, Reception, Stack,
    StackConfig, Unsealed,
};

/// The system's allocator, which gives this thread no piece longer than it says.
struct Pieces;

thread_local! {
    static PIECE_BYTES_MAX: Cell<usize> = const { Cell::new(usize::MAX) };
}

#[global_allocator]
static HEAP: Pieces = Pieces;

// SAFETY: what is given comes from the system's allocator, and goes back to it; null says that there is no memory.
unsafe impl GlobalAlloc for Pieces {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if layout.size() > PIECE_BYTES_MAX.get() {
            return std::ptr::null_mut();
        }
        // SAFETY: the caller keeps the contract that this is under.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        // SAFETY: as above; it came from there.
        unsafe { System.dealloc(memory, layout) }
    }
}

/// Says as often as it is told what it is told.
#[derive(Debug, Default)]
struct Shouter {
    heard: u32,
    beats: u32,
}

#[derive(Serialize, Deserialize)]
struct Shout;

#[derive(Serialize, Deserialize)]
struct Beat;

tenure_mesh::protocol! {
    Shouter = 200, "shouter";
    messages { Shout = 1 }
    timers { Beat = 1 }
}

impl Protocol for Shouter {
    fn start(&mut self, context: &mut Context<'_, Self>) {
        context.every(Duration::from_secs(1), &Beat);
    }
}

impl Expires<Beat> for Shouter {
    fn expire(&mut self, _: Beat, _: &mut Context<'_, Self>) {
        self.beats += 1;
    }
}

impl Handles<Shout> for Shouter {
    fn handle(&mut self, _: Shout, _: Reception<'_>, _: &mut Context<'_, Self>) {
        self.heard += 1;
    }
}

/// Sets its only timer anew each time it goes off, behind more messages than there is memory for.
#[derive(Debug, Default)]
struct Pacer {
    paces: u32,
}

#[derive(Serialize, Deserialize)]
struct Step;

#[derive(Serialize, Deserialize)]
struct Pace {
    number: u64,
}

tenure_mesh::protocol! {
    Pacer = 201, "pacer";
    messages { Step = 1 }
    timers { Pace = 1 }
}

impl Protocol for Pacer {
    fn start(&mut self, context: &mut Context<'_, Self>) {
        context.after(Duration::from_secs(1), &Pace { number: u64::MAX });
    }
}

impl Expires<Pace> for Pacer {
    fn expire(&mut self, pace: Pace, context: &mut Context<'_, Self>) {
        self.paces += 1;
        for length in (0..200).rev() {
            context.transmit(&Step, Outgoing { body: &[7; 200][..length], ..Outgoing::default() });
        }
        context.after(Duration::from_secs(1), &Pace { number: pace.number - 1 });
    }
}

impl Handles<Step> for Pacer {
    fn handle(&mut self, _: Step, _: Reception<'_>, _: &mut Context<'_, Self>) {}
}

fn stack(node: u64) -> Stack {
    let framer = FramerConfig::new(NodeId::from_number(node), 1, [0; 8]);
    let mut stack = Stack::new(StackConfig::default(), Framer::new(framer, Unsealed));
    stack.start(Instant::BOOT, Shouter::default());
    stack
}

/// Has `stack` shout `body` so many times in one go.
fn shout(stack: &mut Stack, now: Instant, times: usize, body: &[u8]) {
    stack.act(now, |_: &mut Shouter, context| {
        for _ in 0..times {
            context.transmit(&Shout, Outgoing { body, ..Outgoing::default() });
        }
    });
}

/// Runs `from` until it has nothing to send, and gives what it sends to `to`.
fn carry(from: &mut Stack, to: &mut Stack, now: Instant) {
    let mut frame = Vec::new();
    loop {
        from.poll(now);
        if from.transmit(now, &mut frame).is_none() {
            break;
        }
        to.receive(now, &frame, None).expect("a frame of this framework");
        while to.poll(now) == Some(now) {}
    }
}

#[test]
fn orders_without_room_are_lost_and_counted_and_the_node_lives_on() {
    let (mut one, mut two) = (stack(1), stack(2));
    let at = Instant::from_millis;
    PIECE_BYTES_MAX.set(1024);
    // Five bodies of 300 bytes don't fit 1,024.
    shout(&mut one, at(10), 5, &[7; 300]);
    PIECE_BYTES_MAX.set(usize::MAX);
    carry(&mut one, &mut two, at(20));
    let lost = one.counters().orders_lost;
    assert_eq!(lost, 2);
    let heard = |two: &Stack| two.protocol::<Shouter>().expect("it was started").heard;
    assert_eq!(u64::from(heard(&two)), 5 - lost);
    shout(&mut one, at(40), 1, &[7; 300]);
    carry(&mut one, &mut two, at(60));
    assert_eq!((u64::from(heard(&two)), one.counters().orders_lost), (6 - lost, lost));
}

#[test]
fn timers_go_on_on_a_heap_that_has_no_piece_for_a_message() {
    let mut stack = stack(1);
    PIECE_BYTES_MAX.set(512);
    for second in 1..=10 {
        let now = Instant::from_millis(second * 1000);
        shout(&mut stack, now, 1, &[7; 600]);
        stack.poll(now);
    }
    PIECE_BYTES_MAX.set(usize::MAX);
    assert_eq!(stack.counters().orders_lost, 10);
    assert_eq!(stack.protocol::<Shouter>().expect("it was started").beats, 10);
}

#[test]
fn timer_that_is_set_behind_messages_without_room_is_not_lost() {
    for piece_bytes_max in [256, 512, 1024, 2048] {
        let (mut one, mut two) = (stack(1), stack(2));
        one.start(Instant::BOOT, Pacer::default());
        for second in 1..=10 {
            let now = Instant::from_millis(second * 1000 + 1);
            PIECE_BYTES_MAX.set(piece_bytes_max);
            one.poll(now);
            PIECE_BYTES_MAX.set(usize::MAX);
            carry(&mut one, &mut two, now);
        }
        assert!(one.counters().orders_lost > 0, "pieces of {piece_bytes_max} bytes were enough");
        let paces = one.protocol::<Pacer>().expect("it was started").paces;
        assert_eq!(paces, 10, "pieces of at most {piece_bytes_max} bytes");
    }
}
