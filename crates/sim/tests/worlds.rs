//! Whole worlds: a fixed handful of seeds, sameness, and a world that must fail.

use std::time::Duration;

use tenure_sim::{Invariant, Report, Scenario, run_scenario};

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
fn a_forged_answer_who_the_hub_is_does_not_last() {
    check(brief(148));
}

#[test]
fn a_refusal_that_nobody_signed_makes_no_call_run_again() {
    check(brief(169));
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
