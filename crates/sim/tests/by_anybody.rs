//! A protocol of another crate in the simulator: the one that `tenure new --protocol` makes.

// The template refers to public names of published crates alone, and so does this test.
#[allow(unreachable_pub)]
#[path = "../../cli/templates/protocol/src/lib.rs"]
mod protocol;

use protocol::Leader;
use tenure_protocols::plug_in::{Entry, Registry};
use tenure_sim::mesh::{Options, Outcome, Scenario, ScenarioError, run};

const FOREIGN: &[Entry] = &[Entry::of::<Leader>()];
const TEMPLATE: &str = include_str!("../../cli/templates/protocol/scenario.toml");

fn run_with(text: &str, registry: Registry) -> Result<(Scenario, Outcome), ScenarioError> {
    let scenario = Scenario::parse(text)?;
    let outcome = run(&scenario, Options { registry, ..Options::default() }, |_| {})?;
    Ok((scenario, outcome))
}

fn registry() -> Registry {
    Registry::new(FOREIGN).expect("its name and number are free")
}

/// Values of the expectations that aren't met.
fn unmet((scenario, outcome): &(Scenario, Outcome)) -> Vec<String> {
    let verdicts = outcome.verdicts(scenario);
    verdicts.into_iter().filter(|it| !it.is_met).map(|it| it.was).collect()
}

#[test]
fn protocol_of_another_crate_comes_to_what_its_scenario_expects() {
    let run = run_with(TEMPLATE, registry()).expect("it can be run");
    assert_eq!(unmet(&run), Vec::<String>::new());
    let metrics = &run.1.metrics;
    let leads = metrics.figures["{{name}} leads"];
    assert_eq!((leads.nodes, leads.known, leads.least, leads.most), (11, 11, 0.0, 1.0));
    assert!(metrics.by_message["{{name}} Claim"].0 > 50, "{:?}", metrics.by_message);
}

#[test]
fn expectation_that_is_not_met_fails_the_run() {
    let text = TEMPLATE.replace("at_least = 2, at_most = 2", "at_most = 1");
    assert_eq!(unmet(&run_with(&text, registry()).expect("it can be run")), ["2 to 2 on 11 of 11"]);
    let text = TEMPLATE.replace("name = \"leader\"", "name = \"lieder\"");
    assert_eq!(unmet(&run_with(&text, registry()).expect("it can be run")), ["on no node"]);
}

#[test]
fn node_that_restarts_runs_the_protocol_again_and_leads() {
    let text = TEMPLATE.replace("[[expect]]", "[[fault]]\nat_s = 15\nrestart = [0]\n[[expect]]");
    let text = text.replace("at_least = 2, at_most = 2", "at_least = 1, at_most = 1");
    let run = run_with(&text, registry()).expect("it can be run");
    assert_eq!(unmet(&run), Vec::<String>::new());
    assert_eq!(run.1.metrics.figures["{{name}} leader"].nodes, 12);
}

#[test]
fn protocols_of_ours_are_named_in_the_same_way_and_start_late_too() {
    let text = "name = 'count'\nseconds = 30\n[topology]\nshape = 'line'\nnodes = 5\n\
                [[protocol]]\nname = 'gap'\nat_s = 5\n\
                [[expect]]\n\
                figure = { protocol = 'gap', name = 'count', at_least = 5, at_most = 5 }\n";
    let run = run_with(text, Registry::default()).expect("it can be run");
    assert_eq!(unmet(&run), Vec::<String>::new());
}

#[test]
fn mistakes_are_told_with_the_way_out() {
    let error =
        |text: &str, registry| run_with(text, registry).expect_err("it is wrong").to_string();
    assert_eq!(
        error(TEMPLATE, Registry::default()),
        "no protocol has the name `{{name}}`; there is gap, flow-updating, limosense, push-sum, \
         membership"
    );
    let with = |line: &str| TEMPLATE.replace("interval_ms = 500", line);
    assert_eq!(
        error(&with("settings = 'fast'"), registry()),
        "`{{name}}`: the protocol takes an interval, and no other settings"
    );
    assert_eq!(error(&with("interval_ms = 0"), registry()), "interval_ms must be more than 0");
    let other = TEMPLATE.replace("protocol = \"{{name}}\"", "protocol = \"gap\"");
    assert_eq!(error(&other, registry()), "a figure of `gap` takes `[[protocol]]` with this name");
    let twice = with("[[protocol]]\nname = \"{{name}}\"");
    assert_eq!(error(&twice, registry()), "`[[protocol]]` names `{{name}}` twice");
    assert_eq!(error(&with("nodes = [12]"), registry()), "there is no node 12; they count from 0");
}
