//! The server's side of the handshake (RFC 8446 §4).

use tenure_crypto::{AgreedSecret, Group, HashAlgorithm, HashValue, Security};

use crate::certificates::{Identity, Reading, Trust};
use crate::client::binder_of;
use crate::connection::{Connection, Core, Handshake, Now};
use crate::error::{Error, Misbehaviour};
use crate::hello::{
    Extensions, RETRY_RANDOM, check_server_name, extension, fragment_bytes, limit_of, read_limit,
};
use crate::record::PLAINTEXT_BYTES_MAX;
use crate::schedule::{Schedule, expand_secret, traffic_keys};
use crate::state::{Message, State};
use crate::suite::{Suite, group_from_number, group_number, offered_schemes, scheme_number};
use crate::tickets::{EarlyDataGuard, TICKET_BYTES, TicketContent, TicketKey};
use crate::wire::{Full, Reader, Writer};
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
    /// What tickets are sealed with; no tickets, if there is none.
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
    /// [`Error::Configuration`] if there are no suites, no groups, or neither identities nor keys.
    pub fn new(
        buffer: &'b mut [u8],
        config: &'c ServerConfig<'c>,
        guard: Option<&'c EarlyDataGuard>,
        now: &Now,
    ) -> Result<Self, Error> {
        let is_nobody = config.identities.is_empty() && config.pre_shared_keys.is_empty();
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
        let protocols = self.handshake.config.application_protocols;
        self.handshake.protocol.map(|index| protocols[usize::from(index)])
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
        let content = TicketContent { suite, key: psk, age_add, made_ms: now.uptime_ms };
        let mut ticket = [0; TICKET_BYTES];
        let length = key.seal(security, &content, &mut ticket)?;
        let early_data = handshake.early_data_bytes();
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

/// What a `ClientHello` says that the answer needs.
struct ClientHello<'a> {
    session: &'a [u8],
    suites: Reader<'a>,
    extensions: Extensions<'a>,
}

/// The choice from it.
struct Choice {
    suite: Suite,
    psk: Option<ChosenKey>,
    takes_early_data: bool,
    offers_early_data: bool,
    fragment: Option<u8>,
    limit: Option<usize>,
    names_server: bool,
}

struct ChosenKey {
    index: u16,
    key: HashValue,
}

impl<'a> ClientHello<'a> {
    fn parse(message: &'a [u8]) -> Result<Self, Error> {
        let mut body = Reader::new(&message[4..]);
        let version = body.u16()?;
        body.take(32)?;
        let session = body.vector8()?.rest();
        let suites = body.vector16()?;
        let compressions = body.vector8()?.rest();
        let mut extensions = Extensions::parse_or_none(&mut body)?;
        body.finish()?;
        let versions = extensions.take(extension::SUPPORTED_VERSIONS);
        let Some(mut versions) = versions else { return Err(Misbehaviour::OldVersion.into()) };
        if !contains_number(versions.vector8()?, 0x0304)? {
            return Err(Misbehaviour::OldVersion.into());
        }
        // No cookie was sent that the client could repeat (§4.2.2).
        if extensions.take(extension::COOKIE).is_some() {
            return Err(Misbehaviour::IllegalParameter.into());
        }
        if version != 0x0303 || compressions != [0] || session.len() > 32 {
            return Err(Misbehaviour::IllegalParameter.into());
        }
        Ok(Self { session, suites, extensions })
    }

    /// The list of 16-bit numbers in the extension with `number`.
    fn numbers(&mut self, number: u16) -> Result<Reader<'a>, Error> {
        let mut content = self.extensions.take(number).ok_or(Misbehaviour::MissingExtension)?;
        let list = content.vector16()?;
        content.finish()?;
        Ok(list)
    }
}

fn contains_number(mut list: Reader<'_>, number: u16) -> Result<bool, Error> {
    let mut found = false;
    while !list.is_empty() {
        found |= list.u16()? == number;
    }
    Ok(found)
}

impl<'c> ServerHandshake<'c> {
    fn early_data_bytes(&self) -> u32 {
        if self.guard.is_some() { self.config.early_data_bytes_max } else { 0 }
    }

    fn client_hello(
        &mut self,
        core: &mut Core<'_>,
        security: &mut impl Security,
        total: usize,
    ) -> Result<(), Error> {
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
        // What is sent from now on is protected by the last keys of all.
        let own = schedule.derive(b"s ap traffic", &self.application);
        core.channel.writing = Some(traffic_keys(choice.suite, &own));
        self.schedule = Some(schedule);
        Ok(())
    }

