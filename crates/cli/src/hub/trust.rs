//! `tenure trust-hub`: whose word a device takes for its hub's.

use anyhow::bail;
use tenure_wire::PublicKey;
use tenure_wire::control::{Client as _, HubStatus, HubTrust, TrustHub};

use crate::home::Home;
use crate::reach::client::Client;
use crate::reach::whom::Where;
use crate::terminal::output::Output;

/// Show which hub a device trusts, or tell it the hub's key.
///
/// A device keeps the first key that registers it. Time from a hub whose key you named counts for leases;
/// time from any other hub doesn't. A device whose settings pin the key (`--hub ADDR#KEY`) takes no other.
///
/// Example: tenure trust-hub KEY --device attic
#[derive(clap::Args)]
pub struct Arguments {
    /// The hub's key, as the hub prints it.
    key: Option<PublicKey>,
    /// Forget the key that is kept; the next one that registers the device is kept then.
    #[arg(long, conflicts_with = "key")]
    forget: bool,
    #[command(flatten)]
    place: Where,
}

/// Runs `tenure trust-hub`.
///
/// # Errors
/// The device can't be reached, has no hub, or its settings pin the hub's key.
pub fn run(arguments: &Arguments, output: &Output) -> anyhow::Result<()> {
    let mut client = Client::new(&Home::from_environment()?)?;
    let device = arguments.place.connect(&mut client)?;
    if arguments.key.is_some() || arguments.forget {
        let trust = TrustHub { key: arguments.key };
        client.at(&device.route).trust_hub(trust)?;
    }
    let status: Option<HubStatus> = client.at(&device.route).hub(())?;
    let Some(status) = status else {
        bail!("{} has no hub; its settings name none", device.status.name);
    };
    output.line(
        &in_words(&status),
        &serde_json::json!({
            "device": device.status.name.as_str(),
            "hub": status.address.to_string(),
            "registered": status.is_registered,
            "key": status.key.map(|key| key.to_string()),
            "trust": word(status.trust),
            "shown": status.shown.map(|key| key.to_string()),
        }),
    );
    Ok(())
}

fn word(trust: HubTrust) -> &'static str {
    match trust {
        HubTrust::Unknown => "unknown",
        HubTrust::Shown => "shown",
        HubTrust::FirstSeen => "first-seen",
        HubTrust::Owner => "owner",
        HubTrust::Revoked => "revoked",
    }
}

fn in_words(status: &HubStatus) -> String {
    let key = status.key.map_or("no key".to_string(), |key| key.to_string());
    let why = match status.trust {
        HubTrust::Unknown => "none has answered yet",
        HubTrust::Shown => "which its address shows, not proven yet",
        HubTrust::FirstSeen => "the first that registered the device; its time moves no lease",
        HubTrust::Owner => "which you named; its time counts for leases",
        HubTrust::Revoked => "which you revoked; name another one: tenure trust-hub KEY",
    };
    let shown = status.shown.map_or(String::new(), |shown| {
        format!("\nits address shows another key now, which isn't spoken to: {shown}")
    });
    format!("hub {}: {key}, {why}{shown}", status.address)
}
