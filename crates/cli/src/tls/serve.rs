//! `tenure tls serve`: a server on the command line, for any client.

use std::io::{ErrorKind, Read as _};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};
use serde_json::json;
use tenure_board_linux::LinuxEntropy;
use tenure_crypto::Software;
use tenure_tls::x509::parse_private_key;
use tenure_tls::{
    EarlyDataGuard, Error, Event, ExternalKey, Identity, Server, ServerConfig, TicketKey, Trust,
};
use tenure_wire::console::LISTENING_AT;

use super::Offers;
use super::files::{self, Authorities};
use super::report::{Facts, Shown};
use super::transport;
use crate::reach::network::{address_of, listener_at};
use crate::terminal::output::{Output, escape};
use crate::terminal::stop::Stop;

/// Connections at the same time; others wait until one ends.
const CONNECTIONS_MAX: usize = 32;
/// How long a client may be silent.
const SILENCE_MAX: Duration = Duration::from_secs(30);
/// The longest sleep of a loop, so that Ctrl-C is heard.
const NAP: Duration = Duration::from_millis(50);
/// The longest request that a page answers, in bytes.
const REQUEST_BYTES_MAX: usize = 8_192;
/// The longest reply that waits while more is read, in bytes.
const REPLY_BYTES_MAX: usize = 65_536;
const PORT: u16 = 4433;

/// Serve TLS 1.3: send back what comes, or a page that tells of the connection.
///
/// Each connection is a line on standard output. Ctrl-C ends it.
///
/// Example: tenure tls serve --cert chain.pem --key key.pem --www
#[derive(clap::Args)]
pub(super) struct Arguments {
    /// The address to listen at.
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:4433")]
    listen: String,
    /// The own certificates, in PEM or DER, the own one first.
    #[arg(long, value_name = "FILE", requires = "key", required_unless_present = "psk")]
    cert: Option<PathBuf>,
    /// The key of the first of them.
    #[arg(long, value_name = "FILE", requires = "cert")]
    key: Option<PathBuf>,
    /// Ask clients for certificates, which these authorities vouch for.
    #[arg(long = "client-ca", value_name = "FILE")]
    client_authorities: Vec<PathBuf>,
    /// Take clients without a certificate as well.
    #[arg(long, requires = "client_authorities")]
    client_optional: bool,
    /// Answer each request by a page that tells of the connection, and close.
    #[arg(long)]
    www: bool,
    /// Take this much early data with a ticket. An attacker can replay it elsewhere.
    #[arg(long, value_name = "BYTES", default_value_t = 0)]
    early_data: u32,
    /// Send no tickets.
    #[arg(long, conflicts_with = "early_data")]
    no_tickets: bool,
    #[command(flatten)]
    offers: Offers,
}

pub(super) fn run(arguments: &Arguments, output: &Output) -> anyhow::Result<()> {
    let offers = &arguments.offers;
    let chain = arguments.cert.as_deref().map(files::certificates).transpose()?;
    let chain = chain.unwrap_or_default();
    let chain: Vec<&[u8]> = chain.iter().map(Vec::as_slice).collect();
    let key = arguments.key.as_deref().map(files::private_key).transpose()?;
    let key = key.as_ref().map(|der| parse_private_key(der)).transpose();
    let identity = key?.map(|key| Identity { chain: &chain, key });
    let authorities = match &arguments.client_authorities[..] {
        [] => None,
        paths => Some(Authorities::load(paths)?),
    };
    let anchors = authorities.as_ref().map(Authorities::anchors);
    let external = offers.external_key()?;
    let external = external.as_ref().map(|(identity, key)| ExternalKey { identity, key });
    let ticket_key = match arguments.no_tickets {
        true => None,
        false => Some(TicketKey::generate(&mut Software::new(LinuxEntropy))?),
    };
    let (suites, groups, protocols) = (offers.suites(), offers.groups(), offers.protocols());
    let config = ServerConfig {
        identities: identity.as_slice(),
        suites: &suites,
        groups: &groups,
        application_protocols: &protocols,
        client_trust: anchors.as_ref().map(|anchors| Trust::Anchors { anchors, without_date: &[] }),
        client_must_prove: !arguments.client_optional,
        pre_shared_keys: external.as_slice(),
        ticket_key: ticket_key.as_ref(),
        early_data_bytes_max: arguments.early_data,
        handshake_ms_max: offers.timeout.as_millis() as u64,
    };
    let guard = EarlyDataGuard::new();
    let shared = Shared { arguments, output, config, guard, start: Instant::now() };
    shared.listen(&Stop::on_signals()?)
}

