//! Reports of real nodes, and the gates of rollouts on them.

use tenure_hub_server::Gates;
use tenure_wire::hub::function;

use super::rig::{BEGAN_UNIX_S, Fleet, counting, package};

const ONE: [&str; 1] = ["attic"];

#[test]
fn device_reports_its_room_and_machines_once_a_minute() {
    let mut fleet = Fleet::new(&["attic", "barn"]);
    fleet.pass(300);
    let known = fleet.rows(
        "SELECT r.device, m.machine, m.version, m.state, m.repute, m.calls, r.store_bytes_max > r.store_bytes_used, \
         r.code_bytes_used > 0, r.memory_bytes_max > 0 \
         FROM reports r JOIN machine_reports m ON m.device = r.device ORDER BY 1",
    );
    assert_eq!(
        known,
        ["attic counter 1.0.0 idle good 1 1 1 1", "barn counter 1.0.0 idle good 1 1 1 1"]
    );
    let asked = fleet.asked(function::REPORT);
    assert!((10..=14).contains(&asked), "{asked} reports of two devices in five minutes");
    let alarms = fleet.rows("SELECT alarm FROM alarms WHERE alarm <> 'silent'");
    assert_eq!(alarms, Vec::<String>::new());
}

#[test]
fn fault_is_at_the_hub_within_seconds_with_the_place_in_the_code() {
    let mut fleet = Fleet::new(&ONE);
    fleet.pass(100);
    fleet.install(0, &package("1.0.1", true), 2);
    fleet.pass(5);
    let faults = fleet.rows("SELECT machine, text FROM faults");
    assert!(
        faults.iter().any(|fault| fault.starts_with("counter") && fault.contains("unreachable")),
        "{faults:?}"
    );
    let counted =
        fleet.rows("SELECT span_s, max(faults) > 0 FROM machine_use GROUP BY 1 ORDER BY 1");
    assert_eq!(counted, ["300 1", "3600 1", "86400 1"]);
}

#[test]
fn counters_that_begin_again_with_a_boot_are_added_up() {
    let mut fleet = Fleet::new(&ONE);
    fleet.install(0, &counting("1.0.1", 10), 2);
    fleet.pass(300);
    fleet.restart_device(0);
    fleet.pass(300);
    let calls = "SELECT sum(calls) FROM machine_use WHERE span_s = 86400";
    let calls: i64 = fleet.rows(calls)[0].parse().unwrap();
    // A call a second; those of the minute before the power went weren't told.
    assert!((530..=610).contains(&calls), "{calls} calls");
    let told: i64 = fleet.rows("SELECT calls FROM machine_reports")[0].parse().unwrap();
    assert!(told <= 305, "{told} since the boot");
}

/// Rolls out 1.1.0, which counts to `count`, over a version that counts to ten.
fn roll_out(fleet: &mut Fleet, count: u32) -> (String, String) {
    fleet.install(0, &counting("1.0.1", 10), 2);
    fleet.push(&counting("1.0.1", 10));
    fleet.pass(70);
    let new = counting("1.1.0", count);
    fleet.push(&new);
    let id = fleet.start(&new, &ONE);
    let state = fleet.drive(id);
    (state["state"].as_str().unwrap().into(), state["reason"].as_str().unwrap().into())
}

#[test]
fn version_that_burns_too_much_fuel_a_call_is_pulled_back() {
    let gates = Gates { fuel_per_call_max: Some(2_000), ..Gates::default() };
    let mut fleet = Fleet::new(&ONE);
    fleet.gates = gates.clone();
    let (state, reason) = roll_out(&mut fleet, 10_000);
    assert_eq!(state, "rolled back", "{reason}");
    assert!(reason.contains("units of fuel a call, 2000 are allowed"), "{reason}");
    fleet.pass(70);
    assert_eq!(fleet.rows("SELECT version FROM machine_reports"), ["1.0.1"]);

    let mut fleet = Fleet::new(&ONE);
    fleet.gates = gates;
    assert_eq!(roll_out(&mut fleet, 20), ("done".into(), String::new()));
}

#[test]
fn version_whose_own_metric_is_beyond_its_bound_is_pulled_back() {
    for (value, end) in [("2", "done"), ("3", "rolled back")] {
        let mut fleet = Fleet::new(&ONE);
        fleet.gates.metrics = vec!["errors<=2".parse().unwrap()];
        fleet.set_value(0, "metrics.errors", value);
        let (state, reason) = roll_out(&mut fleet, 20);
        assert_eq!(state, end, "{reason}");
        assert_eq!(fleet.rows("SELECT name, value FROM metrics"), [format!("errors {value}")]);
    }
}

#[test]
fn device_that_tells_no_such_metric_never_passes_its_gate() {
    let mut fleet = Fleet::new(&ONE);
    fleet.gates.metrics = vec!["errors<=2".parse().unwrap()];
    let (state, reason) = roll_out(&mut fleet, 20);
    assert_eq!(state, "rolled back", "{reason}");
    assert!(reason.contains("it tells no metric errors"), "{reason}");
}

#[test]
fn hub_that_died_goes_on_counting_and_hears_all_machines_again_after_a_loss() {
    let mut fleet = Fleet::new(&ONE);
    fleet.install(0, &counting("1.0.1", 10), 2);
    fleet.pass(130);
    fleet.restart_hub();
    fleet.write_by_hand("DELETE FROM machine_reports");
    fleet.pass(200);
    assert_eq!(fleet.rows("SELECT machine, version FROM machine_reports"), ["counter 1.0.1"]);
    let latest: u64 = fleet.rows("SELECT taken_unix_s FROM reports")[0].parse().unwrap();
    assert!(latest > BEGAN_UNIX_S + 240, "{latest}");
}
