//! A server of PostgreSQL: its address, as `postgres://user@host/database`, and how it is spoken to.
//!
//! Invariant: what goes over a network is encrypted, and the server's certificate is checked, unless the address says
//! `sslmode=disable`.

use std::fmt;
use std::fs::File;
use std::io::{self, Read as _};
use std::net::IpAddr;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use tokio_postgres::config::{Host, SslMode, TargetSessionAttrs};
use tokio_postgres::{Config, NoTls};
use tokio_postgres_rustls::MakeRustlsConnect;

use super::client::Client;
use super::faults::in_words;
use crate::store::sql::Error;
use crate::trust;

/// How long a connection to one of the server's addresses may take, and how long what was sent may stay unacknowledged.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(3);
const UNHEARD: Duration = Duration::from_secs(10);
/// The longest address that is read from a file, in bytes.
const ADDRESS_BYTES_MAX: u64 = 4096;

/// A server of PostgreSQL, and the database on it.
#[derive(Clone)]
pub struct Server {
    config: Config,
    tls: Option<MakeRustlsConnect>,
}

/// Why the place of a database can't be used.
#[derive(Debug, thiserror::Error)]
pub enum LocationError {
    /// It is no address.
    #[error("it must be postgres://USER@HOST/DATABASE: {0}")]
    Address(String),
    /// A command line is seen by all who list processes.
    #[error(
        "a password on a command line is seen by everybody on this computer: put the address into a file that only you \
         read, or into the environment"
    )]
    Password,
    /// Somebody else may read or write the file.
    #[error("{0} has to be its user's alone: chmod 600")]
    NotPrivate(PathBuf),
    /// The file can't be read.
    #[error("can't read {path}: {source}")]
    File {
        /// Which file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// There is no certificate to check the server's by.
    #[error("no certificate authority to check the server by: {0}")]
    Authority(String),
}

impl Server {
    /// The server at `address`, whose certificate is checked by the authorities in the file `authority` (PEM), or by
    /// those of this computer.
    ///
    /// # Errors
    /// The address or the file can't be read.
    pub fn at(address: &str, authority: Option<&Path>) -> Result<Self, LocationError> {
        let read = address.parse::<Config>();
        let mut config = read.map_err(|error| LocationError::Address(in_words(&error)))?;
        if config.get_hosts().is_empty() || config.get_dbname().is_none() {
            return Err(LocationError::Address("it names no host or no database".into()));
        }
        let mode = ssl_mode(&config);
        config
            .application_name("tenure hub")
            .connect_timeout(CONNECT_TIMEOUT)
            .tcp_user_timeout(UNHEARD)
            .keepalives_idle(UNHEARD)
            .target_session_attrs(TargetSessionAttrs::ReadWrite)
            .ssl_mode(mode);
        let needs_tls = config.get_ssl_mode() == SslMode::Require;
        let tls = needs_tls.then(|| tls(authority)).transpose()?;
        Ok(Self { config, tls })
    }

    /// The same for an address that others may see, and that has no password therefore.
    ///
    /// # Errors
    /// As [`Self::at`], or there is a password in it.
    pub fn without_password(
        address: &str,
        authority: Option<&Path>,
    ) -> Result<Self, LocationError> {
        let server = Self::at(address, authority)?;
        match server.config.get_password() {
            None => Ok(server),
            Some(_) => Err(LocationError::Password),
        }
    }

    /// The server whose address stands in a file that its user alone reads.
    ///
    /// # Errors
    /// As [`Self::at`], or others may read the file.
    pub fn in_file(path: &Path, authority: Option<&Path>) -> Result<Self, LocationError> {
        let failed = |source| LocationError::File { path: path.to_path_buf(), source };
        let file = File::open(path).map_err(failed)?;
        if file.metadata().map_err(failed)?.mode() & 0o077 != 0 {
            return Err(LocationError::NotPrivate(path.to_path_buf()));
        }
        let mut address = String::new();
        file.take(ADDRESS_BYTES_MAX).read_to_string(&mut address).map_err(failed)?;
        Self::at(address.trim(), authority)
    }

