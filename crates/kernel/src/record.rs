//! The store's record of a machine, by which it is there again after a restart.
//!
//! One byte says the version of the record, and the record follows in full. A record of another version
//! isn't guessed at: its machine is left out, which the log says, and its slot is kept. With a firmware that
//! knows the record the machine is there again, unless its owner cleared the slot, or its code was written over.

use alloc::string::String;
use alloc::vec::Vec;

use serde::{Deserialize, Serialize};
use tenure_vm::IMAGE_VERSION;
use tenure_wire::timer::PackageTimer;
use tenure_wire::{
    Audience, Budget, Capabilities, CodeKind, Digest, LogLevel, Name, PublicKey, Share, Term,
    VerifyingKey, Version,
};

use crate::code::Extent;

/// The version of records.
const RECORD_VERSION: u8 = 4;

/// The formats of a device's machines: version of the records, and of the images in code flash. A
/// firmware of another one finds none of them.
pub const MACHINE_FORMAT: u16 = u16::from_be_bytes([RECORD_VERSION, IMAGE_VERSION as u8]);

const _: () = assert!(IMAGE_VERSION <= u8::MAX as u16);

/// A machine as it stands in the kernel's tree.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MachineRecord {
    /// Its name on this device.
    pub name: Name,
    /// Its public key.
    pub public_key: PublicKey,
    /// The salt from which the device derives the machine's secret key.
    pub salt: [u8; 16],
    /// The package it was made from.
    pub package: Digest,
    /// The package's name.
    pub package_name: Name,
    /// The package's version.
    pub package_version: Version,
    /// The tenant who signed the package.
    pub tenant: VerifyingKey,
    /// The functions that others may call.
    pub exports: Vec<String>,
    /// The timers that it begins with.
    pub timers: Vec<PackageTimer>,
    /// Its budget.
    pub budget: Budget,
    /// Its share of the processor.
    pub share: Share,
    /// Its rights.
    pub grants: Capabilities,
    /// The callers who are told its own words on its failures.
    pub errors: Audience,
    /// The least grave of its lines that its log takes.
    pub log: LogLevel,
    /// For how long its lease counts; the node sees to that.
    pub term: Term,
    /// The number of the placement that put it here; a later one is higher.
    pub placement: u64,
    /// The kind of its code.
    pub code: CodeKind,
    /// Where its code stands in code flash: its image, or its native binary behind the package's
    /// digest.
    pub image: Extent,
    /// Where that stands in code flash which the board runs faster than the image: its wasm, if it asks
    /// for an engine and the board has one, or code that was compiled from the image, if the board runs
    /// such code.
    pub faster: Option<Extent>,
    /// Where the tree that it begins with stands in code flash, as a [`Base`](tenure_store::Base), if
    /// it begins with values.
    pub base: Option<Extent>,
}

impl MachineRecord {
    /// The record as the store keeps it; `None` if it can't be encoded.
    pub(crate) fn to_bytes(&self) -> Option<Vec<u8>> {
        postcard::to_extend(self, alloc::vec![RECORD_VERSION]).ok()
    }

    /// The record in `bytes`, if it is whole and of this version.
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let (version, record) = bytes.split_first()?;
        let (record, rest) = postcard::take_from_bytes(record).ok()?;
        (*version == RECORD_VERSION && rest.is_empty()).then_some(record)
    }

    /// All of code flash that is the machine's.
    pub fn extents(&self) -> impl Iterator<Item = Extent> {
        [Some(self.image), self.faster, self.base].into_iter().flatten()
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec;

    use tenure_testbed::frozen;
    use tenure_wire::timer::When;

    use super::*;

    #[test]
    fn record_of_version_4_is_written_and_read() {
        let record = MachineRecord {
            name: "echo".parse().unwrap(),
            public_key: PublicKey([1; 32]),
            salt: [2; 16],
            package: Digest([3; 32]),
            package_name: "echo".parse().unwrap(),
            package_version: Version { major: 1, minor: 2, patch: 3 },
            tenant: VerifyingKey([4; 32]),
            exports: vec!["read".into()],
            timers: vec![PackageTimer { function: "tick".into(), when: When::Every(10_000) }],
            budget: Budget::default(),
            share: Share::default(),
            grants: Capabilities::default(),
            errors: Audience::Callers,
            log: LogLevel::Info,
            term: Term::default(),
            placement: 300,
            code: CodeKind::WebAssembly,
            image: Extent { offset: 4096, bytes: 1000 },
            faster: Some(Extent { offset: 8192, bytes: 2000 }),
            base: None,
        };
        let mut bytes = frozen(env!("CARGO_MANIFEST_DIR"), "record-4", &record.to_bytes().unwrap());
        assert_eq!(MachineRecord::from_bytes(&bytes), Some(record));
        bytes[0] += 1;
        assert_eq!(MachineRecord::from_bytes(&bytes), None, "another version isn't guessed at");
    }
}
