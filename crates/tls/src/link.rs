//! A stream of bytes over any network, through TLS or without: one way to send and receive for sockets that wait, for
//! sockets that don't, and for a board's own TCP.

use core::fmt;

use tenure_crypto::Security;

use crate::{Client, Error, Event, Now};

/// A connection that carries bytes in order: TCP, or what a board has in its place.
pub trait Network {
    /// Why the connection is of no more use.
    type Error;

    /// Sends of `bytes`, which are never none, what there is room for, and returns how many that were. A network that
    /// waits returns none of them never; of one that doesn't, zero means: not now.
    ///
    /// # Errors
    /// The connection broke off.
    fn send(&mut self, bytes: &[u8]) -> Result<usize, Self::Error>;

    /// Receives bytes into the front of `into`, which has room for one at least.
    ///
    /// # Errors
    /// The connection broke off.
    fn receive(&mut self, into: &mut [u8]) -> Result<Received, Self::Error>;
}

/// What came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Received {
    /// So many bytes, one at least.
    Bytes(usize),
    /// Nothing for now.
    Nothing,
    /// The other side sends no more.
    End,
}

/// Why a link is of no more use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinkError<E> {
    /// The network below broke off.
    Network(E),
    /// The other side proved nothing that is trusted, or broke the protocol.
    Tls(Error),
}

impl<E: fmt::Display> fmt::Display for LinkError<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Network(error) => error.fmt(f),
            Self::Tls(error) => write!(f, "TLS: {error}"),
        }
    }
}

impl<E: fmt::Debug + fmt::Display> core::error::Error for LinkError<E> {}

/// Whoever keeps a server's tickets, for later connections.
pub trait Keep {
    /// Takes the [ticket](Client::ticket) that has come to `client`.
    fn keep(&mut self, client: &Client<'_, '_>);
}

/// Keeps none.
impl Keep for () {
    fn keep(&mut self, _: &Client<'_, '_>) {}
}

/// Keeps what the keeper keeps, if there is one.
impl<K: Keep> Keep for Option<K> {
    fn keep(&mut self, client: &Client<'_, '_>) {
        if let Some(keeper) = self {
            keeper.keep(client);
        }
    }
}

/// A stream over the network `N`, secured by TLS 1.3 or plain, whose tickets `K` keeps.
pub struct Link<'a, N, K = ()> {
    network: N,
    client: Option<Client<'a, 'a>>,
    keeper: K,
}

impl<'a, N: Network> Link<'a, N> {
    /// A stream of the network's own bytes.
    pub fn plain(network: N) -> Self {
        Self { network, client: None, keeper: () }
    }

    /// A stream through `client`, which has not begun.
    pub fn secure(network: N, client: Client<'a, 'a>) -> Self {
        Self { network, client: Some(client), keeper: () }
    }

    /// The same stream, whose tickets `keeper` gets.
    pub fn keeping<K: Keep>(self, keeper: K) -> Link<'a, N, K> {
        let Self { network, client, keeper: () } = self;
        Link { network, client, keeper }
    }
}

