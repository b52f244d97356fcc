//! The states, steps and lines of a fleet, from rows as a hub tells them.

use super::*;

fn state(state: &str, reason: &str, devices: u64) -> Value {
    let detail = format!("because of {reason}");
    json!({ "state": state, "reason": reason, "detail": detail, "devices": devices, "device": "attic" })
}

/// A fleet with each reason and a rollout in each state.
fn summary() -> Summary {
    let silent = ["away-days", "away-hours", "away"].map(|reason| state("silent", reason, 1));
    let unwell = [
        "lost-changes",
        "damaged-flash",
        "banned",
        "faults",
        "store-full",
        "heap-full",
        "flash-worn",
    ];
    let unwell = unwell.map(|reason| state("unwell", reason, 2));
    let others =
        [state("shut", "no-relay", 1), state("updating", "rollout", 3), state("well", "", 80)];
    let rollout = |(id, state): (u64, &str)| {
        json!({
            "id": id, "machine": "counter", "version": "1.1.0",
            "state": state, "reason": "why", "healthy": 1, "devices": 4,
        })
    };
    let alarm = |state: &str| {
        json!({
            "rule": "away", "condition": "silent > 10m", "state": state,
            "alarms": 2, "device": "den", "raised": 940,
        })
    };
    Summary {
        states: silent.into_iter().chain(others).chain(unwell).collect(),
        versions: vec![json!({ "version": "0.1.0", "devices": 90, "device": "attic" })],
        alarms: ["raised", "acknowledged"].map(alarm).to_vec(),
        rollouts: [(1, "running"), (2, "paused"), (3, "rolled back")].map(rollout).to_vec(),
        ..Summary::default()
    }
}

#[test]
fn each_device_is_counted_and_each_reason_told() {
    let summary = summary();
    let text = summary.text(&summary.steps(None), 1_000);
    let mut lines = text.lines();
    assert_eq!(lines.next(), Some("101 devices: 80 well, 3 updating, 14 unwell, 3 silent, 1 shut"));
    for line in [
        "! 1 silent: because of away-days: attic",
        "~ 3 updating: because of rollout: attic and 2 more",
        "! 2 unwell: because of banned: attic and 1 more",
        "software: 0.1.0 on 90",
        "! alarm away (silent > 10m): 2 raised, the oldest 60 s ago: den and 1 more",
        "~ rollout 1: counter to 1.1.0, running (why); 1 of 4 are healthy",
        "! rollout 3: counter to 1.1.0, rolled back (why); 1 of 4 are healthy",
        "first:",
    ] {
        assert!(text.lines().any(|one| one == line), "{line}\n{text}");
    }
    assert_eq!(summary.object(&[])["counts"]["unwell"], 14);
}

#[test]
fn most_urgent_steps_come_first_and_all_of_them_are_taken() {
    let urgent = summary().steps(Some("hub.example:7369"));
    let commands: Vec<&str> = urgent.iter().map(|step| step.command.as_str()).collect();
    assert_eq!(
        commands,
        [
            "tenure log --device attic --level fault --hub hub.example:7369",
            "tenure rollout status 2 --hub hub.example:7369",
            "tenure rollout status 3 --hub hub.example:7369",
            "tenure faults --since 1d --hub hub.example:7369",
            "tenure status --device den --hub hub.example:7369",
        ]
    );
    let Summary { states, alarms, rollouts, .. } = summary();
    for hub in [None, Some("hub.example:7369#k")] {
        let of_states = states.iter().filter_map(|row| step_of(row, hub));
        let of_alarms = alarms.iter().filter_map(|row| step_of_alarm(row, hub));
        let of_rollouts = rollouts.iter().filter_map(|row| step_of_rollout(row, hub));
        let steps: Vec<Step> = of_states.chain(of_alarms).chain(of_rollouts).collect();
        assert_eq!(steps.len(), 13 + 1 + 2);
        for Step { command, .. } in steps {
            let words = shlex::split(&command).unwrap();
            let taken = crate::command_line::command().try_get_matches_from(words);
            assert!(taken.is_ok(), "{command}");
        }
    }
}

#[test]
fn fleet_that_is_well_leaves_nothing_to_do() {
    let states = vec![state("well", "", 3)];
    let summary = Summary { states, ..Summary::default() };
    let text = summary.text(&summary.steps(None), 0);
    assert!(text.starts_with("3 devices: 3 well\n"), "{text}");
    assert!(text.ends_with("\nnothing to do"), "{text}");
}
