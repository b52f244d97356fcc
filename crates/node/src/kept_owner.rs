//! The device's owner and the list of revoked keys, as kept over restarts.

use alloc::vec::Vec;

use serde::{Deserialize, Serialize};
use tenure_hal::{Flash, Instant};
use tenure_package::Revocations;
use tenure_store::{BatchError, Change, Store, ValueKind};
use tenure_wire::control::{Answer, ControlError};
use tenure_wire::ownership::SignedSuccession;
use tenure_wire::{PublicKey, VerifyingKey};

use crate::boot_error::BootError;
use crate::config::Owner;
use crate::former_numbers::FormerNumbers;
use crate::trees::{ENROLMENT_PATH, HUB_PATH, NETWORK_PATH, NODE_TREE};

const OWNER_PATH: &str = "owner";
const REVOKED_PATH: &str = "revoked";
const FORMER_LISTS_PATH: &str = "former-lists";
/// The version of the stored owner.
const KEPT_VERSION: u8 = 1;
/// The most former keys that are remembered, to say of what they signed that they were replaced. The first
/// one, which the settings name, is remembered beside them.
const FORMER_MAX: usize = 4;
/// How far beyond the last number the next one of a list or a succession may be. A word under the greatest number there is
/// would be the last one for good: that of a stolen key after its change, or of who hands the device over.
const STEP_MAX: u64 = 1 << 32;
/// Successions are numbered by clocks, in milliseconds: any number up to one of the year 2109 is near enough.
const SUCCESSION_NUMBER_NEAR: u64 = 1 << 42;

/// The owner by the last succession, as the store keeps it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct KeptOwner {
    version: u8,
    /// The key that the settings named when the first succession was taken.
    root: VerifyingKey,
    signing: VerifyingKey,
    machine: PublicKey,
    /// The number of the succession.
    pub(crate) number: u64,
    /// Keys that were replaced, the last one last.
    former: Vec<VerifyingKey>,
    pub(crate) succession: SignedSuccession,
    /// Whether machines of a former owner may still have to go to the trash.
    pub(crate) clears_machines: bool,
}

/// The device's owner by succession, and the list of revoked keys in force.
#[derive(Debug, Default)]
pub(crate) struct Ownership {
    pub(crate) kept: Option<KeptOwner>,
    pub(crate) revoked: Revocations,
    /// The list as it was signed.
    pub(crate) signed_list: Option<Vec<u8>>,
    /// The numbers of former owners' lists.
    pub(crate) former_lists: FormerNumbers,
    /// When to look next for machines that have to leave; `None` if all have left.
    pub(crate) settle_at: Option<Instant>,
}

impl KeptOwner {
    /// The owner after `known` and by a succession that was checked. The key `lists_by` is remembered, however often keys
    /// change: by it the list in force counts.
    pub(crate) fn after(
        known: Option<&Self>,
        (former, lists_by): (VerifyingKey, Option<VerifyingKey>),
        next: Owner,
        (number, succession): (u64, SignedSuccession),
        clears_machines: bool,
    ) -> Self {
        let mut keys = known.map_or_else(Vec::new, |known| known.former.clone());
        keys.push(former);
        while keys.len() > FORMER_MAX {
            let oldest = keys.iter().position(|key| Some(*key) != lists_by);
            keys.remove(oldest.unwrap_or_default());
        }
        Self {
            version: KEPT_VERSION,
            root: known.map_or(former, |known| known.root),
            signing: next.verifying_key,
            machine: next.machine,
            number,
            former: keys,
            succession,
            clears_machines: clears_machines || known.is_some_and(|known| known.clears_machines),
        }
    }

    /// Whether `key` was replaced, as far as is remembered.
    pub(crate) fn replaced(&self, key: &VerifyingKey) -> bool {
        *key != self.signing && (*key == self.root || self.former.contains(key))
    }

    fn to_bytes(&self) -> Vec<u8> {
        postcard::to_allocvec(self).unwrap_or_default()
    }

    /// The owner that `bytes` hold, if the value is of this version.
    fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let kept: Self = postcard::from_bytes(bytes).ok()?;
        (kept.version == KEPT_VERSION).then_some(kept)
    }
}