    /// Chooses suite, pre-shared key, protocol and limits.
    fn choose(
        &mut self,
        core: &Core<'_>,
        security: &mut impl Security,
        hello: &mut ClientHello<'_>,
        message: &[u8],
    ) -> Result<Choice, Error> {
        let mut suite = None;
        for own in self.config.suites {
            if contains_number(hello.suites, own.number())? && security.has_aead(own.aead()) {
                suite = Some(*own);
                break;
            }
        }
        let suite = suite.ok_or(Misbehaviour::NothingInCommon)?;
        // The second message keeps to what the first was answered with (§4.1.2).
        if core.suite.is_some_and(|earlier| earlier != suite) {
            return Err(Misbehaviour::IllegalParameter.into());
        }
        self.choose_protocol(hello)?;
        let (psk, is_fresh) = self.choose_psk(core, security, suite, hello, message)?;
        let offers_early_data = hello.extensions.take(extension::EARLY_DATA).is_some();
        if offers_early_data && self.is_retried {
            return Err(Misbehaviour::IllegalParameter.into());
        }
        let is_first = psk.as_ref().is_some_and(|psk| psk.index == 0);
        let takes_early_data = offers_early_data
            && is_first
            && self.early_data_bytes() > 0
            && is_fresh
            && psk.as_ref().is_some_and(|psk| self.guard.is_some_and(|it| it.admit(&psk.key)));
        let limit = hello.extensions.take(extension::RECORD_SIZE_LIMIT).map(read_limit);
        let fragment = match hello.extensions.take(extension::MAX_FRAGMENT_LENGTH) {
            Some(mut code) => {
                let number = code.u8()?;
                code.finish()?;
                if !(1..=4).contains(&number) {
                    return Err(Misbehaviour::IllegalParameter.into());
                }
                Some(number)
            }
            None => None,
        };
        let limit = limit.transpose()?;
        let name = hello.extensions.take(extension::SERVER_NAME);
        let names_server = name.is_some();
        name.map_or(Ok(()), check_server_name)?;
        Ok(Choice {
            suite,
            psk,
            takes_early_data,
            offers_early_data,
            fragment: fragment.filter(|_| limit.is_none()),
            limit,
            names_server,
        })
    }

    fn choose_protocol(&mut self, hello: &mut ClientHello<'_>) -> Result<(), Error> {
        let own = self.config.application_protocols;
        let Some(mut offered) = hello.extensions.take(extension::APPLICATION_PROTOCOLS) else {
            return Ok(());
        };
        let list = offered.vector16()?;
        offered.finish()?;
        if own.is_empty() {
            return Ok(());
        }
        self.protocol = None;
        let mut rest = list;
        while !rest.is_empty() {
            let protocol = rest.vector8()?.rest();
            let index = own.iter().position(|it| *it == protocol).map(|index| index as u8);
            self.protocol = match (self.protocol, index) {
                (Some(best), Some(index)) => Some(best.min(index)),
                (best, index) => best.or(index),
            };
        }
        if self.protocol.is_none() {
            return Err(Misbehaviour::NoApplicationProtocol.into());
        }
        Ok(())
    }

    /// The first pre-shared key that is known and good for `suite`, and whether it is a ticket whose
    /// age agrees with what the client says (§8.3).
    fn choose_psk(
        &mut self,
        core: &Core<'_>,
        security: &mut impl Security,
        suite: Suite,
        hello: &mut ClientHello<'_>,
        message: &[u8],
    ) -> Result<(Option<ChosenKey>, bool), Error> {
        let modes = hello.extensions.take(extension::PSK_KEY_EXCHANGE_MODES);
        let with_agreement = match modes {
            Some(mut modes) => {
                let list = modes.vector8()?.rest();
                modes.finish()?;
                list.contains(&1)
            }
            None => false,
        };
        self.can_resume = with_agreement;
        let Some(offered) = hello.extensions.take(extension::PRE_SHARED_KEY) else {
            return Ok((None, false));
        };
        // §4.2.11: it is the last, and modes go with it.
        if hello.extensions.last() != Some(extension::PRE_SHARED_KEY) {
            return Err(Misbehaviour::IllegalParameter.into());
        }
        if modes.is_none() {
            return Err(Misbehaviour::MissingExtension.into());
        }
        let mut offered = offered;
        let mut identities = offered.vector16()?;
        let binders_bytes = offered.rest().len();
        let mut fields = Reader::new(offered.rest());
        let mut binders = fields.vector16()?;
        fields.finish()?;
        let mut found = None;
        let mut index = 0;
        while !identities.is_empty() {
            let identity = identities.vector16()?.rest();
            let age = identities.u32()?;
            let binder = binders.vector8()?.rest();
            if found.is_none()
                && with_agreement
                && let Some(key) = self.find_key(security, identity, suite, age)?
            {
                found = Some((index, key, binder));
            }
            index += 1;
        }
        binders.finish()?;
        let Some((index, (key, is_external, is_fresh), binder)) = found else {
            return Ok((None, false));
        };
        let mut transcript = core.transcript.clone();
        transcript.update(&message[..message.len() - binders_bytes]);
        let hash = suite.hash();
        let expected = binder_of(hash, &key, is_external, &transcript.digest(hash));
        if !tenure_crypto::equal(&expected, binder) {
            return Err(Misbehaviour::BadProof.into());
        }
        Ok((Some(ChosenKey { index, key }), is_fresh))
    }

