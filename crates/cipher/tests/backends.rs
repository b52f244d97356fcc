//! Every backend that this machine can run against the portable one.
//!
//! The backends of other instruction sets are checked in the same way on emulated machines, see
//! `machines`.

use tenure_cipher::backend::{Backend, Operations, available, portable::Portable};
use tenure_cipher::{Form, Ietf, PolyState, State};
use tenure_hal::simulated::Random;

fn random_state(random: &mut Random) -> State {
    let key = random.bytes(32).try_into().unwrap();
    let nonce = random.bytes(12).try_into().unwrap();
    Ietf::state::<10>(&key, &nonce)
}

/// Data at an address `offset` beyond a multiple of 64.
fn check_xor(backend: &dyn Backend, seed: u64, double_rounds: usize, blocks: usize, offset: usize) {
    let mut random = Random::new(seed);
    let mut state = random_state(&mut random);
    let last_counter = 0u32.wrapping_sub(blocks as u32);
    let at_the_end = blocks > 0 && random.below(4) == 0;
    state.set_counter(if at_the_end { last_counter } else { random.number() as u32 >> 1 });
    let mut ours = random.bytes(64 * blocks + 256);
    let start = ours.as_ptr().align_offset(64) + offset;
    let range = start..start + 64 * blocks;
    let mut theirs = ours.clone();
    backend.xor(&state, double_rounds, ours[range.clone()].as_chunks_mut().0);
    Portable.xor(&state, double_rounds, theirs[range].as_chunks_mut().0);
    let name = backend.name();
    assert!(ours == theirs, "{name}, seed {seed}: {double_rounds} double rounds, {blocks} blocks");
}

#[test]
fn keystreams_agree_at_every_length_and_alignment() {
    for backend in available() {
        for blocks in 0..70 {
            for offset in [0, 1, 2, 4, 8, 15, 33] {
                check_xor(backend, blocks as u64 * 64 + offset as u64, 10, blocks, offset);
            }
        }
    }
}

/// The forerunner of this engine ran ten double rounds whatever the variant.
#[test]
fn keystreams_agree_for_every_number_of_rounds() {
    for backend in available() {
        for double_rounds in 0..12 {
            for blocks in [1, 2, 3, 5, 9, 17, 31, 33, 64] {
                check_xor(backend, 1, double_rounds, blocks, 0);
            }
        }
    }
}

#[test]
fn accumulators_agree_at_every_length_and_at_the_edges() {
    for backend in available() {
        let mut random = Random::new(2);
        for blocks in 0..100 {
            for edge in [false, true] {
                let fill = |random: &mut Random, len| {
                    if edge { vec![0xff; len] } else { random.bytes(len) }
                };
                let r = fill(&mut random, 16).try_into().unwrap();
                let data = fill(&mut random, 16 * blocks + 7);
                let offset = random.below(8) as usize;
                let data = data[offset.min(7)..].as_chunks().0;
                let (mut ours, mut theirs) = (PolyState::new(&r), PolyState::new(&r));
                for top in [1, 0, 1] {
                    backend.absorb(&mut ours, data, top);
                    Portable.absorb(&mut theirs, data, top);
                    let name = backend.name();
                    assert!(ours.accumulator()[4] <= 4, "{name}: {blocks} blocks");
                    assert_eq!(ours.reduced(), theirs.reduced(), "{name}: {blocks} blocks");
                }
            }
        }
    }
}

#[test]
fn sealed_messages_agree_at_every_length_and_open() {
    for backend in available() {
        let mut random = Random::new(3);
        for len in (0..1300).chain([2047, 2048, 2049, 4096, 5000, 16384, 20_001]) {
            let mut state = random_state(&mut random);
            state.set_counter(0);
            let plain = random.bytes(len);
            let header_len = random.length(6);
            let header = random.bytes(header_len);
            let (mut ours, mut theirs) = (plain.clone(), plain.clone());
            let tag = backend.seal(&state, &header, &mut ours);
            let expected = Portable.seal(&state, &header, &mut theirs);
            let name = backend.name();
            assert!(ours == theirs, "{name}: ciphertext of {len} bytes");
            assert_eq!(tag, expected, "{name}: tag of {len} bytes");
            let mut wrong = tag;
            wrong[len % 16] ^= 1;
            assert!(backend.open(&state, &header, &mut ours, &wrong).is_err());
            assert!(ours == theirs, "{name}: {len} bytes were changed though refused");
            backend.open(&state, &header, &mut ours, &tag).unwrap();
            assert!(ours == plain, "{name}: {len} bytes");
        }
    }
}
