//! Tenants' secrets: taken from tenants, kept sealed, opened for the machines that may read them.
//!
//! Each value is sealed under a key that the device derives from its seed for that tenant and that
//! version alone, in a tree that is sealed as a whole. The plaintext exists while a tenant's change is
//! taken in and while a machine reads it, and is wiped right after.

use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::time::Duration;

use serde::{Deserialize, Serialize};
use tenure_crypto::Nonce;
use tenure_hal::planted::{Weakness, is_planted};
use tenure_hal::{Entropy, Flash, Instant};
use tenure_kernel::CallId;
use tenure_package::{SecretChange, SecretError, SecretQuery};
use tenure_store::{BatchError, Change, ReadError, ValueKind};
use tenure_wire::control::{Answer, ControlError, SecretList, SecretStatus};
use tenure_wire::{Name, NoResult, PublicKey, VerifyingKey};
use zeroize::Zeroizing;

use crate::meter::Meter;
use crate::moment::Moment;
use crate::services::Services;
use crate::toll::{Limit, Toll};
use crate::trees::SEALED_TREE;

/// The most secrets of one tenant on a device.
const SECRETS_MAX: usize = 16;
/// How many changes of secrets a tenant may make, so that they don't wear the flash out: the machines'
/// budgets of flash don't count them.
const CHANGES: Limit = Limit { at_once: 32, one_each: Duration::from_secs(45 * 60) };
/// How many signatures somebody who isn't the owner may have verified.
const VERIFICATIONS: Limit = Limit { at_once: 32, one_each: Duration::from_secs(2) };
/// The same, for all of them together.
const VERIFICATIONS_IN_ALL: Limit = Limit { at_once: 64, one_each: Duration::from_millis(500) };
/// The most callers whose verifications are counted one by one.
const CALLERS_MAX: usize = 16;

/// Tenants' secrets, and the most that others than the owner may cost the device for them.
#[derive(Debug)]
pub(crate) struct Secrets {
    changes: Toll<VerifyingKey>,
    verifications: Toll<PublicKey>,
}

/// A secret as it is kept.
#[derive(Serialize, Deserialize)]
struct Kept {
    version: u64,
    nonce: [u8; 12],
    /// The value with its tag.
    sealed: Vec<u8>,
}

impl Secrets {
    pub(crate) fn new(now: Instant, tenants_max: usize) -> Self {
        let in_all = Some(VERIFICATIONS_IN_ALL);
        let changes = match is_planted(Weakness::SecretsWearFlash) {
            true => Limit { at_once: u32::MAX, one_each: Duration::ZERO },
            false => CHANGES,
        };
        Self {
            changes: Toll::new(changes, None, tenants_max, now),
            verifications: Toll::new(VERIFICATIONS, in_all, CALLERS_MAX, now),
        }
    }

