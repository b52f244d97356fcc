//! The structures that C programs pass in and out.

use core::ffi::c_void;

/// The result of a function.
#[repr(C)]
#[derive(Clone, Copy)]
pub enum TenureTlsResult {
    /// Done.
    Ok = 0,
    /// The caller passed a null pointer for something that has bytes, a length that no object can
    /// have, memory that is too small, not aligned or the buffer's, or more than a list takes.
    BadArgument = 1,
    /// A certificate, a key or a name of the caller's can't be used, or it isn't the time for this.
    Configuration = 2,
    /// The connection is over: the peer did what the protocol forbids.
    Peer = 3,
    /// The connection is over: the peer's certificates don't prove who it is.
    Certificate = 4,
    /// The connection is over: the peer ended it by an alert.
    Alerted = 5,
    /// The connection is over: the peer closed the transport without closing TLS.
    Truncated = 6,
    /// The connection is over: the peer did not finish in time.
    Deadline = 7,
    /// The connection is over: a record or a message doesn't fit the buffer.
    BufferTooSmall = 8,
    /// The connection is over: an own key or the randomness failed.
    Security = 9,
}

/// An event of a connection.
#[repr(C)]
#[derive(Clone, Copy)]
pub enum TenureTlsEvent {
    /// All that was received is handled; more input, or the next deadline, goes on.
    Idle = 0,
    /// A certificate of the peer lies in `tenure_tls_certificate` until the next poll, which judges it.
    Certificate = 1,
    /// The handshake is over, and data can be sent.
    Connected = 2,
    /// Data lies in `tenure_tls_data`.
    Data = 3,
    /// A ticket lies in `tenure_tls_ticket_of` until the next poll.
    Ticket = 4,
    /// The peer sends no more.
    PeerClosed = 5,
}

/// Bytes of the caller's. Null stands for none if `len` is 0.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct TenureTlsBytes {
    /// The first.
    pub bytes: *const u8,
    /// How many.
    pub len: usize,
}

/// A list of bytes; null stands for an empty one if `count` is 0.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct TenureTlsList {
    /// The first entry.
    pub items: *const TenureTlsBytes,
    /// How many, at most `TENURE_TLS_LIST_MAX`.
    pub count: usize,
}

/// A source of random bytes fit for keys.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct TenureTlsRandom {
    /// Fills `len` bytes and returns true, or returns false if there is no randomness.
    pub fill:
        Option<unsafe extern "C" fn(context: *mut c_void, bytes: *mut u8, len: usize) -> bool>,
    /// Its first argument.
    pub context: *mut c_void,
}

/// Own certificates and their key; all zero for none.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct TenureTlsIdentity {
    /// The certificates in DER, the own one first; or the own `SubjectPublicKeyInfo` alone (RFC 7250).
    pub chain: TenureTlsList,
    /// The key of the first: PKCS#8 or SEC 1, in DER.
    pub private_key: TenureTlsBytes,
}

/// A key that both ends were given, and its name; all zero for none.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct TenureTlsKey {
    /// The name.
    pub identity: TenureTlsBytes,
    /// The key, for SHA-256.
    pub key: TenureTlsBytes,
}

/// A server's ticket for a later connection. Whoever stores it stores a secret.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct TenureTlsTicket {
    /// The ticket itself. From `tenure_tls_ticket_of` it points into the buffer, until the next poll.
    pub identity: TenureTlsBytes,
    /// The key that goes with it.
    pub key: [u8; 64],
    /// How many bytes of `key` count.
    pub key_len: usize,
    /// The number of the suite that it is for.
    pub suite: u16,
    /// For how many seconds it is good.
    pub lifetime_s: u32,
    /// The number that is added to its age.
    pub age_add: u32,
    /// How many bytes of early data the server takes with it.
    pub early_data_bytes_max: u32,
}

/// The wishes of a client. What it points to must stay as it is until the connection is wiped; the
/// structure itself, its lists and the ticket's structure may go before.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct TenureTlsClientConfig {
    /// The server: a DNS name or an IP address, in ASCII.
    pub server_name: TenureTlsBytes,
    /// The certificates of authorities that are trusted, in DER.
    pub authorities: TenureTlsList,
    /// Keys (`SubjectPublicKeyInfo` in DER) that are trusted for themselves: if there are no authorities;
    /// beside authorities, only while the date isn't known.
    pub pinned_keys: TenureTlsList,
    /// The application protocols to offer, the best first.
    pub protocols: TenureTlsList,
    /// The certificates to show if the server asks who this is.
    pub identity: TenureTlsIdentity,
    /// A key that both ends were given.
    pub external_key: TenureTlsKey,
    /// A ticket of the server, or null. It goes before the external key.
    pub ticket: *const TenureTlsTicket,
    /// How old the ticket is.
    pub ticket_age_ms: u32,
    /// Whether data may be sent with the first message, which an attacker can replay.
    pub early_data: bool,
    /// The source of randomness.
    pub random: TenureTlsRandom,
    /// How long the handshake may take.
    pub handshake_ms_max: u32,
}

/// The offers of a server. What it points to must stay as it is until the connection is wiped; the
/// structure itself and its lists may go before.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct TenureTlsServerConfig {
    /// The certificates to show.
    pub identity: TenureTlsIdentity,
    /// A key that both ends were given.
    pub external_key: TenureTlsKey,
    /// The application protocols to take, the best first.
    pub protocols: TenureTlsList,
    /// The certificates of authorities for clients, which are asked for certificates if there are any.
    pub client_authorities: TenureTlsList,
    /// Keys of clients, as `pinned_keys` of a client's configuration.
    pub client_keys: TenureTlsList,
    /// Whether a client without a certificate is refused, where one is asked.
    pub client_must_prove: bool,
    /// 32 random bytes that seal tickets, the same for all connections; null for no tickets.
    pub ticket_key: *const u8,
    /// The source of randomness.
    pub random: TenureTlsRandom,
    /// How long the handshake may take.
    pub handshake_ms_max: u32,
}

/// The time.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct TenureTlsNow {
    /// Milliseconds on a clock that never goes back, for deadlines.
    pub uptime_ms: u64,
    /// Seconds since 1970, for certificates.
    pub date_s: i64,
    /// Whether the date is known.
    pub has_date: bool,
}
