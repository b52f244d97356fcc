//! One backend against the portable one: lengths, alignments, rounds, counters, edge values.

use core::hint::black_box;

use tenure_cipher::backend::{Backend, Operations, portable::Portable};
use tenure_cipher::{Form, Ietf, PolyState, State};

use crate::machine;

const BLOCKS_MAX: usize = 9;

/// Room for the longest message at any offset from a word boundary.
#[repr(align(8))]
#[derive(Clone, Copy)]
struct Memory([u8; 64 * BLOCKS_MAX + 8]);

/// Fails with what differed.
pub fn check(backend: &dyn Backend) -> Result<(), &'static str> {
    let mut numbers = Numbers(1);
    for double_rounds in [1, 2, 3, 4, 5, 6, 10, 11] {
        for blocks in 0..=BLOCKS_MAX {
            for offset in 0..4 {
                check_xor(backend, &mut numbers, double_rounds, blocks, offset)?;
            }
        }
    }
    for blocks in 0..=BLOCKS_MAX * 4 {
        for offset in 0..4 {
            check_absorb(backend, &mut numbers, blocks, offset, false)?;
            check_absorb(backend, &mut numbers, blocks, offset, true)?;
        }
    }
    check_aead(backend, &mut numbers)?;
    check_time(backend, &mut numbers)
}

/// Keys and texts of all zeros, all ones and neither take the same number of instructions.
fn check_time(backend: &dyn Backend, numbers: &mut Numbers) -> Result<(), &'static str> {
    let mut counts = [0; 8];
    for (round, count) in counts.iter_mut().enumerate() {
        let mut byte = || match round {
            0 => 0,
            1 => 0xff,
            _ => numbers.next() as u8,
        };
        let (mut key, mut text) = ([0; 32], [0; 1000]);
        key.iter_mut().chain(&mut text).for_each(|place| *place = byte());
        let state = Ietf::state::<10>(&key, &[9; 12]);
        *count = machine::instructions(|| {
            black_box(backend.seal(black_box(&state), &[], black_box(&mut text)));
        });
    }
    let (most, least) = (counts.iter().max(), counts.iter().min());
    match (most, least) {
        (Some(most), Some(least)) if least + machine::INSTRUCTIONS_PER_TICK >= *most => Ok(()),
        _ => Err("the number of instructions depends on a secret"),
    }
}

fn check_xor(
    backend: &dyn Backend,
    numbers: &mut Numbers,
    double_rounds: usize,
    blocks: usize,
    offset: usize,
) -> Result<(), &'static str> {
    let mut state = random_state(numbers);
    // Up to the counter's very end: these blocks are its last.
    let last = blocks as u32;
    state.set_counter(if offset == 1 { 0u32.wrapping_sub(last) } else { numbers.next() });
    let mut ours = Memory([0; 64 * BLOCKS_MAX + 8]);
    ours.0.iter_mut().for_each(|byte| *byte = numbers.next() as u8);
    let mut theirs = ours;
    let range = offset..offset + 64 * blocks;
    if state.counter() as u64 + blocks as u64 > 1 << 32 {
        return Ok(());
    }
    backend.xor(&state, double_rounds, ours.0[range.clone()].as_chunks_mut().0);
    Portable.xor(&state, double_rounds, theirs.0[range].as_chunks_mut().0);
    if ours.0 == theirs.0 { Ok(()) } else { Err("keystream differs from the portable one") }
}

fn check_absorb(
    backend: &dyn Backend,
    numbers: &mut Numbers,
    blocks: usize,
    offset: usize,
    edge: bool,
) -> Result<(), &'static str> {
    let mut memory = Memory([0xff; 64 * BLOCKS_MAX + 8]);
    let mut r = [0xff; 16];
    if !edge {
        memory.0.iter_mut().for_each(|byte| *byte = numbers.next() as u8);
        r.iter_mut().for_each(|byte| *byte = numbers.next() as u8);
    }
    let (mut ours, mut theirs) = (PolyState::new(&r), PolyState::new(&r));
    let data = memory.0[offset..offset + 16 * blocks].as_chunks().0;
    // Twice, so that the second call starts from what the first left.
    for top in [1, 0] {
        backend.absorb(&mut ours, data, top);
        Portable.absorb(&mut theirs, data, top);
        if ours.accumulator()[4] > 4 {
            return Err("the accumulator is out of bounds");
        }
    }
    if ours.reduced() == theirs.reduced() {
        Ok(())
    } else {
        Err("the accumulator differs from the portable one")
    }
}

fn check_aead(backend: &dyn Backend, numbers: &mut Numbers) -> Result<(), &'static str> {
    for len in 0..300 {
        let mut state = random_state(numbers);
        state.set_counter(0);
        let mut ours = [0; 300];
        ours.iter_mut().for_each(|byte| *byte = numbers.next() as u8);
        let (plain, header) = (ours, [7; 21]);
        let mut theirs = ours;
        let header = &header[..len % 21];
        let tag = backend.seal(&state, header, &mut ours[..len]);
        let expected = Portable.seal(&state, header, &mut theirs[..len]);
        if ours != theirs || tag != expected {
            return Err("a sealed message differs from the portable one");
        }
        let opened = backend.open(&state, header, &mut ours[..len], &tag);
        if opened.is_err() || ours != plain {
            return Err("a sealed message does not open");
        }
    }
    Ok(())
}

fn random_state(numbers: &mut Numbers) -> State {
    let (mut key, mut nonce) = ([0; 32], [0; 12]);
    key.iter_mut().chain(&mut nonce).for_each(|byte| *byte = numbers.next() as u8);
    Ietf::state::<10>(&key, &nonce)
}

/// Xorshift.
struct Numbers(u32);

impl Numbers {
    fn next(&mut self) -> u32 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 17;
        self.0 ^= self.0 << 5;
        self.0
    }
}
