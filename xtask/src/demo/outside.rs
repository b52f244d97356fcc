//! The scene with the world outside: a server that machines reach by HTTPS, and a page that a browser opens.

use std::path::Path;

use anyhow::{Context, Result, ensure};

use super::cast::{Cast, Device};
use super::{explain, page, title};
use crate::files;
use crate::interop::certificates;

/// The server's certificate, by the name of its files.
const CERTIFICATE: &str = "p256";
/// What the courier's project says of its server, which is another here.
const SERVER_OF_EXAMPLE: &str = "https://api.example.com/v1/";

/// Shows both on a device of its own; the courier's project is at `courier`.
pub(super) fn play(cast: &mut Cast, courier: &Path) -> Result<()> {
    title(
        "A server outside speaks HTTPS; one more device, the porch, may reach it and serves pages",
    );
    let folder = cast.folder("outside")?;
    certificates::make_some(&folder, &[CERTIFICATE])?;
    let server = cast.start_server(&folder.join(CERTIFICATE))?;
    let (porch, pages) = cast.start_porch(&folder.join("root.pem"))?;

    title(
        "A machine sends a reading there: its lease grants it one request to that server, by POST",
    );
    let place = format!("https://{server}/v1/");
    let project = folder.join("courier");
    copy(courier, &project, &place)?;
    cast.build(&project, "courier")?;
    cast.install(&porch, &["thermostat", "panel"])?;
    let right = format!("reach=POST {place}readings");
    let grants = ["--grant", &right, "--grant", "callers=*@*"];
    cast.show(&[&["install", "courier.tenure"][..], &grants].concat(), Some(&porch))?;
    let degrees = cast.call(&porch, "thermostat", "read", None)?;
    let status = cast.call(&porch, "courier", "send", Some(&degrees))?;
    ensure!(status == "200", "the server says {status}");
    explain("The TLS 1.3 of both ends is this project's. What the lease doesn't grant stays here:");
    cast.call_that_fails(&porch, "courier", "fetch")?;
    page_of_panel(cast, &porch, &pages)
}

/// Copies the courier's project for a server at `place`.
fn copy(courier: &Path, project: &Path, place: &str) -> Result<()> {
    std::fs::create_dir_all(project.join("src")).context("cannot make the courier's folder")?;
    for file in ["Cargo.toml", "Cargo.lock", "src/lib.rs"] {
        std::fs::copy(courier.join(file), project.join(file))
            .with_context(|| format!("cannot copy the courier's {file}"))?;
    }
    let manifest = files::read(&courier.join("tenure.toml"))?;
    ensure!(manifest.contains(SERVER_OF_EXAMPLE), "the courier's server isn't {SERVER_OF_EXAMPLE}");
    let manifest = manifest.replace(SERVER_OF_EXAMPLE, place);
    std::fs::write(project.join("tenure.toml"), manifest).context("cannot write the project")
}

/// A machine serves a page, which sets the thermostat.
fn page_of_panel(cast: &Cast, porch: &Device, pages: &str) -> Result<()> {
    title("A machine serves a page to browsers; the form on it sets the thermostat");
    let host = "panel.porch.localhost";
    let shown = page::get(pages, "/", &[("Host", host)])?;
    ensure!(shown.contains("<output>21.0 °C</output>"), "the panel's page: {shown}");
    let set = page::post(pages, "/degrees", &[("Host", host)], "degrees=19.5")?;
    ensure!(set.starts_with("HTTP/1.1 303 "), "the panel's answer: {set}");
    let degrees = cast.call(porch, "thermostat", "read", None)?;
    ensure!(degrees == "19.5", "the thermostat says {degrees}");
    let (_, port) = pages.rsplit_once(':').context("the address of the pages has no port")?;
    explain(&format!("With --keep, open http://{host}:{port}/."));
    Ok(())
}
