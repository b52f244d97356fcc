//! Scenarios as files say them, and whole runs of the small ones.

use super::{Files, Lie, Metrics, Options, Outcome, Router, Scenario, ScenarioError, run};

fn watched() -> Options {
    Options { watches_loops: true, watches_ways: true, records: true, ..Options::default() }
}

#[track_caller]
pub(super) fn scenario(text: &str) -> Scenario {
    Scenario::parse(text).expect("a scenario")
}

#[track_caller]
pub(super) fn check(scenario: &Scenario) -> Outcome {
    let outcome = run(scenario, watched(), |_| {}).expect("it can be run");
    assert_eq!(outcome.metrics.loops, 0, "{:?}", outcome.first_loop);
    assert_eq!(outcome.metrics.duplicates, 0);
    outcome
}

/// Runs a scenario, which must come to all that it expects.
#[track_caller]
pub(super) fn check_all(text: &str) -> (Scenario, Metrics) {
    let scenario = scenario(text);
    let outcome = check(&scenario);
    let verdicts = outcome.verdicts(&scenario);
    let unmet: Vec<_> = verdicts.into_iter().filter(|verdict| !verdict.is_met).collect();
    assert_eq!(unmet, [], "{:#?}\n{}", outcome.metrics, outcome.last_events.join("\n"));
    (scenario, outcome.metrics)
}

#[test]
fn the_line_converges_within_a_second_and_delivers() {
    let outcome = check(&scenario(include_str!("../../../../scenarios/line.toml")));
    assert!(outcome.metrics.converged_s.is_some_and(|at| at <= 1.0), "{:?}", outcome.metrics);
    assert_eq!(outcome.metrics.delivered, outcome.metrics.sent);
}

#[test]
fn ways_are_known_when_the_last_node_was_switched_on_and_not_before() {
    let text = "name = 'late'\nseconds = 30\nboot_within_ms = 20000\n\
                [topology]\nshape = 'line'\nnodes = 3\n";
    let outcome = check(&scenario(text));
    let known_at = outcome.metrics.converged_s.expect("it converges");
    let last_booted = outcome.seconds.iter().rposition(|second| second.reachable < Some(1.0));
    assert!(known_at > 5.0 && last_booted.is_some_and(|at| at as f64 <= known_at), "{known_at}");
}

#[test]
fn a_way_that_is_longer_than_datagrams_travel_is_none() {
    let reachable = |nodes: u32| {
        let text = format!(
            "name = 'long'\nseconds = 12\n[topology]\nshape = 'line'\nnodes = {nodes}\n\
             [radio]\ncontention = false\n"
        );
        let outcome = check(&scenario(&text));
        (outcome.metrics.converged_s.is_some(), outcome.seconds.last().and_then(|it| it.reachable))
    };
    assert_eq!(reachable(66), (true, Some(1.0)));
    let (converged, share) = reachable(70);
    assert!(!converged && share.is_some_and(|share| (0.98..1.0).contains(&share)), "{share:?}");
}

#[test]
fn datagrams_sent_while_nodes_are_parted_are_counted() {
    let text = "name = 'apart'\nseconds = 20\n\
                [topology]\nshape = 'places'\nplaces = [[0, 0], [2000, 0]]\n\
                [movement]\nspeed_m_s = [1, 2]\n[[traffic]]\nfrom = 0\nto = 1\nevery_ms = 1000\n";
    let metrics = check(&scenario(text)).metrics;
    assert!(metrics.sent > 5 && metrics.delivered == 0, "{metrics:?}");
    assert_eq!(metrics.sent_while_parted, metrics.sent);
    assert!(metrics.given_up.no_way > 0, "{:?}", metrics.given_up);
}

#[test]
fn a_cut_link_is_got_around() {
    let outcome = check(&scenario(include_str!("../../../../scenarios/cut.toml")));
    let recovered = outcome.metrics.recovered_s[0].expect("it recovers");
    assert!(recovered < 5.0, "{recovered} s");
}

