//! Traces against what ns-2's own tool says of its file, and what is wrong with a file.

use std::collections::{BTreeMap, BTreeSet};

use super::{Motion, MotionFormat, WrongLine};

/// Made by `setdest -v 1 -n 12 -p 2 -M 15 -t 60 -x 700 -y 500` of Debian's package ns2 2.35.
const SETDEST: &str = include_str!("../../../tests/motion/setdest.ns_movements");
/// The range with which `setdest` counts hops.
const SETDEST_RANGE_M: f64 = 250.0;
/// How it writes that no way leads from one node to another.
const UNREACHABLE: u32 = 16_777_215;

#[track_caller]
fn motion(text: &str, format: MotionFormat) -> Motion {
    Motion::parse(text, format).expect("a trace")
}

#[track_caller]
fn wrong(text: &str, format: MotionFormat, line: usize, what: &str) {
    let expected = WrongLine::new(line, what);
    assert_eq!(Motion::parse(text, format).expect_err("it is wrong"), expected);
}

/// Where node 0 is at these times, to the millimetre.
#[track_caller]
fn check(motion: &Motion, marks: &[(f64, [f32; 2])]) {
    for (at_s, [x, y]) in marks {
        let spot = motion.spot(0, *at_s).expect("it is in the trace");
        assert!((spot.x - x).hypot(spot.y - y) < 1e-3, "at {at_s} s: {spot:?}, not {x}, {y}");
    }
}

/// Hops between all pairs of nodes by `setdest` itself, from each time on at which one changed.
fn hops_by_setdest() -> BTreeMap<u64, Vec<(u32, u32, u32)>> {
    let mut changes: BTreeMap<u64, Vec<(u32, u32, u32)>> = BTreeMap::new();
    for line in SETDEST.lines().filter(|line| line.contains("set-dist")) {
        let words: Vec<&str> = line.split(['"', ' ']).filter(|word| !word.is_empty()).collect();
        let at_s: f64 = if words[1] == "at" { words[2].parse().unwrap() } else { 0.0 };
        let [.., one, other, hops] = words[..] else { panic!("{line}") };
        let change = [one, other, hops].map(|word| word.parse::<u32>().unwrap());
        changes.entry((at_s * 1e9) as u64).or_default().push(change.into());
    }
    changes
}

fn hops(motion: &Motion, at_s: f64) -> BTreeMap<(u32, u32), u32> {
    let nodes: BTreeSet<u32> = motion.nodes().collect();
    let is_near = |one: u32, other: u32| {
        let [a, b] = [one, other].map(|node| motion.paths[&node].at(at_s));
        (a[0] - b[0]).hypot(a[1] - b[1]) < SETDEST_RANGE_M
    };
    let mut found = BTreeMap::new();
    for from in &nodes {
        let mut left = nodes.clone();
        left.remove(from);
        let (mut frontier, mut distance) = (vec![*from], 0);
        while !frontier.is_empty() {
            distance += 1;
            frontier =
                left.extract_if(.., |to| frontier.iter().any(|at| is_near(*at, *to))).collect();
            found.extend(frontier.iter().map(|to| ((*from, *to), distance)));
        }
        found.extend(left.iter().map(|to| ((*from, *to), UNREACHABLE)));
    }
    found
}

#[test]
fn nodes_are_where_setdest_counts_their_hops() {
    let motion = motion(SETDEST, MotionFormat::Ns2);
    assert_eq!(motion.nodes().count(), 12);
    let changes = hops_by_setdest();
    let times: Vec<u64> = changes.keys().copied().chain([60_000_000_000]).collect();
    let (mut known, mut looked_at) = (BTreeMap::new(), 0);
    for (between, changed) in times.windows(2).zip(changes.values()) {
        known.extend(changed.iter().map(|(one, other, hops)| ((*one, *other), *hops)));
        let middle_s = (between[0] + between[1]) as f64 / 2e9;
        let here = hops(&motion, middle_s);
        for (pair, hops) in &known {
            assert_eq!(here[pair], *hops, "between {pair:?} at {middle_s} s");
        }
        looked_at += 1;
    }
    assert!(
        looked_at > 50 && known.len() == 12 * 11 / 2,
        "{looked_at} times, {} pairs",
        known.len()
    );
}

