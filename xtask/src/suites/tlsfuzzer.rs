//! tlsfuzzer's scripts for TLS 1.3: clients in Python that speak with `tenure tls serve`, conversation by conversation.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;

use anyhow::{Context, Result, ensure};
use tenure_testbed::fetch_from_pypi;

use super::judged::{Outcome, Record};
use crate::interop::{Running, certificates, free_port};
use crate::setup::{self, Need};
use crate::tenure::{self, Profile};
use crate::toolchain;

/// With the snapshot of tlsfuzzer that docs/suites.md names.
const RECORD: Record = Record { named: NAMED, passed_min: 5_598 };

/// Its scripts need these, from PyPI: the release that its `requirements.txt` names, and ML-KEM.
const PACKAGES: [&str; 3] = ["tlslite-ng==0.9.0b2", "ecdsa==0.19.2", "kyber-py==1.2.0"];

/// The beginning of the scripts' names.
const PREFIX: &str = "test-tls13-";
/// The algorithms of signatures in the order in which the server asks clients for them.
const SIGNATURES: &str = "ecdsa_secp256r1_sha256 ed25519 ecdsa_secp384r1_sha384 rsa_pss_rsae_sha256 \
    rsa_pss_rsae_sha384 rsa_pss_rsae_sha512 rsa_pkcs1_sha256 rsa_pkcs1_sha384 rsa_pkcs1_sha512";
/// A key that both ends were given.
const SHARED_KEY: &str = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";
/// Long enough for the first messages of most scripts, which are some of 100 KB.
const BUFFER: &str = "300000";
/// How long a script may take, with all its conversations on a busy computer.
const SCRIPT_S_MAX: u32 = 3_600;

/// A server that scripts speak with, by its options.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Server {
    /// Pages, by the key and certificate of this name.
    Pages(&'static str),
    /// Pages; it asks for a certificate, and takes a client without one.
    Asking,
    /// Pages; it knows [`SHARED_KEY`].
    Shared,
    /// Each line comes back.
    Echo,
}

impl Server {
    const ALL: [Self; 7] = [
        Self::Pages("rsa2048"),
        Self::Pages("p256"),
        Self::Pages("p384"),
        Self::Pages("ed25519"),
        Self::Asking,
        Self::Shared,
        Self::Echo,
    ];

    fn command(self, tenure: &Path, port: u16) -> Command {
        let leaf = if let Self::Pages(leaf) = self { leaf } else { "rsa2048" };
        let mut server = Command::new(tenure);
        server.args(["tls", "serve", "--listen", &format!("127.0.0.1:{port}")]);
        server.args(["--cert", &format!("{leaf}.pem"), "--key", &format!("{leaf}.key")]);
        // Python takes its time for the longest messages.
        server.args(["--buffer", BUFFER, "--timeout", "10m"]);
        match self {
            Self::Pages(_) => server.arg("--www"),
            Self::Asking => server.args(["--www", "--client-ca", "root.pem", "--client-optional"]),
            Self::Shared => server.args(["--www", "--psk", SHARED_KEY, "--psk-name", "test"]),
            Self::Echo => &mut server,
        };
        server
    }
}

/// A script that is run otherwise than with a server of RSA and all its conversations.
struct Special {
    script: &'static str,
    server: Server,
    options: &'static [&'static str],
}

const fn special(
    script: &'static str,
    server: Server,
    options: &'static [&'static str],
) -> Special {
    Special { script, server, options }
}

const ALL: [&str; 2] = ["-n", "0"];

const SPECIALS: &[Special] = &[
    special("certificate-request", Server::Asking, &["-s", SIGNATURES]),
    special(
        "certificate-verify",
        Server::Asking,
        // It has 2,067 damaged signatures, of which these are drawn.
        &["-n", "100", "-s", SIGNATURES, "-k", "rsa2048.key", "-c", "rsa2048.pem"],
    ),
    special("count-tickets", Server::Pages("rsa2048"), &["-t", "1"]),
    special(
        "ecdsa-in-certificate-verify",
        Server::Asking,
        &["-n", "0", "-s", SIGNATURES, "-k", "p256.key", "-c", "p256.pem"],
    ),
    special("ecdsa-support", Server::Pages("p256"), &ALL),
    special("ecdsa-support", Server::Pages("p384"), &ALL),
    special("eddsa", Server::Pages("ed25519"), &ALL),
    special(
        "eddsa-in-certificate-verify",
        Server::Asking,
        &["-n", "0", "-s", SIGNATURES, "-k", "ed25519.key", "-c", "ed25519.pem"],
    ),
    // It has one for each of 16,384 lengths, of which these are drawn.
    special("lengths", Server::Echo, &["-n", "200"]),
    special("mlkem", Server::Pages("rsa2048"), &["-n", "0", "--kems", "x25519mlkem768"]),
    special(
        "no-unknown-groups",
        Server::Pages("rsa2048"),
        &["-n", "0", "--groups", "x25519,secp256r1,secp384r1,x25519mlkem768"],
    ),
    // Groups of old are no better and no worse than unknown ones.
    special(
        "obsolete-curves",
        Server::Pages("rsa2048"),
        &["-n", "0", "--relaxed", "-a", "handshake_failure"],
    ),
    special("psk_dhe_ke", Server::Shared, &["-n", "0", "--psk", SHARED_KEY]),
];