#[test]
fn nodes_that_crash_move_and_drift_form_no_loop() {
    let mut scenario = scenario(
        r#"
        name = "trouble"
        seconds = 60
        clock_drift_ppm = 500
        boot_within_ms = 2000
        topology = { shape = "random", nodes = 16, neighbours = 6 }
        movement = { speed_m_s = [1, 20], nodes = [0, 3, 5] }
        radio = { loss = { near = 0.05, far = 0.6 }, unicast_retries = 3 }
        traffic = [{ every_ms = 50 }]
        fault = [
            { at_s = 20, crash = [1, 2] },
            { at_s = 25, restart = [1, 2] },
            { at_s = 30, part = [4, 5, 6, 7] },
            { at_s = 40, unite = true },
        ]
        "#,
    );
    for (router, seed) in
        [Router::Babel, Router::Batman].into_iter().flat_map(|it| [(it, 1), (it, 2), (it, 3)])
    {
        scenario.protocols.router = router;
        scenario.seed = seed;
        let outcome = check(&scenario);
        assert!(outcome.metrics.delivery() > 0.5, "{router:?}: {:?}", outcome.metrics);
        assert_eq!(outcome.playback.places.len(), outcome.seconds.len() + 1);
    }
}

#[test]
fn the_same_seed_is_the_same_run() {
    let mut scenario = scenario(include_str!("../../../../scenarios/cut.toml"));
    let (one, two) = (check(&scenario), check(&scenario));
    assert_eq!(one, two);
    scenario.seed = 2;
    assert_ne!(one.metrics, check(&scenario).metrics);
}

#[test]
fn other_routers_carry_too() {
    let mut scenario = scenario(include_str!("../../../../scenarios/line.toml"));
    scenario.seconds = 60.0;
    scenario.traffic[0].from_s = 30.0;
    for router in [Router::Batman, Router::Aodv] {
        scenario.protocols.router = router;
        let metrics = run(&scenario, watched(), |_| {}).expect("it can be run").metrics;
        assert!(metrics.delivery() > 0.97, "{router:?}: {metrics:?}");
    }
}

#[test]
fn what_is_wrong_with_a_scenario_is_said() {
    let check = |line: &str, expected: ScenarioError| {
        let text = format!("name = 'x'\nseconds = 10\n{line}\n");
        assert_eq!(Scenario::parse(&text).expect_err("it is wrong"), expected);
    };
    let line = "topology = { shape = 'line', nodes = 3 }";
    check("topology = { shape = 'line', nodes = 0 }", ScenarioError::Nodes(0));
    check(
        &format!("{line}\nlink = [{{ from = 0, to = 3, loss = 0.1 }}]"),
        ScenarioError::NoSuchNode(3),
    );
    check(
        &format!("{line}\nlink = [{{ from = 0, to = 1, loss = 1.5 }}]"),
        ScenarioError::Share(1.5),
    );
    check(
        &format!("{line}\ntraffic = [{{ every_ms = 0 }}]"),
        ScenarioError::NotPositive("every_ms"),
    );
    let unknown =
        Scenario::parse("name = 'x'\nseconds = 10\nspeed = 3\n").expect_err("unknown field");
    assert!(matches!(unknown, ScenarioError::Syntax(message) if message.contains("speed")));
    let sparse = "topology = { shape = 'random', nodes = 30, side_m = 5000 }";
    let sparse = Scenario::parse(&format!("name = 'x'\nseconds = 1\n{sparse}")).expect("it parses");
    assert_eq!(run(&sparse, watched(), |_| {}), Err(ScenarioError::Parted));
}

#[test]
fn the_scenario_in_the_docs_can_be_read() {
    let docs = include_str!("../../../../docs/simulator.md");
    let example = |number: usize| {
        docs.split("```toml")
            .nth(number)
            .and_then(|rest| rest.split("```").next())
            .expect("an example")
    };
    scenario(example(1));
    let house = house(|text| {
        let (head, _) = text.split_once("[motion]").expect("it names a file");
        format!("{head}{}", example(2))
    });
    assert_eq!(house.expect("a scenario").all_walls().len(), 15);
}

fn house(change: impl Fn(&str) -> String) -> Result<Scenario, ScenarioError> {
    let text = change(include_str!("../../../../scenarios/house.toml"));
    Scenario::parse_with(&text, |file| match file {
        "house-motion.csv" => {
            Ok(include_str!("../../../../scenarios/house-motion.csv").to_string())
        }
        "house-walls.csv" => Ok(include_str!("../../../../scenarios/house-walls.csv").to_string()),
        _ => Err("there is no such file".to_string()),
    })
}

