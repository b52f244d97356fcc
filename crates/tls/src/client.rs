//! The client's side of the handshake (RFC 8446 §4).

use core::ops::Range;

use tenure_crypto::{EphemeralKey, Group, HashAlgorithm, HashValue, Security};

use crate::certificates::{Identity, Reading, Trust};
use crate::connection::{Connection, Core, Handshake, Now};
use crate::error::{Error, Misbehaviour};
use crate::hello::{
    Extensions, RETRY_RANDOM, SSL, extension, is_downgrade, offer_limits, settle_limits,
};
use crate::record::{ContentType, HEADER_BYTES};
use crate::schedule::{Schedule, Transcript, expand_secret, finished, traffic_keys};
use crate::state::{Message, State};
use crate::suite::{Suite, group_from_number, group_number, offered_schemes};
use crate::wire::{Full, Reader, Writer};
use crate::x509::{Purpose, ServerName};

/// The wishes of a client.
#[derive(Clone, Copy, Debug)]
pub struct ClientConfig<'a> {
    /// The server.
    pub server_name: ServerName<'a>,
    /// How the server proves that it is.
    pub trust: Trust<'a>,
    /// The suites to offer, the best first.
    pub suites: &'a [Suite],
    /// The groups to offer; a key is made in the first.
    pub groups: &'a [Group],
    /// The application protocols to offer, the best first (RFC 7301); none is no offer.
    pub application_protocols: &'a [&'a [u8]],
    /// The certificates to show if the server asks who this is.
    pub identity: Option<Identity<'a>>,
    /// A ticket of the server, or a key that both ends were given.
    pub pre_shared_key: Option<PreSharedKey<'a>>,
    /// Whether data may be sent with the first message, which an attacker can replay.
    pub early_data: bool,
    /// How long the handshake may take, in milliseconds.
    pub handshake_ms_max: u64,
}

/// A key that both ends have.
#[derive(Clone, Copy)]
pub struct PreSharedKey<'a> {
    /// The server's name for it: a ticket, or a name.
    pub identity: &'a [u8],
    /// The key.
    pub key: &'a [u8],
    /// The suite of the connection that the ticket is from, or one that has the key's hash.
    pub suite: Suite,
    /// Whether both ends were given it, rather than made it on an earlier connection.
    pub is_external: bool,
    /// The age of a ticket in milliseconds plus its `age_add`; 0 for an external key.
    pub obfuscated_age: u32,
    /// How many bytes of early data the server takes with it: 0 where this connection doesn't offer the
    /// application protocol of the one that the ticket is from (RFC 8446 §4.2.10).
    pub early_data_bytes_max: u32,
}

impl core::fmt::Debug for PreSharedKey<'_> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "PreSharedKey({} bytes of identity)", self.identity.len())
    }
}

/// A server's ticket for a later connection (RFC 8446 §4.6.1).
///
/// It vouches for what this connection checked: on resumption no certificate is shown. Its keeper
/// forgets it when the server's name, the trust or the own identity is another.
#[derive(Clone, Debug)]
pub struct Ticket<'a> {
    /// The ticket itself.
    pub identity: &'a [u8],
    /// The key that goes with it.
    pub key: HashValue,
    /// The suite that it is for.
    pub suite: Suite,
    /// For how many seconds it is good.
    pub lifetime_s: u32,
    /// The number that is added to its age.
    pub age_add: u32,
    /// How many bytes of early data the server takes with it.
    pub early_data_bytes_max: u32,
}

/// The longest lifetime of a ticket, in seconds: seven days (§4.6.1).
const LIFETIME_S_MAX: u32 = 604_800;

/// A client's connection.
pub type Client<'b, 'c> = Connection<'b, ClientHandshake<'c>>;

/// The state of a client during its handshake.
pub struct ClientHandshake<'c> {
    config: &'c ClientConfig<'c>,
    random: [u8; 32],
    session: [u8; 32],
    key: Option<EphemeralKey>,
    /// Where the public part of `key` stands in the first message.
    share: Range<usize>,
    schedule: Option<Schedule>,
    is_retried: bool,
    /// Whether the server chose the pre-shared key.
    has_psk: bool,
    early_data: EarlyData,
    /// Whether the server wants a certificate.
    pub(crate) is_asked: bool,
    /// Whether one of our algorithms is among those that it verifies.
    pub(crate) can_answer: bool,
    protocol: Option<u8>,
    /// The messages to begin with in place of own ones: RFC 8448's.
    #[cfg(test)]
    script: &'c [&'c [u8]],
    /// The session id in them.
    #[cfg(test)]
    script_session: Option<&'c [u8]>,
}