impl Ownership {
    /// Reads what the store keeps, and sets `owner` to the owner by the last succession. Where the settings name an owner
    /// who was never the device's, somebody set it up anew, and the settings count.
    pub(crate) fn take_up<F: Flash>(
        store: &mut Store<F>,
        owner: &mut Owner,
        now: Instant,
    ) -> Result<Self, BootError> {
        let mut read = |path| {
            let value = store.get(NODE_TREE, path).map_err(BootError::Read)?;
            Ok(value.map(|value| value.bytes).filter(|bytes| !bytes.is_empty()))
        };
        let kept =
            read(OWNER_PATH)?.and_then(|bytes| KeptOwner::from_bytes(&bytes)).filter(|kept| {
                owner.verifying_key == kept.signing || kept.replaced(&owner.verifying_key)
            });
        if let Some(kept) = &kept {
            *owner = Owner { verifying_key: kept.signing, machine: kept.machine };
        }
        let signed_list = read(REVOKED_PATH)?;
        let list = signed_list.as_ref().and_then(|bytes| Revocations::verify(bytes).ok());
        let counts = |signer: &VerifyingKey| {
            *signer == owner.verifying_key
                || kept.as_ref().is_some_and(|kept| kept.replaced(signer))
        };
        let list = list.filter(|(_, signer)| counts(signer)).map(|(list, _)| list);
        let signed_list = signed_list.filter(|_| list.is_some());
        let former_lists = read(FORMER_LISTS_PATH)?;
        let former_lists = former_lists.and_then(|bytes| FormerNumbers::from_bytes(&bytes));
        Ok(Self {
            kept,
            revoked: list.unwrap_or_default(),
            signed_list,
            former_lists: former_lists.unwrap_or_default(),
            settle_at: Some(now),
        })
    }

    /// The key that signed the list in force.
    pub(crate) fn lists_by(&self) -> Option<VerifyingKey> {
        self.signed_list.as_ref().and_then(|list| Revocations::signer(list).ok())
    }

    /// Refuses a list of the owner's that is no newer than the last one, or whose number leaves too little room for newer
    /// ones.
    ///
    /// # Errors
    /// [`ControlError::Refused`].
    pub(crate) fn check_list_number(&self, owner: &VerifyingKey, number: u64) -> Answer<()> {
        let (in_force, former) = (self.revoked.number, self.former_lists.last_of(owner));
        if number <= in_force {
            return Err(ControlError::Refused(alloc::format!(
                "the list of revoked keys has the number {number}, and one with the number {in_force} is in \
                 force; fetch that one and add to it"
            )));
        }
        if number < former {
            return Err(ControlError::Refused(alloc::format!(
                "the list of revoked keys has the number {number}, and one with the number {former} was in \
                 force before this device was handed over and came back"
            )));
        }
        check_step("the list of revoked keys", number, in_force.max(former))
    }

    /// Refuses a succession that is no newer than the last one, or whose number leaves too little room for newer ones.
    ///
    /// # Errors
    /// [`ControlError::Refused`].
    pub(crate) fn check_succession_number(&self, number: u64) -> Answer<()> {
        let last = self.kept.as_ref().map_or(0, |kept| kept.number);
        if number <= last {
            return Err(ControlError::Refused(alloc::format!(
                "the succession has the number {number}, and one with the number {last} was taken before"
            )));
        }
        check_step("the succession", number, last.max(SUCCESSION_NUMBER_NEAR))
    }

    /// Refuses what somebody else than the owner signed, and says so if it was a former key of the owner's.
    ///
    /// # Errors
    /// [`ControlError::Refused`].
    pub(crate) fn check_owner(
        &self,
        owner: &Owner,
        what: &str,
        signer: &VerifyingKey,
    ) -> Answer<()> {
        if *signer == owner.verifying_key {
            return Ok(());
        }
        self.check_former(owner, what, signer)?;
        Err(ControlError::Refused(alloc::format!(
            "{what} is by an owner who doesn't hold this device; sign it with the owner's key"
        )))
    }

