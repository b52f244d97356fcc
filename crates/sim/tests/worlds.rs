//! Whole worlds: a fixed handful of seeds, sameness, and a world that must fail.

use std::time::Duration;

use tenure_sim::mesh::{Aggregation, Defect, Expectation, Fault, Router, Topology, What, hunt};
use tenure_sim::radio::Loss;
use tenure_sim::{Invariant, NetworkPlan, Report, Scenario, SleepPlan, StopPlan, run_scenario};

/// The scenario of a seed, with less trouble and a shorter rest than a hunt has.
fn brief(seed: u64) -> Scenario {
    let mut scenario = Scenario::draw(seed);
    scenario.trouble = Duration::from_secs(15);
    scenario.quiet = Duration::from_secs(45);
    scenario
}

/// Runs a scenario and says what it broke, if anything.
#[track_caller]
fn check(scenario: Scenario) -> Report {
    let seed = scenario.seed;
    let report = run_scenario(scenario, false);
    if let Some((violation, tail)) = &report.failure {
        panic!("seed {seed} breaks: {violation:?}\n{}", tail.join("\n"));
    }
    report
}

#[test]
fn a_handful_of_worlds_keep_every_invariant() {
    let reports = (1..=3).map(|seed| check(brief(seed)));
    let successes: u64 = reports.map(|report| report.outcomes.successes).sum();
    assert!(successes > 100, "{successes} calls are too few to say anything");
}

#[test]
fn what_nobody_signed_makes_no_call_run_again_and_misleads_no_device_for_long() {
    for seed in [10, 14, 50] {
        let mut scenario = brief(seed);
        scenario.network = NetworkPlan {
            delay_ms: 10..=200,
            lost: 0,
            doubled: 300,
            replayed: 0,
            flipped: 500,
            partition_every_ms: None,
        };
        check(scenario);
    }
}

#[test]
fn devices_that_sleep_in_the_middle_of_everything_keep_every_invariant() {
    let mut successes = 0;
    for seed in [21, 22, 23, 24] {
        let mut scenario = brief(seed);
        scenario.sleeps = Some(SleepPlan { awake_ms: 300..=2_000, asleep_ms: 1..=400 });
        successes += check(scenario).outcomes.successes;
    }
    assert!(successes > 100, "{successes} calls are too few to say anything");
}

#[test]
fn devices_that_stand_still_run_no_call_late_and_answer_those_that_are_wanted() {
    let (mut successes, mut stops) = (0, 0);
    for seed in 31..=42 {
        let mut scenario = Scenario::draw(seed);
        scenario.trouble = Duration::from_secs(60);
        // Whoever is slow to send a first message isn't judged here, but who stands still.
        scenario.network = NetworkPlan {
            delay_ms: 1..=60,
            lost: 0,
            doubled: 100,
            replayed: 0,
            flipped: 0,
            partition_every_ms: None,
        };
        scenario.crashes.up_ms = None;
        scenario.crashes.update_ms = None;
        scenario.crashes.during_boot = 0;
        scenario.sleeps = None;
        scenario.stops = Some(StopPlan { every_ms: 1_000..=8_000, for_ms: 100..=40_000 });
        let report = check(scenario);
        successes += report.outcomes.successes;
        stops += report.trouble.stops;
    }
    assert!(successes > 100, "{successes} calls are too few to say anything");
    assert!(stops > 30, "{stops} stops are too few to say anything");
}

#[test]
fn the_same_seed_is_the_same_world() {
    let mut scenario = brief(4);
    scenario.quiet = Duration::ZERO;
    let (one, two) = (run_scenario(scenario.clone(), false), run_scenario(scenario.clone(), false));
    assert_eq!(one, two);
    scenario.seed = 5;
    assert_ne!(one.trace_hash, run_scenario(scenario, false).trace_hash);
}

#[test]
fn a_world_whose_trouble_never_ends_is_found() {
    let mut scenario = Scenario::draw(2);
    scenario.network.lost = 1000;
    scenario.trouble = Duration::from_secs(60);
    scenario.quiet = Duration::ZERO;
    let report = run_scenario(scenario, false);
    let (violation, tail) = report.failure.expect("no datagram arrives");
    assert_eq!(violation.invariant, Invariant::TroubleEnds);
    assert!(!tail.is_empty());
}

#[test]
fn a_handful_of_meshes_keep_every_invariant() {
    for seed in 1..=4 {
        let mut scenario = hunt::draw(seed);
        scenario.seconds = scenario.seconds.min(150.0);
        scenario.expectations.clear();
        let finding = hunt::try_scenario(scenario);
        assert_eq!(finding.failure, None, "mesh {seed}");
    }
}

#[test]
fn a_handful_of_meshes_of_devices_keep_every_invariant() {
    for seed in [1, 2, 3, 5] {
        let finding = hunt::try_scenario(hunt::draw_devices(seed));
        assert_eq!(finding.failure, None, "devices {seed}");
    }
}

