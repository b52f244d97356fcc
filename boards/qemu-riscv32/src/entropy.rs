//! Randomness from the host's generator, over virtio.

use tenure_hal::{Entropy, EntropyError};
use virtio_drivers::device::rng::VirtIORng;
use virtio_drivers::transport::DeviceType;
use virtio_drivers::transport::mmio::MmioTransport;

use crate::virtio::{self, Direct};

/// The machine's source of randomness.
pub(crate) struct VirtioEntropy(VirtIORng<Direct, MmioTransport<'static>>);

impl VirtioEntropy {
    /// The first that the machine has.
    pub(crate) fn find() -> Option<Self> {
        let (transport, _) = virtio::find(DeviceType::EntropySource)?;
        VirtIORng::new(transport).ok().map(Self)
    }
}

impl Entropy for VirtioEntropy {
    fn fill(&mut self, bytes: &mut [u8]) -> Result<(), EntropyError> {
        let mut filled = 0;
        while filled < bytes.len() {
            let left = &mut bytes[filled..];
            match self.0.request_entropy(left) {
                Ok(count) if count > 0 => filled += count.min(left.len()),
                _ => return Err(EntropyError),
            }
        }
        Ok(())
    }
}