    /// A new connection.
    ///
    /// # Errors
    /// The server isn't there, or refuses.
    pub(super) fn connect(&self) -> Result<Client, Error> {
        // One of several hosts may be gone without a word.
        let hosts = u32::try_from(self.config.get_hosts().len()).unwrap_or(1);
        let patience = CONNECT_TIMEOUT.saturating_mul(hosts.saturating_add(1));
        let connected = Client::connect(&self.config, self.tls.as_ref(), patience);
        connected.map_err(|error| match error {
            Error::Away(reason) => Error::Away(format!("{self}: {reason}")),
            error => error,
        })
    }

    /// A new connection for whoever brings the tables forward, once the server has shown that it answers.
    ///
    /// # Errors
    /// The server isn't there, or refuses.
    pub(super) fn connect_to_migrate(&self) -> Result<postgres::Client, Error> {
        drop(self.connect()?);
        let config = postgres::Config::from(self.config.clone());
        let connected = match &self.tls {
            Some(tls) => config.connect(tls.clone()),
            None => config.connect(NoTls),
        };
        connected.map_err(|error| match error.as_db_error() {
            Some(_) => error.into(),
            None => Error::Away(format!("{self}: {}", in_words(&error))),
        })
    }
}

/// The encryption of an address that doesn't say: always over a network, never within this computer.
fn ssl_mode(config: &Config) -> SslMode {
    let is_here = config.get_hosts().iter().all(|host| match host {
        Host::Unix(_) => true,
        Host::Tcp(name) => {
            name == "localhost" || name.parse().is_ok_and(|address: IpAddr| address.is_loopback())
        }
    });
    match config.get_ssl_mode() {
        SslMode::Prefer if is_here => SslMode::Disable,
        SslMode::Prefer => SslMode::Require,
        said => said,
    }
}

fn tls(authority: Option<&Path>) -> Result<MakeRustlsConnect, LocationError> {
    let authority_error = |text: String| LocationError::Authority(text);
    let named: Option<Vec<_>> = match authority {
        Some(path) => {
            let read = CertificateDer::pem_file_iter(path).and_then(Iterator::collect);
            Some(read.map_err(|error| authority_error(format!("{}: {error}", path.display())))?)
        }
        None => None,
    };
    let roots = trust::authorities(named);
    if roots.is_empty() {
        return Err(authority_error("none was found".into()));
    }
    let config = trust::client(roots).map_err(|error| authority_error(error.to_string()))?;
    Ok(MakeRustlsConnect::new(config))
}

/// The address without its password.
impl fmt::Display for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let hosts = self.config.get_hosts().iter().map(|host| match host {
            Host::Tcp(name) => name.clone(),
            Host::Unix(folder) => folder.display().to_string(),
        });
        let hosts: Vec<String> = hosts.collect();
        let database = self.config.get_dbname().unwrap_or_default();
        write!(f, "PostgreSQL database {database} at {}", hosts.join(", "))
    }
}

impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Server({self})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_goes_over_a_network_is_encrypted_unless_the_address_says_otherwise() {
        for (address, mode) in [
            ("postgres://hub@db.example/tenure", SslMode::Require),
            ("postgres://hub@127.0.0.1,db.example/tenure", SslMode::Require),
            ("postgres://hub@db.example/tenure?sslmode=disable", SslMode::Disable),
            ("postgres://hub@127.0.0.1:5433/tenure", SslMode::Disable),
            ("postgres://hub@localhost/tenure?sslmode=require", SslMode::Require),
            ("postgres://hub@%2Frun%2Fpostgresql/tenure", SslMode::Disable),
        ] {
            assert_eq!(ssl_mode(&address.parse().unwrap()), mode, "{address}");
        }
    }

    #[test]
    fn address_with_a_password_is_refused_where_others_see_it_and_never_shown() {
        let address = "postgres://hub:secret@localhost/tenure";
        let server = Server::at(address, None).unwrap();
        assert!(!format!("{server} {server:?}").contains("secret"));
        let refused = Server::without_password(address, None);
        assert!(matches!(refused, Err(LocationError::Password)));
        let missing = Server::at("postgres://hub@localhost", None);
        assert!(matches!(missing, Err(LocationError::Address(_))));
    }

    #[test]
    fn file_that_others_read_is_refused() {
        use std::os::unix::fs::PermissionsExt as _;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("database");
        std::fs::write(&path, "postgres://hub:secret@localhost/tenure\n").unwrap();
        let set =
            |mode| std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
        set(0o640);
        assert!(matches!(Server::in_file(&path, None), Err(LocationError::NotPrivate(_))));
        set(0o600);
        Server::in_file(&path, None).unwrap();
    }
}