/// The fate of early data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum EarlyData {
    NotOffered,
    Offered,
    Accepted,
    Refused,
}

impl<'b, 'c> Client<'b, 'c> {
    /// A connection over `buffer`, which both directions share, at the time `now`.
    ///
    /// # Errors
    /// [`Error::Configuration`] if the name, the suites or the groups are none, the identity has no certificate,
    /// or a protocol no name.
    pub fn new(
        buffer: &'b mut [u8],
        config: &'c ClientConfig<'c>,
        now: &Now,
    ) -> Result<Self, Error> {
        if !config.server_name.is_valid() || config.suites.is_empty() || config.groups.is_empty() {
            return Err(Error::Configuration);
        }
        // A client's key alone takes an agreement that isn't offered (§4.4.2.3).
        if config.identity.is_some_and(|it| it.chain.is_empty() || it.is_raw_key()) {
            return Err(Error::Configuration);
        }
        // A name of a protocol has 1 to 255 bytes (RFC 7301 §3.1).
        if !config.application_protocols.iter().all(|it| (1..=255).contains(&it.len())) {
            return Err(Error::Configuration);
        }
        let deadline_ms = now.uptime_ms.saturating_add(config.handshake_ms_max);
        let handshake = ClientHandshake {
            config,
            random: [0; 32],
            session: [0; 32],
            key: None,
            share: 0..0,
            schedule: None,
            is_retried: false,
            has_psk: false,
            early_data: EarlyData::NotOffered,
            is_asked: false,
            can_answer: false,
            protocol: None,
            #[cfg(test)]
            script: &[],
            #[cfg(test)]
            script_session: None,
        };
        Ok(Self { core: Core::new(buffer, State::Start, deadline_ms), handshake })
    }

    /// The application protocol that the server chose.
    pub fn application_protocol(&self) -> Option<&'c [u8]> {
        let protocols = self.handshake.config.application_protocols;
        self.handshake.protocol.map(|index| protocols[usize::from(index)])
    }

    /// Whether the server took the early data; none while that isn't known, or if none was offered.
    /// Refused early data is to be sent again.
    pub fn took_early_data(&self) -> Option<bool> {
        match self.handshake.early_data {
            EarlyData::Accepted => Some(true),
            EarlyData::Refused => Some(false),
            EarlyData::NotOffered | EarlyData::Offered => None,
        }
    }

    /// Whether the server knew the pre-shared key.
    pub fn is_resumed(&self) -> bool {
        self.handshake.has_psk
    }

    /// The ticket that [`Event::Ticket`](crate::Event::Ticket) announced.
    pub fn ticket(&self) -> Option<Ticket<'_>> {
        if !self.core.ticket_waits {
            return None;
        }
        let suite = self.core.suite?;
        let parsed = NewTicket::parse(self.core.channel.opened()).ok()?;
        let key = expand_secret(suite.hash(), &self.core.resumption, b"resumption", parsed.nonce);
        Some(Ticket {
            identity: parsed.identity,
            key,
            suite,
            lifetime_s: parsed.lifetime_s.min(LIFETIME_S_MAX),
            age_add: parsed.age_add,
            early_data_bytes_max: parsed.early_data_bytes_max,
        })
    }
}

