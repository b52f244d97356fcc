//! Whole devices on the radio: the handed-out scenarios, and that what must fail does.

use super::tests::{check, check_all, scenario};
use super::{Scenario, ScenarioError};

#[test]
fn devices_call_one_another_over_the_radio_and_survive_power_cuts() {
    let (_, metrics) = check_all(include_str!("../../../../scenarios/devices.toml"));
    let devices = metrics.devices.expect("there are devices");
    assert_eq!(metrics.trouble.power_cuts, 2);
    assert!(devices.executions > 200, "{devices:?}");
}

#[test]
fn who_sleeps_deeply_is_in_the_mesh_again_when_it_wakes_and_takes_no_frame_twice() {
    let (_, metrics) = check_all(include_str!("../../../../scenarios/sleepers.toml"));
    let trouble = metrics.trouble;
    assert!(trouble.sleeps >= 15 && trouble.replays > 1_000, "{trouble:?}");
}

#[test]
fn devices_none_of_which_knows_the_time_find_each_other() {
    let (_, metrics) = check_all(
        r#"
        name = "no clocks"
        seconds = 60
        boot_within_ms = 20000
        topology = { shape = "line", nodes = 3 }
        devices = { without_clock = [0, 1, 2] }
        call = [{ from = 0, to = 2 }]
        fault = [{ at_s = 30, crash = [2] }, { at_s = 32, restart = [2] }]
        expect = [{ delivery_in_the_end_at_least = 0.9 }]
        "#,
    );
    assert!(metrics.sent > 20, "{metrics:?}");
}

#[test]
fn neighbours_of_one_that_cannot_hear_each_other_both_get_its_record() {
    let (_, metrics) = check_all(
        r#"
        name = "hidden from each other"
        seconds = 60
        topology = { shape = "line", nodes = 3 }
        radio = { unicast_retries = 0 }
        devices = {}
        call = [{ from = 0, to = 1 }, { from = 2, to = 1 }]
        expect = [{ delivery_at_least = 0.9 }]
        "#,
    );
    assert!(metrics.sent > 80, "{metrics:?}");
}

#[test]
fn twice_as_many_devices_as_one_has_room_for_find_and_call_one_another() {
    let (_, metrics) = check_all(include_str!("../../../../scenarios/crowd.toml"));
    assert!(metrics.sent > 400, "{metrics:?}");
}

#[test]
fn small_boards_call_each_of_three_times_as_many_as_they_have_room_for() {
    let (_, metrics) = check_all(
        r#"
        name = "small boards"
        seconds = 150
        boot_within_ms = 3000
        topology = { shape = "grid", columns = 6, rows = 6 }
        devices = { without_clock = [7], small = [
            0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17,
            18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31, 32, 33, 34, 35,
        ] }
        call = [
            { from = 0, each = true, pause_ms = 2500 },
            { from = 7, each = true, pause_ms = 2500 },
            { from = 35, each = true, pause_ms = 2500 },
        ]
        expect = [{ delivery_at_least = 0.98 }]
        "#,
    );
    assert!(metrics.sent > 120, "{metrics:?}");
}

#[test]
fn device_that_comes_late_restarts_or_was_parted_is_found_by_its_name() {
    let (_, metrics) = check_all(
        r#"
        name = "late, restarted, parted"
        seconds = 150
        boot_within_ms = 3000
        topology = { shape = "grid", columns = 4, rows = 4 }
        devices = { small = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15] }
        call = [{ from = 0, each = true, pause_ms = 2000 }, { from = 12, to = 3, pause_ms = 2000 }]
        fault = [
            { at_s = 20, crash = [15, 6] },
            { at_s = 50, restart = [15, 6] },
            { at_s = 60, part = [0, 1, 2, 3, 4, 5, 6, 7] },
            { at_s = 90, unite = true },
        ]
        expect = [{ delivery_in_the_end_at_least = 0.97 }]
        "#,
    );
    assert!(metrics.sent > 90, "{metrics:?}");
}

#[test]
fn a_scenario_says_what_does_not_go_together() {
    let wrong = |lines: &str| {
        let line = "topology = { shape = 'line', nodes = 3 }";
        let text = format!("name = 'x'\nseconds = 10\n{line}\n{lines}\n");
        Scenario::parse(&text).expect_err("it is wrong")
    };
    assert_eq!(wrong("call = [{}]"), ScenarioError::NoDevices("call"));
    assert_eq!(
        wrong("devices = {}\ntraffic = [{ every_ms = 9 }]"),
        ScenarioError::WholeDevices("traffic")
    );
    assert_eq!(
        wrong("devices = {}\nprotocols = { router = 'aodv' }"),
        ScenarioError::WholeDevices("protocols")
    );
    assert_eq!(wrong("devices = { torn = 2 }"), ScenarioError::Share(2.0));
    assert_eq!(wrong("devices = {}\ncall = [{ to = 3 }]"), ScenarioError::NoSuchNode(3));
    assert_eq!(wrong("devices = { small = [3] }"), ScenarioError::NoSuchNode(3));
    assert_eq!(wrong("devices = { slice_ms = 0 }"), ScenarioError::NotPositive("slice_ms"));
}

#[test]
fn machines_hear_of_each_peripheral_what_its_script_says() {
    let text = include_str!("../../../../scenarios/peripherals.toml");
    let (_, metrics) = check_all(text);
    let heard = metrics.devices.expect("there are devices").heard;
    assert!(heard["node2 device.camera.thumbnail"].events > 20, "{heard:?}");
    check_all(&text.replace("seconds = 90", "seed = 2\nseconds = 90"));
}

#[test]
fn a_peripheral_that_says_something_else_is_found() {
    let text = include_str!("../../../../scenarios/peripherals.toml");
    let mut scenario = scenario(&text.replace("[5, 10, 15, 20]", "[5, 10, 15]"));
    scenario.seconds = 60.0;
    let outcome = check(&scenario);
    assert!(outcome.verdicts(&scenario).iter().any(|verdict| !verdict.is_met));
}
