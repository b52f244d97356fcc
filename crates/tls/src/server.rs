//! The server's side of the handshake (RFC 8446 §4).

mod choice;

use tenure_crypto::{AgreedSecret, Group, HashValue, Security};

use self::choice::{Choice, ClientHello};
use crate::certificates::{Identity, Reading, Trust};
use crate::connection::{Connection, Core, Handshake, Now};
use crate::error::{Error, Misbehaviour};
use crate::hello::{RETRY_RANDOM, extension, fragment_bytes, limit_of};
use crate::record::PLAINTEXT_BYTES_MAX;
use crate::schedule::{Schedule, expand_secret, traffic_keys};
use crate::state::{Message, State};
use crate::suite::{Suite, group_number, offered_schemes};
use crate::tickets::{EarlyDataGuard, EarlyScope, TICKET_BYTES, TicketContent, TicketKey};
use crate::wire::{Full, Writer};
use crate::x509::Purpose;

/// The offers of a server.
#[derive(Clone, Copy, Debug)]
pub struct ServerConfig<'a> {
    /// The certificates to show, the first whose key the client can verify. None, if every client has
    /// a pre-shared key.
    pub identities: &'a [Identity<'a>],
    /// The suites to take, the best first.
    pub suites: &'a [Suite],
    /// The groups to take, the best first.
    pub groups: &'a [Group],
    /// The application protocols to take, the best first; none takes any, and says nothing.
    pub application_protocols: &'a [&'a [u8]],
    /// How clients prove who they are, if they are asked.
    pub client_trust: Option<Trust<'a>>,
    /// Whether a client without a certificate is refused, where one is asked.
    pub client_must_prove: bool,
    /// Keys that both ends were given, by their names.
    pub pre_shared_keys: &'a [ExternalKey<'a>],
    /// The key that seals tickets; no tickets, if there is none.
    pub ticket_key: Option<&'a TicketKey>,
    /// How many bytes of early data to take with a ticket: 0 refuses all. Early data can be replayed.
    pub early_data_bytes_max: u32,
    /// How long the handshake may take, in milliseconds.
    pub handshake_ms_max: u64,
}

/// A key that both ends were given.
#[derive(Clone, Copy)]
pub struct ExternalKey<'a> {
    /// Its name.
    pub identity: &'a [u8],
    /// The key, for SHA-256.
    pub key: &'a [u8],
}

impl core::fmt::Debug for ExternalKey<'_> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "ExternalKey({} bytes of identity)", self.identity.len())
    }
}

/// A server's connection.
pub type Server<'b, 'c> = Connection<'b, ServerHandshake<'c>>;

/// The state that a server keeps during its handshake.
pub struct ServerHandshake<'c> {
    config: &'c ServerConfig<'c>,
    guard: Option<&'c EarlyDataGuard>,
    is_retried: bool,
    has_psk: bool,
    schedule: Option<Schedule>,
    /// The digest up to the own `Finished`, which the application secrets follow from.
    application: HashValue,
    /// The keys after the handshake, while the client's `Finished` is to come.
    client_handshake: HashValue,
    protocol: Option<u8>,
    can_resume: bool,
    now: Option<Now>,
}

impl<'b, 'c> Server<'b, 'c> {
    /// A connection over `buffer`, which both directions share, at the time `now`. Early data is
    /// taken only with a `guard` against its replay.
    ///
    /// # Errors
    /// [`Error::Configuration`] if there are no suites, no groups, or neither identities nor keys, or an identity
    /// has no certificate.
    pub fn new(
        buffer: &'b mut [u8],
        config: &'c ServerConfig<'c>,
        guard: Option<&'c EarlyDataGuard>,
        now: &Now,
    ) -> Result<Self, Error> {
        let is_nobody = config.identities.is_empty() && config.pre_shared_keys.is_empty();
        // A server shows one certificate at least (§4.4.2).
        let is_nobody = is_nobody || config.identities.iter().any(|it| it.chain.is_empty());
        if is_nobody || config.suites.is_empty() || config.groups.is_empty() {
            return Err(Error::Configuration);
        }
        let deadline_ms = now.uptime_ms.saturating_add(config.handshake_ms_max);
        let handshake = ServerHandshake {
            config,
            guard,
            is_retried: false,
            has_psk: false,
            schedule: None,
            application: HashValue::EMPTY,
            client_handshake: HashValue::EMPTY,
            protocol: None,
            can_resume: false,
            now: Some(*now),
        };
        Ok(Self { core: Core::new(buffer, State::ClientHello, deadline_ms), handshake })
    }