impl Handshake for ClientHandshake<'_> {
    fn start(&mut self, core: &mut Core<'_>, security: &mut impl Security) -> Result<(), Error> {
        security.random(&mut self.random)?;
        security.random(&mut self.session)?;
        if self.config.early_data
            && self.config.pre_shared_key.is_some_and(|it| it.early_data_bytes_max > 0)
        {
            self.early_data = EarlyData::Offered;
        }
        self.send_hello(core, security, self.config.groups[0], None)?;
        core.channel.pin_output(self.share.clone());
        core.state = State::ServerHello;
        if self.early_data == EarlyData::Offered
            && let Some(psk) = self.config.pre_shared_key
        {
            let early = Schedule::early(psk.suite.hash(), Some(psk.key));
            let secret = early.derive(b"c e traffic", &core.transcript.digest(psk.suite.hash()));
            core.send_change_cipher_spec_once(security)?;
            #[cfg(feature = "keylog")]
            {
                core.key_log.set_random(&self.random);
                core.key_log.keep_early(&secret);
            }
            core.channel.writing = Some(traffic_keys(psk.suite, &secret));
            core.sends_early_data = true;
            core.early_data_left = psk.early_data_bytes_max as usize;
        }
        Ok(())
    }

    fn message(
        &mut self,
        core: &mut Core<'_>,
        security: &mut impl Security,
        message: Message,
        total: usize,
    ) -> Result<(), Error> {
        match message {
            Message::ServerHello => self.server_hello(core, security, total),
            Message::EncryptedExtensions => self.encrypted_extensions(core, total),
            Message::CertificateRequest => self.certificate_request(core, total),
            Message::CertificateVerify => {
                core.check_certificate_verify(security, Purpose::Server, total)?;
                core.state = State::ServerFinished;
                Ok(())
            }
            Message::Finished => self.server_finished(core, security, total),
            Message::NewSessionTicket => {
                let lifetime_s = NewTicket::parse(&core.channel.opened()[..total])?.lifetime_s;
                core.ticket_waits = lifetime_s > 0;
                if !core.ticket_waits {
                    core.channel.consume(total);
                }
                Ok(())
            }
            _ => Err(Misbehaviour::Unexpected.into()),
        }
    }

    fn certificate(
        &mut self,
        core: &mut Core<'_>,
        security: &mut impl Security,
        reading: Reading,
        now: &Now,
    ) -> Result<(), Error> {
        if reading == Reading::Entry {
            let name = Some(self.config.server_name);
            return core.judge_certificate(
                security,
                &self.config.trust,
                Purpose::Server,
                name,
                now,
            );
        }
        if core.certificates.is_empty() {
            return Err(crate::x509::CertificateError::Missing.into());
        }
        core.finish_certificates()?;
        core.state = State::ServerCertificateVerify;
        Ok(())
    }
}

/// The extensions that are known here and due in `EncryptedExtensions` (§4.2).
const ENCRYPTED_EXTENSIONS: u64 = extension::set(&[
    extension::SERVER_NAME,
    extension::MAX_FRAGMENT_LENGTH,
    extension::SUPPORTED_GROUPS,
    extension::APPLICATION_PROTOCOLS,
    extension::SERVER_CERTIFICATE_TYPE,
    extension::RECORD_SIZE_LIMIT,
    extension::EARLY_DATA,
]);

/// The content of a `ServerHello`.
struct ServerHello<'a> {
    suite: Suite,
    is_retry: bool,
    share: Option<Reader<'a>>,
    cookie: bool,
    psk: Option<u16>,
}

impl<'c> ClientHandshake<'c> {
    /// Sends a `ClientHello` with a key in `group`, the second time after a `HelloRetryRequest` with the suite
    /// `retry`, whose cookie it repeats. The key is the old one while its public part is pinned.
    fn send_hello(
        &mut self,
        core: &mut Core<'_>,
        security: &mut impl Security,
        group: Group,
        retry: Option<Suite>,
    ) -> Result<(), Error> {
        #[cfg(test)]
        if let Some((hello, rest)) = self.script.split_first() {
            self.script = rest;
            return self.send_script(core, security, group, retry, hello);
        }
        let limit = core.channel.comfortable_limit();
        let pinned = core.channel.pinned_bytes();
        let Core { channel, transcript, .. } = core;
        channel.emit(security, ContentType::Handshake, |security, lent, writer| {
            let (share, opened) = lent.split_at(pinned);
            let cookie = match retry {
                Some(_) => cookie_of(opened),
                None => None,
            };
            writer.u8(Message::ClientHello as u8)?;
            writer.vector(3, |writer| {
                writer.u16(0x0303)?;
                writer.bytes(&self.random)?;
                writer.vector(1, |writer| writer.bytes(&self.session))?;
                self.write_suites(security, writer)?;
                writer.vector(1, |writer| writer.u8(0))?;
                writer.vector(2, |writer| {
                    self.write_extensions(security, writer, group, share, cookie)?;
                    offer_limits(writer, limit)?;
                    Ok::<_, Error>(self.write_pre_shared_key(writer, retry)?)
                })
            })?;
            self.write_binder(writer, transcript, retry)?;
            transcript.update(writer.written());
            Ok(())
        })
    }

