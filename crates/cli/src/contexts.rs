//! `tenure use` and `tenure devices`: which device commands are about, and which ones there are.

use anyhow::bail;
use serde_json::{Value, json};
use tenure_wire::Name;

use crate::client::Client;
use crate::home::Home;
use crate::known::Known;
use crate::network::{DEVICE_PORT, HUB_PORT, address_of, split_key};
use crate::output::Output;

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

/// List your devices that commands have met: where each was last, and whether it answers.
///
/// Example: tenure devices
#[derive(clap::Args)]
pub struct DevicesArguments {
    /// Don't ask them whether they are there.
    #[arg(long)]
    quiet: bool,
    /// Forget this one, which is gone for good.
    #[arg(long, value_name = "NAME")]
    forget: Option<Name>,
}

/// Runs `tenure use`.
///
/// # Errors
/// What is named is neither a name nor an address, or it can't be written down.
pub fn run(arguments: &UseArguments, output: &Output) -> anyhow::Result<()> {
    let mut known = Known::of(&Home::from_environment()?)?;
    let UseArguments { device, hub, none } = arguments;
    if let Some(device) = device
        && device.parse::<Name>().is_err()
    {
        address_of(split_key(device)?.0, DEVICE_PORT)?;
    }
    if let Some(hub) = hub {
        address_of(split_key(hub)?.0, HUB_PORT)?;
    }
    if *none {
        known.set_defaults(None, None)?;
    } else if device.is_some() || hub.is_some() {
        let (device_before, hub_before) = known.defaults();
        let device = device.as_deref().or(device_before).map(str::to_string);
        let hub = hub.as_deref().or(hub_before).map(str::to_string);
        known.set_defaults(device, hub)?;
    }
    let (device, hub) = known.defaults();
    let text = format!("device  {}\nhub     {}", device.unwrap_or("-"), hub.unwrap_or("-"));
    output.line(&text, &json!({ "device": device, "hub": hub }));
    Ok(())
}

/// Runs `tenure devices`.
///
/// # Errors
/// What is known can't be read, or the device to forget isn't.
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
    if output.is_json() {
        output.line("", &json!({ "devices": objects }));
    } else if objects.is_empty() {
        output.line(
            "no device was met yet; name one by its address: --device HOST:PORT",
            &Value::Null,
        );
    }
    Ok(())
}

/// Whether what is at `address` says that it has that key, which proves nothing.
fn answers(client: &mut Client, address: &str, key: &str) -> bool {
    let Ok(address) = address.parse() else { return false };
    let identity = client.identify(address, "device").ok().and_then(|identity| identity.key);
    identity.is_some_and(|shown| shown.to_string() == key)
}