/// The scripts that aren't run, by their reasons, which stand in docs/suites.md as well.
const LEFT_OUT: &[(&str, &[&str])] = &[
    (
        "all their conversations need keys or groups that aren't spoken",
        &[
            "ecdhe-brainpool-curves",
            "ecdsa-brainpool-in-certificate-verify",
            "ffdhe-groups",
            "ffdhe-sanity",
            "mldsa-in-certificate-verify",
        ],
    ),
    (
        "they are about what the server doesn't do: certificates that are compressed, certificates after the \
         handshake, pre-shared keys without a key agreement, TLS 1.2 alone",
        &["client-certificate-compression", "post-handshake-auth", "psk_ke", "non-support"],
    ),
    ("it measures times of packets, with rights that tests don't have", &["minerva"]),
];

/// Conversations whose outcome is a matter of time or chance.
const UNSTEADY: &[&str] = &[
    // Each KeyUpdate is answered when it has come, and the script counts the answers.
    "keyupdate: multiple KeyUpdate messages",
];

const NAMED: &[(&str, &[&str])] = &[
    (
        "TLS 1.2 and older are not spoken",
        &[
            "0rtt-garbage: *(downgrade to TLS 1.2)",
            "session-resumption: sanity - TLS 1.2",
            "session-resumption: use TLS 1.2 ticket in TLS 1.3",
            "version-negotiation: * in client hello legacy field",
            "version-negotiation: fallback from TLS 1.*",
        ],
    ),
    (
        "suites, groups and signatures that aren't spoken: CCM, P-521, X448, finite fields, Brainpool, Ed448",
        &[
            "crfg-curves: *x448*",
            "dhe-shared-secret-padding: TLS 1.3 with ffdhe*",
            "dhe-shared-secret-padding: TLS 1.3 with secp521r1",
            "dhe-shared-secret-padding: TLS 1.3 with x448",
            "ecdhe-curves: *secp521r1*",
            "ecdhe-curves: *x448*",
            "ecdsa-support (*): Test with ecdsa_brainpool*",
            "ecdsa-support (*): Test with ecdsa_secp521r1_sha512",
            "eddsa: ed448 only",
            "obsolete-curves: secp521r1 in supported_groups and key_share",
            "obsolete-curves: x448 in supported_groups and key_share",
            "psk_dhe_ke: ffdhe2048",
            "serverhello-random: TLS 1.3 with ffdhe*",
            "serverhello-random: TLS 1.3 with secp521r1",
            "serverhello-random: TLS 1.3 with x448",
            "symetric-ciphers: check connection with TLS_AES_128_CCM_*",
            "unrecognised-groups: *ffdhe2048*",
        ],
    ),
    (
        "a server has one key: the algorithms of others are not chosen",
        &[
            "ecdsa-support (p256): Test with ecdsa_secp384r1_sha384",
            "ecdsa-support (p384): Test with ecdsa_secp256r1_sha256",
        ],
    ),
    (
        "an RSA key signs by PSS with SHA-256 alone, and is none that PSS is bound to",
        &[
            "rsa-signatures: tls13 signature rsa_pss_rsae_sha384",
            "rsa-signatures: tls13 signature rsa_pss_rsae_sha512",
            "rsapss-signatures: *",
        ],
    ),
    (
        "certificates are not compressed, and what asks for it is not read",
        &["certificate-compression: *"],
    ),
    (
        "a message has 128 extensions at most",
        &[
            "large-number-of-extensions: *, ids in range *",
            "shuffled-extentions: * unassigned extensions, *",
        ],
    ),
    (
        "RFC 8446 allows it: change_cipher_spec is dropped however often it comes (§5), and a server sends a KeyUpdate \
         when it wants (§4.6.3)",
        &[
            "keyupdate-from-server: post-handshake KeyUpdate msg from server",
            "multiple-ccs-messages: *CCS*",
        ],
    ),
    (
        "a client that offers no pre-shared key with a key agreement gets no ticket (RFC 8446 §4.2.9)",
        &[
            "connection-abort: After NewSessionTicket",
            "count-tickets: count NewSessionTickets",
            "session-resumption: session resumption - PSK_ONLY",
        ],
    ),
    (
        "a client's second first message is compared with the first by the key and the retry alone",
        &["shuffled-extentions: HRR reversed order of known extensions"],
    ),
    (
        "a message that exceeds the buffer ends with internal_error, whatever else is wrong with it",
        &["finished: *pad_right 16777*"],
    ),
];

