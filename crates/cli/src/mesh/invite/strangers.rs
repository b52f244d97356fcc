//! Devices that only their neighbours in the mesh can hear: who they are, and how one is let in.

use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};
use serde_json::json;
use tenure_mesh::decode;
use tenure_protocols::joining::Knock;
use tenure_wire::control::{
    Admission, Client as _, Enrol, MeshStatus, MeshStranger, StrangersQuery,
};
use tenure_wire::directory::Enrolment;
use tenure_wire::message::List;
use tenure_wire::{Name, PublicKey};

use super::{Arguments, route_to};
use crate::device::link::invitation;
use crate::home::Home;
use crate::reach::client::{Client, Route};
use crate::terminal::output::Output;

/// How long between two looks.
const LOOK_AGAIN: Duration = Duration::from_millis(500);
/// How often a member is given the admission anew, which one of them may not have got.
const ADMIT_AGAIN: Duration = Duration::from_secs(10);

/// The stranger that the user means.
enum Meant {
    Key(PublicKey),
    Name(Name),
}

/// A knock that the device itself made, for this owner.
struct Proven {
    knock: Knock,
    by: String,
    age_s: u32,
}

/// Lets a device in that a member hears, whichever member that is.
pub(super) fn invite(
    client: &mut Client,
    home: &Home,
    arguments: &Arguments,
    member: &str,
    output: &Output,
) -> anyhow::Result<()> {
    let meant = meant(&arguments.device, arguments.key)?;
    let route = route_to(client, member)?;
    let patience = arguments.wait;
    let knock = await_knock(client, &route, &meant, patience)?;
    if arguments.key.is_some_and(|expected| expected != knock.device) {
        bail!(
            "the device that says it is {} has the key {}: it is another one than you mean",
            knock.name,
            knock.device
        );
    }
    let (name, node) = (knock.name.clone(), knock.node().to_string());
    let signing_key = &client.keys().signing_key;
    let number = home.next_number(client.known().enrolment(&name));
    let enrolment = Enrolment { device: name.clone(), device_key: knock.key, number };
    let signature = tenure_directory::enrol(signing_key, &enrolment);
    let invitation = invitation(home, signing_key, &knock.device)?;
    // Whatever comes of it: from the first word on the device may be this user's.
    client.known_mut().enrolled_through(&enrolment, &knock.device, member)?;
    let admission = Admission { invitation, enrol: Enrol { enrolment, signature } };
    let deadline = Instant::now() + patience;
    let mut admit_at = Instant::now();
    while !is_in(client, &route, &node)? {
        if Instant::now() >= admit_at {
            client.at(&route).mesh_admit(admission.clone())?;
            admit_at = Instant::now() + ADMIT_AGAIN;
        }
        if Instant::now() >= deadline {
            bail!(
                "{name} was heard, and given its invitation, but didn't come in; it may not hear those \
                 who hear it, or be under way: see `tenure mesh {member}`"
            );
        }
        std::thread::sleep(LOOK_AGAIN);
    }
    let key = knock.device.to_string();
    output.line(
        &format!("{name}, key {key}, is in the mesh as {node}"),
        &json!({ "event": "invited", "device": name.as_str(), "node": node, "key": key }),
    );
    Ok(())
}

/// Shows the owner's devices that ask to be let in.
pub(super) fn list(client: &mut Client, route: &Route, output: &Output) -> anyhow::Result<()> {
    // The knocks that other members have heard come with the second answer.
    strangers(client, route, None)?;
    std::thread::sleep(LOOK_AGAIN);
    let strangers = strangers(client, route, None)?;
    if output.is_json() {
        let strangers = strangers.iter().map(|Proven { knock, by, age_s }| {
            let (name, key) = (knock.name.as_str(), knock.device.to_string());
            json!({ "device": name, "key": key, "heard_by": by, "age_s": age_s })
        });
        output.line("", &json!({ "strangers": strangers.collect::<Vec<_>>() }));
        return Ok(());
    }
    let print = |text: &str| output.line(text, &json!(null));
    if strangers.is_empty() {
        print("none of your devices asks to be let in");
    }
    for Proven { knock, by, age_s } in &strangers {
        print(&format!("{:<16} key {}, heard by {by} {age_s} s ago", knock.name, knock.device));
    }
    Ok(())
}

fn meant(device: &str, key: Option<PublicKey>) -> anyhow::Result<Meant> {
    if let Some(key) = key {
        return Ok(Meant::Key(key));
    }
    if let Ok(key) = device.parse() {
        return Ok(Meant::Key(key));
    }
    let name = device.parse().with_context(|| {
        format!("with --via, name the device by its key or its name, not by `{device}`")
    })?;
    Ok(Meant::Name(name))
}

/// Waits until a member has heard the device.
fn await_knock(
    client: &mut Client,
    route: &Route,
    meant: &Meant,
    patience: Duration,
) -> anyhow::Result<Knock> {
    let deadline = Instant::now() + patience;
    let awaited = match meant {
        Meant::Key(key) => Some(*key),
        Meant::Name(_) => None,
    };
    loop {
        let mut knocks: Vec<Knock> = Vec::new();
        for Proven { knock, .. } in strangers(client, route, awaited)? {
            let fits = match meant {
                Meant::Key(key) => knock.device == *key,
                Meant::Name(name) => knock.name == *name,
            };
            if fits && knocks.iter().all(|other| other.device != knock.device) {
                knocks.push(knock);
            }
        }
        match knocks.as_slice() {
            [] => {}
            [knock] => return Ok(knock.clone()),
            several => {
                let keys: Vec<_> = several.iter().map(|knock| knock.device.to_string()).collect();
                bail!(
                    "{} devices say that they are {}; name the one you mean by its key: {}",
                    several.len(),
                    several[0].name,
                    keys.join(", ")
                );
            }
        }
        if Instant::now() >= deadline {
            bail!(
                "no member of the mesh has heard that device; is it running, with --owner and a link \
                 such as --mesh-interface, and in reach of one? See `tenure mesh --strangers`"
            );
        }
        std::thread::sleep(LOOK_AGAIN);
    }
}

/// The strangers that are this owner's devices: what others say proves nothing.
fn strangers(
    client: &mut Client,
    route: &Route,
    awaited: Option<PublicKey>,
) -> anyhow::Result<Vec<Proven>> {
    let query = StrangersQuery { awaited };
    let List(heard) = client.at(route).mesh_strangers(query)?;
    let owner = &client.keys().machine;
    let proven = heard.into_iter().filter_map(|MeshStranger { knock, by, age_s }| {
        let (knock, _) = decode::<Knock>(&knock)?;
        knock.is_proven_to(owner).then_some(Proven { knock, by, age_s })
    });
    Ok(proven.collect())
}

/// Whether the member has a way to that node.
fn is_in(client: &mut Client, route: &Route, node: &str) -> anyhow::Result<bool> {
    let status: MeshStatus = client.at(route).mesh(())?;
    Ok(status.ways.iter().any(|way| way.to == node))
}
