//! `tenure tls connect`: a client on the command line, for any server.

use std::io::{ErrorKind, IsTerminal as _, Read as _, Write as _};
use std::net::{IpAddr, SocketAddr, TcpStream, ToSocketAddrs as _};
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use serde_json::json;
use tenure_board_linux::LinuxEntropy;
use tenure_crypto::Software;
use tenure_tls::x509::{CertificateError, ServerName, parse_private_key};
use tenure_tls::{Client, ClientConfig, Error, Event, Identity, PreSharedKey, Suite, Trust};

use super::Offers;
use super::files::{self, Authorities};
use super::report::{Facts, Shown, milliseconds};
use super::ticket::{Scope, StoredTicket};
use super::transport;
use crate::terminal::output::Output;
use crate::whole_file;

/// The longest wait for a server to close after the own close, since it was last heard: where its answer is wanted, and
/// with --check.
const ANSWER_PATIENCE: Duration = Duration::from_secs(60);
const CLOSE_PATIENCE: Duration = Duration::from_secs(2);
/// How long one write waits before what came in is looked at.
const WRITE_PATIENCE: Duration = Duration::from_millis(50);
/// The longest sleep of the loop.
const NAP: Duration = Duration::from_secs(1);
const CHUNK_BYTES: usize = 16_384;

/// Connect to a server, show what it proves, and carry standard input and output.
///
/// The report goes to standard error, or with --check to standard output. The connection is closed when
/// standard input ends; what the server still sends is printed until it closes, too. It fails if the server is silent for
/// a minute instead.
///
/// Examples: tenure tls connect example.com:443 --check;
/// printf 'GET / HTTP/1.0\r\n\r\n' | tenure tls connect 127.0.0.1:4433 --ca root.pem --sni device.test
#[derive(clap::Args)]
pub(super) struct Arguments {
    /// The server; without a port, 443.
    #[arg(value_name = "HOST:PORT")]
    server: String,
    /// Authorities to trust, in PEM or DER; without any, those of the system.
    #[arg(long = "ca", value_name = "FILE")]
    authorities: Vec<PathBuf>,
    /// Trust this public key alone, or that of this certificate, whatever the certificates say.
    #[arg(long = "pin", value_name = "FILE", conflicts_with = "authorities")]
    pins: Vec<PathBuf>,
    /// The name to ask for and to find in the certificate; without it, HOST.
    #[arg(long, value_name = "NAME")]
    sni: Option<String>,
    /// The own certificates, for servers that ask.
    #[arg(long, value_name = "FILE", requires = "key")]
    cert: Option<PathBuf>,
    /// The key of the first of them.
    #[arg(long, value_name = "FILE", requires = "cert")]
    key: Option<PathBuf>,
    /// Resume by the ticket in this file, if there is one, and keep the server's next ticket there. It is
    /// deleted if the server, the name, the authorities, the pins or the own certificates are others.
    #[arg(long, value_name = "FILE")]
    resume: Option<PathBuf>,
    /// Send this file's content with the first message, if the ticket allows it. An attacker can replay it.
    #[arg(long, value_name = "FILE", requires = "resume")]
    early_data: Option<PathBuf>,
    /// Write the certificates that the server shows to this file, in PEM.
    #[arg(long, value_name = "FILE")]
    save_chain: Option<PathBuf>,
    /// Only connect, report and close.
    #[arg(long)]
    check: bool,
    #[command(flatten)]
    offers: Offers,
}

