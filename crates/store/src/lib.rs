//! A power-safe key-value tree on NOR flash.
//!
//! A store holds trees, each under its [`TreeId`]; a tree holds values (bytes or text) at dotted
//! paths (`a.b.c`). A change appends to a log and is atomic: after a power cut at any point, torn
//! writes included, each key has its old or its new value. A [`Store::batch`] of changes is atomic
//! as a whole.
//!
//! Invariants:
//! - Nothing that was acknowledged is lost, and nothing that was refused is there.
//! - What a power cut broke off is there as a whole or not at all from the first mount on, although bits that the
//!   cut left between two states read otherwise at each start.
//! - One flipped bit of a record costs nothing, once something was written or mounted after it: the CRC tells which it is,
//!   for values of up to 640 bytes.
//! - More damage costs the record that it hit, or the acknowledged write that it was, and
//!   nothing else. Where it hit a value, reading that key is an error until it is written again,
//!   also after a reboot. Where it hit a record's head or path, or the very last value before the
//!   first reboot after it was written, it can't be told from a write that was broken off: an older
//!   value of that key counts again, if one still stands in the log.
//! - Making room never takes more than one spare sector, and sectors wear evenly.
//! - A write costs one program of its own record and, on average over many, a bounded share of
//!   reclaiming: at worst seven live bytes are copied for every byte written, when seven eighths
//!   of the flash are live. It does not grow with the number of keys.
//!
//! The cost in RAM: four bytes a key and under two of slack, as the index holds locations in
//! the order of their keys and not the keys (6 KB for 1,000 keys); a search reads about log2(n)
//! heads from the flash, so the flash should be memory-mapped, or hold a few hundred keys.
//! Listing the children of a node costs a search per child. A tree whose owner gives it a
//! [`Seal`] holds its values encrypted; paths, kinds and lengths stay in the open.
//!
//! A tree can be the changes of a [`Base`], which stands in other flash and is read there: an
//! [`Overlay`] shows both as one.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod base;
mod batch;
mod catalogue;
mod error;
mod index;
mod layout;
mod log;
mod mount;
mod overlay;
mod path;
mod reclaim;
mod record;
mod removals;
mod rot;
mod seal;
mod store;
mod value;

pub use base::{Base, BaseValue, base_bytes, write_base};
pub use batch::Change;
pub use error::{BatchError, DeleteError, FormatError, MountError, ReadError, SetError};
pub use mount::MountReport;
pub use overlay::{Deletion, DeletionStep, Hidden, Overlay};
pub use path::{PATH_BYTES_MAX, PathError};
pub use record::ValueKind;
pub use seal::{SEAL_BYTES, Seal, TAG_BYTES, Unsealable};
pub use store::{Occupancy, Removed, Store};
pub use value::{TreeId, Value};
