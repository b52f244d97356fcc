//! The peer's `Certificate` and `CertificateVerify` messages, read as they come in (RFC 8446 §4.4.2,
//! §4.4.3).
//!
//! Certificates stay in the buffer until a path leads from the peer's own to an anchor, which is
//! searched for whenever one more is there. Then the rest of the message is hashed and dropped.

use tenure_crypto::{
    PrivateKey, PublicKeyRef, SIGNATURE_BYTES_MAX, Security, SecurityError, SignatureAlgorithm,
    Signed,
};

use crate::channel::Channel;
use crate::connection::{Core, Now};
use crate::error::{Error, Misbehaviour};
use crate::schedule::Transcript;
use crate::state::Message;
use crate::suite::{handshake_scheme, scheme_number};
use crate::wire::Reader;
use crate::x509::{
    Anchor, CERTIFICATES_MAX, Certificate, CertificateError, Policy, Purpose, Search, ServerName,
    check_leaf, nth_of, parse_public_key,
};

/// The trust in a peer's identity.
#[derive(Clone, Copy, Debug)]
pub enum Trust<'a> {
    /// A peer with a chain to one of these anchors.
    Anchors {
        /// The anchors.
        anchors: &'a [Anchor<'a>],
        /// The keys (`SubjectPublicKeyInfo` in DER) that are trusted for themselves while this device
        /// doesn't know the date, which a chain needs. If there are none, nobody is trusted then.
        without_date: &'a [&'a [u8]],
    },
    /// A peer with one of these keys (`SubjectPublicKeyInfo` in DER), whatever certificate it is in.
    Keys(&'a [&'a [u8]]),
}

impl<'a> Trust<'a> {
    /// The keys that are trusted for themselves at `now`, and the anchors that are.
    fn at(&self, now: &Now) -> (Option<&'a [&'a [u8]]>, &'a [Anchor<'a>]) {
        match *self {
            Self::Keys(keys) => (Some(keys), &[]),
            Self::Anchors { anchors, without_date } => {
                let is_dated = now.date.is_some() || without_date.is_empty();
                (if is_dated { None } else { Some(without_date) }, anchors)
            }
        }
    }
}

/// An own certificate chain, or key alone, with what proves it.
#[derive(Clone, Copy, Debug)]
pub struct Identity<'a> {
    /// The certificates in DER, the own one first; or the own `SubjectPublicKeyInfo` alone, where the
    /// peers know it (RFC 7250).
    pub chain: &'a [&'a [u8]],
    /// The key of the first.
    pub key: PrivateKey<'a>,
}

impl Identity<'_> {
    /// Whether it is a key alone.
    pub(crate) fn is_raw_key(&self) -> bool {
        matches!(self.chain, [key] if parse_public_key(key).is_ok())
    }
}

/// The result of [`CertificateReader::read`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reading {
    /// More bytes are needed.
    Partial,
    /// A certificate is complete, and the caller may look at it before it is judged.
    Announced,
    /// It is to be judged.
    Entry,
    /// There are no more.
    End,
}

/// How far the message has been read.
#[derive(Debug, Default)]
pub(crate) struct CertificateReader {
    is_reading: bool,
    /// Whether entries are keys alone (RFC 7250).
    pub(crate) are_keys: bool,
    /// Bytes of the list that are left.
    left: usize,
    /// The length of the certificate at the front, and of its entry.
    entry: Option<(usize, usize)>,
    entries: u8,
    /// The length of the peer's own certificate, which is pinned first.
    leaf_bytes: usize,
    search: Search,
    is_trusted: bool,
}

/// The part of a certificate in the search for a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    /// There is a path.
    Trusted,
    /// It may be in one, and is kept.
    Kept,
    /// It can't be read, and is in none.
    PassedOver,
}

impl CertificateReader {
    pub(crate) fn is_reading(&self) -> bool {
        self.is_reading
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.entries == 0
    }