pub(super) fn run(arguments: &Arguments, output: &Output) -> anyhow::Result<()> {
    let (host, port) = split_host(&arguments.server)?;
    let name = arguments.sni.as_deref().unwrap_or(host);
    let server_name =
        name.parse::<IpAddr>().map_or(ServerName::Dns(name), |address| address.into());
    let offers = &arguments.offers;
    let external = offers.external_key()?;
    let pins = arguments.pins.iter().map(|path| files::public_key(path));
    let pins = pins.collect::<anyhow::Result<Vec<_>>>()?;
    // With a key that both were given there may be no certificate at all.
    let authorities = if pins.is_empty() && external.is_none() || !arguments.authorities.is_empty()
    {
        Some(Authorities::load(&arguments.authorities)?)
    } else {
        None
    };
    let anchors = authorities.as_ref().map(Authorities::anchors).unwrap_or_default();
    let pins: Vec<&[u8]> = pins.iter().map(Vec::as_slice).collect();
    let trust = if pins.is_empty() {
        Trust::Anchors { anchors: &anchors, without_date: &[] }
    } else {
        Trust::Keys(&pins)
    };
    let own_chain = arguments.cert.as_deref().map(files::certificates).transpose()?;
    let own_chain = own_chain.unwrap_or_default();
    let own_chain: Vec<&[u8]> = own_chain.iter().map(Vec::as_slice).collect();
    let own_key = arguments.key.as_deref().map(files::private_key).transpose()?;
    let own_key = own_key.as_ref().map(|der| parse_private_key(der)).transpose();
    let scope = Scope::new((host, port), name, &trust, &own_chain);
    let ticket = match &arguments.resume {
        Some(path) => StoredTicket::load(path, &scope)?,
        None => None,
    };
    let external = external.as_ref().map(|(identity, key)| PreSharedKey {
        identity,
        key,
        suite: Suite::ChaCha20Poly1305Sha256,
        is_external: true,
        obfuscated_age: 0,
        early_data_bytes_max: 0,
    });
    let (suites, groups, protocols) = (offers.suites(), offers.groups(), offers.protocols());
    let config = ClientConfig {
        server_name,
        trust,
        suites: &suites,
        groups: &groups,
        application_protocols: &protocols,
        identity: own_key?.map(|key| Identity { chain: &own_chain, key }),
        pre_shared_key: external.or(ticket.as_ref().map(|ticket| ticket.key(&protocols))),
        early_data: arguments.early_data.is_some(),
        handshake_ms_max: offers.timeout.as_millis() as u64,
    };
    let early = arguments.early_data.as_ref().map(std::fs::read).transpose();
    let early = early.context("can't read the early data")?.unwrap_or_default();

    let start = Instant::now();
    let (stream, address) = open(host, port, offers.timeout)?;
    let mut buffer = vec![0; offers.buffer as usize];
    let client = Client::new(&mut buffer, &config, &transport::now(start)).map_err(|_| {
        anyhow::anyhow!("`{name}` is no name of a server that can be asked for; set one with --sni")
    })?;
    let session = Session {
        arguments,
        output,
        scope,
        left_out: authorities.as_ref().map(Authorities::left_out).unwrap_or_default(),
        start,
        connected_in: start.elapsed(),
        client,
        security: Software::new(LinuxEntropy),
        stream,
        address,
        shown: Vec::new(),
        chain: String::new(),
        received: Vec::new(),
        send_failure: None,
        outgoing: early,
        outgoing_sent: 0,
        closed: false,
        last_heard: Instant::now(),
    };
    session.run().with_context(|| arguments.server.clone())
}

/// Splits `HOST:PORT`, `[IPv6]:PORT` or `HOST`.
fn split_host(server: &str) -> anyhow::Result<(&str, u16)> {
    const HTTPS: u16 = 443;
    let (host, port) = match server.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((host, "")) => (host, None),
        Some((host, port)) => (host, port.strip_prefix(':').or(Some(port))),
        None if server.matches(':').count() > 1 => (server, None),
        None => server.split_once(':').map_or((server, None), |(host, port)| (host, Some(port))),
    };
    let port = port.map_or(Ok(HTTPS), str::parse);
    let port = port.with_context(|| format!("`{server}` has no port; write HOST:PORT"))?;
    Ok((host, port))
}

/// A TCP connection to the first address of `host` that answers.
fn open(host: &str, port: u16, timeout: Duration) -> anyhow::Result<(TcpStream, SocketAddr)> {
    let addresses = (host, port).to_socket_addrs();
    let addresses = addresses.with_context(|| format!("no address is known for {host}"))?;
    let mut failure = None;
    for address in addresses {
        match TcpStream::connect_timeout(&address, timeout) {
            Ok(stream) => {
                stream.set_nodelay(true)?;
                stream.set_write_timeout(Some(WRITE_PATIENCE))?;
                return Ok((stream, address));
            }
            Err(error) => failure = Some(anyhow::Error::new(error).context(format!("{address}"))),
        }
    }
    Err(failure.unwrap_or_else(|| anyhow::anyhow!("no address is known for {host}")))
}

