//! The debugger at a socket of this computer, which all of its users reach, and web pages of their browsers, too.
//!
//! Invariants: a client sees nothing before it has brought the token that was printed, and has a time for that; it sees the
//! record and the packages of the command line alone, and sources below the packages' folders.

use std::cell::Cell;
use std::io::{self, BufReader, BufWriter, Read};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use data_encoding::HEXLOWER;
use serde_json::json;

use super::Subject;
use super::adapter::serve;
use super::client::Allowed;
use super::session::Session;
use super::sources::Sources;
use crate::terminal::output::Output;

/// The bytes of a token, which nobody guesses.
const TOKEN_BYTES: usize = 16;
/// The time that a client has until it is let in.
const ENTRY_TIME: Duration = Duration::from_secs(10);

/// Has a session of one client after the other.
pub(super) fn listen(
    address: SocketAddr,
    subject: &Subject,
    open: &mut dyn FnMut(&Subject) -> anyhow::Result<Session>,
    output: &Output,
) -> anyhow::Result<()> {
    ensure!(
        address.ip().is_loopback(),
        "{address} isn't this computer's alone, and what is said there is not encrypted: whoever listens in sees all that \
         the record holds"
    );
    let failed = || format!("can't listen on {address}");
    let listener = TcpListener::bind(address).with_context(failed)?;
    let bound = listener.local_addr().with_context(failed)?;
    let mut token = [0; TOKEN_BYTES];
    getrandom::fill(&mut token).map_err(|error| anyhow::anyhow!("no random bytes: {error}"))?;
    let token = HEXLOWER.encode(&token);
    output.line(
        &format!("debug adapter listens on {bound}; \"token\": \"{token}\" in an editor's launch opens it"),
        &json!({ "event": "listening", "address": bound.to_string(), "token": token }),
    );
    loop {
        let (stream, _) = listener.accept().with_context(failed)?;
        // A failure with one client is no concern of the next one.
        if let Err(error) = session(&stream, &token, subject, open) {
            output.failure(&error);
        }
    }
}

fn session(
    stream: &TcpStream,
    token: &str,
    subject: &Subject,
    open: &mut dyn FnMut(&Subject) -> anyhow::Result<Session>,
) -> anyhow::Result<()> {
    stream.set_write_timeout(Some(ENTRY_TIME))?;
    let sources = Sources::of(&subject.packages);
    let client = Visitor { token, sources, is_in: Cell::new(false) };
    let entrance = Entrance { stream, client: &client, until: Instant::now() + ENTRY_TIME };
    serve(&mut BufReader::new(entrance), &mut BufWriter::new(stream), subject, &client, open)
}

/// A client that has connected.
struct Visitor<'a> {
    token: &'a str,
    sources: Sources,
    is_in: Cell<bool>,
}

impl Allowed for Visitor<'_> {
    fn allow(&self, token: &str, names_nothing_new: bool) -> anyhow::Result<()> {
        ensure!(
            is_same(token, self.token),
            "`launch` brings no `token`, or another than the one that `tenure debug` has printed"
        );
        ensure!(
            names_nothing_new,
            "the record and the packages are those of the command line, where `tenure debug` listens"
        );
        self.is_in.set(true);
        Ok(())
    }

    fn sources(&self) -> Sources {
        self.sources.clone()
    }
}

/// Whether two words are the same, in a time that doesn't tell how far they are.
fn is_same(one: &str, other: &str) -> bool {
    let pairs = one.bytes().zip(other.bytes());
    one.len() == other.len() && pairs.fold(0, |sum, (one, other)| sum | (one ^ other)) == 0
}

/// The bytes that a client sends: they have an end for one that isn't let in in time.
struct Entrance<'a> {
    stream: &'a TcpStream,
    client: &'a Visitor<'a>,
    until: Instant,
}

impl Read for Entrance<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let rest = match self.client.is_in.get() {
            true => None,
            false => Some(self.until.saturating_duration_since(Instant::now())),
        };
        if rest.is_some_and(|rest| rest.is_zero()) {
            return Err(too_late());
        }
        self.stream.set_read_timeout(rest)?;
        (&mut &*self.stream).read(into).map_err(|error| match error.kind() {
            io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => too_late(),
            _ => error,
        })
    }
}

fn too_late() -> io::Error {
    io::Error::new(io::ErrorKind::TimedOut, "a client brought no token in time")
}
