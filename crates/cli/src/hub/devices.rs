//! `tenure devices --hub`: the devices that a hub knows.

use serde_json::{Value, json};

use crate::home::Home;
use crate::hub::session::HubSession;
use crate::reach::client::Client;
use crate::reach::whom::Where;
use crate::terminal::clock::time;
use crate::terminal::output::{Output, width_of};

/// Lists the devices that the hub knows, of `hub` or of `tenure use`.
///
/// # Errors
/// No hub is known or answers, or it doesn't know this user.
pub fn list(hub: Option<String>, output: &Output) -> anyhow::Result<()> {
    let home = Home::from_environment()?;
    let mut client = Client::new(&home)?;
    // An address that is left out is that of the environment, as for other commands.
    let hub = hub.or_else(|| std::env::var("TENURE_HUB").ok());
    let place = Where { device: None, hub, via: None };
    let mut session = HubSession::open(&mut client, &place, home.owner_key()?)?;
    let devices = session.rows(&mut client, "devices")?;
    if output.is_json() {
        output.line("", &json!({ "devices": devices }));
        return Ok(());
    }
    if devices.is_empty() {
        output.line(
            "the hub knows no device of yours; one that runs with --hub registers itself",
            &Value::Null,
        );
    }
    let word = |device: &Value, name: &str| device[name].as_str().unwrap_or("-").to_owned();
    let names: Vec<String> = devices.iter().map(|device| word(device, "device")).collect();
    let width = width_of(names.iter().map(String::as_str));
    for device in &devices {
        let machines = match device["machines"].as_i64().unwrap_or(0) {
            1 => "1 machine".to_owned(),
            count => format!("{count} machines"),
        };
        let text = format!(
            "{:<width$} {:<22} {:<10} {machines:<12} heard {}",
            word(device, "device"),
            word(device, "address"),
            state(device),
            device["heard"].as_u64().map_or_else(|| "never".to_owned(), time)
        );
        output.line(&text, &Value::Null);
    }
    Ok(())
}

/// How a device can be reached, in a word or two.
fn state(device: &Value) -> String {
    let [state, way] = ["state", "way"].map(|name| device[name].as_str().unwrap_or("-"));
    if (state, way) == ("reachable", "hub") { "by its hub".to_owned() } else { state.to_owned() }
}