/// The events that wake the loop.
enum Input {
    Network(Vec<u8>),
    NetworkEnd(Option<std::io::Error>),
    Typed(Vec<u8>),
    TypedEnd,
}

/// The threads that wait for input, seen from the loop.
struct Inputs {
    inputs: Receiver<Input>,
    sender: SyncSender<Input>,
    /// Asks the thread at standard input for more; none before it is started.
    more: Option<SyncSender<()>>,
}

impl Inputs {
    fn of_network(stream: &TcpStream) -> anyhow::Result<Self> {
        let (sender, inputs) = sync_channel(8);
        let (mut stream, to_loop) = (stream.try_clone()?, sender.clone());
        std::thread::spawn(move || {
            loop {
                let mut chunk = vec![0; CHUNK_BYTES];
                let input = match stream.read(&mut chunk) {
                    Ok(0) => Input::NetworkEnd(None),
                    Ok(length) => {
                        chunk.truncate(length);
                        Input::Network(chunk)
                    }
                    Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                    Err(error) => Input::NetworkEnd(Some(error)),
                };
                let is_end = matches!(input, Input::NetworkEnd(_));
                if to_loop.send(input).is_err() || is_end {
                    return;
                }
            }
        });
        Ok(Self { inputs, sender, more: None })
    }

    /// Begins to read standard input, a chunk for each time that it is asked for.
    fn start_typing(&mut self) {
        let (more, asked) = sync_channel(1);
        let to_loop = self.sender.clone();
        std::thread::spawn(move || {
            while asked.recv().is_ok() {
                let mut chunk = vec![0; CHUNK_BYTES];
                let input = match std::io::stdin().lock().read(&mut chunk) {
                    Ok(length) if length > 0 => {
                        chunk.truncate(length);
                        Input::Typed(chunk)
                    }
                    Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                    _ => Input::TypedEnd,
                };
                if to_loop.send(input).is_err() {
                    return;
                }
            }
        });
        self.more = Some(more);
        self.ask();
    }

    fn ask(&self) {
        if let Some(more) = &self.more {
            // The thread is gone after the end of standard input.
            let _ = more.try_send(());
        }
    }
}

/// One connection from its beginning to its end.
struct Session<'a> {
    arguments: &'a Arguments,
    output: &'a Output,
    /// The scope of tickets of this connection.
    scope: Scope,
    /// The authorities of the system that can't be used.
    left_out: &'a [String],
    start: Instant,
    connected_in: Duration,
    client: Client<'a, 'a>,
    security: Software<LinuxEntropy>,
    stream: TcpStream,
    /// The server's address, which the system no longer tells once the server has reset the connection.
    address: SocketAddr,
    shown: Vec<Shown>,
    chain: String,
    /// From the network, while the buffer has no room for it.
    received: Vec<u8>,
    /// To the server: early data, then standard input.
    outgoing: Vec<u8>,
    outgoing_sent: usize,
    /// Why nothing more can be sent. The server may have said why it went: that is read first.
    send_failure: Option<std::io::Error>,
    closed: bool,
    last_heard: Instant,
}

