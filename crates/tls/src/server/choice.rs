//! A `ClientHello`, and the choice that a server makes from it (RFC 8446 §4.1.1, §9.2).

use tenure_crypto::{Group, HashAlgorithm, HashValue, Security};

use super::ServerHandshake;
use crate::certificates::Identity;
use crate::client::binder_of;
use crate::connection::Core;
use crate::error::{Error, Misbehaviour};
use crate::hello::{Extensions, SSL, check_server_name, extension, read_limit};
use crate::suite::{Suite, group_from_number, group_number, scheme_number};
use crate::tickets::TicketKey;
use crate::wire::Reader;

/// The longest session id (§4.1.2), in bytes.
const SESSION_BYTES_MAX: usize = 32;
/// The longest external key, in bytes.
const KEY_BYTES_MAX: usize = 64;
/// The shortest binder (§4.2.11), in bytes.
const BINDER_BYTES_MIN: usize = 32;
/// How far the age of a ticket may be off for its early data to be taken, in milliseconds (§8.3).
const AGE_ERROR_MS_MAX: u64 = 10_000;

/// The part of a `ClientHello` that the answer needs.
pub(super) struct ClientHello<'a> {
    pub(super) session: &'a [u8],
    pub(super) suites: Reader<'a>,
    pub(super) extensions: Extensions<'a>,
}

/// The choice from it.
pub(super) struct Choice {
    pub(super) suite: Suite,
    pub(super) psk: Option<ChosenKey>,
    pub(super) takes_early_data: bool,
    pub(super) offers_early_data: bool,
    pub(super) fragment: Option<u8>,
    pub(super) limit: Option<usize>,
    pub(super) names_server: bool,
}

pub(super) struct ChosenKey {
    pub(super) index: u16,
    pub(super) key: HashValue,
}

impl<'a> ClientHello<'a> {
    pub(super) fn parse(message: &'a [u8]) -> Result<Self, Error> {
        let mut body = Reader::new(&message[4..]);
        let version = body.u16()?;
        body.take(32)?;
        let session = body.vector8()?.rest();
        if session.len() > SESSION_BYTES_MAX {
            return Err(Misbehaviour::Malformed.into());
        }
        let suites = body.vector16()?.some()?;
        let compressions = body.vector8()?.rest();
        let mut extensions = Extensions::parse_or_none(&mut body)?;
        body.finish()?;
        let versions = extensions.take(extension::SUPPORTED_VERSIONS);
        let Some(mut versions) = versions else { return Err(Misbehaviour::OldVersion.into()) };
        let list = versions.vector8()?.some()?;
        versions.finish()?;
        if !contains_number(list, 0x0304)? {
            return Err(Misbehaviour::OldVersion.into());
        }
        // The version stands in the extension alone (§4.2.1), but that of SSL is refused (§D.5).
        if version <= SSL {
            return Err(Misbehaviour::OldVersion.into());
        }
        // No cookie was sent that the client could repeat (§4.2.2).
        if extensions.take(extension::COOKIE).is_some() {
            return Err(Misbehaviour::IllegalParameter.into());
        }
        if compressions != [0] {
            return Err(Misbehaviour::IllegalParameter.into());
        }
        Ok(Self { session, suites, extensions })
    }

    /// The list of 16-bit numbers, or of key shares, in the extension with `number`. Key shares alone may be none
    /// (RFC 8446 §4.2.3, §4.2.7, §4.2.8).
    pub(super) fn numbers(&mut self, number: u16) -> Result<Reader<'a>, Error> {
        let mut content = self.extensions.take(number).ok_or(Misbehaviour::MissingExtension)?;
        let list = content.vector16()?;
        content.finish()?;
        if list.is_empty() && number != extension::KEY_SHARE {
            return Err(Misbehaviour::Malformed.into());
        }
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
    /// Chooses suite, pre-shared key, protocol and limits.
    pub(super) fn choose(
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
        let early_data = hello.extensions.take(extension::EARLY_DATA);
        let offers_early_data = early_data.is_some();
        early_data.map_or(Ok(()), Reader::finish)?;
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
        self.protocol = None;
        let mut rest = list;
        // Neither the list nor a name in it is empty (RFC 7301 §3.1).
        loop {
            let protocol = rest.vector8()?.rest();
            if protocol.is_empty() {
                return Err(Misbehaviour::Malformed.into());
            }
            let index = own.iter().position(|it| *it == protocol).map(|index| index as u8);
            self.protocol = match (self.protocol, index) {
                (Some(best), Some(index)) => Some(best.min(index)),
                (best, index) => best.or(index),
            };
            if rest.is_empty() {
                break;
            }
        }
        if self.protocol.is_none() && !own.is_empty() {
            return Err(Misbehaviour::NoApplicationProtocol.into());
        }
        Ok(())
    }

    /// The first pre-shared key that is known and good for `suite`, and whether early data may be taken with
    /// it: it is a ticket for that from a connection like this one (§4.2.10), whose age agrees with what the
    /// client says (§8.3).
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
                let list = modes.vector8()?.some()?.rest();
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
        let mut identities = offered.vector16()?.some()?;
        let binders_bytes = offered.rest().len();
        let mut fields = Reader::new(offered.rest());
        let mut binders = fields.vector16()?;
        fields.finish()?;
        let mut found = None;
        let mut index = 0;
        while !identities.is_empty() {
            let identity = identities.vector16()?.some()?.rest();
            let age = identities.u32()?;
            let binder = binders.vector8()?.rest();
            if binder.len() < BINDER_BYTES_MIN {
                return Err(Misbehaviour::Malformed.into());
            }
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

    /// The key that `identity` stands for, whether it is external, and whether early data may be taken with it.
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
        let is_fresh = content.suite == suite
            && content.early_scope == self.early_scope()
            && claimed_ms.abs_diff(age_ms) <= AGE_ERROR_MS_MAX;
        Ok(Some((content.key, false, is_fresh)))
    }

    /// The client's share in the best group of those that it made a key for.
    pub(super) fn find_share<'a>(
        &self,
        security: &impl Security,
        groups: Reader<'_>,
        shares: Reader<'a>,
    ) -> Result<Option<(Group, &'a [u8])>, Error> {
        let mut best: Option<(usize, Group, &[u8])> = None;
        let mut rest = shares;
        while !rest.is_empty() {
            let number = rest.u16()?;
            let share = rest.vector16()?.some()?.rest();
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
    pub(super) fn retry_group(
        &self,
        security: &impl Security,
        groups: Reader<'_>,
    ) -> Result<Group, Error> {
        for own in self.config.groups.iter().filter(|group| security.has_group(**group)) {
            if contains_number(groups, group_number(*own))? {
                return Ok(*own);
            }
        }
        Err(Misbehaviour::NothingInCommon.into())
    }

    /// The first identity whose algorithm the client verifies; none with a pre-shared key.
    pub(super) fn choose_identity(
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
    pub(super) fn wants_raw_key(
        &self,
        hello: &mut ClientHello<'_>,
        identity: Option<&Identity<'_>>,
    ) -> Result<bool, Error> {
        let is_raw = identity.is_some_and(Identity::is_raw_key);
        let offered = hello.extensions.take(extension::SERVER_CERTIFICATE_TYPE);
        let takes_raw = match offered {
            Some(mut types) => {
                let list = types.vector8()?.rest();
                types.finish()?;
                list.contains(&2)
            }
            None => false,
        };
        if is_raw && !takes_raw {
            return Err(Misbehaviour::NothingInCommon.into());
        }
        Ok(is_raw)
    }
}
