//! The cost of sealing a tree: the same writes and reads, sealed as a node seals and open.
//!
//! `cargo bench -p tenure-node --bench sealing`. Rounds of both take turns, so that what else the
//! computer does strikes both alike; figures are medians. Bytes are exact.

use std::hint::black_box;
use std::time::Instant;

use tenure_crypto::{AeadKey, Nonce};
use tenure_hal::FlashGeometry;
use tenure_hal::simulated::RamFlash;
use tenure_store::{Seal, Store, TAG_BYTES, TreeId, Unsealable, ValueKind};

const TREE: TreeId = TreeId(1);
const KEYS: usize = 1_000;
const OPERATIONS: usize = 5_000;
const ROUNDS: usize = 11;
const VALUES_BYTES: [usize; 3] = [32, 256, 1024];

struct TreeSeal(AeadKey);

impl Seal for TreeSeal {
    fn seal(&self, number: u64, associated: &[u8], value: &mut [u8]) -> [u8; TAG_BYTES] {
        self.0.seal(&Nonce::from_counter(number), associated, value)
    }

    fn open(
        &self,
        number: u64,
        associated: &[u8],
        value: &mut [u8],
        tag: &[u8; TAG_BYTES],
    ) -> Result<(), Unsealable> {
        let nonce = Nonce::from_counter(number);
        self.0.open_detached(&nonce, associated, value, tag).map_err(|_| Unsealable)
    }
}

fn main() {
    println!(
        "{:>6}  {:>22}  {:>22}  {:>22}",
        "value", "write, open/sealed ns", "read, ns", "flash, bytes"
    );
    for bytes in VALUES_BYTES {
        let (mut open, mut sealed) = (Subject::new(bytes, false), Subject::new(bytes, true));
        let mut times: [Vec<u128>; 4] = Default::default();
        for _ in 0..ROUNDS {
            times[0].push(open.write());
            times[1].push(sealed.write());
            times[2].push(open.read());
            times[3].push(sealed.read());
        }
        let [write, sealed_write, read, sealed_read] = times.map(|mut round| {
            round.sort_unstable();
            round[ROUNDS / 2] / OPERATIONS as u128
        });
        let flash = open.store.record_bytes(TREE, &path(0), &vec![0; bytes]);
        let sealed_flash = sealed.store.record_bytes(TREE, &path(0), &vec![0; bytes]);
        println!(
            "{bytes:>6}  {write:>10} / {sealed_write:>9}  {read:>10} / {sealed_read:>9}  \
             {flash:>10} / {sealed_flash:>9}"
        );
    }
}

struct Subject {
    store: Store<RamFlash>,
    bytes: usize,
    next: u64,
}

impl Subject {
    fn new(bytes: usize, is_sealed: bool) -> Self {
        let sector_count = (KEYS * (bytes + 96) / 4096 * 2 + 16) as u32;
        let geometry = FlashGeometry { sector_bytes: 4096, sector_count, program_bytes: 4 };
        let mut store = Store::format(RamFlash::new(geometry)).expect("room for a store");
        if is_sealed {
            store.seal_tree(TREE, Some(Box::new(TreeSeal(AeadKey::from_bytes(&[7; 32])))));
        }
        let mut subject = Self { store, bytes, next: 0 };
        subject.write();
        subject
    }

    fn write(&mut self) -> u128 {
        let mut value = vec![0; self.bytes];
        let begin = Instant::now();
        for _ in 0..OPERATIONS {
            self.next += 1;
            value[..8].copy_from_slice(&self.next.to_le_bytes());
            let path = path(self.next as usize * 7 % KEYS);
            self.store.set(TREE, &path, ValueKind::Bytes, &value).expect("room");
        }
        begin.elapsed().as_nanos()
    }

    fn read(&mut self) -> u128 {
        let begin = Instant::now();
        for key in 0..OPERATIONS {
            black_box(self.store.get(TREE, &path(key * 13 % KEYS)).expect("sound flash"));
        }
        begin.elapsed().as_nanos()
    }
}

fn path(key: usize) -> String {
    format!("room{}.lamp{:02}.state", key / 100 % 10, key % 100)
}