impl Session<'_> {
    fn run(mut self) -> anyhow::Result<()> {
        let mut inputs = Inputs::of_network(&self.stream)?;
        loop {
            let event = self.client.poll(&mut self.security, &transport::now(self.start));
            if event.is_err() {
                self.log_keys()?;
            }
            self.flush();
            match event.map_err(|error| self.explain(error))? {
                Event::Certificate => self.show_certificate(),
                Event::Connected => self.connected(&mut inputs)?,
                Event::Data => self.print()?,
                Event::Ticket => self.keep_ticket()?,
                Event::PeerClosed => {
                    self.client.close(&mut self.security);
                    self.flush();
                    return Ok(());
                }
                Event::Idle => {
                    if !self.move_on(&inputs)? && self.is_over(&mut inputs)? {
                        return Ok(());
                    }
                }
            }
        }
    }

    fn flush(&mut self) {
        if self.has_output() {
            match transport::send(&mut self.stream, self.client.output()) {
                Ok(sent) => self.client.sent(sent),
                Err(error) => self.send_failure = Some(error),
            }
        }
    }

    fn has_output(&self) -> bool {
        self.send_failure.is_none() && !self.client.output().is_empty()
    }

    /// Gives the connection what waits for it, and returns whether there was something.
    fn move_on(&mut self, inputs: &Inputs) -> anyhow::Result<bool> {
        let fed = self.client.feed(&self.received);
        self.received.drain(..fed);
        let rest = &self.outgoing[self.outgoing_sent..];
        let sent = self.client.send(&mut self.security, rest);
        let sent = sent.map_err(|error| self.explain(error))?;
        self.outgoing_sent += sent;
        let is_all_sent = self.outgoing_sent == self.outgoing.len();
        if is_all_sent && self.client.is_connected() && !self.outgoing.is_empty() {
            self.outgoing.clear();
            self.outgoing_sent = 0;
            inputs.ask();
        }
        self.flush();
        Ok(fed + sent > 0)
    }

    /// Waits for input, and returns whether the server ended without it mattering any more.
    fn is_over(&mut self, inputs: &mut Inputs) -> anyhow::Result<bool> {
        let is_check = self.arguments.check;
        let patience = if is_check { CLOSE_PATIENCE } else { ANSWER_PATIENCE };
        if self.closed && self.last_heard.elapsed() > patience {
            let seconds = patience.as_secs();
            ensure!(
                is_check,
                "the server is silent for {seconds} s, and hasn't ended the connection"
            );
            return Ok(true);
        }
        let uptime_ms = self.start.elapsed().as_millis() as u64;
        let deadline = self.client.deadline_ms().map(|at| at.saturating_sub(uptime_ms));
        let patience = deadline.map_or(NAP, |ms| NAP.min(Duration::from_millis(ms)));
        // Output that the network doesn't take has waited for that already.
        let patience = if self.has_output() { Duration::ZERO } else { patience };
        match inputs.inputs.recv_timeout(patience) {
            Ok(Input::Network(bytes)) => {
                self.last_heard = Instant::now();
                self.received.extend_from_slice(&bytes);
            }
            Ok(Input::NetworkEnd(error)) => {
                if self.closed && self.arguments.check {
                    return Ok(true);
                }
                if let Some(error) = self.send_failure.take() {
                    return Err(error).context("the server takes no more");
                }
                if let Some(error) = error.filter(|it| it.kind() != ErrorKind::ConnectionReset) {
                    return Err(error).context("the network failed");
                }
                let ended = self.client.end_of_input(&mut self.security);
                ended.map_err(|error| self.explain(error))?;
                return Ok(true);
            }
            Ok(Input::Typed(bytes)) => self.outgoing.extend_from_slice(&bytes),
            Ok(Input::TypedEnd) => self.close(),
            Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {}
        }
        Ok(false)
    }

    fn close(&mut self) {
        self.closed = true;
        self.last_heard = Instant::now();
        self.client.close(&mut self.security);
    }

    fn show_certificate(&mut self) {
        let der = self.client.certificate().unwrap_or_default();
        self.shown.push(Shown::new(der));
        self.chain += &files::pem_of_certificate(der);
    }

    fn connected(&mut self, inputs: &mut Inputs) -> anyhow::Result<()> {
        self.log_keys()?;
        if let Some(path) = &self.arguments.save_chain {
            whole_file::write(path, &self.chain)
                .with_context(|| format!("can't write {}", path.display()))?;
        }
        self.report()?;
        if self.client.took_early_data() == Some(false) {
            self.outgoing_sent = 0;
        }
        if self.arguments.check {
            self.close();
        } else {
            inputs.start_typing();
        }
        Ok(())
    }

    fn log_keys(&self) -> anyhow::Result<()> {
        let path = self.arguments.offers.keylog.as_deref();
        transport::log_keys(path, &self.client.key_log().to_string())
    }

    fn report(&self) -> anyhow::Result<()> {
        let protocol = self.client.application_protocol();
        let facts = Facts {
            suite: self.client.suite(),
            group: self.client.group(),
            signature: self.client.peer_signature(),
            protocol: protocol.map(|it| String::from_utf8_lossy(it).into_owned()),
            is_resumed: self.client.is_resumed(),
        };
        let address = self.address;
        let early_data = match self.client.took_early_data() {
            Some(true) => Some("taken"),
            Some(false) => Some("refused"),
            None => None,
        };
        let (tcp, all) = (milliseconds(self.connected_in), milliseconds(self.start.elapsed()));
        let text = if self.output.is_json() {
            let mut object = facts.to_json();
            object["address"] = json!(address.to_string());
            object["early_data"] = json!(early_data);
            object["certificates"] = self.shown.iter().map(Shown::to_json).collect();
            object["tcp_ms"] = json!(tcp);
            object["handshake_ms"] = json!(milliseconds(self.start.elapsed() - self.connected_in));
            crate::terminal::output::printable_json(&object)
        } else {
            let mut rows = vec![("connected", format!("{address} in {all} ms, TCP in {tcp} ms"))];
            rows.extend(facts.rows());
            rows.extend(early_data.map(|it| ("early data", it.to_owned())));
            rows.extend(self.shown.iter().map(|it| ("certificate", it.line())));
            let lines = rows.iter().map(|(name, value)| format!("{name:<12}{value}"));
            crate::terminal::output::printable_lines(&lines.collect::<Vec<_>>().join("\n"))
        };
        if self.arguments.check {
            writeln!(std::io::stdout(), "{text}").context("standard output")
        } else {
            writeln!(std::io::stderr(), "{text}").context("standard error")
        }
    }

    /// Prints what the server sent: to a terminal without what could steer it.
    fn print(&mut self) -> anyhow::Result<()> {
        let data = self.client.data();
        let length = data.len();
        let mut stdout = std::io::stdout().lock();
        let written = if stdout.is_terminal() {
            let text = crate::terminal::output::printable_lines(&String::from_utf8_lossy(data));
            stdout.write_all(text.as_bytes())
        } else {
            stdout.write_all(data)
        };
        written.and_then(|()| stdout.flush()).context("standard output")?;
        self.client.consume(length);
        Ok(())
    }

    fn keep_ticket(&self) -> anyhow::Result<()> {
        match (&self.arguments.resume, self.client.ticket()) {
            (Some(path), Some(ticket)) => {
                let protocol = self.client.application_protocol();
                StoredTicket::new(&self.scope, &ticket, protocol).save(path)
            }
            _ => Ok(()),
        }
    }

    /// The reason, with the certificate that it concerns.
    fn explain(&self, error: Error) -> anyhow::Error {
        let at = self.client.refused_certificate();
        let (Error::Certificate(rule), Some(refused)) = (error, self.shown.get(at)) else {
            return anyhow::Error::new(error);
        };
        let alert = error.alert().map_or("", tenure_tls::Alert::name);
        use CertificateError as E;
        let is_unvouched = matches!(
            rule,
            E::UnknownIssuer | E::IssuerNotAuthority | E::AuthorityAsLeaf | E::KeyUsage
        );
        let is_lone = is_unvouched && self.shown.len() == 1 && refused.is_self_issued();
        let mut error = anyhow::Error::new(error);
        if rule == CertificateError::UnknownIssuer && !self.left_out.is_empty() {
            let left_out = self.left_out.join("; ");
            error =
                anyhow::anyhow!("{error}; of the system's authorities can't be used: {left_out}");
        }
        if is_lone {
            error = anyhow::anyhow!(
                "{error}; the server signed it itself, so no authority vouches for it: if it is the one that you mean, \
                 trust its key by --pin FILE with that certificate, and without --ca"
            );
        }
        error.context(format!(
            "certificate {} of the server ({}) is refused with the alert {alert}",
            at + 1,
            refused.subject()
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers_are_names_or_addresses_with_a_port_or_without() {
        for (text, host, port) in [
            ("example.com", "example.com", 443),
            ("example.com:8443", "example.com", 8443),
            ("127.0.0.1:1", "127.0.0.1", 1),
            ("[::1]:4433", "::1", 4433),
            ("[::1]", "::1", 443),
            ("::1", "::1", 443),
        ] {
            assert_eq!(split_host(text).expect(text), (host, port));
        }
        assert!(split_host("example.com:https").is_err());
    }
}