    /// The place in the message of the certificate that a refusal is about.
    pub(crate) fn refused_at(&self) -> usize {
        usize::from(self.search.refusal.at)
    }

    /// Begins with the message at the front, if its lengths are there.
    pub(crate) fn begin(
        &mut self,
        channel: &mut Channel<'_>,
        transcript: &mut Transcript,
    ) -> Result<bool, Error> {
        const HEAD_BYTES: usize = 8;
        let Some(head) = channel.opened().first_chunk::<HEAD_BYTES>() else {
            // Shorter than its own lengths are: there would never be more.
            return match channel.opened() {
                [_, 0, 0, 0..=3, ..] => Err(Misbehaviour::Malformed.into()),
                _ => Ok(false),
            };
        };
        let mut fields = Reader::new(&head[1..]);
        let length = fields.u24()?;
        let context_length = fields.u8()?;
        let list_length = fields.u24()?;
        // In a handshake the context is empty (§4.4.2).
        if context_length != 0 {
            return Err(Misbehaviour::IllegalParameter.into());
        }
        if list_length + 4 != length {
            return Err(Misbehaviour::Malformed.into());
        }
        transcript.update(head);
        channel.consume(HEAD_BYTES);
        *self = Self {
            is_reading: true,
            are_keys: self.are_keys,
            left: list_length,
            ..Self::default()
        };
        Ok(true)
    }

    /// Reads on, up to what somebody must judge.
    pub(crate) fn read(
        &mut self,
        channel: &mut Channel<'_>,
        transcript: &mut Transcript,
    ) -> Result<Reading, Error> {
        if self.entry.is_some() {
            return Ok(Reading::Entry);
        }
        // A key stands alone (§4.4.2).
        if self.are_keys && self.entries > 0 && self.left > 0 {
            return Err(Misbehaviour::IllegalParameter.into());
        }
        if self.is_trusted {
            let skipped = channel.opened().len().min(self.left);
            transcript.update(&channel.opened()[..skipped]);
            channel.consume(skipped);
            self.left -= skipped;
        }
        if self.left == 0 {
            return Ok(Reading::End);
        }
        let mut fields = Reader::new(channel.opened());
        let Ok(certificate_bytes) = fields.u24() else {
            return if self.left < 3 {
                Err(Misbehaviour::Malformed.into())
            } else {
                Ok(Reading::Partial)
            };
        };
        // An entry ends with the length of its extensions.
        if certificate_bytes == 0 || certificate_bytes + 5 > self.left {
            return Err(Misbehaviour::Malformed.into());
        }
        let Ok(extensions) = fields.take(certificate_bytes).and_then(|_| fields.u16()) else {
            return Ok(Reading::Partial);
        };
        // None was asked for that a certificate could answer (§4.4.2).
        if extensions != 0 {
            return Err(Misbehaviour::UnsolicitedExtension.into());
        }
        self.entry = Some((certificate_bytes, certificate_bytes + 5));
        Ok(Reading::Announced)
    }

    pub(crate) fn announced<'c>(&self, channel: &'c Channel<'_>) -> Option<&'c [u8]> {
        self.entry.map(|(length, _)| &channel.opened()[3..3 + length])
    }

    /// Takes the entry that was judged into the transcript, and keeps of it what is still needed.
    fn judged(&mut self, channel: &mut Channel<'_>, transcript: &mut Transcript, verdict: Verdict) {
        let Some((certificate_bytes, entry_bytes)) = self.entry.take() else { return };
        transcript.update(&channel.opened()[..entry_bytes]);
        let is_leaf = self.entries == 0;
        self.entries += 1;
        self.left -= entry_bytes;
        self.is_trusted = verdict == Verdict::Trusted;
        channel.consume(3);
        if is_leaf {
            channel.pin(certificate_bytes);
            self.leaf_bytes = certificate_bytes;
        } else if verdict == Verdict::Kept {
            channel.pin(certificate_bytes);
        } else {
            channel.consume(certificate_bytes);
        }
        channel.consume(2);
    }
}

