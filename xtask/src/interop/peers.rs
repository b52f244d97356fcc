//! The peers: their command lines, and what they can't do.

use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, Result};
use tenure_testbed::fetch_from_pypi;

use super::certificates::LEAVES;
use super::{Case, Kind, Role, Workbench, limited};
use crate::process;

/// The release of tlslite-ng, from PyPI.
const TLSLITE: &str = "tlslite-ng==0.8.2";
/// The link to where Python finds it, in the folder of the programs.
const PYTHON: &str = "packages-of-pypi";
/// The database of certificates of NSS.
const DATABASE: &str = "sql:nss";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Peer {
    OpenSsl,
    GnuTls,
    Go,
    Nss,
    WolfSsl,
    Tlslite,
}

impl Peer {
    pub(super) const ALL: [Self; 6] =
        [Self::OpenSsl, Self::GnuTls, Self::Go, Self::Nss, Self::WolfSsl, Self::Tlslite];

    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::OpenSsl => "OpenSSL",
            Self::GnuTls => "GnuTLS",
            Self::Go => "Go",
            Self::Nss => "NSS",
            Self::WolfSsl => "wolfSSL",
            Self::Tlslite => "tlslite-ng",
        }
    }

    /// Builds or fetches the peer's programs to `folder`, from the sources in `tools`.
    pub(super) fn prepare(self, tools: &Path, folder: &Path) -> Result<()> {
        match self {
            Self::OpenSsl | Self::GnuTls => Ok(()),
            Self::Go => {
                let mut build = Command::new("go");
                build.args(["build", "-o"]).arg(folder.join("peer-go")).arg("peer.go");
                process::run(build.current_dir(tools))
            }
            Self::WolfSsl => {
                let mut compile = Command::new("cc");
                compile.arg("-O1").arg("-o").arg(folder.join("peer-wolfssl"));
                process::run(compile.arg(tools.join("peer.c")).arg("-lwolfssl"))
            }
            Self::Tlslite => {
                let packages = fetch_from_pypi(folder, &[TLSLITE])?;
                let known = folder.join(PYTHON);
                let _ = std::fs::remove_file(&known);
                symlink(packages, known).context("can't link to the packages of PyPI")?;
                let copied = std::fs::copy(tools.join("peer.py"), folder.join("peer.py"));
                copied.map(drop).context("can't copy peer.py")
            }
            Self::Nss => nss_database(folder),
        }
    }

    /// Whether the peer's release, or our end, has no such parameter.
    pub(super) fn lacks(self, case: &Case, role: Role) -> bool {
        match case.name {
            // Younger than the releases in Debian 12; Go's has it from 1.24 on.
            "X25519MLKEM768" => self != Self::Go || go_release().is_none_or(|minor| minor < 24),
            "Ed25519" => self == Self::Nss,
            // `tstclnt` keeps no ticket over its end, and `selfserv` gives one that it needn't take.
            "resumption" => self == Self::Nss && role == Role::Client,
            _ => false,
        }
    }

    /// A server that answers a request, at `port` with the certificate `leaf`.
    pub(super) fn server(self, bench: &Workbench, port: u16, leaf: &str, kind: Kind) -> Command {
        let (chain, key, port) = (format!("{leaf}.pem"), format!("{leaf}.key"), port.to_string());
        let wants_certificate = kind == Kind::ClientCertificate;
        let mut server = match self {
            Self::OpenSsl => {
                let mut server = limited("openssl");
                server.args(["s_server", "-www", "-accept", &port, "-cert", &chain, "-key", &key]);
                if wants_certificate {
                    server.args(["-Verify", "1", "-verify_return_error", "-CAfile", "root.pem"]);
                }
                server
            }
            Self::GnuTls => {
                let mut server = limited("gnutls-serv");
                server.args(["--http", "--port", &port, "--x509cafile", "root.pem"]);
                server.args(["--x509certfile", &chain, "--x509keyfile", &key]);
                if wants_certificate {
                    server.args(["--require-client-cert", "--verify-client-cert"]);
                }
                server
            }
            Self::Nss => {
                let mut server = limited("selfserv");
                server.args(["-d", DATABASE, "-p", &port, "-n", leaf, "-V", "tls1.3:tls1.3"]);
                // Tickets, and two demands for a certificate: each time, and or else the end.
                server.arg("-u").args(wants_certificate.then_some("-rr"));
                server
            }
            Self::Go | Self::WolfSsl | Self::Tlslite => {
                let mut server = self.own_program(bench);
                server.args(["server", &port, &chain, &key, "root.pem"]);
                server.args(wants_certificate.then_some("client-certificate"));
                server
            }
        };
        server.current_dir(&bench.folder);
        server
    }

    /// The clients that connect to `port` one after the other.
    pub(super) fn clients(self, bench: &Workbench, port: u16, kind: Kind) -> Vec<Command> {
        let (own, port) = (kind == Kind::ClientCertificate, port.to_string());
        let resumes = kind == Kind::Resumption;
        let client = match self {
            Self::OpenSsl => {
                let client = |session: &[&str]| {
                    let mut client = limited("openssl");
                    client.args(["s_client", "-connect", &format!("127.0.0.1:{port}")]);
                    client.args(["-CAfile", "root.pem", "-verify_return_error", "-ign_eof"]);
                    client.args(["-servername", "device.test", "-verify_hostname", "device.test"]);
                    if own {
                        client.args(["-cert", "client.pem", "-key", "client.key"]);
                    }
                    client.args(session);
                    client
                };
                if resumes {
                    return ["-sess_out", "-sess_in"].map(|it| client(&[it, "session"])).into();
                }
                client(&[])
            }
            Self::GnuTls => {
                let mut client = limited("gnutls-cli");
                client.args(["--port", &port, "--x509cafile", "root.pem", "127.0.0.1"]);
                client.args(["--sni-hostname", "device.test", "--verify-hostname", "device.test"]);
                if own {
                    client.args(["--x509certfile", "client.pem", "--x509keyfile", "client.key"]);
                }
                client.args(resumes.then_some("--resume"));
                client
            }
            Self::Nss => {
                let mut client = limited("tstclnt");
                client.args(["-h", "127.0.0.1", "-p", &port, "-d", DATABASE]);
                client.args(["-a", "device.test", "-V", "tls1.3:tls1.3", "-A", "request"]);
                client.args(if own { &["-n", "client"][..] } else { &[] });
                client
            }
            Self::Go | Self::WolfSsl | Self::Tlslite => {
                let mut client = self.own_program(bench);
                client.args(["client", &port, "root.pem", if resumes { "2" } else { "1" }]);
                client.args(if own { &["client.pem", "client.key"][..] } else { &[] });
                client
            }
        };
        vec![client]
    }

    /// Whether a client's words mean that its last connection was resumed.
    pub(super) fn says_resumed(self, output: &str) -> bool {
        match self {
            Self::OpenSsl => output.contains("Reused, TLSv1.3"),
            Self::GnuTls => output.contains("This is a resumed session"),
            _ => output.contains("resumed true"),
        }
    }

    fn own_program(self, bench: &Workbench) -> Command {
        match self {
            Self::WolfSsl => limited(bench.folder.join("peer-wolfssl")),
            Self::Tlslite => {
                let mut python = limited("python3");
                python.arg("peer.py").env("PYTHONPATH", bench.folder.join(PYTHON));
                python
            }
            _ => limited(bench.folder.join("peer-go")),
        }
    }
}

