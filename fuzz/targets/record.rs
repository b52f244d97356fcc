//! Records that a directory is given, with whatever signature.
#![no_main]
#![forbid(unsafe_code)]

use libfuzzer_sys::fuzz_target;
use tenure_wire::Signature;
use tenure_wire::directory::SignedRecord;

fuzz_target!(|bytes: &[u8]| {
    let Some((signature, record)) = bytes.split_first_chunk::<64>() else { return };
    let signature = Signature::from_bytes(signature);
    let signed = SignedRecord { bytes: record.to_vec(), signature };
    // Nobody signs by accident.
    assert!(tenure_directory::open(&signed, 1_800_000_000).is_err());
});