#[test]
fn a_courier_walks_as_its_file_says_among_walls_that_part_rooms() {
    let scenario = house(str::to_string).expect("a scenario");
    let outcome = check(&scenario);
    let unmet: Vec<_> = outcome.verdicts(&scenario).into_iter().filter(|it| !it.is_met).collect();
    assert_eq!(unmet, []);
    for (second, [x, y]) in [(0, [10., 10.]), (25, [15., 15.]), (35, [30., 15.]), (66, [75., 15.])]
    {
        // Nodes that move are placed anew each quarter of a second.
        let [east, north]: [f32; 2] = outcome.playback.places[second][6];
        assert!((east - x).hypot(north - y) < 0.5, "after {second} s: {east}, {north}");
    }
    // Nobody is further off than a hundred metres: without walls everybody hears everybody.
    let open = Scenario {
        wall_map: None,
        files: Files { walls: Vec::new(), ..scenario.files.clone() },
        ..scenario
    };
    let hops = |outcome: &Outcome| outcome.metrics.hops_max;
    assert_eq!((hops(&check(&open)), hops(&outcome)), (1, 3));
}

#[test]
fn what_is_wrong_with_a_file_of_a_scenario_is_said_with_its_name_and_line() {
    let wrong = |from: &str, to: &str| {
        house(|text| text.replace(from, to)).expect_err("it is wrong").to_string()
    };
    assert_eq!(wrong("house-motion", "hous"), "hous.csv: there is no such file");
    assert_eq!(
        wrong("\"csv\"", "\"ns2\""),
        "house-motion.csv:1: `time,node,x,y` is no statement about where a node is"
    );
    assert_eq!(
        wrong("nodes = 7", "nodes = 6"),
        "house-motion.csv:8: there is no node 6; they count from 0"
    );
    assert_eq!(wrong("nodes = 7", "nodes = 8"), "house-motion.csv: it doesn't say where node 7 is");
    let wall = "wall = [{ from = [0, 0], to = [1, 1], db = -1 }]\n";
    let about = house(|text| format!("{wall}{text}")).expect_err("it is wrong");
    assert_eq!(about, ScenarioError::Wall);
    let shape = "name = 'x'\nseconds = 1\n[topology]\nshape = 'motion'\nnodes = 1\n";
    assert_eq!(Scenario::parse(shape), Err(ScenarioError::NoMotion));
}

#[test]
fn a_scenario_that_names_files_is_written_and_read_again() {
    let scenario = house(str::to_string).expect("a scenario");
    let written = scenario.to_toml();
    assert_eq!(house(|_| written.clone()), Ok(scenario), "{written}");
}

#[test]
fn the_scenarios_that_are_handed_out_come_to_what_they_expect() {
    for text in [
        include_str!("../../../../scenarios/aggregation.toml"),
        include_str!("../../../../scenarios/broadcast.toml"),
        include_str!("../../../../scenarios/cut.toml"),
        include_str!("../../../../scenarios/gray.toml"),
        include_str!("../../../../scenarios/grid.toml"),
        include_str!("../../../../scenarios/half-gray.toml"),
        include_str!("../../../../scenarios/hole.toml"),
        include_str!("../../../../scenarios/lossy-aggregation.toml"),
        include_str!("../../../../scenarios/lossy-line.toml"),
        include_str!("../../../../scenarios/moving.toml"),
        include_str!("../../../../scenarios/overload.toml"),
        include_str!("../../../../scenarios/village.toml"),
    ] {
        check_all(text);
    }
}

#[test]
fn a_page_holds_the_run_and_nothing_ends_its_script_early() {
    let mut scenario = scenario(include_str!("../../../../scenarios/line.toml"));
    scenario.name = "</script><b>".to_string();
    let outcome = check(&scenario);
    let page = outcome.to_html(&scenario);
    assert_eq!(page.matches("</script>").count(), 1);
    assert!(page.contains("\\u003c/script>\\u003cb>") && !page.contains("\"the run\""));
    assert_eq!(outcome.to_csv().lines().count(), outcome.seconds.len() + 1);
    assert!(outcome.verdicts(&scenario).iter().all(|verdict| verdict.is_met));
}