    /// The application protocol that was agreed on.
    pub fn application_protocol(&self) -> Option<&'c [u8]> {
        self.handshake.agreed_protocol()
    }

    /// Whether the client had a ticket or a pre-shared key.
    pub fn is_resumed(&self) -> bool {
        self.handshake.has_psk
    }

    /// Sends a ticket, by which the client may come back, if it can use one and tickets are made.
    ///
    /// # Errors
    /// The connection is over or not connected yet, or the output leaves no room.
    pub fn send_ticket(&mut self, security: &mut impl Security, now: &Now) -> Result<(), Error> {
        let Self { core, handshake } = self;
        if !core.state.is_connected() || core.resumption.is_empty() {
            return Err(Error::Configuration);
        }
        let (Some(key), true) = (handshake.config.ticket_key, handshake.can_resume) else {
            return Ok(());
        };
        let suite = core.suite()?;
        let mut random = [0; 16];
        security.random(&mut random)?;
        let (age_add, nonce) = random.split_at(4);
        let age_add = u32::from_be_bytes([age_add[0], age_add[1], age_add[2], age_add[3]]);
        let nonce = &nonce[..8];
        let psk = expand_secret(suite.hash(), &core.resumption, b"resumption", nonce);
        let early_data = handshake.early_data_bytes();
        let early_scope = if early_data == 0 { EarlyScope::NONE } else { handshake.early_scope() };
        let made_ms = now.uptime_ms;
        let content = TicketContent { suite, key: psk, age_add, made_ms, early_scope };
        let mut ticket = [0; TICKET_BYTES];
        let length = key.seal(security, &content, &mut ticket)?;
        core.channel.emit(security, crate::record::ContentType::Handshake, |_, _, writer| {
            writer.u8(Message::NewSessionTicket as u8)?;
            writer
                .vector(3, |writer| {
                    writer.u32(TicketKey::LIFETIME_S)?;
                    writer.u32(age_add)?;
                    writer.vector(1, |writer| writer.bytes(nonce))?;
                    writer.vector(2, |writer| writer.bytes(&ticket[..length]))?;
                    writer.vector(2, |writer| {
                        if early_data == 0 {
                            return Ok(());
                        }
                        extension(writer, extension::EARLY_DATA, |writer| writer.u32(early_data))
                    })
                })
                .map_err(|full: Full| full.into())
        })
    }
}

impl Handshake for ServerHandshake<'_> {
    fn start(&mut self, _: &mut Core<'_>, _: &mut impl Security) -> Result<(), Error> {
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
            Message::ClientHello => self.client_hello(core, security, total),
            Message::EndOfEarlyData => {
                if total != 4 {
                    return Err(Misbehaviour::Malformed.into());
                }
                core.take_in(total);
                core.takes_early_data = false;
                core.channel.read_with(traffic_keys(core.suite()?, &self.client_handshake))?;
                core.state = State::ClientFinished;
                Ok(())
            }
            Message::CertificateVerify => {
                core.check_certificate_verify(security, Purpose::Client, total)?;
                core.state = State::ClientFinished;
                Ok(())
            }
            Message::Finished => self.client_finished(core, total),
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
        let trust = self.config.client_trust.ok_or(Misbehaviour::Unexpected)?;
        if reading == Reading::Entry {
            return core.judge_certificate(security, &trust, Purpose::Client, None, now);
        }
        if core.certificates.is_empty() {
            if self.config.client_must_prove {
                return Err(Misbehaviour::NoCertificate.into());
            }
            core.finish_without_certificates();
            core.state = State::ClientFinished;
            return Ok(());
        }
        core.finish_certificates()?;
        core.state = State::ClientCertificateVerify;
        Ok(())
    }
}

