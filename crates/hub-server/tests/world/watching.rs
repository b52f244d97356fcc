//! The rules of alarms of a test's hub, and what the audit log says of messages to receivers.

use tenure_hub_server::{Alarms, Rule, Rules};
use tenure_package::Tariff;
use tenure_reach::{Reach, Servers};
use tenure_testbed::wait_until;
use tenure_tls_client::{Date, Dates};
use tenure_wire::control::DateTeller;

use super::{World, owner};

pub(crate) fn rule(name: &str, when: &str) -> Rule {
    Rule {
        name: name.parse().unwrap(),
        when: when.parse().unwrap(),
        machine: None,
        labels: Vec::new(),
        tell: Vec::new(),
    }
}

/// The clock of rules that tell nobody.
pub(crate) fn watching(world: &World, rules: Vec<Rule>) -> Alarms {
    telling(world, Rules { rules, ..Rules::default() })
}

pub(crate) fn telling(world: &World, rules: Rules) -> Alarms {
    let tariff = Tariff { currency: "EUR".into(), fuel_million: 7, ..Tariff::default() };
    let date = || {
        let since_1970 = std::time::UNIX_EPOCH.elapsed().ok()?;
        Some(Date { since_1970, teller: DateTeller::Clock })
    };
    let reach = Reach::new(Servers::new(|| Ok(Vec::new())), Dates::new(date)).unwrap();
    let running = world.database.running();
    Alarms::open(&world.location(), &running, rules, Some(tariff), reach).unwrap()
}

/// The hub hears its devices from one moment to another, as its own thread says every few seconds.
pub(crate) fn hearing(world: &World, from: u64, until: u64) {
    let running = world.database.running();
    (from..=until).step_by(5).for_each(|unix_s| running.hear(unix_s));
}

/// The details of the audit log's entries of that action, the newest first.
pub(crate) fn noted(world: &mut World, action: &str) -> Vec<String> {
    let token = world.token(&owner(1));
    let audit = world.get("/v1/audit?limit=1000", &[&token]).json();
    let entries = audit["items"].as_array().unwrap().iter();
    let of_action = entries.filter(|entry| entry["action"] == action);
    of_action.map(|entry| entry["detail"].as_str().unwrap().to_string()).collect()
}

/// Takes turns at the moment `at` until as many entries of `action` are there.
pub(crate) fn turn_until_noted(
    alarms: &mut Alarms,
    world: &mut World,
    at: u64,
    action: &str,
    count: usize,
) {
    wait_until(|| {
        alarms.turn(at).unwrap();
        let noted = noted(world, action);
        if noted.len() == count { Ok(()) } else { Err(format!("{action}: {noted:?}")) }
    });
}
