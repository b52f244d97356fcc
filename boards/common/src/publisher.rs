//! The main loop of a board that publishes: an address by DHCP, the broker's by DNS, TCP, TLS 1.3 with a client key in a
//! secure element, MQTT 5.
//!
//! Invariants:
//! - Whatever fails is said on the console, and tried again after a pause that grows.
//! - What a broker can fill has a limit: TCP's buffers, TLS's, the session's packets and queue, the bytes read at once.
//! - The client's private key is the element's alone.

mod back_off;
mod credentials;
mod desk;
mod error;
mod pem;
mod settings;
mod stack;
#[cfg(test)]
mod tests;

use alloc::vec;
use alloc::vec::Vec;
use core::convert::Infallible;
use core::fmt::Write;
use core::time::Duration;

use smoltcp::phy;
use smoltcp::wire::Ipv4Address;
use tenure_crypto::element::{Chip, Uses, WithElement};
use tenure_crypto::{Group, Security};
use tenure_hal::{Clock, I2c, I2cError};
use tenure_node::HeapUse;
use tenure_tls::{Client, ClientConfig, Link, Suite, Trust};

use self::back_off::BackOff;
use self::credentials::Credentials;
use self::desk::Desk;
pub use self::error::{Broken, PublisherError, Setback};
pub use self::settings::{BrokerHost, ElementPlace, PublisherSettings};
use self::stack::{Lookup, Progress, Stack};

/// The slot of the element that holds the client's key.
pub(crate) const SLOT: u8 = 0;
/// The buffer that TLS is lent: a broker's chain of two certificates beside what else its flight has, and the own
/// certificate.
const TLS_BYTES: usize = 3 * 1024;
/// How long a handshake may take; the element needs about a second of it.
const HANDSHAKE_MS_MAX: u64 = 20_000;
/// All of P-256 is the element's work: no code for that curve is in the firmware.
const USES: Uses = Uses { agreement: true, verification: true };

/// The parts that a board hands over.
pub struct PublisherBoard<D, C, B, W> {
    /// The network card, and its address.
    pub card: (D, [u8; 6]),
    /// The clock.
    pub clock: C,
    /// The bus and the address of the secure element, an ATECC608.
    pub element: (B, u8),
    /// The sensor: thousandths of a degree Celsius.
    pub thermometer: fn() -> Result<i32, I2cError>,
    /// Where lines for people go.
    pub console: W,
    /// Asks what the firmware has taken of its memory.
    pub memory: fn() -> MemoryUse,
    /// Asks for how long the processor was awake since it started.
    pub awake: fn() -> Duration,
}

/// What a firmware takes of its memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryUse {
    /// The heap.
    pub heap: HeapUse,
    /// The stack at its deepest so far, in bytes.
    pub stack_peak_bytes: usize,
    /// The stack in all, in bytes.
    pub stack_bytes: usize,
}

/// The places in flash where the device's papers lie, each erased (`0xFF`) behind its end.
#[derive(Clone, Copy, Debug)]
pub struct Papers {
    /// The settings: lines of text.
    pub settings: &'static [u8],
    /// The certificates of the broker's authorities, in DER, one behind the other.
    pub authorities: &'static [u8],
    /// The own certificate and those between it and its authority, in DER, one behind the other.
    pub chain: &'static [u8],
}

/// A device that publishes.
pub struct Publisher<D: phy::Device, C, B, W> {
    host: BrokerHost,
    port: u16,
    credentials: Credentials,
    stack: Stack<D>,
    security: WithElement<B>,
    desk: Desk<C, W>,
    buffer: Vec<u8>,
    back_off: BackOff,
}

impl<D: phy::Device, C: Clock, B: I2c, W: Write> Publisher<D, C, B, W> {
    /// Starts with the settings and certificates in `papers`.
    ///
    /// # Errors
    /// [`PublisherError`]: a new start doesn't help.
    // Inlined, its temporaries would lie on the stack for good.
    #[inline(never)]
    pub fn start(
        board: PublisherBoard<D, C, B, W>,
        settings: PublisherSettings,
        papers: &Papers,
    ) -> Result<Self, PublisherError> {
        let PublisherBoard { card, clock, element, thermometer, mut console, memory, awake } =
            board;
        let mut security = WithElement::new(Chip::new(element.0, element.1), USES)
            .map_err(PublisherError::Element)?;
        let credentials = Credentials::read(papers, &settings, security.chip(), &mut console)?;
        credentials.announce(&settings, &mut console);
        let mut seed = [0; 8];
        security.random(&mut seed).map_err(PublisherError::Element)?;
        let stack = Stack::new(card.0, card.1, settings.dns, u64::from_le_bytes(seed));
        let PublisherSettings { host, port, .. } = settings.clone();
        let desk = Desk::new(settings, clock, console, (thermometer, memory, awake));
        let buffer = vec![0; TLS_BYTES];
        Ok(Self {
            host,
            port,
            credentials,
            stack,
            security,
            desk,
            buffer,
            back_off: BackOff::default(),
        })
    }