    /// Takes a tenant's change of a secret.
    pub(crate) fn change<F: Flash>(
        &mut self,
        services: &mut Services<F>,
        meter: &mut Meter,
        moment: &mut Moment<'_>,
        (caller, bytes): (&PublicKey, &[u8]),
    ) -> Answer<()> {
        check_tenant(services, SecretChange::signer(bytes))?;
        self.pay_verifications(services, moment.now, (caller, 1))?;
        let (change, tenant) = SecretChange::verify(bytes).map_err(refused)?;
        if change.device != services.identity.verifying_key() {
            return Err(ControlError::Refused("the secret is for another device".to_string()));
        }
        let last = version_of(services, &tenant)?;
        if last.is_some_and(|last| last >= change.version) {
            return Err(ControlError::Refused(
                "the device has a change of the tenant's secrets with a higher number; list them for \
                 that number"
                    .to_string(),
            ));
        }
        let value = change.open(&tenant, &services.identity.device_secret()).map_err(refused)?;
        let path = path_of(&tenant, &change.name);
        let known = secrets_of(services, &tenant)?;
        let is_known = known.iter().any(|secret| secret.name == change.name);
        let kept = match value {
            None if !is_known => {
                return Err(ControlError::Refused(alloc::format!("no secret {}", change.name)));
            }
            Some(_) if !is_known && known.len() >= SECRETS_MAX => {
                let message = alloc::format!("a tenant has at most {SECRETS_MAX} secrets here");
                return Err(ControlError::Full(message));
            }
            None => None,
            Some(value) => Some(seal(services, moment.entropy, &tenant, &change, value)?),
        };
        self.changes.pay(moment.now, &tenant, 1).map_err(|wait| {
            let seconds = wait.as_secs().max(1);
            ControlError::Full(alloc::format!(
                "too many changes of the tenant's secrets; the next is taken in {seconds} seconds"
            ))
        })?;
        let version = change.version.to_le_bytes();
        let parent = parent_of(&tenant);
        let of_version = Change::Set {
            tree: SEALED_TREE,
            path: &parent,
            kind: ValueKind::Bytes,
            value: &version,
        };
        let of_value = match &kept {
            Some(value) => {
                Change::Set { tree: SEALED_TREE, path: &path, kind: ValueKind::Bytes, value }
            }
            None => Change::Delete { tree: SEALED_TREE, path: &path },
        };
        services.kernel.store().batch(&[of_version, of_value]).map_err(not_kept)?;
        let bytes = path.len() + version.len() + kept.map_or(0, |kept| kept.len());
        meter.bill_tenant(services, &tenant, bytes as u64);
        Ok(())
    }

    /// The tenant's secrets here, for whoever the tenant's signature lets ask.
    pub(crate) fn list<F: Flash>(
        &mut self,
        services: &mut Services<F>,
        now: Instant,
        caller: &PublicKey,
        bytes: &[u8],
    ) -> Answer<SecretList> {
        check_tenant(services, SecretQuery::signer(bytes))?;
        self.pay_verifications(services, now, (caller, 1))?;
        let (query, tenant) = SecretQuery::verify(bytes).map_err(refused)?;
        if query.device != services.identity.verifying_key() || query.caller != *caller {
            return Err(ControlError::Refused("the question is somebody else's".to_string()));
        }
        let last = version_of(services, &tenant)?.unwrap_or(0);
        Ok(SecretList { secrets: secrets_of(services, &tenant)?, last })
    }

    /// Refuses who has had too many signatures verified of late to have so many more verified. The owner pays nothing.
    pub(crate) fn pay_verifications<F>(
        &mut self,
        services: &Services<F>,
        now: Instant,
        (caller, signatures): (&PublicKey, u32),
    ) -> Answer<()> {
        let is_free = is_planted(Weakness::SignaturesWithoutLimit);
        if is_free || *caller == services.config.owner.machine {
            return Ok(());
        }
        self.verifications
            .pay(now, caller, signatures)
            .map_err(|wait| ControlError::busy_for(wait, "too many signatures to verify"))
    }
}

/// Gives a machine the secret that it asked for, and had a right to.
pub(crate) fn read<F: Flash>(
    services: &mut Services<F>,
    moment: &Moment<'_>,
    id: CallId,
    tenant: &VerifyingKey,
    name: &Name,
) {
    let value = open(services, tenant, name);
    services.kernel.complete(
        moment.now,
        id,
        value.map(|mut value| Some(core::mem::take(&mut *value))),
    );
}

/// Deletes the secrets of a tenant who has no machine here any more. Their last number stays, so
/// that nothing old is taken for new if the tenant returns.
pub(crate) fn forget_all_of<F: Flash>(services: &mut Services<F>, tenant: &VerifyingKey) {
    let is_theirs = |info: tenure_kernel::MachineInfo<'_>| info.record.tenant == *tenant;
    if services.kernel.machines().chain(services.kernel.trash()).any(is_theirs) {
        return;
    }
    // The tenant had no secrets, or the store can't be read now; then the next removal forgets them.
    let Ok(Some(version)) = version_of(services, tenant) else { return };
    let (path, version) = (parent_of(tenant), version.to_le_bytes());
    let changes = [
        Change::Delete { tree: SEALED_TREE, path: &path },
        Change::Set { tree: SEALED_TREE, path: &path, kind: ValueKind::Bytes, value: &version },
    ];
    // The next removal does what a store without room can't do now.
    let _ = services.kernel.store().batch(&changes);
}

