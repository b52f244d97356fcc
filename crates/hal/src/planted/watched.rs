//! The weakness planted on this thread, and the counts of its effects.

extern crate std;

use core::cell::{Cell, RefCell};
use core::hash::{Hash, Hasher};
use std::collections::HashMap;
use std::format;
use std::hash::DefaultHasher;
use std::string::String;
use std::thread_local;
use std::vec::Vec;

use super::Weakness;

/// Counts since a weakness, or none, was planted.
#[derive(Clone, Debug, Default)]
pub struct Seen {
    /// Messages that were sealed.
    pub sealed: u64,
    /// Two different messages under one key and nonce, if there were any.
    pub nonce_used_twice: Option<String>,
    /// Signatures that were made.
    pub signed: u64,
    /// Signatures that were verified.
    pub verified: u64,
    /// The longest text of a machine that was read, in bytes.
    pub text_bytes_max: usize,
}

#[derive(Default)]
struct Watch {
    seen: Seen,
    /// The digest of what was sealed, by key and nonce.
    nonces: HashMap<(Vec<u8>, Vec<u8>), u64>,
}

thread_local! {
    static PLANTED: Cell<Option<Weakness>> = const { Cell::new(None) };
    static WATCH: RefCell<Watch> = RefCell::default();
}

/// Plants a weakness, or none, on this thread from now on, and forgets what was seen there.
pub fn plant(weakness: Option<Weakness>) {
    PLANTED.set(weakness);
    WATCH.take();
}

/// Whether that weakness is planted on this thread.
pub fn is_planted(weakness: Weakness) -> bool {
    PLANTED.get() == Some(weakness)
}

/// The counts of this thread since [`plant`].
pub fn seen() -> Seen {
    WATCH.with_borrow(|watch| watch.seen.clone())
}

/// A message is sealed.
pub fn watch_seal(key: &[u8], nonce: &[u8], associated: &[u8], message: &[u8]) {
    let mut hasher = DefaultHasher::new();
    (associated, message).hash(&mut hasher);
    let digest = hasher.finish();
    WATCH.with_borrow_mut(|Watch { seen, nonces }| {
        seen.sealed += 1;
        let before = nonces.insert((key.to_vec(), nonce.to_vec()), digest);
        if before.is_some_and(|before| before != digest) && seen.nonce_used_twice.is_none() {
            let bytes = message.len();
            let what =
                format!("nonce {nonce:02x?}, the second time for a message of {bytes} bytes");
            seen.nonce_used_twice = Some(what);
        }
    });
}

/// A signature is made, or verified.
pub fn watch_signing(is_made: bool) {
    WATCH.with_borrow_mut(|watch| {
        watch.seen.signed += u64::from(is_made);
        watch.seen.verified += u64::from(!is_made);
    });
}

/// That many bytes of a machine's text are read.
pub fn watch_text(bytes: usize) {
    WATCH.with_borrow_mut(|watch| watch.seen.text_bytes_max = watch.seen.text_bytes_max.max(bytes));
}
