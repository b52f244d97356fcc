//! The device's identity: its seed, its keys, its enrolment, and how often it has booted.

use alloc::vec::Vec;
use core::cell::OnceCell;

use serde::{Deserialize, Serialize};
use tenure_crypto::{AeadKey, Seed, SigningKey, StaticSecret, machine_id, sha256};
use tenure_directory::{check_enrolment, seal};
#[cfg(feature = "mesh")]
use tenure_hal::planted::{Weakness, is_planted};
use tenure_hal::{Entropy, Flash};
#[cfg(feature = "mesh")]
use tenure_mesh::Salt;
use tenure_store::{ReadError, Store, ValueKind};
use tenure_wire::datagram::Epoch;
use tenure_wire::directory::{DeviceRecord, Enrolment, SignedRecord};
use tenure_wire::ownership::SignedSuccession;
use tenure_wire::{Address, MachineId, Name, PublicKey, Signature, VerifyingKey};

use crate::boot_error::BootError;
use crate::config::Owner;
use crate::kept_hub::KeptHub;
use crate::sealing::Keys;
#[cfg(feature = "mesh")]
use crate::trees::NETWORK_PATH;
#[cfg(feature = "experiments")]
use crate::trees::ORDERS_PATH;
use crate::trees::{BOOTS_PATH, ENROLMENT_PATH, HUB_PATH, KEYS_PATH, NODE_TREE, SEED_PATH};

#[cfg(feature = "mesh")]
const MESH_START_LABEL: &[u8] = b"tenure mesh start";
const KEYS_LABEL: &[u8] = b"tenure kept keys";
/// Bytes of both public keys as they are kept.
const KEYS_BYTES: usize = 64;
/// Bytes behind them that bind them to their seed.
const KEYS_CHECK_BYTES: usize = 8;

/// A device's identity.
pub(crate) struct Identity {
    seed: Seed,
    /// Computed when something is signed for the first time in a boot.
    signing_key: OnceCell<SigningKey>,
    verifying_key: VerifyingKey,
    /// The id of the device's own machine.
    pub(crate) machine: MachineId,
    /// Its public key.
    pub(crate) machine_key: PublicKey,
    /// How often the device has booted, this time included.
    pub(crate) boots: u32,
    /// Drawn at random for this boot, so that nothing that must never repeat rests on the count of boots,
    /// which is put back with the flash.
    boot_salt: [u8; 16],
    /// How often the device has started in a mesh in this boot.
    #[cfg(feature = "mesh")]
    mesh_starts: u32,
    /// The owner's word that the device carries its name.
    pub(crate) enrolled: Option<Enrolled>,
}

/// An enrolment as it is kept.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Enrolled {
    pub(crate) enrolment: Enrolment,
    pub(crate) owner: VerifyingKey,
    pub(crate) signature: Signature,
}

/// The content of a device's record beside its identity.
pub(crate) struct RecordContents {
    /// Goes up with each record of a boot.
    pub(crate) number: u32,
    pub(crate) expires_unix_s: u64,
    pub(crate) epoch: Epoch,
    pub(crate) addresses: Vec<Address>,
    pub(crate) machines: Vec<(Name, PublicKey)>,
    /// By which the owner holds the device, if another one held it before.
    pub(crate) succession: Option<SignedSuccession>,
}

impl Identity {
    /// Takes up the identity in `store`, or makes one if the store holds no value at all; counts the boot. The public
    /// keys are [`kept_keys`] or, where flash is scarcer than time, [`computed_keys`].
    ///
    /// # Errors
    /// [`BootError::Identity`] if there are values and no seed that can be read: a device that began anew there would
    /// be a stranger to its owner, and couldn't open what it keeps.
    pub(crate) fn take_up<F: Flash>(
        store: &mut Store<F>,
        entropy: &mut dyn Entropy,
        public_keys: impl FnOnce(&mut Store<F>, &Seed) -> Result<PublicKeys, BootError>,
    ) -> Result<Self, BootError> {
        let seed = match read(store, SEED_PATH) {
            Ok(Some(bytes)) => {
                let bytes: [u8; 32] = bytes.try_into().map_err(|_| BootError::Identity)?;
                Seed::from_bytes(&bytes)
            }
            Ok(None) if store.trees().next().is_none() => Self::generate(store, entropy)?,
            Ok(None) | Err(BootError::Read(ReadError::Corrupt)) => return Err(BootError::Identity),
            Err(error) => return Err(error),
        };
        let boots = read(store, BOOTS_PATH)?
            .and_then(|bytes| bytes.try_into().ok().map(u32::from_le_bytes))
            .unwrap_or(0)
            .saturating_add(1);
        write(store, BOOTS_PATH, &boots.to_le_bytes())?;
        let mut boot_salt = [0; 16];
        entropy.fill(&mut boot_salt).map_err(|_| BootError::Entropy)?;
        let enrolled = read(store, ENROLMENT_PATH)?
            .and_then(|bytes| postcard::from_bytes::<Enrolled>(&bytes).ok());
        let (machine_key, verifying_key) = public_keys(store, &seed)?;
        Ok(Self {
            signing_key: OnceCell::new(),
            verifying_key,
            machine: machine_id(&machine_key),
            machine_key,
            seed,
            boots,
            boot_salt,
            #[cfg(feature = "mesh")]
            mesh_starts: 0,
            enrolled,
        })
    }