impl Core<'_> {
    /// Judges the certificate that was announced.
    pub(crate) fn judge_certificate(
        &mut self,
        security: &mut impl Security,
        trust: &Trust<'_>,
        purpose: Purpose,
        name: Option<ServerName<'_>>,
        now: &Now,
    ) -> Result<(), Error> {
        let Self { channel, transcript, certificates, .. } = self;
        let (pinned, opened) = channel.pinned_and_opened();
        let Some((length, _)) = certificates.entry else { return Ok(()) };
        let der = &opened[3..3 + length];
        let (keys, anchors) = trust.at(now);
        let at = certificates.entries;
        let is_leaf = at == 0;
        if at == CERTIFICATES_MAX {
            return Err(CertificateError::TooManyCertificates.into());
        }
        let verdict = if certificates.are_keys {
            judge_key(der, keys.filter(|_| is_leaf))?
        } else if let Some(keys) = keys {
            judge_key(Certificate::key_info_of(der)?, Some(keys))?
        } else {
            let policy = Policy { purpose, name, now: now.date, anchors };
            match check_alone(der, is_leaf, &policy) {
                Ok(()) => {
                    let pool = |index| nth_of(pinned, der, index);
                    let is_found = certificates.search.find(security, &pool, &policy)?;
                    if is_found { Verdict::Trusted } else { Verdict::Kept }
                }
                Err(error) if is_leaf => return Err(error.into()),
                Err(error) => {
                    certificates.search.refuse(error, at);
                    Verdict::PassedOver
                }
            }
        };
        certificates.judged(channel, transcript, verdict);
        Ok(())
    }

    /// Ends the message: of what is pinned, only the peer's key stays.
    pub(crate) fn finish_certificates(&mut self) -> Result<(), Error> {
        let Self { channel, certificates, .. } = self;
        certificates.is_reading = false;
        if !certificates.is_trusted {
            return Err(certificates.search.refusal.error.into());
        }
        if !certificates.are_keys {
            let (pinned, _) = channel.pinned_and_opened();
            let leaf = &pinned[..certificates.leaf_bytes];
            let info = Certificate::key_info_of(leaf)?;
            let start = info.as_ptr() as usize - leaf.as_ptr() as usize;
            let range = start..start + info.len();
            channel.repin(range);
        }
        Ok(())
    }

    /// Ends a message without certificates.
    pub(crate) fn finish_without_certificates(&mut self) {
        self.certificates.is_reading = false;
    }

    /// Checks the `CertificateVerify` of `total` bytes at the front, and forgets the key.
    pub(crate) fn check_certificate_verify(
        &mut self,
        security: &mut impl Security,
        purpose: Purpose,
        total: usize,
    ) -> Result<(), Error> {
        let digest = self.transcript_digest()?;
        let (pinned, opened) = self.channel.pinned_and_opened();
        let mut body = Reader::new(&opened[4..total]);
        let scheme = body.u16()?;
        let signature = body.vector16()?.rest();
        body.finish()?;
        let algorithm = handshake_scheme(scheme)
            .filter(|algorithm| security.has_signature(*algorithm))
            .ok_or(Misbehaviour::IllegalParameter)?;
        let key: PublicKeyRef<'_> = parse_public_key(pinned)?;
        // §4.4.3: the algorithm is one of the certificate's kind of key.
        let fits = match algorithm {
            SignatureAlgorithm::EcdsaP256(_) => matches!(key, PublicKeyRef::P256(_)),
            SignatureAlgorithm::EcdsaP384(_) => matches!(key, PublicKeyRef::P384(_)),
            SignatureAlgorithm::Ed25519 => matches!(key, PublicKeyRef::Ed25519(_)),
            _ => matches!(key, PublicKeyRef::Rsa { .. }),
        };
        if !fits {
            return Err(Misbehaviour::IllegalParameter.into());
        }
        let mut statement = [0; STATEMENT_BYTES_MAX];
        let statement = write_statement(purpose, &digest, &mut statement);
        match security.verify(algorithm, &key, Signed::Message(statement), signature) {
            // Of a length that nobody here verifies with, or on no curve.
            Err(SecurityError::InvalidPublicKey) => {
                return Err(CertificateError::UnsupportedKey.into());
            }
            verified => verified?,
        }
        self.peer_signature = Some(algorithm);
        self.channel.unpin();
        self.take_in(total);
        Ok(())
    }

    /// Sends the own certificates, none if there is no `identity`, as an answer to `context`.
    pub(crate) fn send_certificates(
        &mut self,
        security: &mut impl Security,
        identity: Option<&Identity<'_>>,
    ) -> Result<(), Error> {
        let chain = identity.map_or(&[][..], |identity| identity.chain);
        let list: usize = chain.iter().map(|certificate| certificate.len() + 5).sum();
        let mut head = [Message::Certificate as u8, 0, 0, 0, 0, 0, 0, 0];
        write_u24(&mut head[1..4], list + 4);
        write_u24(&mut head[5..8], list);
        self.transcript.update(&head);
        self.channel.emit_parts(security, &[&head])?;
        for certificate in chain {
            let mut length = [0; 3];
            write_u24(&mut length, certificate.len());
            let parts: [&[u8]; 3] = [&length, certificate, &[0, 0]];
            parts.iter().for_each(|part| self.transcript.update(part));
            self.channel.emit_parts(security, &parts)?;
        }
        Ok(())
    }

    /// Sends the proof that this end has the key of `identity`.
    pub(crate) fn send_certificate_verify(
        &mut self,
        security: &mut impl Security,
        purpose: Purpose,
        identity: &Identity<'_>,
    ) -> Result<(), Error> {
        let digest = self.transcript_digest()?;
        let mut statement = [0; STATEMENT_BYTES_MAX];
        let statement = write_statement(purpose, &digest, &mut statement);
        let scheme =
            identity.key.algorithm().and_then(scheme_number).ok_or(Error::Configuration)?;
        let mut signature = [0; SIGNATURE_BYTES_MAX];
        let length = security.sign(&identity.key, statement, &mut signature)?;
        self.send_message(security, Message::CertificateVerify, |_, writer| {
            writer.u16(scheme)?;
            writer.vector(2, |writer| Ok(writer.bytes(&signature[..length])?))
        })
    }
}

