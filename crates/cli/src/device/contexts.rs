//! `tenure use` and `tenure devices`: which device commands are about, and which ones there are.

use std::path::Path;

use anyhow::{Context as _, bail};
use serde_json::{Value, json};
use tenure_wire::Name;

use crate::device::plugged_in;
use crate::home::Home;
use crate::home::known::Known;
use crate::reach::client::Client;
use crate::reach::discovery;
use crate::reach::network::{DEVICE_PORT, HUB_PORT, address_of, split_key};
use crate::reach::whom::Where;
use crate::terminal::output::Output;

/// Say which device, and which hub, commands are about from now on; without anything, show it.
///
/// It is remembered beside your keys; --device, --hub, TENURE_DEVICE and TENURE_HUB go before it.
///
/// Example: tenure use attic --hub 192.168.1.2:7369
#[derive(clap::Args)]
pub struct UseArguments {
    /// The device: a name, HOST:PORT, or HOST:PORT#KEY.
    device: Option<String>,
    /// The hub: HOST:PORT, or HOST:PORT#KEY.
    #[arg(long, value_name = "ADDR")]
    hub: Option<String>,
    /// Forget both.
    #[arg(long, conflicts_with_all = ["device", "hub"])]
    none: bool,
}

/// List your devices that commands have met, or that announce themselves on this network: where each is, and
/// whether it answers. Boards that are plugged into this computer by USB are listed by their serial lines.
///
/// Example: tenure devices
#[derive(clap::Args)]
pub struct DevicesArguments {
    /// Neither look around on the network nor ask them whether they are there.
    #[arg(long)]
    quiet: bool,
    /// Forget this one, which is gone for good.
    #[arg(long, value_name = "NAME")]
    forget: Option<Name>,
}

/// Runs `tenure use`.
///
/// # Errors
/// The device is neither one that is known nor an address, or it can't be written down.
pub fn run(arguments: &UseArguments, output: &Output) -> anyhow::Result<()> {
    let home = Home::from_environment()?;
    let UseArguments { device, hub, none } = arguments;
    if let Some(hub) = hub {
        address_of(split_key(hub)?.0, HUB_PORT)?;
    }
    if let Some(device) = device {
        check_device(&home, device, hub.clone())?;
    }
    let mut known = Known::of(&home)?;
    if *none {
        known.forget_defaults()?;
    } else if device.is_some() || hub.is_some() {
        known.set_defaults(device.clone(), hub.clone())?;
    }
    let (device, hub) = known.defaults();
    let text = format!("device  {}\nhub     {}", device.unwrap_or("-"), hub.unwrap_or("-"));
    output.line(&text, &json!({ "device": device, "hub": hub }));
    Ok(())
}

/// Refuses a device that can't be found: one of another name than those that were met, that is no address, and
/// that neither the hub nor this network knows. A device that was met needn't be there.
fn check_device(home: &Home, device: &str, hub: Option<String>) -> anyhow::Result<()> {
    let Ok(name) = device.parse::<Name>() else {
        return address_of(split_key(device)?.0, DEVICE_PORT).map(drop);
    };
    let mut client = Client::new(home)?;
    if client.known().device(&name)?.is_some() {
        return Ok(());
    }
    let owner = client.keys().signing_key.verifying_key();
    let place = Where { hub, ..Where::of(device) };
    place.place(&mut client, &owner).map(drop).with_context(|| {
        let names: Vec<&str> = client.known().devices().map(|(name, ..)| name).collect();
        match names.as_slice() {
            [] => format!("`{name}` is no device that you have met; you have met none yet"),
            names => {
                format!("`{name}` is none of the devices that you have met: {}", names.join(", "))
            }
        }
    })
}

/// Runs `tenure devices`.
///
/// # Errors
/// The memory of devices can't be read, or the device to forget isn't in it.
pub fn devices(arguments: &DevicesArguments, output: &Output) -> anyhow::Result<()> {
    let mut client = Client::new(&Home::from_environment()?)?;
    if let Some(name) = &arguments.forget {
        if client.known().device(name)?.is_none() {
            bail!("no device {name} is known; see `tenure devices`");
        }
        client.known_mut().forget_device(name)?;
        output.line(&format!("forgot {name}"), &json!({ "forgot": name.as_str() }));
        return Ok(());
    }
    let strangers = if arguments.quiet { Vec::new() } else { meet_nearby(&mut client) };
    let met: Vec<[String; 3]> = client
        .known()
        .devices()
        .map(|(name, key, address)| [name, key, address].map(str::to_string))
        .collect();
    let mut objects = Vec::new();
    for [name, key, address] in met {
        let answers = (!arguments.quiet).then(|| answers(&mut client, &address, &key));
        objects.push(json!({ "device": name, "key": key, "address": address, "answers": answers }));
        let state = match answers {
            None => "",
            Some(true) => "answers",
            Some(false) => "silent, or another is there",
        };
        if !output.is_json() {
            output.line(&format!("{name:<16} {address:<22} {state}"), &Value::Null);
        }
    }
    let lines = plugged_in::lines(Path::new("/"));
    if output.is_json() {
        let found = json!({ "devices": objects, "strangers": strangers, "lines": lines });
        output.line("", &found);
        return Ok(());
    }
    for address in &strangers {
        output.line(&format!("{:<16} {address:<22} not yours", "-"), &Value::Null);
    }
    for line in &lines {
        let line = line.display();
        let text =
            format!("{:<16} {line} plugged in; `tenure serial {line}` gives it an address", "-");
        output.line(&text, &Value::Null);
    }
    if objects.is_empty() && strangers.is_empty() && lines.is_empty() {
        output.line(
            "no device was met yet; name one by its address: --device HOST:PORT",
            &Value::Null,
        );
    }
    Ok(())
}

/// Meets the user's devices that announce themselves on this network; returns the addresses of others.
fn meet_nearby(client: &mut Client) -> Vec<String> {
    let strange =
        discovery::announced().filter(|address| client.device(&(*address).into()).is_err());
    strange.map(|address| address.to_string()).collect()
}

/// Whether what is at `address` says that it has that key, which proves nothing.
fn answers(client: &mut Client, address: &str, key: &str) -> bool {
    let Ok(address) = address.parse() else { return false };
    let identity = client.identify(&[address], "device").ok();
    let shown = identity.and_then(|(_, identity)| identity.key);
    shown.is_some_and(|shown| shown.to_string() == key)
}