    fn write_suites(&self, security: &impl Security, writer: &mut Writer<'_>) -> Result<(), Full> {
        writer.vector(2, |writer| {
            self.config
                .suites
                .iter()
                .filter(|suite| security.has_aead(suite.aead()))
                .try_for_each(|suite| writer.u16(suite.number()))
        })
    }

    fn write_extensions(
        &mut self,
        security: &mut impl Security,
        writer: &mut Writer<'_>,
        group: Group,
        share: &[u8],
        cookie: Option<&[u8]>,
    ) -> Result<(), Error> {
        let config = self.config;
        if let Some(name) = config.server_name.indication() {
            extension(writer, extension::SERVER_NAME, |writer| {
                writer.vector(2, |writer| {
                    writer.u8(0)?;
                    writer.vector(2, |writer| writer.bytes(name.as_bytes()))
                })
            })?;
        }
        extension(writer, extension::SUPPORTED_VERSIONS, |writer| {
            writer.vector(1, |writer| writer.u16(0x0304))
        })?;
        extension(writer, extension::SUPPORTED_GROUPS, |writer| {
            writer.vector(2, |writer| {
                let groups = config.groups.iter().filter(|group| security.has_group(**group));
                groups.copied().try_for_each(|group| writer.u16(group_number(group)))
            })
        })?;
        extension(writer, extension::SIGNATURE_ALGORITHMS, |writer| {
            writer.vector(2, |writer| {
                offered_schemes(security).try_for_each(|number| writer.u16(number))
            })
        })?;
        extension(writer, extension::KEY_SHARE, |writer| {
            writer.vector(2, |writer| {
                writer.u16(group_number(group))?;
                writer.vector(2, |writer| {
                    if !share.is_empty() {
                        return Ok(writer.bytes(share)?);
                    }
                    let start = HEADER_BYTES + writer.len();
                    writer.fill(|room| {
                        let (key, length) = security.begin_agreement(group, room)?;
                        self.key = Some(key);
                        self.share = start..start + length;
                        Ok::<_, Error>(length)
                    })
                })
            })
        })?;
        if !config.application_protocols.is_empty() {
            extension(writer, extension::APPLICATION_PROTOCOLS, |writer| {
                writer.vector(2, |writer| {
                    config
                        .application_protocols
                        .iter()
                        .try_for_each(|protocol| writer.vector(1, |writer| writer.bytes(protocol)))
                })
            })?;
        }
        if let Trust::Keys(_) = config.trust {
            // Keys alone are liked best, certificates are taken too (RFC 7250 §3).
            extension(writer, extension::SERVER_CERTIFICATE_TYPE, |writer| {
                writer.vector(1, |writer| writer.bytes(&[2, 0]))
            })?;
        }
        if let Some(cookie) = cookie {
            extension(writer, extension::COOKIE, |writer| {
                writer.vector(2, |writer| writer.bytes(cookie))
            })?;
        }
        Ok(())
    }

