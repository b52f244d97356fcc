//! A connection in the memory that the caller lent, with all that it borrows.
//!
//! Invariants:
//! - A connection borrows the configuration beside it, which borrows the lists beside that. They are
//!   written once, in this order, and only shared from then on: nobody makes a reference to the whole.
//! - Where something can't be used, nothing stays in the memory.

use core::net::IpAddr;

use tenure_crypto::{Group, Software};
use tenure_hal::{Entropy, EntropyError};
use tenure_tls::x509::{Anchor, ServerName, UnixTime, parse_private_key};
use tenure_tls::{
    Client, ClientConfig, Error, ExternalKey, Identity, Now, PreSharedKey, Server, ServerConfig,
    Suite, TicketKey, Trust,
};

use crate::objects::{self, is_object};
use crate::types::{
    TenureTlsBytes, TenureTlsClientConfig, TenureTlsIdentity, TenureTlsKey, TenureTlsList,
    TenureTlsNow, TenureTlsRandom, TenureTlsServerConfig, TenureTlsTicket,
};
use crate::{TENURE_TLS_LIST_MAX, TenureTlsResult};

/// In the order in which a small processor likes them.
const GROUPS: &[Group] = &[
    Group::X25519,
    #[cfg(feature = "p256")]
    Group::Secp256r1,
    #[cfg(feature = "p384")]
    Group::Secp384r1,
    #[cfg(feature = "mlkem")]
    Group::X25519MlKem768,
];

/// A connection. It lives in memory of the caller's.
pub struct TenureTls {
    lists: Lists,
    identity: Option<Identity<'static>>,
    external: Option<ExternalKey<'static>>,
    config: Config,
    pub(crate) security: Software<Source>,
    pub(crate) end: End,
    pub(crate) error: Option<Error>,
}

/// The two kinds of connections.
#[allow(clippy::large_enum_variant, reason = "there is one, and no heap to put it on")]
pub(crate) enum End {
    Client(Client<'static, 'static>),
    Server(Server<'static, 'static>),
}