#[test]
fn every_node_knows_the_average_and_hears_a_broadcast() {
    let averages = scenario(include_str!("../../../../scenarios/aggregation.toml"));
    assert_eq!(check(&averages).metrics.aggregate_error, Some(0.0));
    let mut broadcasts = scenario(include_str!("../../../../scenarios/broadcast.toml"));
    broadcasts.seconds = 60.0;
    broadcasts.traffic[0].until_s = Some(40.0);
    let metrics = check(&broadcasts).metrics;
    assert!(metrics.broadcasts_complete * 100 >= metrics.broadcasts * 99, "{metrics:?}");
}

/// For each second after the first so many, which share of what was sent arrived.
fn shares(outcome: &Outcome, after: usize) -> Vec<f64> {
    let share =
        |sent: u64, delivered: u64| if sent == 0 { 1.0 } else { delivered as f64 / sent as f64 };
    outcome.seconds[after..].iter().map(|it| share(it.sent, it.delivered)).collect()
}

#[test]
fn whatever_a_member_said_that_turned_bad_is_over_twenty_seconds_after_it_stopped() {
    for lie in ["hole", "ways", "numbers", "last_numbers", "lives", "versions"] {
        for (leaves, end) in [(true, "[[fault]]\nat_s = 35\ncrash = [5]\n"), (false, "")] {
            let text = format!(
                "name = 'a liar'\nseconds = 70\n[topology]\nshape = 'grid'\ncolumns = 4\nrows = 3\n\
                 [[traffic]]\nevery_ms = 50\nfrom_s = 8\n{end}\
                 [[liar]]\nnode = 5\nlie = '{lie}'\nfrom_s = 20\nuntil_s = 35\n"
            );
            let outcome = check(&scenario(&text));
            let during = shares(&outcome, 22)[..10].iter().sum::<f64>() / 10.0;
            let after = shares(&outcome, 35);
            assert!(during < 0.9, "{lie}: a lie that does no harm shows nothing: {during}");
            assert!(after[20..30].iter().all(|share| *share >= 0.99), "{lie}, {leaves}: {after:?}");
        }
    }
}

#[test]
fn members_that_turn_bad_one_after_the_other_leave_nothing_behind() {
    let (_, metrics) = check_all(include_str!("../../../../scenarios/liars.toml"));
    assert!(metrics.delivery() < 0.97, "they did harm: {}", metrics.delivery());
}

#[test]
fn a_member_that_is_busy_for_ever_is_left_while_it_is_there_and_holds_no_datagram_to_its_end() {
    let mut scenario = scenario(include_str!("../../../../scenarios/hole.toml"));
    scenario.liars[0].lie = Lie::Busy;
    // What is repaired by acknowledgements can be refused.
    scenario.radio.unicast_retries = 0;
    for seed in 1..=3 {
        scenario.seed = seed;
        let outcome = check(&scenario);
        let shares = shares(&outcome, 0);
        assert!(shares[40..97].iter().all(|share| *share >= 0.95), "seed {seed}: {shares:.2?}");
        // Most of those that it refused have waited about four seconds for another way, and got it.
        assert!(outcome.metrics.delivery() >= 0.95, "seed {seed}: {:?}", outcome.metrics.given_up);
        assert!(outcome.metrics.latency_99_ms > 1_000.0, "a lie that does no harm shows nothing");
    }
}

#[test]
fn a_member_that_passes_nothing_on_is_left_within_ten_seconds_while_it_is_there() {
    let mut scenario = scenario(include_str!("../../../../scenarios/hole.toml"));
    for seed in 1..=3 {
        scenario.seed = seed;
        let outcome = check(&scenario);
        let shares = shares(&outcome, 0);
        let during = shares[30..33].iter().sum::<f64>() / 3.0;
        assert!(during < 0.6, "a hole that does no harm shows nothing: {during}");
        assert!(shares[40..97].iter().all(|share| *share >= 0.95), "seed {seed}: {shares:.2?}");
        let after = shares[40..97].iter().sum::<f64>() / 57.0;
        assert!(after >= 0.99, "seed {seed}: {after}");
    }
}