    /// Publishes for good. `sleep` sleeps for at most so long, or until the card interrupts; it is called at least each
    /// few seconds, also to sleep for no time, so that it may feed a watchdog.
    pub fn run(mut self, mut sleep: impl FnMut(Duration, &mut D)) -> ! {
        loop {
            let Err(setback) = self.converse(&mut sleep);
            if self.desk.take_accepted() {
                self.back_off = BackOff::default();
            }
            let mut random = [0];
            // Without randomness all devices come at once, and come.
            let _ = self.security.random(&mut random);
            let pause = self.back_off.next(random[0]);
            self.desk.say_setback(&self.host, self.port, &setback, pause);
            self.desk.rest(&mut self.stack, pause, &mut sleep);
        }
    }

    /// One connection, from the first packet to its end.
    fn converse(
        &mut self,
        sleep: &mut impl FnMut(Duration, &mut D),
    ) -> Result<Infallible, Setback> {
        let address = self.find_broker(sleep)?;
        self.desk.begin_connection();
        self.dial(address, sleep)?;
        let ended = self.speak(sleep);
        // Whatever TLS still said is sent, as far as that goes without waiting.
        self.stack.hang_up(self.desk.now());
        ended
    }

    /// The broker's address, once this device has one.
    fn find_broker(
        &mut self,
        sleep: &mut impl FnMut(Duration, &mut D),
    ) -> Result<Ipv4Address, Setback> {
        while !self.stack.has_address() {
            self.desk.turn(&mut self.stack, None, sleep);
        }
        let name = match &self.host {
            BrokerHost::Address(address) => return Ok(*address),
            BrokerHost::Name(name) => name,
        };
        self.stack.look_up(name)?;
        loop {
            match self.stack.looked_up() {
                Lookup::Found(address) => return Ok(address),
                Lookup::Failed => return Err(Setback::NoSuchName),
                Lookup::Pending => self.desk.turn(&mut self.stack, None, sleep),
            }
        }
    }

    /// Opens a connection by TCP.
    fn dial(
        &mut self,
        address: Ipv4Address,
        sleep: &mut impl FnMut(Duration, &mut D),
    ) -> Result<(), Setback> {
        self.stack.dial(address, self.port)?;
        loop {
            match self.stack.progress() {
                Progress::Connected => return Ok(()),
                Progress::Failed => return Err(Setback::Unreachable(address)),
                Progress::Pending => self.desk.turn(&mut self.stack, None, sleep),
            }
        }
    }

    /// Speaks TLS and MQTT over the connection, until it ends.
    // Each of the two handshakes has the whole stack: what is inlined here would lie below both.
    #[inline(never)]
    fn speak(&mut self, sleep: &mut impl FnMut(Duration, &mut D)) -> Result<Infallible, Setback> {
        let Self { host, credentials, stack, security, desk, buffer, .. } = self;
        let keys: Vec<&[u8]> = credentials.broker_key.iter().map(Vec::as_slice).collect();
        let config = ClientConfig {
            server_name: host.server_name(),
            trust: Trust::Anchors { anchors: &credentials.anchors, without_date: &keys },
            suites: &[Suite::ChaCha20Poly1305Sha256],
            // The element's first; what a broker may have instead, software does.
            groups: &[Group::Secp256r1, Group::X25519],
            application_protocols: &[],
            identity: Some(credentials.identity()),
            pre_shared_key: None,
            early_data: false,
            handshake_ms_max: HANDSHAKE_MS_MAX,
        };
        let client = Client::new(buffer, &config, &desk.tls_now()).map_err(Setback::tls)?;
        let mut link = Link::secure(stack, client);
        desk.shake_hands(&mut link, security, sleep)?;
        let ended = desk.serve(&mut link, security, sleep);
        // The setback is the answer; that nothing more is sent is told as far as that goes.
        let _ = link.close(security);
        ended
    }
}
