//! `interop`: `tenure tls` and other makers' TLS, each as the other's client and server.
//!
//! Each case limits our end to one parameter and leaves the peer at its defaults, so that a peer with another first
//! choice answers by a `HelloRetryRequest`.

pub(crate) mod certificates;
mod peers;

use std::collections::BTreeMap;
use std::io::Write as _;
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use tenure_testbed::patience;

use crate::setup::{self, Need};
use crate::tenure::{self, Profile};
use crate::{paint, process, toolchain};
use peers::Peer;

/// Let `tenure tls` speak with other makers' clients and servers.
#[derive(clap::Args)]
#[command(after_help = "Example: cargo xtask interop gnutls")]
pub(crate) struct Arguments {
    /// The peers, by the beginning of their names; all of them, if none is named.
    peers: Vec<String>,
    /// Show what both ends of each failed case printed.
    #[arg(long)]
    verbose: bool,
}

const REQUEST: &[u8] = b"GET / HTTP/1.0\r\n\r\n";

/// A connection to try, both ways.
struct Case {
    name: &'static str,
    /// The server's certificate, by the name of its files.
    leaf: &'static str,
    /// The options of our end.
    ours: &'static [&'static str],
    kind: Kind,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// One connection that carries a request and an answer.
    Plain,
    /// The client proves itself by a certificate.
    ClientCertificate,
    /// A second connection resumes by the ticket of the first.
    Resumption,
}

const CASES: [Case; 15] = [
    case("ChaCha20-Poly1305", &["--suites", "chacha20"]),
    case("AES-128-GCM", &["--suites", "aes128"]),
    case("AES-256-GCM", &["--suites", "aes256"]),
    case("X25519", &["--groups", "x25519"]),
    case("P-256", &["--groups", "p256"]),
    case("P-384", &["--groups", "p384"]),
    case("X25519MLKEM768", &["--groups", "x25519mlkem768"]),
    of_leaf("ECDSA P-384", "p384"),
    of_leaf("RSA-2048", "rsa2048"),
    of_leaf("RSA-4096", "rsa4096"),
    of_leaf("Ed25519", "ed25519"),
    case("a buffer of 4 KB", &["--buffer", "4096"]),
    case("two protocols offered", &["--alpn", "h2,http/1.1"]),
    Case { kind: Kind::ClientCertificate, ..case("client's certificate", &[]) },
    Case { kind: Kind::Resumption, ..case("resumption", &[]) },
];

const fn case(name: &'static str, ours: &'static [&'static str]) -> Case {
    Case { name, leaf: "p256", ours, kind: Kind::Plain }
}

const fn of_leaf(name: &'static str, leaf: &'static str) -> Case {
    Case { name, leaf, ours: &[], kind: Kind::Plain }
}

/// The end of the connection that the peer is.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Role {
    Server,
    Client,
}

/// The folder and the programs of a run.
struct Workbench {
    folder: PathBuf,
    tenure: PathBuf,
}

pub(crate) fn run(arguments: &Arguments, root: &Path) -> Result<()> {
    setup::ensure(&[Need::Clients, Need::TlsPeers])?;
    let peers = chosen(&arguments.peers)?;
    // With the features of the tests, which build it too.
    process::run(process::cargo(root).args(["build", "--workspace", "--bin", "tenure"]))?;
    let folder = toolchain::target_folder(root).join("interop");
    std::fs::create_dir_all(&folder).context("can't make the folder of the run")?;
    certificates::make(&folder)?;
    std::fs::write(folder.join("request"), REQUEST).context("can't write the request")?;
    for peer in &peers {
        peer.prepare(&root.join("tools/tls-peers"), &folder)?;
    }
    let tenure = tenure::path(root, Profile::Debug)?;
    let bench = Workbench { folder, tenure };
    let mut outcomes = BTreeMap::new();
    for (row, case) in CASES.iter().enumerate() {
        for (column, peer) in peers.iter().enumerate() {
            for role in [Role::Server, Role::Client] {
                let outcome = bench.outcome(case, *peer, role);
                if let (Outcome::Failed(reason), true) = (&outcome, arguments.verbose) {
                    println!("{} with {}:\n{reason}", case.name, peer.name());
                }
                outcomes.insert((row, column, role), outcome);
            }
        }
    }
    print_table(&peers, &outcomes);
    let failed = outcomes.values().filter(|it| matches!(it, Outcome::Failed(_))).count();
    let passed = outcomes.values().filter(|it| matches!(it, Outcome::Passed)).count();
    println!("{passed} connections passed, {failed} failed");
    ensure!(failed == 0, "{failed} connections failed; see why with --verbose");
    Ok(())
}

fn chosen(names: &[String]) -> Result<Vec<Peer>> {
    let is_meant = |peer: &Peer| {
        names.is_empty() || names.iter().any(|name| peer.name().to_lowercase().starts_with(name))
    };
    let peers: Vec<_> = Peer::ALL.into_iter().filter(is_meant).collect();
    if peers.is_empty() {
        let all = Peer::ALL.map(Peer::name).join(", ");
        bail!("no peer is called {}; there are {all}", names.join(" or "));
    }
    Ok(peers)
}

/// The outcome of a case with a peer in a role.
enum Outcome {
    Passed,
    /// One of the ends can't do that.
    Lacking,
    Failed(String),
}

