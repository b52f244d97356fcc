//! `tenure tls`: TLS 1.3 with servers and clients of any kind, by the stack that devices use.

mod connect;
pub(crate) mod files;
mod report;
mod serve;
mod ticket;
mod transport;

use clap::{Subcommand, ValueEnum};
use tenure_crypto::Group;
use tenure_tls::Suite;

use crate::terminal::clock::parse_any_span;
use crate::terminal::output::Output;

/// Speak TLS 1.3 with any server or client.
///
/// The stack is the one of devices: one buffer, no heap of its own, strict rules for certificates. An error
/// names the rule that the other end broke.
#[derive(clap::Args)]
pub struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Connect(Box<connect::Arguments>),
    Serve(Box<serve::Arguments>),
}

/// Runs `tenure tls connect` or `tenure tls serve`.
///
/// # Errors
/// Why the connection didn't come about, or what of the arguments can't be used.
pub fn run(arguments: &Arguments, output: &Output) -> anyhow::Result<()> {
    match &arguments.command {
        Command::Connect(arguments) => connect::run(arguments, output),
        Command::Serve(arguments) => serve::run(arguments, output),
    }
}

/// The offers that both ends choose from.
#[derive(clap::Args)]
struct Offers {
    /// The suites to take, the best first.
    #[arg(long, value_delimiter = ',', value_name = "SUITE", default_values = ["chacha20", "aes128", "aes256"])]
    suites: Vec<SuiteName>,
    /// The groups to agree on a key in, the best first.
    #[arg(long, value_delimiter = ',', value_name = "GROUP",
          default_values = ["x25519", "p256", "p384", "x25519mlkem768"])]
    groups: Vec<GroupName>,
    /// The application protocols to take, the best first, as `h2,http/1.1`.
    #[arg(long, value_delimiter = ',', value_name = "PROTOCOL")]
    alpn: Vec<String>,
    /// A key that both ends were given, in hexadecimal digits; with `--psk-name`.
    #[arg(long, value_name = "HEX", requires = "psk_name")]
    psk: Option<String>,
    /// The name of the key.
    #[arg(long, value_name = "NAME", requires = "psk")]
    psk_name: Option<String>,
    /// How long the handshake may take.
    #[arg(long, value_name = "SPAN", default_value = "10s", value_parser = parse_any_span)]
    timeout: std::time::Duration,
    /// How many bytes of buffer to lend to a connection, as a device would.
    #[arg(long, value_name = "BYTES", default_value_t = 20_000,
          value_parser = clap::value_parser!(u32).range(512..=1_000_000))]
    buffer: u32,
    /// Append the connection's secrets to this file, for Wireshark and its like. They open all of it.
    #[arg(long, value_name = "FILE", env = "SSLKEYLOGFILE")]
    keylog: Option<std::path::PathBuf>,
}

impl Offers {
    fn suites(&self) -> Vec<Suite> {
        self.suites.iter().map(|name| name.suite()).collect()
    }

    fn groups(&self) -> Vec<Group> {
        self.groups.iter().map(|name| name.group()).collect()
    }

    fn protocols(&self) -> Vec<&[u8]> {
        self.alpn.iter().map(String::as_bytes).collect()
    }

    /// The name and the key that both ends were given.
    fn external_key(&self) -> anyhow::Result<Option<(&[u8], Vec<u8>)>> {
        let (Some(key), Some(name)) = (&self.psk, &self.psk_name) else { return Ok(None) };
        let key = ticket::bytes_of_hex(key)
            .filter(|key| (16..=64).contains(&key.len()))
            .ok_or_else(|| anyhow::anyhow!("--psk takes 16 to 64 bytes in hexadecimal digits"))?;
        Ok(Some((name.as_bytes(), key)))
    }
}

#[derive(Clone, Copy, ValueEnum)]
enum SuiteName {
    #[value(name = "chacha20")]
    ChaCha20,
    Aes128,
    Aes256,
}

impl SuiteName {
    fn suite(self) -> Suite {
        match self {
            Self::ChaCha20 => Suite::ChaCha20Poly1305Sha256,
            Self::Aes128 => Suite::Aes128GcmSha256,
            Self::Aes256 => Suite::Aes256GcmSha384,
        }
    }
}

#[derive(Clone, Copy, ValueEnum)]
enum GroupName {
    X25519,
    P256,
    P384,
    #[value(name = "x25519mlkem768")]
    X25519MlKem768,
}

impl GroupName {
    fn group(self) -> Group {
        match self {
            Self::X25519 => Group::X25519,
            Self::P256 => Group::Secp256r1,
            Self::P384 => Group::Secp384r1,
            Self::X25519MlKem768 => Group::X25519MlKem768,
        }
    }
}