    /// Whether `owner` has given this device the name.
    pub(crate) fn is_enrolled(&self, name: &Name, owner: Owner) -> bool {
        self.enrolled.as_ref().is_some_and(|enrolled| {
            enrolled.enrolment.device == *name && enrolled.owner == owner.verifying_key
        })
    }

    /// Takes and keeps the owner's word that this device carries the name that it goes by.
    pub(crate) fn enrol<F: Flash>(
        &mut self,
        store: &mut Store<F>,
        (name, owner): (&Name, Owner),
        enrolment: Enrolment,
        signature: Signature,
    ) -> Result<(), BootError> {
        let owner = owner.verifying_key;
        if enrolment.device != *name
            || enrolment.device_key != self.verifying_key()
            || check_enrolment(&owner, &enrolment, &signature).is_err()
        {
            return Err(BootError::Enrolment);
        }
        let enrolled = Enrolled { enrolment, owner, signature };
        let bytes = postcard::to_allocvec(&enrolled).map_err(|_| BootError::Identity)?;
        write(store, ENROLMENT_PATH, &bytes)?;
        self.enrolled = Some(enrolled);
        Ok(())
    }

    /// The keys that seal what this device keeps, as of this boot.
    pub(crate) fn sealing_keys(&self) -> Keys {
        Keys::new(self.seed.clone(), self.boot_salt)
    }

    /// The key that seals one version of a tenant's secret.
    pub(crate) fn secret_key(&self, tenant: &VerifyingKey, version: u64) -> AeadKey {
        self.seed.secret_key(tenant, version)
    }

    /// The hub's kept key, if there is one.
    pub(crate) fn hub<F: Flash>(store: &mut Store<F>) -> Result<Option<KeptHub>, BootError> {
        Ok(read(store, HUB_PATH)?.and_then(|bytes| KeptHub::from_bytes(&bytes)))
    }

    /// Keeps the hub's key, or forgets it.
    pub(crate) fn keep_hub<F: Flash>(
        &self,
        store: &mut Store<F>,
        kept: Option<&[u8]>,
    ) -> Result<(), BootError> {
        write(store, HUB_PATH, kept.unwrap_or_default())
    }

    /// The key of the mesh that was joined, and the number of the invitation.
    #[cfg(feature = "mesh")]
    pub(crate) fn network<F: Flash>(
        &self,
        store: &mut Store<F>,
    ) -> Result<Option<(u64, [u8; 32])>, BootError> {
        let kept = read(store, NETWORK_PATH)?.map(|bytes| {
            let (number, key) = bytes.split_first_chunk()?;
            Some((u64::from_le_bytes(*number), key.try_into().ok()?))
        });
        kept.map(|kept| kept.ok_or(BootError::Identity)).transpose()
    }

    /// The highest number of an experiment's order that was carried out: up to it, none counts again.
    #[cfg(feature = "experiments")]
    pub(crate) fn orders<F: Flash>(&self, store: &mut Store<F>) -> Result<u64, BootError> {
        let kept = read(store, ORDERS_PATH)?.map(|bytes| bytes.try_into().map(u64::from_le_bytes));
        kept.transpose().map(Option::unwrap_or_default).map_err(|_| BootError::Identity)
    }

    /// Keeps the number of an order that is to be carried out.
    #[cfg(feature = "experiments")]
    pub(crate) fn keep_order<F: Flash>(
        &self,
        store: &mut Store<F>,
        number: u64,
    ) -> Result<(), BootError> {
        if number > self.orders(store)? {
            write(store, ORDERS_PATH, &number.to_le_bytes())?;
        }
        Ok(())
    }

    /// The salt of the frames of another start in a mesh, which no start had before.
    #[cfg(feature = "mesh")]
    pub(crate) fn next_mesh_salt(&mut self) -> Salt {
        if is_planted(Weakness::FramesNumberedAlike) {
            return [0; 8];
        }
        self.mesh_starts += 1;
        let start = self.mesh_starts.to_le_bytes();
        let [a, b, c, d, e, f, g, h, ..] = sha256(&[MESH_START_LABEL, &self.boot_salt, &start]).0;
        [a, b, c, d, e, f, g, h]
    }

