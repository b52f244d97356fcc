use alloc::vec;
use alloc::vec::Vec;

use super::*;

/// Memory that ends at a limit, with a byte beside each byte that says who owns it.
struct TestMemory {
    words: Vec<u32>,
    bytes_max: usize,
}

impl Memory for TestMemory {
    fn read(&self, at: u32) -> u32 {
        assert_eq!(at % 4, 0);
        self.words[at as usize / 4]
    }

    fn write(&mut self, at: u32, word: u32) {
        assert_eq!(at % 4, 0);
        self.words[at as usize / 4] = word;
    }

    fn end(&self) -> u32 {
        self.words.len() as u32 * 4
    }

    fn grow(&mut self, bytes: u32) -> bool {
        let length = self.words.len() + bytes.div_ceil(4) as usize;
        let fits = length * 4 <= self.bytes_max;
        if fits {
            self.words.resize(length, u32::MAX);
        }
        fits
    }
}

/// A small generator (Knuth's MMIX constants), so that a failure repeats.
struct Chance(u64);

impl Chance {
    fn below(&mut self, bound: u32) -> u32 {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        ((self.0 >> 33) % u64::from(bound)) as u32
    }
}

fn layout(size: u32, align: u32) -> Layout {
    Layout::from_size_align(size as usize, align as usize).unwrap()
}

/// Walks all blocks and checks what must always hold.
fn check(heap: &Heap, memory: &TestMemory) -> u32 {
    let (mut block, mut previous, mut previous_free, mut used) = (heap.start, 0, false, 0);
    while block != heap.end {
        let size = heap.size(memory, block);
        let free = heap.is_free(memory, block);
        assert!(
            size >= HEADER_BYTES && size.is_multiple_of(GRAIN),
            "block {block} has size {size}"
        );
        assert_eq!(memory.read(block + 4), previous, "block {block} knows the one before");
        assert!(!(free && previous_free), "block {block} and the one before are both free");
        used += if free { 0 } else { size };
        (previous, previous_free) = (size, free);
        block += size;
    }
    assert_eq!(heap.last_size, previous);
    used
}

#[test]
fn random_use_keeps_blocks_apart() {
    for seed in 0..20 {
        let mut chance = Chance(seed);
        let mut memory = TestMemory { words: vec![u32::MAX; 40], bytes_max: 8 * 1024 };
        let mut heap = Heap::new(20);
        let mut live: Vec<(u32, u32)> = Vec::new();
        for _ in 0..2000 {
            let size = chance.below(300);
            match chance.below(3) {
                0 if !live.is_empty() => {
                    let (payload, _) = live.swap_remove(chance.below(live.len() as u32) as usize);
                    heap.free(&mut memory, payload);
                }
                1 if !live.is_empty() => {
                    let which = chance.below(live.len() as u32) as usize;
                    if heap.resize(&mut memory, live[which].0, size as usize) {
                        live[which].1 = size;
                    }
                }
                _ => {
                    let align = 1 << chance.below(7);
                    if let Some(payload) = heap.allocate(&mut memory, layout(size, align)) {
                        assert_eq!(payload % align, 0, "seed {seed}");
                        live.push((payload, size));
                    }
                }
            }
            let used = check(&heap, &memory);
            assert!(used >= live.iter().map(|(_, size)| size + HEADER_BYTES).sum(), "seed {seed}");
            live.sort_unstable();
            for pair in live.windows(2) {
                assert!(pair[0].0 + pair[0].1 + HEADER_BYTES <= pair[1].0, "seed {seed}");
            }
        }
        for (payload, _) in live.drain(..) {
            heap.free(&mut memory, payload);
        }
        assert_eq!(check(&heap, &memory), 0, "seed {seed}: all is one free block again");
    }
}

#[test]
fn memory_at_its_limit_refuses_and_recovers() {
    let mut memory = TestMemory { words: vec![0; 4], bytes_max: 1024 };
    let mut heap = Heap::new(8);
    let first = heap.allocate(&mut memory, layout(900, 1)).unwrap();
    assert_eq!(heap.allocate(&mut memory, layout(200, 1)), None);
    assert_eq!(heap.allocate(&mut memory, layout(0x7fff_fff0, 1)), None);
    assert!(!heap.resize(&mut memory, first, usize::MAX));
    heap.free(&mut memory, first);
    assert_eq!(heap.allocate(&mut memory, layout(900, 1)), Some(first));
}
