//! `tenure use` and `tenure devices`: which device commands are about, and which ones there are.

use std::net::SocketAddr;
use std::path::Path;

use anyhow::{Context as _, bail};
use serde_json::{Value, json};
use tenure_wire::Name;

use crate::device::plugged_in;
use crate::home::Home;
use crate::home::known::Known;
use crate::reach::client::Client;
use crate::reach::discovery;
use crate::reach::network::{DEVICE_PORT, address_of, hub_place, split_key};
use crate::reach::whom::Where;
use crate::terminal::output::{Output, width_of};

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
/// whether it answers. Boards that are plugged into this computer by USB are listed by their serial lines. With --hub the
/// list is that of the devices that the hub knows.
///
/// Example: tenure devices
#[derive(clap::Args)]
pub struct DevicesArguments {
    /// List the devices that the hub knows: HOST:PORT, or HOST:PORT#KEY; without an address the hub of `tenure use`.
    #[arg(long, value_name = "ADDR", num_args = 0..=1, conflicts_with_all = ["quiet", "forget"])]
    hub: Option<Option<String>>,
    /// Neither look around on the network nor ask them whether they are there.
    #[arg(long)]
    quiet: bool,
    /// Forget this one, which is gone for good.
    #[arg(long, value_name = "NAME")]
    forget: Option<Name>,
}

impl DevicesArguments {
    /// The hub whose devices are listed in the place of those that were met; the inner one is what was said of it.
    pub fn of_hub(&self) -> Option<Option<String>> {
        self.hub.clone()
    }
}

/// Runs `tenure use`.
///
/// # Errors
/// The device is neither one that is known nor an address, or it can't be written down.
pub fn run(arguments: &UseArguments, output: &Output) -> anyhow::Result<()> {
    let home = Home::from_environment()?;
    let UseArguments { device, hub, none } = arguments;
    if let Some(hub) = hub {
        hub_place(split_key(hub)?.0)?;
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
        if !client.known().has_met(name) {
            bail!("no device {name} is known; see `tenure devices`");
        }
        client.known_mut().forget_device(name)?;
        output.line(&format!("forgot {name}"), &json!({ "forgot": name.as_str() }));
        return Ok(());
    }
    let strangers = if arguments.quiet { Vec::new() } else { meet_nearby(&mut client) };
    let met: Vec<[String; 4]> =
        client.known().devices_and_members().map(|known| known.map(str::to_string)).collect();
    let places: Vec<[String; 3]> = met
        .iter()
        .map(|[name, key, address, via]| {
            let place = if via.is_empty() { address.clone() } else { format!("via {via}") };
            [name.clone(), key.clone(), place]
        })
        .collect();
    let width = width_of(met.iter().map(|[name, ..]| name.as_str()));
    let say = |[name, _, address]: &[String; 3], state: &str| {
        if !output.is_json() {
            output.line(&format!("{name:<width$} {address:<22} {state}"), &Value::Null);
        }
    };
    let answers = match arguments.quiet {
        true => {
            places.iter().for_each(|device| say(device, ""));
            vec![None; met.len()]
        }
        false => ask_all(&mut client, &places, |device, answers| {
            say(
                device,
                match answers {
                    Some(true) => "answers",
                    Some(false) => "silent, or another is there",
                    None => "in a mesh, and not asked",
                },
            );
        })?,
    };
    let objects: Vec<Value> = met
        .iter()
        .zip(answers)
        .map(|([name, key, address, via], answers)| {
            let mut object =
                json!({ "device": name, "key": key, "address": address, "answers": answers });
            if !via.is_empty() {
                object["via"] = json!(via);
            }
            object
        })
        .collect();
    let lines = plugged_in::lines(Path::new("/"));
    if output.is_json() {
        let found = json!({ "devices": objects, "strangers": strangers, "lines": lines });
        output.line("", &found);
        return Ok(());
    }
    for address in &strangers {
        output.line(&format!("{:<width$} {address:<22} not yours", "-"), &Value::Null);
    }
    for line in &lines {
        let line = line.display();
        let text = format!(
            "{:<width$} {line} plugged in; `tenure serial {line}` gives it an address",
            "-"
        );
        output.line(&text, &Value::Null);
    }
    if objects.is_empty() && strangers.is_empty() && lines.is_empty() {
        let way_out = match client.known().defaults().1 {
            Some(_) => "`tenure devices --hub` lists those that the hub knows",
            None => "name one by its address: --device HOST:PORT",
        };
        output.line(&format!("no device was met yet; {way_out}"), &Value::Null);
    }
    Ok(())
}

/// Meets the user's devices that announce themselves on this network; returns the addresses of others.
fn meet_nearby(client: &mut Client) -> Vec<String> {
    let strange =
        discovery::announced().filter(|address| client.device(&(*address).into()).is_err());
    strange.map(|address| address.to_string()).collect()
}

/// Asks all devices, each a name, a key and an address, many at once; tells `heard` of each as soon as it has answered, or
/// hasn't. Returns whether what is at each one's address says that it has that key, which proves nothing; `None` of devices
/// that only a member of their mesh hears.
///
/// # Errors
/// The socket fails.
fn ask_all(
    client: &mut Client,
    devices: &[[String; 3]],
    mut heard: impl FnMut(&[String; 3], Option<bool>),
) -> anyhow::Result<Vec<Option<bool>>> {
    let mut answers = vec![None; devices.len()];
    let mut asked: Vec<(usize, SocketAddr)> = Vec::new();
    for (place, device) in devices.iter().enumerate() {
        match device[2].parse() {
            Ok(address) => asked.push((place, address)),
            Err(_) => heard(device, None),
        }
    }
    let addresses: Vec<SocketAddr> = asked.iter().map(|(_, address)| *address).collect();
    client.identify_each(&addresses, |at, identity| {
        let Some((place, _)) = asked.get(at).copied() else { return };
        let shown = identity.and_then(|identity| identity.key);
        let is_there = shown.is_some_and(|shown| shown.to_string() == devices[place][1]);
        answers[place] = Some(is_there);
        heard(&devices[place], Some(is_there));
    })?;
    Ok(answers)
}
