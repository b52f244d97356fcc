//! Where things stand in a package file. Integers are little-endian.
//!
//! | offset | bytes | what |
//! |---|---|---|
//! | 0 | 8 | [`MAGIC`], whose last byte is the version of the format |
//! | 8 | 32 | the tenant's Ed25519 key |
//! | 40 | 4 | length `m` of the manifest |
//! | 44 | 4 | length `t` of the initial tree |
//! | 48 | 4 | length `c` of the code |
//! | 52 | `m` | the manifest (postcard) |
//! | 52 + m | `t` | the initial tree |
//! | 52 + m + t | `c` | the code: for each kind that the manifest lists, a length in 4 bytes and as many |
//! | 52 + m + t + c | 64 | the tenant's signature of all that stands before it |
//!
//! That is format 5, which packages without compiled code have. Format 6 has in its header, at 52, the
//! length `x` of compiled code, so that all behind it begins 4 bytes later; the compiled code stands between
//! the code and the signature: for each kind of processor that there is some for, the kind in a byte (1 for
//! `rv32`, 2 for `thumb`), three zeros, a length in 4 bytes and as many. Format 7 is laid out as format 6, with compiled
//! code or none: it has a timer with a star that readers of before take for none
//! ([`has_odd_star`](tenure_wire::timer::Schedule::has_odd_star)). Format 8 is laid out as format 7: it has a timer on
//! the clock of a [`Zone`](tenure_wire::timer::Zone).

use tenure_crypto::Context;

/// The first bytes of a package.
pub(crate) const MAGIC: [u8; 8] = *b"tenurpk\x08";
/// The version of packages without compiled code, which devices of older firmware read.
pub(crate) const VERSION_WITHOUT_COMPILED: u8 = 5;
/// The version of packages with compiled code, but without a star that only readers of format 7 know.
pub(crate) const VERSION_WITH_COMPILED: u8 = 6;
/// The version of packages with such a star, but without a zone, which only readers of format 8 know.
pub(crate) const VERSION_WITH_STAR: u8 = 7;
/// The magic without the version.
pub(crate) const MAGIC_NAME: &[u8] = b"tenurpk";
/// The purpose of the tenant's signature.
pub(crate) const CONTEXT: Context = Context::new("package");

pub(crate) const KEY_AT: usize = MAGIC.len();
pub(crate) const KEY_BYTES: usize = 32;
pub(crate) const LENGTHS_AT: usize = KEY_AT + KEY_BYTES;
pub(crate) const BODY_AT: usize = LENGTHS_AT + 3 * 4;
/// The length of the header's last field, which a package without compiled code lacks.
pub(crate) const COMPILED_LENGTH_BYTES: usize = 4;
/// Kind and length of a section of compiled code.
pub(crate) const COMPILED_HEADER_BYTES: usize = 8;
pub(crate) const SIGNATURE_BYTES: usize = 64;

/// The longest manifest, in bytes.
pub const MANIFEST_BYTES_MAX: usize = 16 * 1024;
/// The longest initial tree, in bytes.
pub const TREE_BYTES_MAX: usize = 64 * 1024;
/// The longest code of all kinds together, in bytes: with manifest, tree and signature a package of 2 MiB, which is what
/// the largest of devices have room for while it arrives.
pub const CODE_BYTES_MAX: usize = 1920 * 1024;
/// The longest compiled code of all kinds of processors together, in bytes.
pub const COMPILED_BYTES_MAX: usize = 1024 * 1024;
/// The longest package, in bytes.
pub const PACKAGE_BYTES_MAX: usize = BODY_AT
    + COMPILED_LENGTH_BYTES
    + MANIFEST_BYTES_MAX
    + TREE_BYTES_MAX
    + CODE_BYTES_MAX
    + COMPILED_BYTES_MAX
    + SIGNATURE_BYTES;

const _: () = assert!(PACKAGE_BYTES_MAX < u32::MAX as usize, "lengths fit in their fields");
