//! The traces of RFC 8448, and what both ends' tests of them share.
//!
//! An end can't choose the bytes that the RFC's ends chose: the layout of their hellos, their RSA keys of
//! 1,024 bits. Those are put in its place; everything that follows from them is the end's own.

extern crate std;

use std::string::{String, ToString};
use std::vec::Vec;

use tenure_crypto::{
    AEAD_TAG_BYTES, AeadAlgorithm, AgreedSecret, EphemeralKey, Group, PrivateKey, PublicKeyRef,
    Security, SecurityError, SignatureAlgorithm, Signed, Software,
};
use tenure_hal::{Entropy, EntropyError};

use crate::{Connection, Error, Event, Now};

pub(crate) const NOW: Now = Now { uptime_ms: 0, date: None };
/// The bytes of a buffer that is short enough for `record_size_limit` to be offered, as the RFC's ends do.
pub(crate) const BUFFER_BYTES: usize = 8_192;
/// The data that both ends send after the handshakes of §3 and §4.
pub(crate) const DATA: [u8; 50] = {
    let mut data = [0; 50];
    let mut index = 0;
    while index < data.len() {
        data[index] = index as u8;
        index += 1;
    }
    data
};
/// The early data of §4.
pub(crate) const EARLY_DATA: &[u8] = b"ABCDEF";
/// The key that goes with the ticket of §3.
pub(crate) const TICKET_KEY: [u8; 32] =
    hex_literal::hex!("4ecd0eb6ec3b4d87f5d6028f922ca4c5851a277fd41311c9e62d2c9492e1c4f3");

/// A connection of the RFC.
pub(crate) struct Trace {
    name: String,
    lines: Vec<(String, Vec<u8>)>,
}

impl Trace {
    /// The trace of the section with `number`.
    pub(crate) fn section(number: u8) -> Self {
        let text = include_str!("rfc8448.txt");
        let number = std::format!("[{number}.");
        let section = text.split("\n\n").find(|it| it.starts_with(&number)).expect("a section");
        let mut lines: Vec<(String, Vec<u8>)> = Vec::new();
        for line in section.lines().skip(1) {
            match line.strip_suffix(" =") {
                Some(label) => lines.push((label.to_string(), Vec::new())),
                None => lines.last_mut().expect("a label").1.extend(bytes_of(line.trim())),
            }
        }
        Self { name: section.lines().next().expect("a name").to_string(), lines }
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Everything under `label`.
    pub(crate) fn all(&self, label: &str) -> Vec<&[u8]> {
        let lines = self.lines.iter().filter(|(it, _)| it == label);
        lines.map(|(_, bytes)| &bytes[..]).collect()
    }

    /// The bytes under `label`, which is there once.
    pub(crate) fn one(&self, label: &str) -> &[u8] {
        let [one] = self.all(label)[..] else { panic!("{label} in {}", self.name) };
        one
    }

    /// The records, each with who sent it and what it is, in their order.
    pub(crate) fn records(&self) -> impl Iterator<Item = (&str, &[u8])> {
        let is_record = |label: &str| !label.ends_with(" key") && !label.ends_with(" identity");
        let lines = self.lines.iter().filter(move |(label, _)| is_record(label));
        lines.map(|(label, bytes)| (&**label, &bytes[..]))
    }
}

fn bytes_of(hex: &str) -> Vec<u8> {
    let digits =
        |index| u8::from_str_radix(&hex[index..index + 2], 16).expect("hexadecimal digits");
    (0..hex.len()).step_by(2).map(digits).collect()
}

/// No record of the RFC is random but for what is given.
pub(crate) struct Nothing;

impl Entropy for Nothing {
    fn fill(&mut self, bytes: &mut [u8]) -> Result<(), EntropyError> {
        bytes.fill(0);
        Ok(())
    }
}

/// Software, but for ephemeral keys, which are the RFC's, and for RSA of 1,024 bits.
pub(crate) struct Scripted<'t> {
    pub(crate) software: Software<Nothing>,
    /// The keys to come.
    pub(crate) keys: Vec<&'t [u8]>,
    /// The RSA signatures that were to be verified.
    pub(crate) rsa_signatures: usize,
}

impl<'t> Scripted<'t> {
    pub(crate) fn new(keys: Vec<&'t [u8]>) -> Self {
        Self { software: Software::new(Nothing), keys, rsa_signatures: 0 }
    }
}

impl Security for Scripted<'_> {
    fn has_group(&self, group: Group) -> bool {
        self.software.has_group(group)
    }

    fn has_signature(&self, algorithm: SignatureAlgorithm) -> bool {
        self.software.has_signature(algorithm)
    }

    fn has_aead(&self, algorithm: AeadAlgorithm) -> bool {
        self.software.has_aead(algorithm)
    }

    fn random(&mut self, bytes: &mut [u8]) -> Result<(), SecurityError> {
        self.software.random(bytes)
    }

    fn begin_agreement(
        &mut self,
        group: Group,
        _: &mut [u8],
    ) -> Result<(EphemeralKey, usize), SecurityError> {
        Ok((EphemeralKey::new(group, self.keys.remove(0)), group.share_bytes()))
    }

    fn finish_agreement(
        &mut self,
        key: &EphemeralKey,
        peer: &[u8],
    ) -> Result<AgreedSecret, SecurityError> {
        self.software.finish_agreement(key, peer)
    }

    fn sign(
        &mut self,
        key: &PrivateKey<'_>,
        message: &[u8],
        signature: &mut [u8],
    ) -> Result<usize, SecurityError> {
        self.software.sign(key, message, signature)
    }

    fn verify(
        &mut self,
        algorithm: SignatureAlgorithm,
        key: &PublicKeyRef<'_>,
        message: Signed<'_>,
        signature: &[u8],
    ) -> Result<(), SecurityError> {
        if let PublicKeyRef::Rsa { modulus, .. } = key {
            assert!(self.software.verify(algorithm, key, message, signature).is_err());
            assert_eq!((modulus.len(), signature.len()), (128, 128));
            self.rsa_signatures += 1;
            return Ok(());
        }
        self.software.verify(algorithm, key, message, signature)
    }

    fn seal(
        &mut self,
        algorithm: AeadAlgorithm,
        key: &[u8],
        nonce: &[u8; 12],
        associated: &[u8],
        message: &mut [u8],
    ) -> Result<[u8; AEAD_TAG_BYTES], SecurityError> {
        self.software.seal(algorithm, key, nonce, associated, message)
    }

    fn open(
        &mut self,
        algorithm: AeadAlgorithm,
        key: &[u8],
        nonce: &[u8; 12],
        associated: &[u8],
        message: &mut [u8],
        tag: &[u8; AEAD_TAG_BYTES],
    ) -> Result<(), SecurityError> {
        self.software.open(algorithm, key, nonce, associated, message, tag)
    }
}

/// Polls up to the first event that isn't the sight of a certificate.
pub(crate) fn poll<H: crate::connection::Handshake>(
    end: &mut Connection<'_, H>,
    security: &mut Scripted<'_>,
) -> Result<Event, Error> {
    loop {
        match end.poll(security, &NOW) {
            Ok(Event::Certificate) => {}
            other => return other,
        }
    }
}

/// Takes what `end` has to send.
pub(crate) fn output<H: crate::connection::Handshake>(end: &mut Connection<'_, H>) -> Vec<u8> {
    let output = end.output().to_vec();
    end.sent(output.len());
    output
}
