//! The papers of a publisher: who it trusts, and who it is.

use alloc::vec::Vec;
use core::fmt::Write;

use tenure_crypto::element::{Chip, POINT_BYTES};
use tenure_crypto::{PrivateKey, PublicKeyRef};
use tenure_hal::I2c;
use tenure_tls::Identity;
use tenure_tls::x509::{Anchor, Certificate};

use super::error::PublisherError;
use super::pem::Pem;
use super::{Papers, PublisherSettings, SLOT};

/// The certificates in flash, and the key beside them.
pub(super) struct Credentials {
    pub(super) anchors: Vec<Anchor<'static>>,
    pub(super) broker_key: Option<Vec<u8>>,
    chain: Vec<&'static [u8]>,
}

impl Credentials {
    /// Reads them. The element makes its key where there is neither key nor certificate; a key without its certificate is
    /// shown.
    pub(super) fn read<B: I2c>(
        papers: &Papers,
        settings: &PublisherSettings,
        element: &mut Chip<B>,
        console: &mut impl Write,
    ) -> Result<Self, PublisherError> {
        let chain: Vec<_> = Certificates(papers.chain).collect();
        let point = match element.public_key(SLOT) {
            // A key with a certificate isn't replaced, whatever fails on the way to it.
            Err(_) if chain.is_empty() => element.make_key(SLOT),
            point => point,
        };
        let point = point.map_err(PublisherError::NoKey)?;
        let fits = chain.first().map(|own| is_for(own, &point)).transpose()?;
        if fits != Some(true) {
            // A console that takes nothing has nobody who reads it.
            let _ = writeln!(console, "{}", Pem(&point));
        }
        match fits {
            None => return Err(PublisherError::NoCertificate),
            Some(false) => return Err(PublisherError::OtherKey),
            Some(true) => {}
        }
        let anchors: Result<Vec<_>, _> =
            Certificates(papers.authorities).map(Anchor::from_certificate).collect();
        let anchors = anchors.map_err(PublisherError::Authority)?;
        let broker_key = settings.broker_key.clone();
        if broker_key.is_none() && (anchors.is_empty() || settings.date.is_none()) {
            return Err(PublisherError::NoTrust);
        }
        Ok(Self { anchors, broker_key, chain })
    }

    /// Says whom it trusts.
    pub(super) fn announce(&self, settings: &PublisherSettings, console: &mut impl Write) {
        // As above.
        let _ = match settings.date {
            Some(date) => writeln!(
                console,
                "trusts {} of its flash; it takes the date of its settings, second {date}, and counts on from there",
                if self.anchors.len() == 1 { "the authority" } else { "the authorities" }
            ),
            None => writeln!(
                console,
                "trusts the broker's key of its settings alone: it doesn't know the date"
            ),
        };
    }

    /// The own certificates, with the key in the element.
    pub(super) fn identity(&self) -> Identity<'_> {
        Identity { chain: &self.chain, key: PrivateKey::ElementP256 { slot: SLOT } }
    }
}

/// Whether a certificate is for the key with these coordinates.
fn is_for(der: &[u8], point: &[u8; POINT_BYTES]) -> Result<bool, PublisherError> {
    let certificate = Certificate::parse(der).map_err(PublisherError::Certificate)?;
    // The first byte says that the point is uncompressed.
    Ok(matches!(certificate.key, PublicKeyRef::P256([_, coordinates @ ..]) if coordinates == point))
}

/// Certificates in DER, one behind the other, up to something else: erased flash.
pub(super) struct Certificates<'a>(pub(super) &'a [u8]);

impl<'a> Iterator for Certificates<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        /// A sequence whose length takes two bytes (X.690, 8.1.3.5): shorter than 256 bytes no certificate is.
        const LONG_SEQUENCE: [u8; 2] = [0x30, 0x82];
        const HEADER_BYTES: usize = 4;
        let ([tag, form, high, low], _) = self.0.split_first_chunk::<HEADER_BYTES>()?;
        if [*tag, *form] != LONG_SEQUENCE {
            return None;
        }
        let length = HEADER_BYTES + usize::from(u16::from_be_bytes([*high, *low]));
        let (one, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(one)
    }
}
