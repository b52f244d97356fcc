//! The scene with the world outside: a server that machines reach by HTTPS, a broker of MQTT, and a page that a browser
//! opens.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use tenure_testbed::patience;

use super::cast::{Cast, Device};
use super::{explain, page, title};
use crate::files;
use crate::interop::certificates;

/// The server's certificate, by the name of its files.
const CERTIFICATE: &str = "p256";
/// What the courier's project says of its server, which is another here.
const SERVER_OF_EXAMPLE: &str = "https://api.example.com/v1/";

/// What the porch's owner lets cross to the broker, and where it appears there: a sensor's readings, and what a machine
/// publishes.
const OUTWARD: [(&str, &str); 2] =
    [("device.temperature", "porch/temperature"), ("command.heater", "porch/heater")];

/// Shows them on a device of its own; `examples` has the example machines.
pub(super) fn play(cast: &mut Cast, examples: &Path) -> Result<()> {
    title(
        "A server outside speaks HTTPS and a broker MQTT; one more device, the porch, knows both",
    );
    let folder = cast.folder("outside")?;
    certificates::make_some(&folder, &[CERTIFICATE])?;
    let server = cast.start_server(&folder.join(CERTIFICATE))?;
    let broker = cast.start_broker(&folder)?;
    let files = [
        ("--reach-ca", folder.join("root.pem")),
        ("--bridge", rules(&folder, &broker)?),
        ("--peripherals", examples.join("climate/peripherals.toml")),
    ];
    let (porch, pages) = cast.start_porch(&files)?;

    title(
        "A machine sends a reading there: its lease grants it one request to that server, by POST",
    );
    let place = format!("https://{server}/v1/");
    let project = folder.join("courier");
    copy(&examples.join("courier"), &project, &place)?;
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
    messages(cast, &porch, &broker)?;
    page_of_panel(cast, &porch, &pages)
}

/// Writes the rules of the porch's bridge to the broker.
fn rules(folder: &Path, port: &str) -> Result<PathBuf> {
    let mut text = format!("broker = \"mqtt://127.0.0.1:{port}\"\n");
    for (topic, at_broker) in OUTWARD {
        text += &format!("[[out]]\ntopic = \"{topic}\"\nto = \"{at_broker}\"\nretain = true\n");
    }
    let path = folder.join("bridge.toml");
    std::fs::write(&path, text).context("cannot write the rules of the bridge")?;
    Ok(path)
}

/// A machine reads the thermometer and commands the heater; both are heard at the broker.
fn messages(cast: &Cast, porch: &Device, port: &str) -> Result<()> {
    title("A machine hears the thermometer and publishes; the broker's own client hears both");
    cast.install(porch, &["climate"])?;
    for (_, topic) in OUTWARD {
        let mut listen = Command::new("mosquitto_sub");
        listen.args(["-h", "127.0.0.1", "-p", port, "-t", topic, "-C", "1", "-v"]);
        listen.args(["-W", &patience().as_secs().to_string()]);
        let heard = cast.show_other(&mut listen)?;
        ensure!(heard.starts_with(topic), "the broker has {heard}");
    }
    explain("Nothing crosses but what the owner's rules name.");
    Ok(())
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
