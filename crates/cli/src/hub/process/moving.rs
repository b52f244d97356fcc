//! `tenure hub move`: a hub's records from a folder to a server, and back.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};
use tenure_hub_server::{Copied, Database, Location, Server};

use super::DATABASE;
use crate::terminal::output::Output;

/// Move the records of a hub that doesn't run to another database, which is empty.
///
/// Each of the two is a hub's folder, the address of a database of PostgreSQL (postgres://USER@HOST/DATABASE), or @FILE with
/// the address in a file that only its owner reads. A move that broke off goes on by the same command. The old database is
/// retired once the new one has the same rows and the same audit log: it keeps its records, and no hub starts on it.
///
/// Example: tenure hub move --from hub --to postgres://tenure@db.example/tenure
#[derive(clap::Args)]
pub(super) struct MoveArguments {
    /// Where the records are.
    #[arg(long, value_name = "PLACE")]
    from: String,
    /// Where they are to be.
    #[arg(long, value_name = "PLACE")]
    to: String,
    /// Check a server's certificate by the authorities in this file (PEM) instead of this computer's.
    #[arg(long, value_name = "FILE")]
    database_ca: Option<PathBuf>,
}

/// Moves the records, and says how many of each table there are.
///
/// # Errors
/// A hub runs on one of them, the new one isn't empty, or one fails.
pub(super) fn run(arguments: &MoveArguments, output: &Output) -> Result<()> {
    let authority = arguments.database_ca.as_deref();
    let from = place(&arguments.from, authority)?;
    let to = place(&arguments.to, authority)?;
    if let Place::Folder(folder) = &to {
        fs::create_dir_all(folder)
            .with_context(|| format!("can't make the folder {}", folder.display()))?;
    }
    let (from, to) = (from.location(), to.location());
    let mut tell = |copied: &Copied| {
        let Copied { table, rows, digest } = copied;
        let object = serde_json::json!({ "table": table, "rows": rows, "digest": digest });
        output.line(&copied.to_string(), &object);
    };
    Database::move_all(&from, &to, &mut tell)?;
    let retired = Database::retire(&from)?;
    let text = format!("moved to {to}; the records of before are kept in {retired}");
    let object = serde_json::json!({ "moved": to.to_string(), "kept": retired });
    output.line(&text, &object);
    Ok(())
}

enum Place {
    Folder(PathBuf),
    Server(Location),
}

impl Place {
    fn location(&self) -> Location {
        match self {
            Self::Folder(folder) => folder.join(DATABASE).into(),
            Self::Server(server) => server.clone(),
        }
    }
}

fn place(text: &str, authority: Option<&Path>) -> Result<Place> {
    if let Some(file) = text.strip_prefix('@') {
        let server = Server::in_file(Path::new(file), authority)?;
        return Ok(Place::Server(Location::server(server)));
    }
    match text.split_once("://") {
        Some(("postgres" | "postgresql", _)) => {
            let server = Server::without_password(text, authority)?;
            Ok(Place::Server(Location::server(server)))
        }
        Some((scheme, _)) => bail!("a hub's records are in no {scheme}"),
        None => Ok(Place::Folder(text.into())),
    }
}