fn write_u24(into: &mut [u8], value: usize) {
    into.copy_from_slice(&(value as u32).to_be_bytes()[1..]);
}

/// Checks that a certificate can be read, and the peer's own by its rules. Not inlined: the memory for
/// it isn't needed during the search.
#[inline(never)]
fn check_alone(der: &[u8], is_leaf: bool, policy: &Policy<'_>) -> Result<(), CertificateError> {
    let certificate = Certificate::parse(der)?;
    if is_leaf { check_leaf(&certificate, policy) } else { Ok(()) }
}

fn judge_key(info: &[u8], keys: Option<&[&[u8]]>) -> Result<Verdict, CertificateError> {
    parse_public_key(info)?;
    match keys {
        Some(keys) if keys.contains(&info) => Ok(Verdict::Trusted),
        _ => Err(CertificateError::NotPinned),
    }
}

const STATEMENT_BYTES_MAX: usize = 64 + 34 + 64;

/// The content that a `CertificateVerify` signs (§4.4.3).
fn write_statement<'a>(
    signer: Purpose,
    digest: &[u8],
    into: &'a mut [u8; STATEMENT_BYTES_MAX],
) -> &'a [u8] {
    let context: &[u8; 34] = match signer {
        Purpose::Server => b"TLS 1.3, server CertificateVerify\0",
        Purpose::Client => b"TLS 1.3, client CertificateVerify\0",
    };
    into[..64].fill(0x20);
    into[64..98].copy_from_slice(context);
    into[98..98 + digest.len()].copy_from_slice(digest);
    &into[..98 + digest.len()]
}