#[test]
fn a_node_that_forgot_its_distances_forms_no_loop() {
    let text = include_str!("scenarios/forgotten-distances.toml");
    let scenario = tenure_sim::mesh::Scenario::parse(text).expect("a scenario");
    assert_eq!(hunt::try_scenario(scenario).failure, None);
}

/// The least that was found to show a defect that is planted in the mesh of that seed.
fn least_with(defect: Defect, seed: u64, seconds: f64) -> hunt::Finding {
    let mut scenario = hunt::draw(seed);
    scenario.protocols.router = Router::Babel;
    scenario.expectations.clear();
    scenario.seconds = seconds;
    let finding = hunt::try_with(scenario, Some(defect));
    let least = hunt::minimise(finding.clone());
    assert_ne!(least.scenario, finding.scenario, "it is made smaller");
    assert_eq!(hunt::try_scenario(least.scenario.clone()).failure, None, "it was the defect");
    least
}

#[test]
fn nodes_that_take_their_lives_for_one_are_found_by_their_loop() {
    let least = least_with(Defect::LivesOnce, 31, 20.0);
    assert!(least.failure.is_some_and(|failure| failure.starts_with("next hops form no loop")));
    let restarts = |it: &Fault| matches!(it.what, What::Restart(_));
    assert!(least.scenario.faults.iter().any(restarts), "it takes a restart");
}

#[test]
fn nodes_that_forget_datagrams_are_found_by_what_arrives_twice() {
    let least = least_with(Defect::ForgetsDatagrams, 35, 30.0);
    assert!(least.failure.is_some_and(|failure| failure.starts_with("nothing arrives twice")));
}

/// The first of a few meshes of devices that breaks anything with a defect breaks this, and nothing
/// without.
#[track_caller]
fn check_found_in_devices(defect: Defect, broken: Invariant) {
    let mut findings = (1..=10).map(|seed| hunt::try_with(hunt::draw_devices(seed), Some(defect)));
    let found = findings.find(|finding| finding.failure.is_some()).expect("it is found");
    let broken = format!("devices keep what they promise: {broken}");
    assert!(found.failure.is_some_and(|failure| failure.starts_with(&broken)));
    assert_eq!(hunt::try_scenario(found.scenario).failure, None, "it was the defect");
}

/// Run by `cargo xtask test`, which compiles the mistake in: no product can have it.
#[cfg(forgetful)]
#[test]
fn devices_that_forget_what_they_ran_are_found_by_a_call_that_runs_twice() {
    check_found_in_devices(Defect::ForgetsCalls, Invariant::AtMostOnce);
}

#[test]
fn devices_that_acknowledge_what_is_not_durable_are_found_by_a_power_cut() {
    check_found_in_devices(Defect::AcknowledgesEarly, Invariant::WritesAreKept);
}

#[test]
fn sums_that_lose_what_links_lose_are_found() {
    let mut scenario = hunt::draw(3);
    // In a shorter one what is left of the sums may be right by chance.
    scenario.topology = Topology::Line { nodes: 7, spacing_m: None };
    scenario.radio.loss = Loss::even(0.3);
    scenario.radio.unicast_retries = 0;
    scenario.protocols.aggregation = Some(Aggregation::PushSum);
    scenario.expectations = vec![Expectation::AggregateWithin(0.1)];
    (scenario.seconds, scenario.faults, scenario.movement) = (60.0, Vec::new(), None);
    // Averages are of honest members alone.
    scenario.liars = Vec::new();
    // With some seeds it is right by chance.
    let mut findings = (3..10)
        .map(|seed| hunt::try_scenario(tenure_sim::mesh::Scenario { seed, ..scenario.clone() }));
    let least = hunt::minimise(findings.find(|it| it.failure.is_some()).expect("it is found"));
    let failure = least.failure.unwrap_or_default();
    assert!(failure.starts_with("averages right"), "{failure}");
    assert_eq!(least.scenario.protocols.aggregation, Some(Aggregation::PushSum));
    let mut repaired = least.scenario;
    repaired.protocols.aggregation = Some(Aggregation::LimoSense);
    assert_eq!(hunt::try_scenario(repaired).failure, None, "the protocol was to blame");
}

#[test]
fn a_failing_mesh_is_made_smaller_and_written_down() {
    let mut scenario = hunt::draw(3);
    scenario.seconds = 40.0;
    scenario.expectations = vec![Expectation::ConvergedWithinS(0.0)];
    let finding = hunt::minimise(hunt::try_scenario(scenario.clone()));
    assert!(finding.failure.is_some_and(|failure| failure.starts_with("every way")));
    assert!(finding.scenario.seconds < scenario.seconds);
    assert!(finding.scenario.faults.is_empty());
    let written = finding.scenario.to_toml();
    assert_eq!(tenure_sim::mesh::Scenario::parse(&written), Ok(finding.scenario), "{written}");
}