/// The common part of all connections.
struct Shared<'a> {
    arguments: &'a Arguments,
    output: &'a Output,
    config: ServerConfig<'a>,
    guard: EarlyDataGuard,
    start: Instant,
}

impl Shared<'_> {
    fn listen(&self, stop: &Stop) -> anyhow::Result<()> {
        let listener = listener_at(address_of(&self.arguments.listen, PORT)?)?;
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?.to_string();
        self.output.line(
            &format!("{LISTENING_AT} {address}"),
            &json!({ "event": "listening", "address": address }),
        );
        let count = AtomicUsize::new(0);
        std::thread::scope(|scope| {
            while !stop.is_requested() {
                if count.load(Ordering::Relaxed) >= CONNECTIONS_MAX {
                    std::thread::sleep(NAP);
                    continue;
                }
                match listener.accept() {
                    Ok((stream, from)) => {
                        count.fetch_add(1, Ordering::Relaxed);
                        let count = &count;
                        scope.spawn(move || {
                            self.converse(stream, from, stop);
                            count.fetch_sub(1, Ordering::Relaxed);
                        });
                    }
                    // The client is gone again, or there are no more files: others may come.
                    Err(_) => std::thread::sleep(NAP),
                }
            }
        });
        self.output.line("stopped", &json!({ "event": "stopped" }));
        Ok(())
    }

    fn converse(&self, stream: TcpStream, from: SocketAddr, stop: &Stop) {
        let outlives = stream.try_clone();
        if let Err(error) = self.try_converse(stream, from, stop) {
            let text = crate::terminal::output::tell(&error);
            self.output.line(
                &format!("{from}: {text}"),
                &json!({ "event": "failed", "from": from.to_string(), "error": text }),
            );
            if let Ok(stream) = outlives {
                hear_out(stream, stop);
            }
        }
    }

    fn try_converse(&self, stream: TcpStream, from: SocketAddr, stop: &Stop) -> anyhow::Result<()> {
        stream.set_nonblocking(false)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(NAP))?;
        stream.set_write_timeout(Some(NAP))?;
        let mut buffer = vec![0; self.arguments.offers.buffer as usize];
        let guard = (self.arguments.early_data > 0).then_some(&self.guard);
        let now = transport::now(self.start);
        let server = Server::new(&mut buffer, &self.config, guard, &now)?;
        let conversation = Conversation {
            shared: self,
            server,
            security: Software::new(LinuxEntropy),
            stream,
            from,
            client: Vec::new(),
            request: Vec::new(),
            reply: Vec::new(),
            ticket_is_due: false,
            closes: false,
            last_moved: Instant::now(),
        };
        conversation.run(stop)
    }
}

/// One connection from its beginning to its end.
struct Conversation<'a> {
    shared: &'a Shared<'a>,
    server: Server<'a, 'a>,
    security: Software<LinuxEntropy>,
    stream: TcpStream,
    from: SocketAddr,
    client: Vec<Shown>,
    request: Vec<u8>,
    reply: Vec<u8>,
    /// Whether the client is owed a ticket, which waits for room in the buffer.
    ticket_is_due: bool,
    /// Whether the connection is closed once the reply is sent.
    closes: bool,
    last_moved: Instant,
}