impl Workbench {
    fn outcome(&self, case: &Case, peer: Peer, role: Role) -> Outcome {
        if peer.lacks(case, role) {
            return Outcome::Lacking;
        }
        let done = match role {
            Role::Server => self.with_their_server(case, peer),
            Role::Client => self.with_our_server(case, peer),
        };
        match done {
            Ok(()) => Outcome::Passed,
            Err(error) => Outcome::Failed(format!("{error:#}")),
        }
    }

    fn with_their_server(&self, case: &Case, peer: Peer) -> Result<()> {
        let port = free_port()?;
        let mut server = peer.server(self, port, case.leaf, case.kind);
        let _server = Running::start(&mut server, port)?;
        let ticket = self.folder.join("ticket");
        let _ = std::fs::remove_file(&ticket);
        let connect = || {
            let mut client = limited(&self.tenure);
            client.args(["tls", "connect", &format!("127.0.0.1:{port}"), "--ca", "root.pem"]);
            client.args(["--sni", "device.test"]).args(case.ours);
            match case.kind {
                Kind::Plain => {}
                Kind::ClientCertificate => {
                    client.args(["--cert", "client.pem", "--key", "client.key"]);
                }
                Kind::Resumption => {
                    client.args(["--resume", "ticket"]);
                }
            }
            self.asked(client)
        };
        answered(connect()?)?;
        if case.kind == Kind::Resumption {
            let output = answered(connect()?)?;
            ensure!(output.contains("resumed     yes"), "the ticket wasn't taken:\n{output}");
        }
        Ok(())
    }

    fn with_our_server(&self, case: &Case, peer: Peer) -> Result<()> {
        let port = free_port()?;
        let mut server = limited(&self.tenure);
        server.args(["tls", "serve", "--www", "--listen", &format!("127.0.0.1:{port}")]);
        server.args(["--cert", &format!("{}.pem", case.leaf)]);
        server.args(["--key", &format!("{}.key", case.leaf)]).args(case.ours);
        if case.kind == Kind::ClientCertificate {
            server.args(["--client-ca", "root.pem"]);
        }
        server.current_dir(&self.folder);
        let _server = Running::start(&mut server, port)?;
        let mut output = String::new();
        for client in peer.clients(self, port, case.kind) {
            output = answered(self.asked(client)?)?;
        }
        let is_resumed = case.kind != Kind::Resumption || peer.says_resumed(&output);
        ensure!(is_resumed, "the peer didn't resume:\n{output}");
        Ok(())
    }

    /// Runs a client that is given a request.
    fn asked(&self, mut client: Command) -> Result<Output> {
        client.current_dir(&self.folder);
        client.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = client.spawn().context("the client can't be started")?;
        let mut input = child.stdin.take().context("the client has no standard input")?;
        // Clients that send a request of their own don't read it.
        let _ = input.write_all(REQUEST);
        drop(input);
        Ok(child.wait_with_output()?)
    }
}

/// Both streams of a client that ended well with an answer.
fn answered(output: Output) -> Result<String> {
    let text = [output.stdout, output.stderr].concat();
    let text = String::from_utf8_lossy(&text).into_owned();
    ensure!(output.status.success(), "the client ended with {}:\n{text}", output.status);
    ensure!(text.contains("HTTP/1."), "there was no answer:\n{text}");
    Ok(text)
}

/// `program`, which is ended when it takes too long.
fn limited(program: impl AsRef<Path>) -> Command {
    let mut command = Command::new("timeout");
    command.arg(patience().as_secs().to_string()).arg(program.as_ref());
    command
}

pub(crate) fn free_port() -> Result<u16> {
    Ok(TcpListener::bind("127.0.0.1:0")?.local_addr()?.port())
}

/// A server that listens, until it is dropped.
pub(crate) struct Running(Child);

impl Running {
    pub(crate) fn start(server: &mut Command, port: u16) -> Result<Self> {
        // Some servers end with their standard input.
        server.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        let mut running = Self(server.spawn().context("the server can't be started")?);
        let begin = Instant::now();
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            if let Some(status) = running.0.try_wait()? {
                bail!("the server ended with {status}");
            }
            ensure!(begin.elapsed() < patience(), "the server doesn't listen");
            std::thread::sleep(Duration::from_millis(20));
        }
        Ok(running)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // `timeout` passes this signal on, and not the one that can't be caught.
        let id = self.0.id().to_string();
        let _ = Command::new("kill").arg(id).status();
        let _ = self.0.wait();
    }
}

fn print_table(peers: &[Peer], outcomes: &BTreeMap<(usize, usize, Role), Outcome>) {
    println!("\nThe peer as server / as client; – where one end can't do that:\n");
    print!("| |");
    peers.iter().for_each(|peer| print!(" {} |", peer.name()));
    println!("\n|---|{}", "---|".repeat(peers.len()));
    for (row, case) in CASES.iter().enumerate() {
        print!("| {} |", case.name);
        for column in 0..peers.len() {
            let word = |role| match &outcomes[&(row, column, role)] {
                Outcome::Passed => "yes".to_owned(),
                Outcome::Lacking => "–".to_owned(),
                Outcome::Failed(_) => paint::stdout().bad("NO").to_string(),
            };
            print!(" {} / {} |", word(Role::Server), word(Role::Client));
        }
        println!();
    }
    println!();
}