impl<'c> ServerHandshake<'c> {
    fn early_data_bytes(&self) -> u32 {
        if self.guard.is_some() { self.config.early_data_bytes_max } else { 0 }
    }

    fn agreed_protocol(&self) -> Option<&'c [u8]> {
        self.protocol.map(|index| self.config.application_protocols[usize::from(index)])
    }

    /// The connections like this one, as far as early data must be of one.
    fn early_scope(&self) -> EarlyScope {
        EarlyScope::of(self.agreed_protocol())
    }

    fn client_hello(
        &mut self,
        core: &mut Core<'_>,
        security: &mut impl Security,
        total: usize,
    ) -> Result<(), Error> {
        // `change_cipher_spec` is dropped from here to the client's `Finished` (§5).
        core.channel.in_handshake = true;
        let message = &core.channel.opened()[..total];
        let mut hello = ClientHello::parse(message)?;
        let choice = self.choose(core, security, &mut hello, message)?;
        let hash = choice.suite.hash();
        let session = HashValue::from_slice(hello.session);
        #[cfg(feature = "keylog")]
        if let Some(random) = message[6..].first_chunk() {
            core.key_log.set_random(random);
        }
        let groups = hello.numbers(extension::SUPPORTED_GROUPS)?;
        let shares = hello.numbers(extension::KEY_SHARE)?;
        let shared = self.find_share(security, groups, shares)?;
        let Some((group, share)) = shared else {
            let group = self.retry_group(security, groups)?;
            return self.retry(core, security, total, &choice, &session, group);
        };
        core.suite = Some(choice.suite);
        core.group = Some(group);
        let identity = self.choose_identity(&choice, &mut hello)?;
        let is_raw_key = identity.is_some() && self.wants_raw_key(&mut hello, identity)?;
        let share_start = share.as_ptr() as usize - message.as_ptr() as usize;
        let share = share_start..share_start + share.len();

        core.channel.skippable = 0;
        if choice.offers_early_data && !choice.takes_early_data {
            core.channel.skippable = SKIPPABLE_BYTES_MAX;
        }
        let early = Schedule::early(hash, choice.psk.as_ref().map(|psk| &*psk.key));
        core.transcript.choose(hash);
        core.transcript.update(&core.channel.opened()[..total]);
        let early_secret = early.derive(b"c e traffic", &core.transcript.digest(hash));
        let mut random = [0; 32];
        security.random(&mut random)?;
        let agreed = send_server_hello(core, security, &choice, &session, &random, group, share)?;
        core.channel.consume(total);
        self.send_change_cipher_spec(core, security, &session)?;
        let schedule = early.handshake(Some(&agreed));
        core.handshake_secrets(&schedule)?;
        core.write_with_own_secret()?;
        self.has_psk = choice.psk.is_some();
        self.send_flight(core, security, &choice, identity, is_raw_key)?;
        let schedule = schedule.master();
        self.application = core.transcript_digest()?;
        self.client_handshake = core.peer_secret.clone();
        if choice.takes_early_data {
            #[cfg(feature = "keylog")]
            core.key_log.keep_early(&early_secret);
            core.channel.read_with(traffic_keys(choice.suite, &early_secret))?;
            core.takes_early_data = true;
            core.early_data_left = self.early_data_bytes() as usize;
            core.state = State::EndOfEarlyData;
        } else {
            core.read_with_peer_secret()?;
            core.state = if self.config.client_trust.is_some() && !self.has_psk {
                State::ClientCertificate
            } else {
                State::ClientFinished
            };
        }
        // Records from now on are protected by the last keys of all.
        let own = schedule.derive(b"s ap traffic", &self.application);
        core.channel.writing = Some(traffic_keys(choice.suite, &own));
        self.schedule = Some(schedule);
        Ok(())
    }

    /// Asks for a key in `group` (§4.1.4).
    fn retry(
        &mut self,
        core: &mut Core<'_>,
        security: &mut impl Security,
        total: usize,
        choice: &Choice,
        session: &HashValue,
        group: Group,
    ) -> Result<(), Error> {
        if core::mem::replace(&mut self.is_retried, true) {
            return Err(Misbehaviour::IllegalParameter.into());
        }
        // The client's second message answers what isn't sent yet.
        if core.channel.opened().len() > total {
            return Err(Misbehaviour::Unexpected.into());
        }
        core.suite = Some(choice.suite);
        core.transcript.choose(choice.suite.hash());
        core.take_in(total);
        core.transcript.restart();
        core.send_message(security, Message::ServerHello, |_, writer| {
            write_server_hello(writer, choice.suite, session, &RETRY_RANDOM, |writer| {
                extension(writer, extension::KEY_SHARE, |writer| {
                    Ok::<_, Error>(writer.u16(group_number(group))?)
                })
            })
        })?;
        if choice.offers_early_data {
            core.channel.skippable = SKIPPABLE_BYTES_MAX;
        }
        self.send_change_cipher_spec(core, security, session)
    }

    /// Once, where the client's session id asks for it (§D.4).
    fn send_change_cipher_spec(
        &self,
        core: &mut Core<'_>,
        security: &mut impl Security,
        session: &HashValue,
    ) -> Result<(), Error> {
        let is_sent = self.is_retried && core.group.is_some();
        if session.is_empty() || is_sent {
            return Ok(());
        }
        core.send_change_cipher_spec(security)
    }

    /// `EncryptedExtensions` up to `Finished`.
    fn send_flight(
        &self,
        core: &mut Core<'_>,
        security: &mut impl Security,
        choice: &Choice,
        identity: Option<&Identity<'_>>,
        is_raw_key: bool,
    ) -> Result<(), Error> {
        let room = core.channel.comfortable_limit();
        // They hold for all records under keys that this handshake makes (RFC 8449 §4).
        if let Some(limit) = choice.limit {
            core.channel.peer_limit = limit;
            core.channel.own_limit = usize::from(limit_of(room));
        } else if let Some(code) = choice.fragment {
            core.channel.peer_limit = fragment_bytes(code) + 1;
            core.channel.own_limit = core.channel.peer_limit;
        }
        core.send_message(security, Message::EncryptedExtensions, |_, writer| {
            writer.vector(2, |writer| self.write_extensions(writer, choice, is_raw_key, room))
        })?;
        if let Some(identity) = identity {
            if self.config.client_trust.is_some() {
                core.send_message(security, Message::CertificateRequest, |security, writer| {
                    writer.u8(0)?;
                    writer
                        .vector(2, |writer| {
                            extension(writer, extension::SIGNATURE_ALGORITHMS, |writer| {
                                writer.vector(2, |writer| {
                                    let mut schemes = offered_schemes(security);
                                    schemes.try_for_each(|number| writer.u16(number))
                                })
                            })
                        })
                        .map_err(|full: Full| full.into())
                })?;
            }
            core.send_certificates(security, Some(identity))?;
            core.send_certificate_verify(security, Purpose::Server, identity)?;
        }
        core.send_finished(security)
    }

    fn write_extensions(
        &self,
        writer: &mut Writer<'_>,
        choice: &Choice,
        is_raw_key: bool,
        room: usize,
    ) -> Result<(), Error> {
        if choice.names_server && choice.psk.is_none() {
            extension(writer, extension::SERVER_NAME, |_| Ok::<_, Full>(()))?;
        }
        if let Some(protocol) = self.agreed_protocol() {
            extension(writer, extension::APPLICATION_PROTOCOLS, |writer| {
                writer.vector(2, |writer| writer.vector(1, |writer| writer.bytes(protocol)))
            })?;
        }
        if choice.limit.is_some() {
            extension(writer, extension::RECORD_SIZE_LIMIT, |writer| writer.u16(limit_of(room)))?;
        } else if let Some(code) = choice.fragment {
            extension(writer, extension::MAX_FRAGMENT_LENGTH, |writer| writer.u8(code))?;
        }
        if is_raw_key {
            extension(writer, extension::SERVER_CERTIFICATE_TYPE, |writer| writer.u8(2))?;
        }
        if choice.takes_early_data {
            extension(writer, extension::EARLY_DATA, |_| Ok::<_, Full>(()))?;
        }
        Ok(())
    }

    fn client_finished(&mut self, core: &mut Core<'_>, total: usize) -> Result<(), Error> {
        // A secret that is moved leaves its bytes behind.
        let schedule = self.schedule.clone().ok_or(Misbehaviour::Unexpected)?;
        self.schedule = None;
        core.check_finished(&self.client_handshake, total)?;
        core.take_in(total);
        let digest = core.transcript_digest()?;
        core.resumption = schedule.derive(b"res master", &digest);
        core.application_secrets(&schedule, &self.application)?;
        core.read_with_peer_secret()?;
        self.client_handshake = HashValue::EMPTY;
        core.channel.skippable = 0;
        core.state = State::ServerConnected;
        Ok(())
    }
}