    /// The key that `identity` stands for, whether it is external, and whether `age` is right.
    fn find_key(
        &self,
        security: &mut impl Security,
        identity: &[u8],
        suite: Suite,
        age: u32,
    ) -> Result<Option<(HashValue, bool, bool)>, Error> {
        let external = self.config.pre_shared_keys.iter().find(|it| it.identity == identity);
        if let Some(external) = external {
            let is_usable =
                suite.hash() == HashAlgorithm::Sha256 && external.key.len() <= KEY_BYTES_MAX;
            let key = is_usable.then(|| HashValue::from_slice(external.key));
            return Ok(key.map(|key| (key, true, false)));
        }
        let (Some(tickets), Some(now)) = (self.config.ticket_key, &self.now) else {
            return Ok(None);
        };
        let content = match tickets.open(security, identity) {
            Some(content) if content.suite.hash() == suite.hash() => content,
            _ => return Ok(None),
        };
        let age_ms = now.uptime_ms.saturating_sub(content.made_ms);
        if age_ms > u64::from(TicketKey::LIFETIME_S) * 1000 {
            return Ok(None);
        }
        let claimed_ms = u64::from(age.wrapping_sub(content.age_add));
        let is_fresh = content.suite == suite && claimed_ms.abs_diff(age_ms) <= AGE_ERROR_MS_MAX;
        Ok(Some((content.key, false, is_fresh)))
    }

    /// The client's share in the best group of those that it made a key for.
    fn find_share<'a>(
        &self,
        security: &impl Security,
        groups: Reader<'_>,
        shares: Reader<'a>,
    ) -> Result<Option<(Group, &'a [u8])>, Error> {
        let mut best: Option<(usize, Group, &[u8])> = None;
        let mut rest = shares;
        while !rest.is_empty() {
            let number = rest.u16()?;
            let share = rest.vector16()?.rest();
            if !contains_number(groups, number)? {
                return Err(Misbehaviour::IllegalParameter.into());
            }
            let group = group_from_number(number).filter(|group| security.has_group(*group));
            let rank = self.config.groups.iter().position(|own| Some(*own) == group);
            if let (Some(rank), Some(group)) = (rank, group)
                && best.is_none_or(|(other, _, _)| rank < other)
            {
                best = Some((rank, group, share));
            }
        }
        Ok(best.map(|(_, group, share)| (group, share)))
    }

    /// The best group that both have.
    fn retry_group(&self, security: &impl Security, groups: Reader<'_>) -> Result<Group, Error> {
        for own in self.config.groups.iter().filter(|group| security.has_group(**group)) {
            if contains_number(groups, group_number(*own))? {
                return Ok(*own);
            }
        }
        Err(Misbehaviour::NothingInCommon.into())
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

    /// The first identity whose algorithm the client verifies; none with a pre-shared key.
    fn choose_identity(
        &self,
        choice: &Choice,
        hello: &mut ClientHello<'_>,
    ) -> Result<Option<&'c Identity<'c>>, Error> {
        if choice.psk.is_some() {
            return Ok(None);
        }
        let schemes = hello.numbers(extension::SIGNATURE_ALGORITHMS)?;
        for identity in self.config.identities {
            let scheme = identity.key.algorithm().and_then(scheme_number);
            if let Some(scheme) = scheme
                && contains_number(schemes, scheme)?
            {
                return Ok(Some(identity));
            }
        }
        Err(Misbehaviour::NothingInCommon.into())
    }

    /// Whether the own identity is a key alone, which the client must be able to take (RFC 7250).
    fn wants_raw_key(
        &self,
        hello: &mut ClientHello<'_>,
        identity: Option<&Identity<'_>>,
    ) -> Result<bool, Error> {
        let is_raw = identity.is_some_and(
            |it| matches!(it.chain, [key] if crate::x509::parse_public_key(key).is_ok()),
        );
        let offered = hello.extensions.take(extension::SERVER_CERTIFICATE_TYPE);
        let takes_raw = match offered {
            Some(mut types) => types.vector8()?.rest().contains(&2),
            None => false,
        };
        if is_raw && !takes_raw {
            return Err(Misbehaviour::NothingInCommon.into());
        }
        Ok(is_raw)
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
        core.send_message(security, Message::EncryptedExtensions, |_, writer| {
            writer.vector(2, |writer| self.write_extensions(writer, choice, is_raw_key, room))
        })?;
        // From here on both keep to what was agreed.
        if let Some(limit) = choice.limit {
            core.channel.peer_limit = limit;
            core.channel.own_limit = usize::from(limit_of(room));
        } else if let Some(code) = choice.fragment {
            core.channel.peer_limit = fragment_bytes(code) + 1;
            core.channel.own_limit = core.channel.peer_limit;
        }
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
        if let Some(index) = self.protocol {
            let protocol = self.config.application_protocols[usize::from(index)];
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
        let schedule = self.schedule.take().ok_or(Misbehaviour::Unexpected)?;
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

/// The longest external key, in bytes.
const KEY_BYTES_MAX: usize = 64;
/// How far the age of a ticket may be off for its early data to be taken, in milliseconds (§8.3).
const AGE_ERROR_MS_MAX: u64 = 10_000;
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
