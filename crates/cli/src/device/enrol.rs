//! `tenure enrol`: gives a device that runs elsewhere its name, in the owner's word.

use tenure_wire::VerifyingKey;
use tenure_wire::control::{Client as _, DeviceStatus, Enrol};
use tenure_wire::directory::Enrolment;

use crate::home::Home;
use crate::reach::client::Client;
use crate::reach::network::{DEVICE_PORT, addresses_of, split_key};
use crate::reach::place::Place;
use crate::terminal::output::{Beside, Output, tell_beside};

/// Enrol a device that isn't a process of this computer: give it its name in your word.
///
/// A device that was set up with your key in its settings takes this from nobody else. To be sure
/// that the one which answers is the one in your hand, give the key that it shows on its console: without it, whoever answers is believed.
///
/// Example: tenure enrol 192.168.1.20:7370
#[derive(clap::Args)]
pub struct Arguments {
    /// Where the device is: HOST:PORT, or HOST:PORT#KEY.
    address: String,
    /// The key that the device shows on its console.
    #[arg(long, value_name = "KEY")]
    key: Option<tenure_wire::PublicKey>,
}

/// Runs `tenure enrol`.
///
/// # Errors
/// Nobody answers there, it is another device, or it belongs to somebody else.
pub fn run(arguments: &Arguments, output: &Output) -> anyhow::Result<()> {
    let home = Home::from_environment()?;
    let mut client = Client::new(&home)?;
    let (address, key) = split_key(&arguments.address)?;
    let addresses = addresses_of(address, DEVICE_PORT)?;
    let place = Place { addresses, key: arguments.key.or(key), name: None, by_hub: None };
    let route = client.route(&place)?;
    let key = route.key;
    let status: DeviceStatus = client.at(&route).status(())?;
    client.tell_time(&route, &status)?;
    let (device, device_key): (_, VerifyingKey) = (status.name, status.key);
    let record = status.record.and_then(|record| tenure_directory::open_whenever(&record).ok());
    // An enrolment by another owner may have any number.
    let own = client.keys().signing_key.verifying_key();
    let record = record.filter(|record| record.owner == own);
    let shown = record.map_or(0, |record| record.enrolment.number);
    let number = home.next_number(shown.max(client.known().enrolment(&device)));
    let enrolment = Enrolment { device: device.clone(), device_key, number };
    let signature = tenure_directory::enrol(&client.keys().signing_key, &enrolment);
    let enrol = Enrol { enrolment, signature };
    client.at(&route).enrol(enrol)?;
    let taken = client.known().taken_name(&device, &key);
    // It is told from now on what all devices are told.
    client.note(&route)?;
    let checked = match place.key {
        Some(_) => "",
        None => {
            "\n  whoever answered there was believed: compare the key with the one on its console"
        }
    };
    output.line(
        &format!("enrolled {device}, key {key}{checked}"),
        &serde_json::json!({ "event": "enrolled", "device": device.as_str(), "key": key.to_string() }),
    );
    if let Some(taken) = taken {
        tell_beside(Beside::Note, &taken);
    }
    Ok(())
}