    /// Refuses what was signed with a key that the owner has replaced.
    ///
    /// # Errors
    /// [`ControlError::Refused`].
    pub(crate) fn check_former(
        &self,
        owner: &Owner,
        what: &str,
        signer: &VerifyingKey,
    ) -> Answer<()> {
        let Some(kept) = self.kept.as_ref().filter(|kept| kept.replaced(signer)) else {
            return Ok(());
        };
        Err(ControlError::Refused(alloc::format!(
            "{what} was signed with the key {signer}, which counts no more: {} replaced it \
             (succession {})",
            owner.verifying_key,
            kept.number
        )))
    }

    /// Refuses the machines of a tenant whom the owner revoked.
    ///
    /// # Errors
    /// [`ControlError::Refused`].
    pub(crate) fn check_tenant(&self, tenant: &VerifyingKey) -> Answer<()> {
        if !self.revoked.has_tenant(tenant) {
            return Ok(());
        }
        Err(ControlError::Refused(alloc::format!(
            "the tenant {tenant} was revoked by the device's owner (list {})",
            self.revoked.number
        )))
    }

    /// Keeps the owner.
    pub(crate) fn keep_owner<F: Flash>(
        store: &mut Store<F>,
        kept: &KeptOwner,
    ) -> Result<(), BatchError> {
        store.batch(&[set(OWNER_PATH, &kept.to_bytes())])
    }

    /// Keeps the owner by a hand-over, which forgets at once all that the former owner said beside: the list but for its
    /// number, the hub, the mesh.
    pub(crate) fn keep_owner_anew<F: Flash>(
        store: &mut Store<F>,
        kept: &KeptOwner,
        former_lists: &FormerNumbers,
    ) -> Result<(), BatchError> {
        let (owner, lists) = (kept.to_bytes(), former_lists.to_bytes());
        let mut changes = alloc::vec![set(OWNER_PATH, &owner)];
        if !former_lists.is_empty() {
            changes.push(set(FORMER_LISTS_PATH, &lists));
        }
        for path in [REVOKED_PATH, HUB_PATH, ENROLMENT_PATH, NETWORK_PATH] {
            if store.get(NODE_TREE, path).is_ok_and(|value| value.is_some()) {
                changes.push(Change::Delete { tree: NODE_TREE, path });
            }
        }
        store.batch(&changes)
    }

    /// Keeps a list that was checked.
    pub(crate) fn keep_list<F: Flash>(
        store: &mut Store<F>,
        signed: &[u8],
    ) -> Result<(), BatchError> {
        store.batch(&[set(REVOKED_PATH, signed)])
    }
}

/// Refuses a number that is too far beyond the last one.
fn check_step(what: &str, number: u64, last: u64) -> Answer<()> {
    if number <= last.saturating_add(STEP_MAX) {
        return Ok(());
    }
    Err(ControlError::Refused(alloc::format!(
        "{what} has the number {number}, too far beyond {last} to leave room for later ones; sign it where \
         the clock is right, and add to the last one"
    )))
}

fn set<'a>(path: &'a str, value: &'a [u8]) -> Change<'a> {
    Change::Set { tree: NODE_TREE, path, kind: ValueKind::Bytes, value }
}

#[cfg(test)]
mod tests {
    use alloc::vec;

    use tenure_testbed::frozen;
    use tenure_wire::Signature;

    use super::*;

    #[test]
    fn owner_of_version_1_is_written_and_read() {
        let signature = Signature::from_bytes(&[7; 64]);
        let kept = KeptOwner {
            version: KEPT_VERSION,
            root: VerifyingKey([1; 32]),
            signing: VerifyingKey([2; 32]),
            machine: PublicKey([3; 32]),
            number: 300,
            former: vec![VerifyingKey([4; 32]), VerifyingKey([5; 32])],
            succession: SignedSuccession { bytes: vec![6; 3], signature },
            clears_machines: true,
        };
        let mut bytes = frozen(env!("CARGO_MANIFEST_DIR"), "owner-1", &kept.to_bytes());
        assert_eq!(KeptOwner::from_bytes(&bytes), Some(kept));
        bytes[0] += 1;
        assert_eq!(KeptOwner::from_bytes(&bytes), None, "another version isn't guessed at");
    }
}