    /// The pre-shared key that can still be chosen: after a retry, one with the suite's hash.
    fn offered_psk(&self, retry: Option<Suite>) -> Option<PreSharedKey<'c>> {
        let offered = self.config.pre_shared_key;
        offered.filter(|psk| retry.is_none_or(|suite| suite.hash() == psk.suite.hash()))
    }

    /// `pre_shared_key` comes last, and its binder is filled in later (§4.2.11).
    fn write_pre_shared_key(
        &self,
        writer: &mut Writer<'_>,
        retry: Option<Suite>,
    ) -> Result<(), Full> {
        // Also without a key: servers send tickets to those clients alone that say how they use them
        // (§4.2.9). Only with a key agreement: nothing is read by whoever learns the key later.
        extension(writer, extension::PSK_KEY_EXCHANGE_MODES, |writer| {
            writer.vector(1, |writer| writer.u8(1))
        })?;
        let Some(psk) = self.offered_psk(retry) else { return Ok(()) };
        if self.early_data == EarlyData::Offered {
            extension(writer, extension::EARLY_DATA, |_| Ok::<_, Full>(()))?;
        }
        extension(writer, extension::PRE_SHARED_KEY, |writer| {
            writer.vector(2, |writer| {
                writer.vector(2, |writer| writer.bytes(psk.identity))?;
                writer.u32(psk.obfuscated_age)
            })?;
            writer.vector(2, |writer| {
                writer.vector(1, |writer| {
                    writer.room(psk.suite.hash().digest_bytes()).map(|room| room.fill(0))
                })
            })
        })
    }

    /// Fills in the binder: a `Finished` over the message up to the binders (§4.2.11.2).
    fn write_binder(
        &self,
        writer: &mut Writer<'_>,
        transcript: &Transcript,
        retry: Option<Suite>,
    ) -> Result<(), Error> {
        let Some(psk) = self.offered_psk(retry) else { return Ok(()) };
        let hash = psk.suite.hash();
        let message = writer.written();
        let (bound, binder) = message.split_at_mut(message.len() - hash.digest_bytes());
        let mut transcript = transcript.clone();
        transcript.update(&bound[..bound.len() - 3]);
        let proof = binder_of(hash, psk.key, psk.is_external, &transcript.digest(hash));
        binder.copy_from_slice(&proof);
        Ok(())
    }

    fn server_hello(
        &mut self,
        core: &mut Core<'_>,
        security: &mut impl Security,
        total: usize,
    ) -> Result<(), Error> {
        let hello = self.parse_server_hello(security, &core.channel.opened()[..total])?;
        if hello.is_retry {
            return self.retry(core, security, total);
        }
        if core.suite.is_some_and(|suite| suite != hello.suite) {
            return Err(Misbehaviour::IllegalParameter.into());
        }
        let hash = hello.suite.hash();
        let psk = match (hello.psk, self.offered_psk(core.suite)) {
            (None, _) => None,
            (Some(_), None) => return Err(Misbehaviour::UnsolicitedExtension.into()),
            (Some(0), Some(psk)) if psk.suite.hash() == hash => Some(psk.key),
            _ => return Err(Misbehaviour::IllegalParameter.into()),
        };
        let key = self.key.as_ref().ok_or(Misbehaviour::Unexpected)?;
        let group = key.group();
        // Only with a key agreement was asked for, so that there must be a share: one that is missing beside a
        // pre-shared key contradicts what was offered (§4.2.11).
        let no_share = if psk.is_some() {
            Misbehaviour::IllegalParameter
        } else {
            Misbehaviour::MissingExtension
        };
        let mut share = hello.share.ok_or(no_share)?;
        if group_from_number(share.u16()?) != Some(group) {
            return Err(Misbehaviour::IllegalParameter.into());
        }
        let peer = share.vector16()?.some()?.rest();
        share.finish()?;
        let agreed = security.finish_agreement(key, peer)?;
        self.key = None;
        let (suite, has_psk) = (hello.suite, psk.is_some());
        let schedule = Schedule::early(hash, psk).handshake(Some(&agreed));
        core.suite = Some(suite);
        core.group = Some(group);
        core.transcript.choose(hash);
        core.take_in(total);
        #[cfg(feature = "keylog")]
        core.key_log.set_random(&self.random);
        core.handshake_secrets(&schedule)?;
        core.channel.unpin();
        // While early data is sent, its keys protect what this end says.
        if self.early_data != EarlyData::Offered {
            core.write_with_own_secret()?;
        }
        core.read_with_peer_secret()?;
        self.schedule = Some(schedule.master());
        core.state = State::EncryptedExtensions;
        self.has_psk = has_psk;
        Ok(())
    }

    fn session(&self) -> &[u8] {
        #[cfg(test)]
        if let Some(session) = self.script_session {
            return session;
        }
        &self.session
    }

    fn parse_server_hello<'a>(
        &self,
        security: &impl Security,
        message: &'a [u8],
    ) -> Result<ServerHello<'a>, Error> {
        let mut body = Reader::new(&message[4..]);
        let version = body.u16()?;
        let random = body.take(32)?;
        let session = body.vector8()?.rest();
        let suite = body.u16()?;
        let compression = body.u8()?;
        let is_retry = random == RETRY_RANDOM;
        if version <= SSL {
            return Err(Misbehaviour::OldVersion.into());
        }
        // A server without extensions is of TLS 1.2 or older (§4.2.1).
        let mut extensions = Extensions::parse_or_none(&mut body)?;
        body.finish()?;
        match extensions.take(extension::SUPPORTED_VERSIONS) {
            Some(chosen) if chosen.rest() == [3, 4] => {}
            Some(_) => return Err(Misbehaviour::IllegalParameter.into()),
            None if is_downgrade(random) => return Err(Misbehaviour::IllegalParameter.into()),
            None => return Err(Misbehaviour::OldVersion.into()),
        }
        // A suite that the security layer lacks isn't offered.
        let suite = Suite::from_number(suite)
            .filter(|suite| self.config.suites.contains(suite) && security.has_aead(suite.aead()));
        let (Some(suite), 0) = (suite, compression) else {
            return Err(Misbehaviour::IllegalParameter.into());
        };
        // The old version of a retry is checked (§4.1.4), and that of a hello means nothing (§4.2.1).
        if is_retry && version != 0x0303 {
            return Err(Misbehaviour::IllegalParameter.into());
        }
        if session != self.session() {
            return Err(Misbehaviour::IllegalParameter.into());
        }
        let share = extensions.take(extension::KEY_SHARE);
        if is_retry {
            let cookie = match extensions.take(extension::COOKIE) {
                Some(mut content) => {
                    content.vector16()?.some()?;
                    content.finish()?;
                    true
                }
                None => false,
            };
            extensions.finish(
                const {
                    extension::set(&[
                        extension::SUPPORTED_VERSIONS,
                        extension::COOKIE,
                        extension::KEY_SHARE,
                    ])
                },
            )?;
            return Ok(ServerHello { suite, is_retry, share, cookie, psk: None });
        }
        let psk = match extensions.take(extension::PRE_SHARED_KEY) {
            Some(mut index) => {
                let chosen = index.u16()?;
                index.finish()?;
                Some(chosen)
            }
            None => None,
        };
        extensions.finish(
            const {
                extension::set(&[
                    extension::PRE_SHARED_KEY,
                    extension::SUPPORTED_VERSIONS,
                    extension::KEY_SHARE,
                ])
            },
        )?;
        Ok(ServerHello { suite, is_retry, share, cookie: false, psk })
    }

    /// A `HelloRetryRequest` (§4.1.4): once, and only if it changes something.
    fn retry(
        &mut self,
        core: &mut Core<'_>,
        security: &mut impl Security,
        total: usize,
    ) -> Result<(), Error> {
        let hello = self.parse_server_hello(security, &core.channel.opened()[..total])?;
        // Nothing else is due before the second first message.
        let is_alone = core.channel.opened().len() == total;
        if core::mem::replace(&mut self.is_retried, true) || !is_alone {
            return Err(Misbehaviour::Unexpected.into());
        }
        let old = self.config.groups[0];
        let group = match hello.share {
            Some(share) => {
                let number = Reader::new(share.rest());
                let group = selected_group(number)?;
                let is_offered = self.config.groups.contains(&group) && security.has_group(group);
                if !is_offered || group == old {
                    return Err(Misbehaviour::IllegalParameter.into());
                }
                group
            }
            None if hello.cookie => old,
            None => return Err(Misbehaviour::IllegalParameter.into()),
        };
        let (suite, is_same_key) = (hello.suite, hello.share.is_none());
        if !is_same_key {
            core.channel.unpin();
        }
        core.suite = Some(suite);
        core.transcript.choose(suite.hash());
        core.transcript.restart();
        core.transcript.update(&core.channel.opened()[..total]);
        // Early data is lost, and the second message is sent in the open.
        core.channel.writing = None;
        core.sends_early_data = false;
        if self.early_data == EarlyData::Offered {
            self.early_data = EarlyData::Refused;
        }
        core.send_change_cipher_spec_once(security)?;
        self.send_hello(core, security, group, Some(suite))?;
        core.channel.unpin();
        core.channel.consume(total);
        Ok(())
    }

    fn encrypted_extensions(&mut self, core: &mut Core<'_>, total: usize) -> Result<(), Error> {
        let mut body = Reader::new(&core.channel.opened()[4..total]);
        let mut extensions = Extensions::parse(&mut body)?;
        body.finish()?;
        if extensions.take(extension::SERVER_NAME).is_some_and(|it| !it.is_empty()) {
            return Err(Misbehaviour::Malformed.into());
        }
        // Groups are for the next connection, and not kept (§4.2.7).
        let _ = extensions.take(extension::SUPPORTED_GROUPS);
        if let Some(chosen) = extensions.take(extension::APPLICATION_PROTOCOLS) {
            self.protocol = Some(self.chosen_protocol(chosen)?);
        }
        let limits = settle_limits(&mut extensions, core.channel.comfortable_limit())?;
        if let Some(kind) = extensions.take(extension::SERVER_CERTIFICATE_TYPE) {
            core.certificates.are_keys = match (kind.rest(), self.config.trust) {
                ([2], Trust::Keys(_)) => true,
                ([0], Trust::Keys(_)) => false,
                _ => return Err(Misbehaviour::IllegalParameter.into()),
            };
        }
        let takes_early_data = extensions.take(extension::EARLY_DATA);
        match (takes_early_data, self.early_data) {
            (Some(it), EarlyData::Offered) if it.is_empty() && self.has_psk => {
                // It was sent under the suite of its key (§4.2.10).
                if self.config.pre_shared_key.map(|psk| psk.suite) != core.suite {
                    return Err(Misbehaviour::IllegalParameter.into());
                }
                self.early_data = EarlyData::Accepted;
            }
            (Some(_), _) => return Err(Misbehaviour::UnsolicitedExtension.into()),
            (None, EarlyData::Offered) => self.early_data = EarlyData::Refused,
            (None, _) => {}
        }
        extensions.finish(ENCRYPTED_EXTENSIONS)?;
        if let Some(limits) = limits {
            core.channel.peer_limit = limits.peer;
            core.channel.own_limit = limits.own;
        }
        core.sends_early_data = self.early_data == EarlyData::Accepted;
        if self.early_data == EarlyData::Refused {
            core.write_with_own_secret()?;
        }
        core.take_in(total);
        core.state = if self.has_psk { State::ServerFinished } else { State::CertificateOrRequest };
        Ok(())
    }

    fn chosen_protocol(&self, chosen: Reader<'_>) -> Result<u8, Error> {
        let mut chosen = chosen;
        let mut list = chosen.vector16()?;
        chosen.finish()?;
        let protocol = list.vector8()?.rest();
        list.finish()?;
        let offered = self.config.application_protocols;
        if offered.is_empty() {
            return Err(Misbehaviour::UnsolicitedExtension.into());
        }
        let index = offered.iter().position(|it| *it == protocol);
        Ok(index.ok_or(Misbehaviour::IllegalParameter)? as u8)
    }

    fn certificate_request(&mut self, core: &mut Core<'_>, total: usize) -> Result<(), Error> {
        let mut body = Reader::new(&core.channel.opened()[4..total]);
        let context = body.vector8()?;
        let mut extensions = Extensions::parse(&mut body)?;
        body.finish()?;
        if !context.is_empty() {
            return Err(Misbehaviour::IllegalParameter.into());
        }
        let mut list = extensions
            .take(extension::SIGNATURE_ALGORITHMS)
            .ok_or(Misbehaviour::MissingExtension)?;
        let mut schemes = list.vector16()?;
        list.finish()?;
        extensions
            .refuse_misplaced(const { extension::set(&[extension::SIGNATURE_ALGORITHMS]) })?;
        // There is one at least (§4.2.3). Others than those known mean nothing (§4.3.2).
        let own = self.config.identity.and_then(|it| it.key.algorithm());
        let own = own.and_then(crate::suite::scheme_number);
        loop {
            self.can_answer |= Some(schemes.u16()?) == own;
            if schemes.is_empty() {
                break;
            }
        }
        self.is_asked = true;
        core.take_in(total);
        core.state = State::ServerCertificate;
        Ok(())
    }

    fn server_finished(
        &mut self,
        core: &mut Core<'_>,
        security: &mut impl Security,
        total: usize,
    ) -> Result<(), Error> {
        // A secret that is moved leaves its bytes behind.
        let schedule = self.schedule.clone().ok_or(Misbehaviour::Unexpected)?;
        self.schedule = None;
        core.check_finished(&core.peer_secret, total)?;
        core.take_in(total);
        let transcript = core.transcript_digest()?;
        core.send_change_cipher_spec_once(security)?;
        if self.early_data == EarlyData::Accepted {
            core.send_message(security, Message::EndOfEarlyData, |_, _| Ok(()))?;
            core.write_with_own_secret()?;
        }
        core.sends_early_data = false;
        if self.is_asked {
            let identity = self.config.identity.filter(|_| self.can_answer);
            core.send_certificates(security, identity.as_ref())?;
            if let Some(identity) = &identity {
                core.send_certificate_verify(security, Purpose::Client, identity)?;
            }
        }
        core.send_finished(security)?;
        let digest = core.transcript_digest()?;
        core.resumption = schedule.derive(b"res master", &digest);
        core.application_secrets(&schedule, &transcript)?;
        core.write_with_own_secret()?;
        core.read_with_peer_secret()?;
        core.state = State::ClientConnected;
        Ok(())
    }
}

