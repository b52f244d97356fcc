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
    let (pushed, taken_back) = hub
        .run(move |_, database| {
            let connection = &database.connection;
            Ok((installable(connection, &who, &name)?, taken_back(connection, &who, &name)?))
        })
        .await?;
    Ok(html! {
        @for TakenBack { package, version, rollout, reason } in &taken_back {
            p { "Not proposed: " (package) " " (version) ", which "
                a href={ "/rollouts/" (rollout) } { "rollout " (rollout) } " took back"
                @if !reason.is_empty() { " (" (reason) ")" } "." }
        }
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

/// A version that a rollout took back.
struct TakenBack {
    package: String,
    version: String,
    rollout: i64,
    reason: String,
}

/// The last rollout of the package of `manifests m`, if that took it back: whoever wants it all the same rolls it out again.
const TAKEN_BACK: &str = "r.who = m.who AND r.package_digest = m.package_digest \
     AND r.state IN ('rolling back', 'rolled back') AND r.id = \
     (SELECT max(n.id) FROM rollouts n WHERE n.who = m.who AND n.package_digest = m.package_digest)";

/// What the last rollout took back of the newest packages of each repository, if `who` owns `device`.
fn taken_back(
    connection: &Connection,
    who: &str,
    device: &str,
) -> Result<Vec<TakenBack>, sql::Error> {
    let query = format!(
        "SELECT m.package, m.version, r.id, r.reason FROM manifests m JOIN rollouts r ON {TAKEN_BACK} WHERE m.id IN \
         (SELECT max(id) FROM manifests WHERE who = ?1 AND package IS NOT NULL \
         AND EXISTS (SELECT 1 FROM devices WHERE owner = ?1 AND name = ?2) GROUP BY repository) \
         ORDER BY m.id DESC LIMIT ?3"
    );
    let read = |row: &sql::Row<'_>| {
        Ok(TakenBack {
            package: row.get(0)?,
            version: row.get(1)?,
            rollout: row.get(2)?,
            reason: row.get(3)?,
        })
    };
    connection.statement(&query).query_map(params![who, device, REPOSITORIES_MAX], read)
}

/// The newest package of each repository that no rollout took back, if `who` owns `device`.
fn installable(
    connection: &Connection,
    who: &str,
    device: &str,
) -> Result<Vec<Pushed>, sql::Error> {
    let query = format!(
        "SELECT repository, package, version, digest FROM manifests WHERE id IN (SELECT max(m.id) FROM manifests m \
         WHERE m.who = ?1 AND m.package IS NOT NULL AND EXISTS (SELECT 1 FROM devices WHERE owner = ?1 AND name = ?2) \
         AND NOT EXISTS (SELECT 1 FROM rollouts r WHERE {TAKEN_BACK}) GROUP BY m.repository) ORDER BY id DESC LIMIT ?3"
    );
    let statement = connection.statement(&query);
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