/// The minor number of Go's release, as 26 for `go1.26.8`.
fn go_release() -> Option<u32> {
    let text = process::quiet_capture(Command::new("go").arg("version"))?;
    text.split_once("go1.")?.1.split(['.', ' ']).next()?.parse().ok()
}

/// A database of NSS with all certificates.
fn nss_database(folder: &Path) -> Result<()> {
    let _ = std::fs::remove_dir_all(folder.join("nss"));
    std::fs::create_dir(folder.join("nss")).context("can't make the folder of NSS")?;
    let run = |words: &str| {
        // The empty word is a password.
        let mut words = words.split(' ').map(|word| word.trim_matches('\''));
        let mut command = Command::new(words.next().unwrap_or_default());
        process::capture(command.args(words).current_dir(folder)).map(drop)
    };
    run(&format!("certutil -N -d {DATABASE} --empty-password"))?;
    run(&format!("certutil -A -d {DATABASE} -n root -t CT,CT, -i root.pem"))?;
    for (leaf, _) in LEAVES.iter().filter(|(leaf, _)| *leaf != "ed25519") {
        run(&format!(
            "openssl pkcs12 -export -in {leaf}.pem -inkey {leaf}.key -name {leaf} -out {leaf}.p12 -passout pass:"
        ))?;
        run(&format!("pk12util -d {DATABASE} -i {leaf}.p12 -W ''"))?;
    }
    Ok(())
}