#[allow(clippy::large_enum_variant, reason = "there is one, and no heap to put it on")]
enum Config {
    Client(ClientConfig<'static>),
    Server(ServerConfig<'static>),
}

/// The caller's lists in the form that a configuration borrows.
struct Lists {
    anchors: List<Anchor<'static>>,
    keys: List<&'static [u8]>,
    protocols: List<&'static [u8]>,
    chain: List<&'static [u8]>,
    ticket: Option<TenureTlsTicket>,
    ticket_key: Option<TicketKey>,
}

struct List<T> {
    items: [T; TENURE_TLS_LIST_MAX],
    count: usize,
}

impl<T> List<T> {
    fn as_slice(&self) -> &[T] {
        self.items.get(..self.count).unwrap_or_default()
    }
}

/// The caller's function for random bytes.
pub(crate) struct Source(TenureTlsRandom);

impl Entropy for Source {
    fn fill(&mut self, bytes: &mut [u8]) -> Result<(), EntropyError> {
        let fill = self.0.fill.ok_or(EntropyError)?;
        // SAFETY: whoever made the configuration promised that the function takes these arguments.
        let is_filled = unsafe { fill(self.0.context, bytes.as_mut_ptr(), bytes.len()) };
        if is_filled { Ok(()) } else { Err(EntropyError) }
    }
}

impl TenureTls {
    /// Writes a client to `place`.
    ///
    /// # Safety
    /// `place` may be written, and `config` points to what it says, for as long as the connection lives.
    pub(crate) unsafe fn write_client(
        place: *mut Self,
        buffer: &'static mut [u8],
        config: &TenureTlsClientConfig,
        now: &Now,
    ) -> Result<(), TenureTlsResult> {
        // SAFETY: as the caller promises; each field is written before it is borrowed, and only shared then.
        unsafe {
            let lists = Lists {
                anchors: anchors_of(&config.authorities)?,
                keys: list_of(&config.pinned_keys)?,
                protocols: list_of(&config.protocols)?,
                chain: list_of(&config.identity.chain)?,
                ticket: config.ticket.as_ref().copied(),
                ticket_key: None,
            };
            let lists = stay(&raw mut (*place).lists, lists);
            let external = external_of(&config.external_key)?;
            let ticket = match &lists.ticket {
                Some(ticket) => Some(pre_shared_key_of(ticket, config.ticket_age_ms)?),
                None => external.map(pre_shared_key_of_external),
            };
            let config = Config::Client(ClientConfig {
                server_name: server_name_of(&config.server_name)?,
                trust: trust_in(lists),
                suites: Suite::ALL,
                groups: GROUPS,
                application_protocols: lists.protocols.as_slice(),
                identity: identity_of(&config.identity, lists)?,
                pre_shared_key: ticket,
                early_data: config.early_data,
                handshake_ms_max: config.handshake_ms_max.into(),
            });
            let Config::Client(config) = stay(&raw mut (*place).config, config) else {
                return Err(TenureTlsResult::Configuration);
            };
            let client = Client::new(buffer, config, now);
            let client = client.map_err(|_| TenureTlsResult::Configuration)?;
            (&raw mut (*place).end).write(End::Client(client));
        }
        Ok(())
    }

    /// Writes a server to `place`.
    ///
    /// # Safety
    /// As [`Self::write_client`].
    pub(crate) unsafe fn write_server(
        place: *mut Self,
        buffer: &'static mut [u8],
        config: &TenureTlsServerConfig,
        now: &Now,
    ) -> Result<(), TenureTlsResult> {
        // SAFETY: as in `write_client`.
        unsafe {
            let ticket_key = config.ticket_key.cast::<[u8; 32]>().as_ref();
            let lists = Lists {
                anchors: anchors_of(&config.client_authorities)?,
                keys: list_of(&config.client_keys)?,
                protocols: list_of(&config.protocols)?,
                chain: list_of(&config.identity.chain)?,
                ticket: None,
                ticket_key: ticket_key.map(TicketKey::from_bytes),
            };
            let lists = stay(&raw mut (*place).lists, lists);
            let identity = identity_of(&config.identity, lists)?;
            let external = external_of(&config.external_key)?;
            let asks_clients = lists.anchors.count + lists.keys.count > 0;
            let config = Config::Server(ServerConfig {
                identities: stay(&raw mut (*place).identity, identity).as_slice(),
                suites: Suite::ALL,
                groups: GROUPS,
                application_protocols: lists.protocols.as_slice(),
                client_trust: asks_clients.then(|| trust_in(lists)),
                client_must_prove: config.client_must_prove,
                pre_shared_keys: stay(&raw mut (*place).external, external).as_slice(),
                ticket_key: lists.ticket_key.as_ref(),
                early_data_bytes_max: 0,
                handshake_ms_max: config.handshake_ms_max.into(),
            });
            let Config::Server(config) = stay(&raw mut (*place).config, config) else {
                return Err(TenureTlsResult::Configuration);
            };
            let server = Server::new(buffer, config, None, now);
            let server = server.map_err(|_| TenureTlsResult::Configuration)?;
            (&raw mut (*place).end).write(End::Server(server));
        }
        Ok(())
    }

    /// Writes what a connection of either kind has besides.
    ///
    /// # Safety
    /// `place` may be written.
    pub(crate) unsafe fn write_rest(place: *mut Self, random: TenureTlsRandom) {
        // SAFETY: as the caller promises.
        unsafe {
            (&raw mut (*place).security).write(Software::new(Source(random)));
            (&raw mut (*place).error).write(None);
        }
    }
}

/// Writes `value` to `place`, where it is only read from then on.
///
/// # Safety
/// `place` may be written, and isn't written again while the reference is used.
unsafe fn stay<T>(place: *mut T, value: T) -> &'static T {
    // SAFETY: as the caller promises.
    unsafe {
        place.write(value);
        &*place
    }
}

/// The caller's bytes.
///
/// # Safety
/// They are valid for as long as the connection lives.
unsafe fn bytes_of(bytes: &TenureTlsBytes) -> Result<&'static [u8], TenureTlsResult> {
    if !is_object(bytes.bytes, bytes.len) {
        return Err(TenureTlsResult::BadArgument);
    }
    // SAFETY: as the caller promises.
    Ok(unsafe { objects::bytes(bytes.bytes, bytes.len) })
}

/// # Safety
/// The list is valid now, and its bytes for as long as the connection lives.
unsafe fn list_of(list: &TenureTlsList) -> Result<List<&'static [u8]>, TenureTlsResult> {
    let mut into: List<&'static [u8]> =
        List { items: [&[]; TENURE_TLS_LIST_MAX], count: list.count };
    if list.count > TENURE_TLS_LIST_MAX || (list.items.is_null() && list.count > 0) {
        return Err(TenureTlsResult::BadArgument);
    }
    for (at, item) in into.items.iter_mut().take(list.count).enumerate() {
        // SAFETY: the list has `count` entries, as the caller promises.
        *item = unsafe { bytes_of(&*list.items.add(at))? };
    }
    Ok(into)
}