impl<N: Network, K: Keep> Link<'_, N, K> {
    /// The network below.
    pub fn network(&self) -> &N {
        &self.network
    }

    /// The network below: to wait for it, to set its deadline.
    pub fn network_mut(&mut self) -> &mut N {
        &mut self.network
    }

    /// Whether the handshake is over.
    pub fn is_connected(&self) -> bool {
        self.client.as_ref().is_none_or(|client| client.is_connected())
    }

    /// Whether the server took a ticket of an earlier connection, and showed no certificate.
    pub fn is_resumed(&self) -> bool {
        self.client.as_ref().is_some_and(|client| client.is_resumed())
    }

    /// Goes on with the handshake as far as the network allows, and returns whether it is over. Without TLS there is
    /// none.
    ///
    /// # Errors
    /// [`LinkError`]; an alert tells the other side why.
    pub fn connect(
        &mut self,
        security: &mut impl Security,
        now: impl Fn() -> Now,
    ) -> Result<bool, LinkError<N::Error>> {
        let Self { network, client, keeper } = self;
        let Some(client) = client else { return Ok(true) };
        while !client.is_connected() {
            match step(network, client, keeper, (&mut *security, &now))? {
                Step::Further => {}
                // Neither data nor an end comes before that is over: those are errors, which `step` told.
                Step::Waits | Step::Data | Step::End => return Ok(false),
            }
        }
        flush(network, client)?;
        Ok(true)
    }

    /// Sends of `bytes` what there is room for, and returns how many that were. With no bytes it sends what TLS has
    /// still to send.
    ///
    /// # Errors
    /// [`LinkError`].
    pub fn send(
        &mut self,
        security: &mut impl Security,
        bytes: &[u8],
    ) -> Result<usize, LinkError<N::Error>> {
        let Self { network, client, .. } = self;
        let mut sent = 0;
        while let Some(rest) = bytes.get(sent..).filter(|rest| !rest.is_empty()) {
            let taken = match client {
                None => network.send(rest).map_err(LinkError::Network)?,
                Some(client) => match flush(network, client)? {
                    true => client.send(security, rest).map_err(LinkError::Tls)?,
                    false => 0,
                },
            };
            if taken == 0 {
                return Ok(sent);
            }
            sent += taken;
        }
        if let Some(client) = client {
            flush(network, client)?;
        }
        Ok(sent)
    }

    /// Whether TLS holds bytes that the network had no room for.
    pub fn has_output(&self) -> bool {
        self.client.as_ref().is_some_and(|client| !client.output().is_empty())
    }

    /// Receives what the other side sent into the front of `into`, which has room for one byte at least. The end is told
    /// only if it was announced, where TLS can tell (RFC 8446, 6.1).
    ///
    /// # Errors
    /// [`LinkError`]; an alert tells the other side why.
    pub fn receive(
        &mut self,
        security: &mut impl Security,
        now: impl Fn() -> Now,
        into: &mut [u8],
    ) -> Result<Received, LinkError<N::Error>> {
        let Self { network, client, keeper } = self;
        let Some(client) = client else {
            return network.receive(into).map_err(LinkError::Network);
        };
        loop {
            match step(network, client, keeper, (&mut *security, &now))? {
                Step::Further => {}
                Step::Waits => return Ok(Received::Nothing),
                Step::End => return Ok(Received::End),
                Step::Data => {
                    let data = client.data();
                    let length = data.len().min(into.len());
                    into[..length].copy_from_slice(&data[..length]);
                    client.consume(length);
                    return Ok(Received::Bytes(length));
                }
            }
        }
    }

    /// Says that nothing more is sent (RFC 8446, 6.1), as far as the network takes that.
    ///
    /// # Errors
    /// [`LinkError`].
    pub fn close(&mut self, security: &mut impl Security) -> Result<(), LinkError<N::Error>> {
        let Self { network, client, .. } = self;
        if let Some(client) = client {
            client.close(security);
            flush(network, client)?;
        }
        Ok(())
    }
}

/// What one step of TLS came to.
enum Step {
    /// There is more to do.
    Further,
    /// The network has nothing for now.
    Waits,
    Data,
    End,
}

/// Handles one event of TLS; if there is none, what the network has.
fn step<N: Network>(
    network: &mut N,
    client: &mut Client<'_, '_>,
    keeper: &mut impl Keep,
    (security, now): (&mut impl Security, impl Fn() -> Now),
) -> Result<Step, LinkError<N::Error>> {
    let event = client.poll(security, &now());
    let flushed = flush(network, client);
    match event.map_err(LinkError::Tls)? {
        Event::Certificate | Event::Connected => Ok(Step::Further),
        Event::Ticket => {
            keeper.keep(client);
            Ok(Step::Further)
        }
        Event::Data => Ok(Step::Data),
        Event::PeerClosed => Ok(Step::End),
        Event::Idle => {
            flushed?;
            take_in(network, client, security)
        }
    }
}

/// Takes in what the network has.
fn take_in<N: Network>(
    network: &mut N,
    client: &mut Client<'_, '_>,
    security: &mut impl Security,
) -> Result<Step, LinkError<N::Error>> {
    let space = client.space();
    // What is to be sent leaves no room: that goes first.
    if space.is_empty() {
        return Ok(Step::Waits);
    }
    match network.receive(space).map_err(LinkError::Network)? {
        Received::Bytes(length) => {
            client.received(length);
            Ok(Step::Further)
        }
        Received::Nothing => Ok(Step::Waits),
        Received::End => {
            let ended = client.end_of_input(security);
            ended.map(|()| Step::End).map_err(LinkError::Tls)
        }
    }
}

/// Sends what TLS made, and returns whether all of it went.
fn flush<N: Network>(
    network: &mut N,
    client: &mut Client<'_, '_>,
) -> Result<bool, LinkError<N::Error>> {
    while !client.output().is_empty() {
        let sent = network.send(client.output()).map_err(LinkError::Network)?;
        if sent == 0 {
            return Ok(false);
        }
        client.sent(sent);
    }
    Ok(true)
}