/// Refuses whom no machine here belongs to, before any signature is looked at.
fn check_tenant<F: Flash>(
    services: &Services<F>,
    signer: Result<VerifyingKey, SecretError>,
) -> Answer<()> {
    let tenant = signer.map_err(refused)?;
    if services.kernel.machines().any(|info| info.record.tenant == tenant) {
        return Ok(());
    }
    Err(ControlError::Refused("the tenant has no machine on this device".to_string()))
}

fn seal<F>(
    services: &Services<F>,
    entropy: &mut dyn Entropy,
    tenant: &VerifyingKey,
    change: &SecretChange,
    mut value: Zeroizing<Vec<u8>>,
) -> Answer<Vec<u8>> {
    let mut nonce = [0; 12];
    entropy.fill(&mut nonce).map_err(|error| ControlError::Device(error.to_string()))?;
    let key = services.identity.secret_key(tenant, change.version);
    let place = change.name.as_str().as_bytes();
    let tag = key.seal(&Nonce::from_bytes(nonce), place, &mut value);
    let sealed = [value.as_slice(), &tag].concat();
    let kept = Kept { version: change.version, nonce, sealed };
    postcard::to_allocvec(&kept).map_err(|error| ControlError::Device(error.to_string()))
}

fn open<F: Flash>(
    services: &mut Services<F>,
    tenant: &VerifyingKey,
    name: &Name,
) -> Result<Zeroizing<Vec<u8>>, NoResult> {
    let stored = services.kernel.store().get(SEALED_TREE, &path_of(tenant, name));
    let stored = stored.map_err(|_| NoResult::Device)?.ok_or(NoResult::NotFound)?;
    let kept: Kept = postcard::from_bytes(&stored.bytes).map_err(|_| NoResult::Device)?;
    let key = services.identity.secret_key(tenant, kept.version);
    let mut value = Zeroizing::new(kept.sealed);
    let nonce = Nonce::from_bytes(kept.nonce);
    let opened = key.open(&nonce, name.as_str().as_bytes(), &mut value);
    let length = opened.map_err(|_| NoResult::Device)?.len();
    value.truncate(length);
    Ok(value)
}

fn secrets_of<F: Flash>(
    services: &mut Services<F>,
    tenant: &VerifyingKey,
) -> Answer<Vec<SecretStatus>> {
    let parent = parent_of(tenant);
    let names = services.kernel.store().children(SEALED_TREE, &parent).map_err(not_read)?;
    let mut secrets = Vec::new();
    for name in names.iter().filter_map(|name| name.parse::<Name>().ok()) {
        let stored = services.kernel.store().get(SEALED_TREE, &path_of(tenant, &name));
        let Ok(Some(stored)) = stored else { continue };
        let Ok(kept) = postcard::from_bytes::<Kept>(&stored.bytes) else { continue };
        secrets.push(SecretStatus { name, version: kept.version });
    }
    Ok(secrets)
}

fn version_of<F: Flash>(services: &mut Services<F>, tenant: &VerifyingKey) -> Answer<Option<u64>> {
    let stored = services.kernel.store().get(SEALED_TREE, &parent_of(tenant)).map_err(not_read)?;
    Ok(stored.and_then(|value| value.bytes.try_into().ok()).map(u64::from_le_bytes))
}

/// Where a tenant's secrets stand; the value there is the number of the last change.
fn parent_of(tenant: &VerifyingKey) -> String {
    alloc::format!("secrets.{tenant}")
}

fn path_of(tenant: &VerifyingKey, name: &Name) -> String {
    alloc::format!("secrets.{tenant}.{name}")
}

fn refused(error: SecretError) -> ControlError {
    ControlError::Refused(error.to_string())
}

fn not_read(error: ReadError) -> ControlError {
    ControlError::Device(error.to_string())
}

/// Why a change of the store was refused, for who asked for it.
pub(crate) fn not_kept(error: BatchError) -> ControlError {
    match error {
        BatchError::Full => ControlError::Full(error.to_string()),
        error => ControlError::Device(error.to_string()),
    }
}
