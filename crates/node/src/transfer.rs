//! Staging flash: a package that arrives in parts, or a snapshot that waits to be fetched.
//!
//! The owner and the rollouts share it. The owner takes it from a rollout at any time; a rollout that finds that out
//! begins its fetch anew later. The owner's own commands wait for one another ([`Claim`]).

use alloc::string::ToString;

use tenure_crypto::AeadKey;
use tenure_hal::Flash;
use tenure_kernel::{CodeError, Draft, Extent};
#[cfg(feature = "rollouts")]
use tenure_wire::Digest;
use tenure_wire::control::{CHUNK_BYTES_MAX, ControlError};

use crate::claim::{Claim, Visit};

/// A package on its way to the device, kept in flash of its own until it is whole.
pub(crate) struct Transfer<F> {
    staging: F,
    /// The bytes that have arrived, and how many there will be.
    under_way: Option<Draft>,
    /// The snapshot that stands there instead, to be fetched.
    frozen: Option<Frozen>,
    /// Which of the owner's commands it is for.
    claim: Claim,
    /// The package that a rollout fetches; `None` while the owner's stands there.
    #[cfg(feature = "rollouts")]
    fetched: Option<Digest>,
}

impl<F: Flash> Transfer<F> {
    pub(crate) fn new(staging: F) -> Self {
        Self {
            staging,
            under_way: None,
            frozen: None,
            claim: Claim::default(),
            #[cfg(feature = "rollouts")]
            fetched: None,
        }
    }

    pub(crate) fn into_flash(self) -> F {
        self.staging
    }

    pub(crate) fn flash(&mut self) -> &mut F {
        &mut self.staging
    }

    /// Drops whatever stands there.
    pub(crate) fn forget(&mut self) {
        self.under_way = None;
        self.frozen = None;
        #[cfg(feature = "rollouts")]
        {
            self.fetched = None;
        }
    }

    /// Takes note of a snapshot that stands there now.
    pub(crate) fn freeze(&mut self, frozen: Frozen) {
        self.frozen = Some(frozen);
    }

    /// The snapshot that stands there, and the flash that it stands in.
    pub(crate) fn frozen(&mut self, visit: Visit) -> Option<(&Frozen, &mut F)> {
        let frozen = self.frozen.as_ref()?;
        self.claim.go_on(visit);
        Some((frozen, &mut self.staging))
    }

    /// Makes ready for a package of `bytes` bytes; one of the same caller's that was under way is dropped.
    pub(crate) fn begin(&mut self, bytes: u32, visit: Visit) -> Result<(), ControlError> {
        self.claim(visit)?;
        self.make_ready(bytes)
    }

    /// Gives the staging flash to one of the owner's commands.
    pub(crate) fn claim(&mut self, visit: Visit) -> Result<(), ControlError> {
        let is_in_use = self.frozen.is_some() || self.under_way.is_some() && !self.is_fetching();
        self.claim.begin(visit, is_in_use)
    }

    /// Whether what is under way is a rollout's.
    fn is_fetching(&self) -> bool {
        #[cfg(feature = "rollouts")]
        {
            self.fetched.is_some()
        }
        #[cfg(not(feature = "rollouts"))]
        {
            false
        }
    }

    fn make_ready(&mut self, bytes: u32) -> Result<(), ControlError> {
        let room = self.staging.geometry().bytes();
        if bytes > room {
            let message = alloc::format!("the package has {bytes} bytes, the device takes {room}");
            return Err(ControlError::Full(message));
        }
        self.forget();
        self.under_way = Some(Draft::new(Extent { offset: 0, bytes }));
        Ok(())
    }

    /// Takes the next part that the owner sends.
    pub(crate) fn chunk(
        &mut self,
        offset: u32,
        bytes: &[u8],
        visit: Visit,
    ) -> Result<(), ControlError> {
        if self.is_fetching() {
            return Err(ControlError::Transfer);
        }
        self.append(offset, bytes)?;
        self.claim.go_on(visit);
        Ok(())
    }

    fn append(&mut self, offset: u32, bytes: &[u8]) -> Result<(), ControlError> {
        let draft = self.under_way.as_mut().ok_or(ControlError::Transfer)?;
        if bytes.len() > CHUNK_BYTES_MAX || offset != draft.appended() {
            return Err(ControlError::Transfer);
        }
        draft.append(&mut self.staging, bytes).map_err(|error| match error {
            CodeError::Full => ControlError::Transfer,
            error => ControlError::Device(error.to_string()),
        })
    }

    /// The whole package, if all of it has arrived.
    pub(crate) fn complete(&mut self) -> Result<&[u8], ControlError> {
        let draft = self.under_way.take().ok_or(ControlError::Transfer)?;
        let bytes = draft.extent().bytes;
        if draft.appended() != bytes {
            return Err(ControlError::Transfer);
        }
        draft.finish(&mut self.staging).map_err(|error| ControlError::Device(error.to_string()))?;
        let mapped = self.staging.mapped().ok_or_else(|| {
            ControlError::Device("this board doesn't map its staging flash".to_string())
        })?;
        Ok(&mapped[..bytes as usize])
    }
}

#[cfg(feature = "rollouts")]
impl<F: Flash> Transfer<F> {
    /// The owner's transfer or snapshot there, told apart by a number; `None` if nothing is.
    pub(crate) fn owners(&self) -> Option<u32> {
        let under_way = self.under_way.as_ref().filter(|_| self.fetched.is_none());
        let under_way = under_way.map(Draft::appended);
        under_way.or_else(|| self.frozen.as_ref().map(|_| u32::MAX))
    }

    /// Makes ready for the package `fetched`, in the place of whatever stands there.
    pub(crate) fn begin_fetch(&mut self, fetched: Digest, bytes: u32) -> Result<(), ControlError> {
        self.make_ready(bytes)?;
        self.fetched = Some(fetched);
        Ok(())
    }

    /// Where the next part of `fetched` begins, and how much there will be; `None` if something else stands
    /// there by now.
    pub(crate) fn progress_of(&self, fetched: &Digest) -> Option<(u32, u32)> {
        let draft = self.under_way.as_ref().filter(|_| self.fetched.as_ref() == Some(fetched))?;
        Some((draft.appended(), draft.extent().bytes))
    }

    /// Takes the next part of `fetched`.
    pub(crate) fn take_part(&mut self, fetched: &Digest, bytes: &[u8]) -> Result<(), ControlError> {
        let (offset, _) = self.progress_of(fetched).ok_or(ControlError::Transfer)?;
        self.append(offset, bytes)
    }
}

/// A snapshot in staging flash.
pub(crate) struct Frozen {
    pub(crate) key: AeadKey,
    /// How long it is, in bytes, seals not counted.
    pub(crate) bytes: u32,
}
