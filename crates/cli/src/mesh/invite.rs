//! `tenure invite`: lets a device that runs elsewhere into the owner's mesh; `tenure mesh`: what it
//! knows there.

use std::time::Duration;

use anyhow::Context as _;
use serde_json::json;
use tenure_wire::PublicKey;
use tenure_wire::control::{Client as _, Join, MeshStatus};
use tenure_wire::printable::counted;

use crate::device::link::invitation;
use crate::home::Home;
use crate::reach::client::{Client, Route};
use crate::reach::place::Place;
use crate::reach::whom::Where;
use crate::terminal::clock::parse_span_or_seconds;
use crate::terminal::output::Output;

mod strangers;

/// Let a device into your mesh that runs where your keys aren't.
///
/// It gets the network's key, encrypted to the device's own machine and signed by you; it remembers it,
/// and takes it from nobody else. Beforehand it waits, started with a link such as `--mesh-interface`.
/// The device must be enrolled by you, and proves it; one that isn't yet is named by the key that it shows on its
/// console. An address alone decides nothing: whoever answers there would get the key.
///
/// A device that only its neighbours in the mesh can hear asks them to be let in. Name it by its key, or by
/// its name, and a member of the mesh by its address: `--via`. Then it is enrolled too.
///
/// Example: tenure invite 192.168.1.20:7370
///
/// Example: tenure invite attic --via 192.168.1.20:7370
#[derive(clap::Args)]
pub struct Arguments {
    /// The device: HOST:PORT, or a name that you met before; with --via, its key or its name.
    device: String,
    /// The key that the device shows on its console; needed if it isn't enrolled.
    #[arg(long, value_name = "KEY")]
    key: Option<PublicKey>,
    /// A member of the mesh, whoever of them hears the device: HOST:PORT.
    #[arg(long, value_name = "ADDR")]
    via: Option<String>,
    /// With --via, how long to wait until the device is heard, and again until it is in; a number alone is seconds.
    #[arg(long, value_name = "SPAN", default_value = "90s", requires = "via", value_parser = parse_span_or_seconds)]
    wait: Duration,
}

/// Show what a device knows of its mesh: its neighbours, and the ways to others.
///
/// Example: tenure mesh 127.0.0.1:7370
#[derive(clap::Args)]
pub struct MeshArguments {
    /// The device: HOST:PORT, HOST:PORT#KEY, or a name that you met before.
    address: String,
    /// Show who asks to be let in instead, as far as members have heard: those that are yours.
    #[arg(long)]
    strangers: bool,
}

/// Runs `tenure invite`.
///
/// # Errors
/// Nobody answers there, it is another device, it belongs to somebody else, or it refuses.
pub fn run(arguments: &Arguments, output: &Output) -> anyhow::Result<()> {
    let home = Home::from_environment()?;
    let mut client = Client::new(&home)?;
    if let Some(member) = &arguments.via {
        return strangers::invite(&mut client, &home, arguments, member, output);
    }
    let address = &arguments.device;
    let route = match arguments.key {
        Some(key) => {
            let owner = client.keys().signing_key.verifying_key();
            let place = Where::of(address).place(&mut client, &owner)?;
            client.route(&Place { key: Some(key), ..place })?
        }
        None => {
            let device = Where::of(address).connect(&mut client);
            let device = device.context(
                "only a device that you enrolled is invited by its address; to invite another, give \
                 the key that it shows on its console with --key",
            )?;
            device.route
        }
    };
    let invitation = invitation(&home, &client.keys().signing_key, &route.key)?;
    client
        .at(&route)
        .join(Join { invitation })
        .with_context(|| format!("{address} doesn't join the mesh"))?;
    let _ = client.note(&route);
    let status: MeshStatus = client.at(&route).mesh(())?;
    output.line(
        &format!("{address} is in the mesh as {}", status.node),
        &json!({ "event": "invited", "node": status.node, "key": route.key.to_string() }),
    );
    Ok(())
}

/// Runs `tenure mesh`.
///
/// # Errors
/// Nobody answers there, the device belongs to somebody else, or it is in no mesh.
pub fn show(arguments: &MeshArguments, output: &Output) -> anyhow::Result<()> {
    let mut client = Client::new(&Home::from_environment()?)?;
    let route = route_to(&mut client, &arguments.address)?;
    if arguments.strangers {
        return strangers::list(&mut client, &route, output);
    }
    let status: MeshStatus = client.at(&route).mesh(())?;
    if output.is_json() {
        output.line("", &serde_json::to_value(&status)?);
        return Ok(());
    }
    let print = |text: &str| output.line(text, &json!(null));
    print(&format!("{} with {}", status.node, counted(status.neighbours, "neighbour")));
    for way in &status.ways {
        let name = way.device.as_ref().map_or("(no record yet)", |name| name.as_str());
        let metric = f64::from(way.metric) / 64.0;
        print(&format!("  {}  {name:<16} by {}, {metric:.1} transmissions", way.to, way.next_hop));
    }
    Ok(())
}

/// The way to a device that is asked, and told nothing that it could misuse.
fn route_to(client: &mut Client, text: &str) -> anyhow::Result<Route> {
    let owner = client.keys().signing_key.verifying_key();
    let place = Where::of(text).place(client, &owner)?;
    let route = client.route(&place)?;
    // One that is another owner's, or that can't be noted, answers as before.
    let _ = client.note(&route);
    Ok(route)
}