pub(super) fn run(root: &Path, from: &Path, verbose: bool) -> Result<()> {
    setup::ensure(&[Need::Clients])?;
    for (reason, scripts) in LEFT_OUT {
        println!("{} scripts are left out, as {reason}: {}", scripts.len(), scripts.join(", "));
    }
    RECORD.judge(&outcomes(root, from)?, verbose)
}

/// The outcomes of all conversations with the scripts in `from`, a checkout of tlsfuzzer.
fn outcomes(root: &Path, from: &Path) -> Result<BTreeMap<String, Outcome>> {
    let from = from.canonicalize().with_context(|| format!("there is no {}", from.display()))?;
    let runs = runs(&from.join("scripts"))?;
    ensure!(!runs.is_empty(), "{} is no checkout of tlsfuzzer", from.display());
    let bench = Bench::new(root, &from)?;
    let mut running = BTreeMap::new();
    for server in Server::ALL {
        let port = free_port()?;
        let mut command = server.command(&bench.tenure, port);
        running.insert(server, (port, Running::start(command.current_dir(&bench.folder), port)?));
    }
    let (waiting, outcomes) = (Mutex::new(runs.into_iter()), Mutex::new(BTreeMap::new()));
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..std::thread::available_parallelism().map_or(1, usize::from))
            .map(|_| {
                scope.spawn(|| -> Result<()> {
                    loop {
                        let next = waiting.lock().expect("no worker panics").next();
                        let Some(run) = next else { return Ok(()) };
                        let of_run = bench.converse(&run, running[&run.server].0)?;
                        let passed = of_run.values().filter(|it| **it == Outcome::Passed).count();
                        println!("{}: {passed} of {} passed", run.name, of_run.len());
                        outcomes.lock().expect("no worker panics").extend(of_run);
                    }
                })
            })
            .collect();
        workers.into_iter().try_for_each(|worker| worker.join().expect("no worker panics"))
    })?;
    let mut outcomes = outcomes.into_inner().expect("no worker panics");
    outcomes.retain(|name, _| !UNSTEADY.contains(&name.as_str()));
    Ok(outcomes)
}

/// One run of a script.
struct Run {
    /// The beginning of its conversations' names.
    name: String,
    file: PathBuf,
    server: Server,
    options: &'static [&'static str],
}

/// The runs of all scripts in `folder` that aren't left out.
fn runs(folder: &Path) -> Result<Vec<Run>> {
    let entries = std::fs::read_dir(folder)
        .with_context(|| format!("there is no folder {}", folder.display()))?;
    let mut runs = Vec::new();
    for entry in entries {
        let file = entry?.path();
        let name = file.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let Some(name) = name.strip_prefix(PREFIX).and_then(|name| name.strip_suffix(".py")) else {
            continue;
        };
        if LEFT_OUT.iter().any(|(_, scripts)| scripts.contains(&name)) {
            continue;
        }
        let specials: Vec<_> = SPECIALS.iter().filter(|special| special.script == name).collect();
        let run = |of: &str, server, options| Run {
            name: format!("{name}{of}"),
            file: file.clone(),
            server,
            options,
        };
        match specials[..] {
            [] => runs.push(run("", Server::Pages("rsa2048"), &ALL)),
            [special] => runs.push(run("", special.server, special.options)),
            _ => runs.extend(specials.iter().filter_map(|special| {
                let Server::Pages(leaf) = special.server else { return None };
                Some(run(&format!(" ({leaf})"), special.server, special.options))
            })),
        }
    }
    Ok(runs)
}