/// # Safety
/// As [`list_of`].
unsafe fn anchors_of(list: &TenureTlsList) -> Result<List<Anchor<'static>>, TenureTlsResult> {
    // SAFETY: as the caller promises.
    let certificates = unsafe { list_of(list)? };
    let nobody = Anchor { name: &[], key_info: &[], name_constraints: None };
    let mut anchors = List { items: [nobody; TENURE_TLS_LIST_MAX], count: certificates.count };
    for (anchor, der) in anchors.items.iter_mut().zip(certificates.as_slice()) {
        *anchor = Anchor::from_certificate(der).map_err(|_| TenureTlsResult::Configuration)?;
    }
    Ok(anchors)
}

/// Keys alone where there are no authorities; beside them, for the time without a date.
fn trust_in(lists: &'static Lists) -> Trust<'static> {
    match (lists.anchors.as_slice(), lists.keys.as_slice()) {
        ([], keys @ [_, ..]) => Trust::Keys(keys),
        (anchors, keys) => Trust::Anchors { anchors, without_date: keys },
    }
}

/// # Safety
/// As [`bytes_of`].
unsafe fn identity_of(
    identity: &TenureTlsIdentity,
    lists: &'static Lists,
) -> Result<Option<Identity<'static>>, TenureTlsResult> {
    // SAFETY: as the caller promises.
    let key = unsafe { bytes_of(&identity.private_key)? };
    let chain = lists.chain.as_slice();
    if chain.is_empty() && key.is_empty() {
        return Ok(None);
    }
    let key = parse_private_key(key).map_err(|_| TenureTlsResult::Configuration)?;
    if chain.is_empty() {
        Err(TenureTlsResult::Configuration)
    } else {
        Ok(Some(Identity { chain, key }))
    }
}

/// # Safety
/// As [`bytes_of`].
unsafe fn external_of(key: &TenureTlsKey) -> Result<Option<ExternalKey<'static>>, TenureTlsResult> {
    // SAFETY: as the caller promises.
    let (identity, key) = unsafe { (bytes_of(&key.identity)?, bytes_of(&key.key)?) };
    match (identity, key) {
        ([], []) => Ok(None),
        ([], _) | (_, []) => Err(TenureTlsResult::Configuration),
        _ => Ok(Some(ExternalKey { identity, key })),
    }
}

fn pre_shared_key_of_external(external: ExternalKey<'static>) -> PreSharedKey<'static> {
    PreSharedKey {
        identity: external.identity,
        key: external.key,
        suite: Suite::ChaCha20Poly1305Sha256,
        is_external: true,
        obfuscated_age: 0,
        early_data_bytes_max: 0,
    }
}

/// # Safety
/// As [`bytes_of`].
unsafe fn pre_shared_key_of(
    ticket: &'static TenureTlsTicket,
    age_ms: u32,
) -> Result<PreSharedKey<'static>, TenureTlsResult> {
    Ok(PreSharedKey {
        // SAFETY: as the caller promises.
        identity: unsafe { bytes_of(&ticket.identity)? },
        key: ticket.key.get(..ticket.key_len).ok_or(TenureTlsResult::BadArgument)?,
        suite: Suite::from_number(ticket.suite).ok_or(TenureTlsResult::Configuration)?,
        is_external: false,
        obfuscated_age: age_ms.wrapping_add(ticket.age_add),
        early_data_bytes_max: ticket.early_data_bytes_max,
    })
}

/// # Safety
/// As [`bytes_of`].
unsafe fn server_name_of(name: &TenureTlsBytes) -> Result<ServerName<'static>, TenureTlsResult> {
    // SAFETY: as the caller promises.
    let name = unsafe { bytes_of(name)? };
    let name = core::str::from_utf8(name).map_err(|_| TenureTlsResult::Configuration)?;
    Ok(match name.parse() {
        Ok(IpAddr::V4(address)) => ServerName::Ipv4(address.octets()),
        Ok(IpAddr::V6(address)) => ServerName::Ipv6(address.octets()),
        Err(_) => ServerName::Dns(name),
    })
}

/// The caller's time.
pub(crate) fn now_of(now: &TenureTlsNow) -> Now {
    let date = now.has_date.then_some(UnixTime(now.date_s));
    Now { uptime_ms: now.uptime_ms, date }
}

/// Why a connection ended, as C sees it.
pub(crate) fn result_of(error: Error) -> TenureTlsResult {
    match error {
        Error::Peer(_) => TenureTlsResult::Peer,
        Error::Certificate(_) => TenureTlsResult::Certificate,
        Error::Alerted(_) => TenureTlsResult::Alerted,
        Error::Truncated => TenureTlsResult::Truncated,
        Error::Deadline => TenureTlsResult::Deadline,
        Error::BufferTooSmall => TenureTlsResult::BufferTooSmall,
        Error::Configuration => TenureTlsResult::Configuration,
        Error::Security(_) => TenureTlsResult::Security,
    }
}
