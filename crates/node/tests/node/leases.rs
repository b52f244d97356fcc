//! Packages and the leases to install them by, signed with keys that everybody here knows.

use tenure_crypto::SigningKey;
use tenure_package::{Manifest, Package, PackageBuilder, Placement, Version};
use tenure_wire::capability::PeerPattern;
use tenure_wire::{Budget, Capabilities, Digest, Name, Share, Term, VerifyingKey};

/// A machine to be installed, and what it may do and use.
pub(crate) struct Lease {
    pub(crate) machine: Name,
    /// The key of who wrote it.
    pub(crate) tenant: SigningKey,
    pub(crate) budget: Budget,
    pub(crate) grants: Capabilities,
    pub(crate) term: Term,
    pub(crate) sequence: u64,
    exports: Vec<String>,
    wasm: Vec<u8>,
}

/// The input of an installation.
pub(crate) struct Signed {
    pub(crate) package: Vec<u8>,
    pub(crate) placement: Vec<u8>,
    pub(crate) digest: Digest,
}

impl Lease {
    /// Of the module that `text` is in WebAssembly's text form; all its exported functions are offered.
    pub(crate) fn of(machine: &str, text: &str, grants: Capabilities) -> Self {
        let exports = text.split("(func (export \"").skip(1);
        Self {
            machine: machine.parse().unwrap(),
            tenant: SigningKey::from_bytes(&[9; 32]),
            budget: Budget::default(),
            grants,
            term: Term::default(),
            sequence: 1,
            exports: exports.map(|rest| rest.split('"').next().unwrap().to_string()).collect(),
            wasm: wat::parse_str(text).unwrap(),
        }
    }

    pub(crate) fn sign(self, owner: &SigningKey, device: VerifyingKey) -> Signed {
        let manifest = Manifest {
            exports: self.exports,
            budget: self.budget,
            capabilities: self.grants.clone(),
            ..Manifest::new(self.machine.clone(), Version { major: 1, minor: 0, patch: 0 })
        };
        let package = PackageBuilder::new(manifest, self.wasm).unwrap().sign(&self.tenant).unwrap();
        let digest = Package::parse(&package).unwrap().digest();
        let placement = Placement {
            package: digest,
            device,
            machine: self.machine,
            budget: self.budget,
            share: Share::default(),
            grants: self.grants,
            term: self.term,
            sequence: self.sequence,
        };
        Signed { package, placement: placement.sign(owner).unwrap(), digest }
    }
}

/// The right to call anybody, and to be called by anybody.
pub(crate) fn anybody() -> Capabilities {
    let anybody = vec![PeerPattern::Any];
    Capabilities { calls: anybody.clone(), callers: anybody, ..Capabilities::default() }
}