    /// Keeps the key of a mesh.
    #[cfg(feature = "mesh")]
    pub(crate) fn keep_network<F: Flash>(
        &self,
        store: &mut Store<F>,
        number: u64,
        key: &[u8; 32],
    ) -> Result<(), BootError> {
        let mut bytes = zeroize::Zeroizing::new([0; 40]);
        bytes[..8].copy_from_slice(&number.to_le_bytes());
        bytes[8..].copy_from_slice(key);
        write(store, NETWORK_PATH, &*bytes)
    }

    /// The device's statement about itself, signed; `None` if it isn't enrolled.
    pub(crate) fn sign_record(&self, contents: RecordContents) -> Option<SignedRecord> {
        let Enrolled { enrolment, owner, signature } = self.enrolled.clone()?;
        let record = DeviceRecord {
            enrolment,
            owner,
            enrolment_signature: signature,
            sequence: self.sequence(contents.number),
            expires_unix_s: contents.expires_unix_s,
            epoch: contents.epoch,
            addresses: contents.addresses,
            device_machine: self.machine_key,
            machines: contents.machines,
            succession: contents.succession,
        };
        Some(seal(self.signing_key(), &record))
    }

    /// The number of the record that is the `number`th since the boot.
    pub(crate) fn sequence(&self, number: u32) -> u64 {
        u64::from(self.boots) << 32 | u64::from(number)
    }

    pub(crate) fn device_secret(&self) -> StaticSecret {
        self.seed.device_secret()
    }

    pub(crate) fn machine_secret(&self, salt: &[u8; 16]) -> StaticSecret {
        self.seed.machine_secret(salt)
    }

    pub(crate) fn signing_key(&self) -> &SigningKey {
        self.signing_key.get_or_init(|| self.seed.device_signing_key())
    }

    pub(crate) fn verifying_key(&self) -> VerifyingKey {
        self.verifying_key
    }

    fn generate<F: Flash>(
        store: &mut Store<F>,
        entropy: &mut dyn Entropy,
    ) -> Result<Seed, BootError> {
        let seed = Seed::generate(entropy).map_err(|_| BootError::Entropy)?;
        write(store, SEED_PATH, seed.as_bytes())?;
        Ok(seed)
    }
}

/// The public keys of the device's own machine and of its signatures.
pub(crate) type PublicKeys = (PublicKey, VerifyingKey);

/// The public keys as they are kept beside the seed, computed once. Keys of another seed don't count.
pub(crate) fn kept_keys<F: Flash>(
    store: &mut Store<F>,
    seed: &Seed,
) -> Result<PublicKeys, BootError> {
    let kept = match read(store, KEYS_PATH) {
        Err(BootError::Read(ReadError::Corrupt)) => None,
        kept => kept?,
    };
    if let Some((keys, check)) = kept.as_deref().and_then(|kept| kept.split_at_checked(KEYS_BYTES))
        && *check == keys_check(seed, keys)
    {
        let (machine, signing) = keys.split_at(32);
        if let (Ok(machine), Ok(signing)) = (machine.try_into(), signing.try_into()) {
            return Ok((PublicKey(machine), VerifyingKey(signing)));
        }
    }
    let (machine, signing) = computed_keys(store, seed)?;
    let keys = [machine.0, signing.0].concat();
    let check = keys_check(seed, &keys);
    write(store, KEYS_PATH, &[&keys[..], &check].concat())?;
    Ok((machine, signing))
}

/// Binds kept keys to the seed that they follow from: much cheaper than to compute them again.
fn keys_check(seed: &Seed, keys: &[u8]) -> [u8; KEYS_CHECK_BYTES] {
    let [a, b, c, d, e, f, g, h, ..] = sha256(&[KEYS_LABEL, seed.as_bytes(), keys]).0;
    [a, b, c, d, e, f, g, h]
}

/// The public keys, computed.
pub(crate) fn computed_keys<F: Flash>(
    _: &mut Store<F>,
    seed: &Seed,
) -> Result<PublicKeys, BootError> {
    Ok((seed.device_secret().public_key(), seed.device_signing_key().verifying_key()))
}

fn read<F: Flash>(store: &mut Store<F>, path: &str) -> Result<Option<Vec<u8>>, BootError> {
    let value = store.get(NODE_TREE, path).map_err(BootError::Read)?;
    Ok(value.map(|value| value.bytes))
}

fn write<F: Flash>(store: &mut Store<F>, path: &str, bytes: &[u8]) -> Result<(), BootError> {
    store.set(NODE_TREE, path, ValueKind::Bytes, bytes).map_err(BootError::Write)
}
