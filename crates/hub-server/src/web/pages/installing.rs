//! Commands that install a package on a device, for the owner to copy from its page.
//!
//! The hub holds no key that can place a machine, so a page can't install one. It names the package by the digest of
//! its manifest: the command installs what the page showed, whatever the tag means by then.

use axum::response::Response;
use maud::{Markup, html};

use crate::store::sql::{self, Connection, params};
use crate::web::state::HubState;

/// The most repositories that a page has commands for: those with the newest pushes.
const REPOSITORIES_MAX: u8 = 8;

/// A package that the owner pushed.
struct Pushed {
    repository: String,
    package: String,
    version: String,
    /// The digest of its manifest.
    digest: String,
}

/// The commands for `device`, if the pass is its owner's and the owner pushed packages.
///
/// # Errors
/// The answer where the database fails.
pub(crate) async fn on_device(
    hub: &HubState,
    who: String,
    device: &str,
) -> Result<Markup, Response> {
    let name = device.to_string();
    let pushed =
        hub.run(move |_, database| Ok(installable(&database.connection, &who, &name)?)).await?;
    Ok(html! {
        @if !pushed.is_empty() {
            h2 id="install" { "Install a package" }
            p { "Your key alone can place a machine, and the hub doesn't have it. Type this on the computer that does; \
                 it asks which rights the machine gets." }
            @for one in &pushed {
                h3 { (one.package) " " (one.version) " from " (one.repository) }
                pre { code { (command(one, device)) } }
            }
        }
    })
}

/// The newest package of each repository, if `who` owns `device`.
fn installable(
    connection: &Connection,
    who: &str,
    device: &str,
) -> Result<Vec<Pushed>, sql::Error> {
    let query = "SELECT repository, package, version, digest FROM manifests WHERE id IN (SELECT max(id) FROM manifests \
         WHERE who = ?1 AND package IS NOT NULL AND EXISTS (SELECT 1 FROM devices WHERE owner = ?1 AND name = ?2) \
         GROUP BY repository) ORDER BY id DESC LIMIT ?3";
    let statement = connection.statement(query);
    let read = |row: &sql::Row<'_>| {
        Ok(Pushed {
            repository: row.get(0)?,
            package: row.get(1)?,
            version: row.get(2)?,
            digest: row.get(3)?,
        })
    };
    statement.query_map(params![who, device, REPOSITORIES_MAX], read)
}

/// The command that fetches and installs it. Names, repositories and digests have no character that a shell expands:
/// they were checked when the device was listed and the package pushed.
fn command(pushed: &Pushed, device: &str) -> String {
    let Pushed { repository, package, digest, .. } = pushed;
    format!(
        "tenure pull {repository}@{digest} --to {package}.tenure\n\
         tenure install {package}.tenure --device {device}"
    )
}
