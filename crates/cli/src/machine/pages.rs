//! `tenure pages`: pages of machines, for browsers.

use std::net::SocketAddr;

use anyhow::{Context as _, ensure};
use serde_json::json;
use tenure_board_linux::wait_any;
use tenure_crypto::Seed;
use tenure_pages::{Origins, Pages};
use tenure_wire::console::PAGES_LISTEN_ON;
use tenure_wire::{Address, Target};

use crate::home::Home;
use crate::reach::client::Client;
use crate::reach::network::listener_at;
use crate::reach::visitor::{OwnersFinder, Visitor};
use crate::reach::whom::Where;
use crate::terminal::output::Output;
use crate::terminal::stop::Stop;

/// Serve the pages of machines to browsers, until Ctrl-C.
///
/// A machine has pages if it exports `http`, and lets visitors in if its lease grants calls to all (`callers = ["*"]`)
/// or to the key of these pages, which is printed at the start. Each machine has an origin of its own,
/// `http://MACHINE.DEVICE.localhost:8080`; / lists those of the device. A phone in the same network reaches one machine:
/// tenure pages --machine thermostat --listen 0.0.0.0:8080
///
/// Example: tenure pages --device attic
#[derive(clap::Args)]
pub struct Arguments {
    /// Where browsers reach the pages.
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:8080")]
    listen: SocketAddr,
    /// Serve this machine alone, NAME or NAME@DEVICE, at whatever address a browser comes by.
    #[arg(long, value_name = "MACHINE")]
    machine: Option<Target>,
    /// A domain whose hosts MACHINE.DEVICE.DOMAIN are led here, beside those of `localhost`. It belongs on the Public Suffix List: else
    /// one machine's page sets cookies for another's.
    #[arg(long, value_name = "DOMAIN")]
    domain: Option<String>,
    /// Browsers come by a proxy, which sees to TLS and to how many connections each host has.
    #[arg(long)]
    behind_proxy: bool,
    #[command(flatten)]
    place: Where,
}

/// Runs `tenure pages`.
///
/// # Errors
/// Nobody can listen there, or the keys can't be had.
pub fn run(arguments: &Arguments, output: &Output) -> anyhow::Result<()> {
    let Arguments { listen, machine, domain, behind_proxy, place } = arguments;
    ensure!(
        place.via.is_none(),
        "pages are served without --via: run them at a member of the mesh"
    );
    let is_named = |machine: &Target| matches!(machine, Target::Local(_) | Target::Remote { .. });
    ensure!(
        machine.as_ref().is_none_or(is_named),
        "--machine takes a name, as in --machine thermostat or --machine thermostat@attic"
    );
    let stop = Stop::on_signals()?;
    let home = Home::from_environment()?;
    let client = Client::new(&home)?;
    let seed = Seed::from_bytes(&home.pages_key()?.to_bytes());
    let listener = listener_at(*listen).context("no pages")?;
    let finder = OwnersFinder::new(client, place.clone(), *output);
    let visitor = Visitor::new(seed.device_secret(), finder)?;
    let key = visitor.key();
    let domain = domain.as_ref().map(|domain| domain.trim_matches('.').to_ascii_lowercase());
    let origins = Origins { domain, only: machine.clone() };
    let pages = Pages { origins, visits: visitor, by_proxy: *behind_proxy };
    let address = tenure_pages::serve(listener, pages).context("no pages")?;
    let text = format!("{PAGES_LISTEN_ON} {}, and call machines as #{key}", Address::Udp(address));
    output.line(
        &text,
        &json!({ "event": "listening", "address": address.to_string(), "key": key.to_string() }),
    );
    while !stop.is_requested() {
        wait_any(&[&stop], NAP)?;
    }
    output.line("stopped", &json!({ "event": "stopped" }));
    Ok(())
}

/// The longest that the loop sleeps, which has nothing to do but to end.
const NAP: std::time::Duration = std::time::Duration::from_secs(3600);