#[test]
fn a_node_that_is_sent_elsewhere_on_its_way_turns_and_at_speed_zero_stops() {
    let text = "$ns_ at 6 \"$node_(0) setdest 0 -10 1\"\r\n\
                $ns_ at 1 \"$node_(0) setdest 0 10 1.0e0\" # the earlier one stands below\r\n\
                $ns_ at 9 \"$node_(0) setdest 5 5 0\"\r\n\
                $node_(0) set Z_ 3\r\n$node_(0) set X_ 0.0\r\n";
    let marks = [(0.5, [0.0, 0.0]), (3.0, [0.0, 2.0]), (7.0, [0.0, 4.0]), (20.0, [0.0, 2.0])];
    check(&motion(text, MotionFormat::Ns2), &marks);
}

#[test]
fn a_place_that_is_set_at_a_time_is_a_jump_and_one_without_a_time_the_start() {
    let text = "$ns_ at 2.0 \"$node_(0) set X_ 10\"\n$ns_ at 2.0 \"$node_(0) set Y_ 20\"\n\
                $ns_ at 4.0 \"$node_(0) setdest 10 20 3\"\n$node_(0) set X_ -1\n";
    let marks =
        [(0.0, [-1.0, 0.0]), (1.999, [-1.0, 0.0]), (2.0, [10.0, 20.0]), (9.0, [10.0, 20.0])];
    check(&motion(text, MotionFormat::Ns2), &marks);
}

#[test]
fn lines_of_time_node_and_place_are_joined_by_straight_ways() {
    let text =
        "time,node,x,y\n# a comment\n\n1,0,10,0\n0.5,1,7,7\n3, 0, 10, 40 # there\n3,0,50,50\n";
    let motion = motion(text, MotionFormat::Csv);
    let marks = [(0.0, [10.0, 0.0]), (2.0, [10.0, 20.0]), (3.0, [50.0, 50.0]), (9.0, [50.0, 50.0])];
    check(&motion, &marks);
    assert_eq!(motion.nodes().collect::<Vec<_>>(), [0, 1]);
    assert_eq!((motion.beyond(2), motion.beyond(1)), (None, Some((5, 1))));
}

#[test]
fn what_is_wrong_with_an_ns_2_file_is_said_with_its_line() {
    let wrong = |text: &str, line: usize, what: &str| wrong(text, MotionFormat::Ns2, line, what);
    wrong("\n$node_(-22) set Y_ 3", 2, "`$node_(-22)` is no node's number");
    wrong("$node_() set Y_ 3", 1, "`$node_()` is no node's number");
    wrong("$node_(0) set X_ 2..5", 1, "`2..5` is no number");
    wrong("$node_(0) set X_ inf", 1, "`inf` is no number");
    wrong("$ns_ at -12 \"$node_(0) setdest 1 2 3\"", 1, "-12 s is before the start");
    wrong("$ns_ at 1 \"$node_(0) setdest 2 2 -1\"", 1, "a speed of -1 m/s");
    for line in [
        "$ns_ at 1 $node_(0) setdest 2 2 1",
        "$ns_ at 1 \"$node_(0) setdest 2 2",
        "$node_(0) setdest 2 2 1",
        "$node_(0) color red",
        "12 lines of something else",
    ] {
        wrong(line, 1, &format!("`{line}` is no statement about where a node is"));
    }
}

#[test]
fn what_is_wrong_with_a_csv_file_is_said_with_its_line() {
    let wrong = |text: &str, line: usize, what: &str| wrong(text, MotionFormat::Csv, line, what);
    wrong("0,0,1,1\n1,0,2", 2, "3 fields instead of 4: time, node, x, y");
    wrong("0,x,1,1", 1, "`x` is no node's number");
    wrong("0,0,1,far", 1, "`far` is no number");
    wrong("5,0,1,1\n4.5,0,1,1", 2, "node 0 was at 5 s already, and this is 4.5 s");
    wrong("0,0,1,1\ntime,node,x,y", 2, "`time` is no number");
}