fn selected_group(mut share: Reader<'_>) -> Result<Group, Error> {
    let number = share.u16()?;
    share.finish()?;
    Ok(group_from_number(number).ok_or(Misbehaviour::IllegalParameter)?)
}

/// The cookie of the `HelloRetryRequest` at the front of `opened`.
fn cookie_of(opened: &[u8]) -> Option<&[u8]> {
    let mut message = Reader::new(opened);
    message.u8().ok()?;
    let length = message.u24().ok()?;
    let mut body = Reader::new(message.take(length).ok()?);
    body.take(34).ok()?;
    body.vector8().ok()?;
    body.take(3).ok()?;
    let mut cookie = Extensions::parse(&mut body).ok()?.take(extension::COOKIE)?;
    let content = cookie.vector16().ok()?.rest();
    cookie.finish().ok()?;
    Some(content)
}

/// A binder (§4.2.11.2), from the digest of the message up to the binders.
pub(crate) fn binder_of(
    hash: HashAlgorithm,
    key: &[u8],
    is_external: bool,
    digest: &[u8],
) -> HashValue {
    let label: &[u8] = if is_external { b"ext binder" } else { b"res binder" };
    let secret = Schedule::early(hash, Some(key)).derive_from_nothing(label);
    finished(hash, &secret, digest)
}