/// The folder and the programs of the runs.
struct Bench {
    folder: PathBuf,
    tenure: PathBuf,
    /// Where Python finds tlsfuzzer and its packages.
    path: String,
}

impl Bench {
    fn new(root: &Path, from: &Path) -> Result<Self> {
        let folder = toolchain::target_folder(root).join("tlsfuzzer");
        std::fs::create_dir_all(&folder).context("can't make the folder of the run")?;
        certificates::make(&folder)?;
        let packages = fetch_from_pypi(&toolchain::temporary_folder(root), &PACKAGES)?;
        let path = format!("{}:{}", from.display(), packages.display());
        Ok(Self { folder, tenure: tenure::built(root, Profile::Debug)?, path })
    }

    /// Has a script speak with the server at `port`, to its end.
    fn converse(&self, run: &Run, port: u16) -> Result<BTreeMap<String, Outcome>> {
        let output = Command::new("timeout")
            .args([&SCRIPT_S_MAX.to_string(), "python3", "-u"])
            .arg(&run.file)
            .args(["-h", "127.0.0.1", "-p", &port.to_string()])
            .args(run.options)
            .current_dir(&self.folder)
            .env("PYTHONPATH", &self.path)
            .stdin(Stdio::null())
            .output()
            .context("the scripts need Python")?;
        let text = String::from_utf8_lossy(&output.stdout);
        let mut outcomes = conversations(&run.name, &text);
        if outcomes.is_empty() || !text.contains("\nTest end\n") {
            let error = String::from_utf8_lossy(&output.stderr);
            let last = error.lines().last().unwrap_or("it ended early").to_owned();
            outcomes.insert(run.name.clone(), Outcome::Failed(last));
        }
        Ok(outcomes)
    }
}

/// The conversations of a script with their outcomes, by what it prints. One that is repeated passes if it does so each time.
fn conversations(script: &str, text: &str) -> BTreeMap<String, Outcome> {
    let mut outcomes = BTreeMap::new();
    let (mut current, mut error) = (None, None);
    for line in text.lines().chain(["Test end"]) {
        let begun = beginning(line);
        if begun.is_some() || line == "Test end" {
            if let Some(name) = current.take() {
                let outcome = error.take().map_or(Outcome::Passed, Outcome::Failed);
                let known = outcomes.entry(format!("{script}: {name}")).or_insert(Outcome::Passed);
                if outcome != Outcome::Passed {
                    *known = outcome;
                }
            }
            error = Some("it ended in the middle".to_owned());
            current = begun;
        } else if line == "OK" {
            error = None;
        } else if line.split_once(": ").is_some_and(|(kind, _)| kind.ends_with("Error")) {
            error = Some(line.to_owned());
        }
    }
    outcomes
}

/// The name of the conversation that a line begins.
fn beginning(line: &str) -> Option<&str> {
    if let Some(name) = line.strip_suffix(" ...") {
        return Some(name);
    }
    // With the number of the repetition behind it.
    let (name, number) = line.strip_suffix("...")?.rsplit_once(" repeat ")?;
    number.parse::<u32>().ok()?;
    name.strip_prefix('"')?.strip_suffix('"')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conversations_are_read_from_what_a_script_prints() {
        let text = "sanity ...\nOK\n\nbad hello ...\nError encountered while processing\n\
                    Traceback (most recent call last):\n  File \"runner.py\", line 235\n\
                    AssertionError: Timeout\n\n\"some, times\" repeat 0...\nOK\n\n\
                    \"some, times\" repeat 1...\nTimeoutError: timed out\n\n\"some, times\" repeat 2...\nOK\n\n\
                    sanity ...\nOK\n\nTest end\nFAILED:\n\t'bad hello'\n";
        let failed = |error: &str| Outcome::Failed(error.to_owned());
        let expected = [
            ("hello: bad hello", failed("AssertionError: Timeout")),
            ("hello: sanity", Outcome::Passed),
            ("hello: some, times", failed("TimeoutError: timed out")),
        ];
        let expected = expected.map(|(name, outcome)| (name.to_owned(), outcome));
        assert_eq!(conversations("hello", text), BTreeMap::from(expected));
    }

    #[test]
    fn conversation_that_breaks_off_has_failed() {
        let outcomes = conversations("hello", "sanity ...\n");
        assert!(matches!(outcomes["hello: sanity"], Outcome::Failed(_)));
    }
}