impl Conversation<'_> {
    fn run(mut self, stop: &Stop) -> anyhow::Result<()> {
        while !stop.is_requested() {
            let event = self.server.poll(&mut self.security, &transport::now(self.shared.start));
            if event.is_err() {
                self.log_keys()?;
            }
            let flushed = self.flush();
            match event.map_err(|error| self.explain(error))? {
                Event::Certificate => {
                    let der = self.server.certificate().unwrap_or_default();
                    self.client.push(Shown::new(der));
                }
                Event::Connected => {
                    self.connected()?;
                    // Before any answer: many clients keep a ticket only from the connection's beginning.
                    self.send_ticket()?;
                }
                Event::Data => self.take_data()?,
                Event::Ticket => {}
                Event::PeerClosed => return self.end(),
                Event::Idle => {
                    flushed?;
                    self.send_ticket()?;
                    if self.closes && self.reply.is_empty() {
                        return self.end();
                    }
                    // A client that doesn't read what it asked for isn't read either.
                    if !self.send_reply()? && self.reply.len() < REPLY_BYTES_MAX {
                        self.receive()?;
                    }
                }
            }
            if self.last_moved.elapsed() > SILENCE_MAX {
                bail!("silent for {} seconds", SILENCE_MAX.as_secs());
            }
        }
        self.end()
    }

    fn flush(&mut self) -> anyhow::Result<()> {
        if !self.server.output().is_empty() {
            let sent = transport::send(&mut self.stream, self.server.output());
            let sent = sent.context("the client takes no more")?;
            self.server.sent(sent);
            if sent > 0 {
                self.last_moved = Instant::now();
            }
        }
        Ok(())
    }

    /// Closes, and sends what is left as long as the client takes it: a client that has said all that it has to say
    /// still listens (RFC 8446 §6.1), and resumes by its ticket.
    fn end(mut self) -> anyhow::Result<()> {
        let _ = self.send_ticket();
        while !self.reply.is_empty() && self.send_reply()? {}
        self.server.close(&mut self.security);
        while !self.server.output().is_empty() && self.last_moved.elapsed() < SILENCE_MAX {
            // A client that closed need not listen any more.
            if self.flush().is_err() {
                break;
            }
        }
        let _ = self.stream.shutdown(Shutdown::Write);
        Ok(())
    }

    /// Sends the ticket that is due, unless what the client sent already fills the buffer.
    fn send_ticket(&mut self) -> anyhow::Result<()> {
        if !self.ticket_is_due {
            return Ok(());
        }
        let now = transport::now(self.shared.start);
        match self.server.send_ticket(&mut self.security, &now) {
            Err(Error::BufferTooSmall) => return Ok(()),
            done => done?,
        }
        self.ticket_is_due = false;
        self.flush()
    }

    /// Hands a part of the reply to the connection, and returns whether something moved.
    fn send_reply(&mut self) -> anyhow::Result<bool> {
        let sent = self.server.send(&mut self.security, &self.reply);
        let sent = sent.map_err(|error| self.explain(error))?;
        self.reply.drain(..sent);
        let waited = self.server.output().len();
        self.flush()?;
        Ok(sent > 0 || self.server.output().len() < waited)
    }

    fn receive(&mut self) -> anyhow::Result<()> {
        let space = self.server.space();
        if space.is_empty() {
            return Ok(());
        }
        match self.stream.read(space) {
            Ok(0) => {
                self.end_of_input()?;
                self.closes = true;
            }
            Ok(length) => {
                self.server.received(length);
                self.last_moved = Instant::now();
            }
            Err(error) if error.kind() == ErrorKind::ConnectionReset => self.end_of_input()?,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) if transport::is_patience(&error) => {}
            Err(error) => return Err(error).context("the network failed"),
        }
        Ok(())
    }

    fn end_of_input(&mut self) -> anyhow::Result<()> {
        let ended = self.server.end_of_input(&mut self.security);
        ended.map_err(|error| self.explain(error))
    }

    fn log_keys(&self) -> anyhow::Result<()> {
        let path = self.shared.arguments.offers.keylog.as_deref();
        transport::log_keys(path, &self.server.key_log().to_string())
    }

    fn facts(&self) -> Facts {
        let protocol = self.server.application_protocol();
        Facts {
            suite: self.server.suite(),
            group: self.server.group(),
            signature: self.server.peer_signature(),
            protocol: protocol.map(|it| String::from_utf8_lossy(it).into_owned()),
            is_resumed: self.server.is_resumed(),
        }
    }

    fn connected(&mut self) -> anyhow::Result<()> {
        self.log_keys()?;
        self.ticket_is_due = true;
        let facts = self.facts();
        let client = self.client.first();
        let who = client.map_or(String::new(), |client| format!(", client {}", client.line()));
        let mut object = facts.to_json();
        object["event"] = json!("connected");
        object["from"] = json!(self.from.to_string());
        object["client"] = client.map(Shown::to_json).into();
        self.shared.output.line(&format!("{}: {}{who}", self.from, facts.line()), &object);
        Ok(())
    }

    fn take_data(&mut self) -> anyhow::Result<()> {
        let data = self.server.data();
        let length = data.len();
        if !self.shared.arguments.www {
            self.reply.extend_from_slice(data);
        } else if !self.closes {
            self.request.extend_from_slice(data);
        }
        self.server.consume(length);
        let is_whole = self.request.windows(4).any(|end| end == b"\r\n\r\n");
        if is_whole && !self.closes {
            self.reply = self.page().into_bytes();
            self.closes = true;
        } else if self.request.len() > REQUEST_BYTES_MAX {
            bail!("the request is longer than {REQUEST_BYTES_MAX} bytes");
        }
        // Data that comes while a reply waits stays in the connection's buffer.
        while !self.reply.is_empty() && self.send_reply()? {}
        Ok(())
    }

    /// A page that tells of the connection.
    fn page(&self) -> String {
        let request = String::from_utf8_lossy(&self.request);
        let mut rows = vec![("request", request.lines().next().unwrap_or_default().to_owned())];
        rows.extend(self.facts().rows());
        rows.extend(self.client.iter().map(|shown| ("client", shown.line())));
        let lines = rows.iter().map(|(name, value)| format!("{name:<12}{}\n", escape(value)));
        let body = format!(
            "<!DOCTYPE html>\n<html><head><title>Tenure</title></head><body><pre>\n{}</pre></body></html>\n",
            lines.collect::<String>()
        );
        format!(
            "HTTP/1.0 200 OK\r\nContent-Type: text/html; charset=utf-8\r\nContent-Length: {}\r\n\
             Connection: close\r\n\r\n{body}",
            body.len()
        )
    }

    fn explain(&self, error: Error) -> anyhow::Error {
        let (Error::Certificate(_), Some(last)) = (error, self.client.last()) else {
            return anyhow::Error::new(error);
        };
        let which = format!("certificate {} ({})", self.client.len(), last.subject());
        anyhow::Error::new(error).context(which)
    }
}

/// Drops what a client still sends, until its end. A socket that is closed while it holds bytes is reset, and the alert that
/// says why may be lost with it (RFC 9112 §9.6 has the same of HTTP).
fn hear_out(mut stream: TcpStream, stop: &Stop) {
    let (begin, mut dropped) = (Instant::now(), [0; 4096]);
    let _ = stream.shutdown(Shutdown::Write);
    while begin.elapsed() < SILENCE_MAX && !stop.is_requested() {
        match stream.read(&mut dropped) {
            Ok(0) => return,
            Ok(_) => {}
            Err(error) if transport::is_patience(&error) => {}
            Err(_) => return,
        }
    }
}