/// A `NewSessionTicket` (§4.6.1).
struct NewTicket<'a> {
    lifetime_s: u32,
    age_add: u32,
    nonce: &'a [u8],
    identity: &'a [u8],
    early_data_bytes_max: u32,
}

impl<'a> NewTicket<'a> {
    fn parse(message: &'a [u8]) -> Result<Self, Error> {
        let mut message = Reader::new(message);
        message.u8()?;
        let length = message.u24()?;
        let mut body = Reader::new(message.take(length)?);
        let lifetime_s = body.u32()?;
        let age_add = body.u32()?;
        let nonce = body.vector8()?.rest();
        let identity = body.vector16()?.rest();
        let mut extensions = Extensions::parse(&mut body)?;
        body.finish()?;
        if identity.is_empty() {
            return Err(Misbehaviour::Malformed.into());
        }
        let early_data_bytes_max = match extensions.take(extension::EARLY_DATA) {
            Some(mut bytes) => {
                let max = bytes.u32()?;
                bytes.finish()?;
                max
            }
            None => 0,
        };
        extensions.refuse_misplaced(const { extension::set(&[extension::EARLY_DATA]) })?;
        Ok(Self { lifetime_s, age_add, nonce, identity, early_data_bytes_max })
    }
}

#[cfg(test)]
#[path = "client_tests.rs"]
mod tests;
