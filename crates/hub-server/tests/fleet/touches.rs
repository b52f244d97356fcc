//! Real nodes that touch a real hub: what of it the database has.

use tenure_wire::hub::function;

use super::rig::{Fleet, package};

/// The devices that are in force by the database, as pages, alarms and gates of rollouts see them.
fn in_force(fleet: &Fleet) -> Vec<String> {
    let now = fleet.unix_s();
    fleet.rows(&format!("SELECT name FROM devices WHERE expires_unix_s >= {now} ORDER BY name"))
}

#[test]
fn devices_are_in_force_by_their_touches_and_their_records_are_stored_when_something_changes() {
    let mut fleet = Fleet::new(&["attic", "barn"]);
    fleet.pass(60);
    let before = fleet.hub.counts();
    for _ in 0..120 {
        fleet.pass(5);
        assert_eq!(in_force(&fleet), ["attic", "barn"]);
    }
    let after = fleet.hub.counts();
    assert_eq!((after.records, after.later), (before.records, 0));
    // Whatever else they ask puts touches off, and twice as long at most.
    let touches = after.touches - before.touches;
    assert!((28..=68).contains(&touches), "{touches} touches of two devices in ten minutes");
    // Another machine is listed at once.
    fleet.install_as("other", 0, &package("1.0.0", false), 2);
    fleet.pass(3);
    assert!(fleet.hub.counts().records > after.records);
    let machines = "SELECT name FROM machines WHERE device = 'attic' ORDER BY name";
    assert_eq!(fleet.rows(machines), ["counter", "other"]);
}

#[test]
fn device_that_goes_is_silent_within_a_minute_and_back_when_it_comes() {
    let mut fleet = Fleet::new(&["attic", "barn"]);
    fleet.pass(100);
    fleet.devices[1].is_online = false;
    fleet.pass(50);
    assert_eq!(in_force(&fleet), ["attic", "barn"], "it may be late");
    fleet.pass(15);
    assert_eq!(in_force(&fleet), ["attic"]);
    fleet.devices[1].is_online = true;
    fleet.pass(75);
    assert_eq!(in_force(&fleet), ["attic", "barn"]);
}

#[test]
fn hub_that_starts_anew_calls_no_device_silent_that_was_there() {
    let mut fleet = Fleet::new(&["attic", "barn", "cellar"]);
    fleet.pass(90);
    fleet.devices[2].is_online = false;
    // Longer than what is stored of the others may be old.
    fleet.pass(150);
    assert_eq!(in_force(&fleet), ["attic", "barn"]);
    for _ in 0..3 {
        fleet.restart_hub();
        for _ in 0..12 {
            fleet.pass(5);
            assert_eq!(in_force(&fleet), ["attic", "barn"], "{}", fleet.unix_s());
        }
    }
    let asked = fleet.asked(function::WORK);
    assert!(asked > 0, "they are back, and ask");
}
