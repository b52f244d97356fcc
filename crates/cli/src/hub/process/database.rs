//! The arguments that name a hub's database on a server.

use std::env;
use std::path::PathBuf;

use anyhow::Result;
use tenure_hub_server::{Location, Server};

/// The variable that may hold the address, with a password if there is one.
const VARIABLE: &str = "TENURE_DATABASE";

/// A database on a server, instead of one in the hub's folder.
#[derive(clap::Args)]
pub(super) struct DatabaseArguments {
    /// Keep the hub in a database of PostgreSQL 15 or later: postgres://USER@HOST/DATABASE. A password isn't taken here,
    /// where all who list processes see it, but in the environment or in --database-file.
    #[arg(long, value_name = "URL", env = VARIABLE, hide_env_values = true)]
    database: Option<String>,
    /// The same, with the address in a file that only its owner reads; it comes before the environment.
    #[arg(long, value_name = "FILE")]
    database_file: Option<PathBuf>,
    /// Check the server's certificate by the authorities in this file (PEM) instead of this computer's.
    #[arg(long, value_name = "FILE")]
    database_ca: Option<PathBuf>,
}

impl DatabaseArguments {
    /// The database that they name, if they name one.
    ///
    /// # Errors
    /// The address can't be read, or isn't safe where it stands.
    pub(super) fn location(&self) -> Result<Option<Location>> {
        let authority = self.database_ca.as_deref();
        let server = match (&self.database_file, &self.database) {
            (Some(file), _) => Server::in_file(file, authority)?,
            (None, Some(address)) if is_of_the_environment(address) => {
                Server::at(address, authority)?
            }
            (None, Some(address)) => Server::without_password(address, authority)?,
            (None, None) => return Ok(None),
        };
        Ok(Some(Location::server(server)))
    }

    /// Whether the command line itself names one, and not the environment alone.
    pub(super) fn is_on_the_command_line(&self) -> bool {
        let is_said = |address: &String| !is_of_the_environment(address);
        self.database_file.is_some() || self.database.as_ref().is_some_and(is_said)
    }
}

fn is_of_the_environment(address: &str) -> bool {
    env::var(VARIABLE).is_ok_and(|value| value == address)
}
