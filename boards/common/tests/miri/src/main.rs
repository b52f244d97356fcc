//! Takes and gives back memory of a board's heap at random, and uses the page that outlasts a deep sleep.
//!
//! Each piece holds its own bytes until it goes. Takes the number of steps: `cargo xtask miri`.

use std::alloc::{GlobalAlloc, Layout};

use tenure_boot::always_on::{BYTES, RETAINED_AT};
use tenure_hal::simulated::Random;
use tenure_hal::{Power as _, ResetCause, Retained as _};

use crate::always_on::AlwaysOn;
use crate::block::Block;
use crate::heap::Heap;

#[path = "../../../src/always_on.rs"]
mod always_on;
#[path = "../../../src/block.rs"]
mod block;
#[path = "../../../src/heap.rs"]
mod heap;
#[path = "../../../src/pieces.rs"]
mod pieces;

static HEAP: Heap = Heap::new();
const HEAP_WORDS: usize = 8 * 1024;
/// The most pieces of each kind at a time.
const HELD_MAX: u64 = 12;

fn main() {
    let steps = std::env::args().nth(1).and_then(|steps| steps.parse().ok()).expect("steps");
    let mut memory = vec![0_u64; HEAP_WORDS];
    let range = memory.as_mut_ptr_range();
    // SAFETY: nothing else touches the memory until all of it is free again.
    unsafe { HEAP.init(range.start.expose_provenance(), range.end.expose_provenance()) };
    let (pieces, blocks) = take_and_give_back(steps);
    assert_eq!(HEAP.usage().used_bytes, 0, "all of it is free again");
    drop(memory);
    use_the_page();
    println!("{pieces} pieces, {blocks} blocks: nothing found");
}

/// A piece of the lower part, whose bytes are all the same.
struct Piece {
    place: *mut u8,
    layout: Layout,
    value: u8,
}

impl Piece {
    fn take(layout: Layout, value: u8) -> Option<Self> {
        // SAFETY: no layout here is empty.
        let place = unsafe { HEAP.alloc(layout) };
        if place.is_null() {
            return None;
        }
        assert!(place.addr().is_multiple_of(layout.align()));
        // SAFETY: so many bytes are the piece's.
        unsafe { place.write_bytes(value, layout.size()) };
        Some(Self { place, layout, value })
    }
}

impl Drop for Piece {
    fn drop(&mut self) {
        // SAFETY: so many bytes are the piece's, and have been written.
        let bytes = unsafe { std::slice::from_raw_parts(self.place, self.layout.size()) };
        assert!(bytes.iter().all(|byte| *byte == self.value), "somebody else wrote there");
        // SAFETY: it was allocated so.
        unsafe { HEAP.dealloc(self.place, self.layout) };
    }
}

/// Returns how many pieces and blocks there were.
fn take_and_give_back(steps: u32) -> (u32, u32) {
    let mut random = Random::new(1);
    let mut draw = |below: u64| (random.number() % below) as usize;
    let (mut pieces, mut blocks) = (Vec::new(), Vec::new());
    let (mut pieces_taken, mut blocks_taken) = (0, 0);
    for step in 0..steps {
        let layout = Layout::from_size_align(1 + draw(600), 1 << draw(7)).expect("a layout");
        match draw(4) {
            0 if pieces.len() < HELD_MAX as usize => {
                let has_piece = HEAP.has_piece(layout.size());
                let piece = Piece::take(layout, step as u8);
                if layout.align() <= align_of::<usize>() {
                    assert_eq!(piece.is_some(), has_piece, "what is said to be free can be had");
                }
                pieces_taken += u32::from(piece.is_some());
                pieces.extend(piece);
            }
            1 if blocks.len() < HELD_MAX as usize => {
                let block = block(layout, None, step as u8);
                blocks_taken += u32::from(block.is_some());
                blocks.extend(block);
            }
            2 if !pieces.is_empty() => drop(pieces.swap_remove(draw(HELD_MAX) % pieces.len())),
            3 if !blocks.is_empty() => {
                let (gone, layout) = blocks.swap_remove(draw(HELD_MAX) % blocks.len());
                let at = gone.as_ptr().addr();
                drop(gone);
                // As after a deep sleep: at the address where it was before, and zero.
                let again = block(layout, Some(at), step as u8).expect("the place is free");
                assert_eq!(again.0.as_ptr().addr(), at);
            }
            _ => {}
        }
    }
    (pieces_taken, blocks_taken)
}

/// A block that was all zero, and holds `value`.
fn block(layout: Layout, at: Option<usize>, value: u8) -> Option<(Block<()>, Layout)> {
    let given = layout.size().div_ceil(2);
    let mut block = Block::new(&HEAP, (given, layout), at, |_| Some(()))?;
    assert!(block.iter().all(|byte| *byte == 0), "it shows what somebody else had");
    block.fill(value);
    let () = block.rules();
    Some((block, layout))
}

fn use_the_page() {
    let mut page = [0_u64; BYTES / 8];
    let (feed, exit) = (|| {}, |_| unreachable!("nothing ends here"));
    // SAFETY: the page is aligned and outlives this, and nobody else uses it.
    let mut power = unsafe { AlwaysOn::new(page.as_mut_ptr().cast(), feed, exit) };
    assert_eq!((power.reset_cause(), power.started_at_us()), (ResetCause::PowerOn, 0));
    power.lend_retained().write(&[7; BYTES]);
    assert_eq!(power.retained(), [7; BYTES - RETAINED_AT]);
    power.retained().fill(8);
    power.feed_watchdog();
    power.lend_retained().write(b"crumb");
    assert_eq!(&power.retained()[..6], b"crumb\x08");
}