/// How many bytes of refused early data are skipped: as much as one flight on a fast path.
const SKIPPABLE_BYTES_MAX: usize = PLAINTEXT_BYTES_MAX * 2;

fn write_server_hello(
    writer: &mut Writer<'_>,
    suite: Suite,
    session: &[u8],
    random: &[u8; 32],
    more: impl FnOnce(&mut Writer<'_>) -> Result<(), Error>,
) -> Result<(), Error> {
    writer.u16(0x0303)?;
    writer.bytes(random)?;
    writer.vector(1, |writer| writer.bytes(session))?;
    writer.u16(suite.number())?;
    writer.u8(0)?;
    writer.vector(2, |writer| {
        extension(writer, extension::SUPPORTED_VERSIONS, |writer| writer.u16(0x0304))?;
        more(writer)
    })
}

/// Answers the share that lies at `share` in what was opened.
fn send_server_hello(
    core: &mut Core<'_>,
    security: &mut impl Security,
    choice: &Choice,
    session: &[u8],
    random: &[u8; 32],
    group: Group,
    share: core::ops::Range<usize>,
) -> Result<AgreedSecret, Error> {
    let Core { channel, transcript, .. } = core;
    let content = crate::record::ContentType::Handshake;
    channel.emit(security, content, |security, opened, writer| {
        let mut agreed = None;
        writer.u8(Message::ServerHello as u8)?;
        writer.vector(3, |writer| {
            write_server_hello(writer, choice.suite, session, random, |writer| {
                extension(writer, extension::KEY_SHARE, |writer| {
                    writer.u16(group_number(group))?;
                    writer.vector(2, |writer| {
                        writer.fill(|room| {
                            let peer = &opened[share];
                            let (length, secret) = security.answer_agreement(group, peer, room)?;
                            agreed = Some(secret);
                            Ok::<_, Error>(length)
                        })
                    })
                })?;
                let Some(psk) = &choice.psk else { return Ok(()) };
                let write = |writer: &mut Writer<'_>| writer.u16(psk.index);
                Ok(extension(writer, extension::PRE_SHARED_KEY, write)?)
            })
        })?;
        transcript.update(writer.written());
        agreed.ok_or(Error::Configuration)
    })
}

#[cfg(test)]
#[path = "server_tests.rs"]
mod tests;
