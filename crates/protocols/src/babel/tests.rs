//! The feasibility condition, and small networks.

use alloc::vec::Vec;
use core::time::Duration;

use tenure_hal::Instant;
use tenure_mesh::{NodeId, Outgoing, Stack};

use super::demand::Demand;
use super::link::Link;
use super::table::{Distance, Entry, News, Selection, Seqno, Table};
use super::unrest::Unrest;
use super::{Acknowledgment, Babel, Config, INFINITE, Missing, Search, Update};
use crate::testing::{Network, id};

const NOW: Instant = Instant::BOOT;

fn distance(number: u32, metric: u16) -> Distance {
    Distance { seqno: Seqno { boot: 1, number }, metric }
}

fn entry(destination: NodeId, number: u32, metric: u16) -> Entry {
    Entry { destination, distance: distance(number, metric) }
}

/// A table of node 0 with neighbours 1 and 2, over links that cost 64.
fn table() -> Table {
    let mut table = Table::new(id(0), 1, true, 16);
    table.set_cost(id(1), 64);
    table.set_cost(id(2), 64);
    table
}

fn select(table: &mut Table, to: NodeId) -> Selection {
    let place = table.place(to).expect("it was heard of");
    table.select(place)
}

fn tell(table: &mut Table, to: NodeId) {
    let place = table.place(to).expect("it was heard of");
    table.tell(place, NOW);
}

#[test]
fn a_distance_is_better_by_number_first() {
    // RFC 8966 §3.5.1.
    assert!(distance(2, 500).is_better_than(distance(1, 100)));
    assert!(distance(1, 99).is_better_than(distance(1, 100)));
    assert!(!distance(1, 100).is_better_than(distance(1, 100)));
    assert!(!distance(1, 50).is_better_than(distance(2, 100)));
}

#[test]
fn what_is_no_nearer_than_was_told_is_not_used() {
    let mut table = table();
    assert!(table.learn(id(1), entry(id(9), 0, 64), NOW).is_some());
    assert_eq!(select(&mut table, id(9)).news, News::Soon);
    tell(&mut table, id(9));
    assert_eq!(table.feasibility(id(9)), Some(distance(0, 128)));
    // The way by 2 may lead through this node.
    table.learn(id(2), entry(id(9), 0, 128), NOW);
    for place in table.forget(id(1)) {
        let selection = table.select(place);
        assert_eq!(selection.news, News::AtOnce);
        assert_eq!(selection.wanted, Some(Seqno { boot: 1, number: 1 }));
    }
    assert_eq!(table.route(id(9)), None);
    // A newer number can't be the echo of what was told from here.
    table.learn(id(2), entry(id(9), 1, 500), NOW);
    select(&mut table, id(9));
    assert_eq!(table.route(id(9)), Some((id(2), distance(1, 564))));
}

#[test]
fn the_present_route_stays_unless_another_is_clearly_better() {
    let mut table = table();
    table.learn(id(1), entry(id(9), 0, 100), NOW);
    select(&mut table, id(9));
    table.learn(id(2), entry(id(9), 0, 90), NOW);
    assert!(!select(&mut table, id(9)).is_changed);
    table.learn(id(2), entry(id(9), 0, 10), NOW);
    assert!(select(&mut table, id(9)).is_changed);
    assert_eq!(table.route(id(9)).map(|(next, _)| next), Some(id(2)));
}

#[test]
fn a_full_table_takes_nobody_new_and_forgets_no_feasibility_distance_early() {
    let mut table = table();
    for number in 10..26 {
        assert!(table.learn(id(1), entry(id(number), 0, 64), NOW).is_some());
        select(&mut table, id(number));
        tell(&mut table, id(number));
    }
    assert!(table.learn(id(1), entry(id(30), 0, 64), NOW).is_none());
    table.learn(id(1), entry(id(10), 0, INFINITE), NOW);
    select(&mut table, id(10));
    tell(&mut table, id(10));
    let soon = NOW + Duration::from_secs(60);
    assert!(table.learn(id(1), entry(id(30), 0, 64), soon).is_none());
    let later = NOW + Duration::from_secs(200);
    assert!(table.learn(id(1), entry(id(30), 0, 64), later).is_some());
}

#[test]
fn a_number_is_raised_to_what_is_asked_and_not_by_more_boots_than_anybody_believes() {
    let mut table = table();
    let own = table.own_seqno();
    let far = Seqno { boot: own.boot + 17, ..own };
    assert!(!table.raise_own_seqno(far) && !table.outbid(far), "nobody believes it for long");
    let invented = Seqno { number: u32::MAX, ..own };
    assert!(table.outbid(invented), "who was told of it believes no lower one");
    assert_eq!(table.own_seqno(), Seqno { boot: own.boot + 1, number: 0 });
    assert!(!table.outbid(invented));
    let next = table.own_seqno().next();
    assert!(table.raise_own_seqno(next));
    assert!(!table.raise_own_seqno(next));
    assert_eq!(table.told_between(0, u32::MAX).count(), 1);
    assert_eq!(table.told_between(2, 2).count(), 0);
    assert_eq!(table.told_between(u32::MAX, 0).count(), 0);
}

#[test]
fn a_destination_out_of_reach_is_believed_anew_by_a_number_that_cant_follow() {
    let far = |boot: u32| Distance { seqno: Seqno { boot, number: 0 }, metric: 64 };
    let offer = |boot: u32| Entry { destination: id(9), distance: far(boot) };
    let mut table = table();
    table.learn(id(1), offer(1_000_000), NOW);
    select(&mut table, id(9));
    tell(&mut table, id(9));
    // The neighbour that said so is gone, and the destination itself is here.
    table.forget(id(1));
    assert_eq!(select(&mut table, id(9)).news, News::AtOnce);
    tell(&mut table, id(9));
    table.learn(id(2), offer(1), NOW);
    assert_eq!(select(&mut table, id(9)).route, None);
    assert!(table.believe_anew(NOW + Duration::from_secs(7)).is_none());
    assert!(table.believe_anew(NOW + Duration::from_secs(8)).is_some());
    assert_eq!(select(&mut table, id(9)).route.map(|(by, _)| by), Some(id(2)));
    tell(&mut table, id(9));
    // Nor is one believed that is as far ahead, as long as there was a way lately.
    table.learn(id(1), offer(1_000_000), NOW);
    assert_eq!(select(&mut table, id(9)).route.map(|(by, _)| by), Some(id(2)));
}

#[test]
fn versions_that_somebody_invented_in_a_neighbours_name_are_forgotten_after_a_few_true_ones() {
    let mut link = Link::new(1, 0);
    link.learn(0, 7);
    link.learn(7, u32::MAX);
    for _ in 0..3 {
        assert!(!link.tells_up_to(7));
        assert_eq!((link.known, link.gaps().count()), (u32::MAX, 0));
    }
    assert!(link.tells_up_to(7));
    link.forget_lines();
    assert_eq!(link.gaps().collect::<Vec<_>>(), [(0, 7)], "all is asked for anew");
}

#[test]
fn a_neighbour_that_comes_to_a_version_after_it_spoke_of_a_lower_one_never_told_it_before() {
    let mut link = Link::new(1, 0);
    link.learn(0, 7);
    assert!(!link.tells_up_to(7));
    link.learn(8, 9);
    assert!(!link.tells_up_to(7));
    assert!(link.tells_up_to(12));
    link.forget_lines();
    assert_eq!(link.gaps().collect::<Vec<_>>(), [(0, 12)]);
    assert!(!link.tells_up_to(12), "it is told so once");
}

#[test]
fn lines_of_a_table_that_isnt_whole_expire_after_a_while_and_others_dont() {
    let mut link = Link::new(1, 0);
    let at = |seconds: u64| Instant::from_millis(seconds * 1000);
    link.learn(0, 4);
    assert!(!link.is_outdated(at(0)) && !link.is_outdated(at(100)));
    link.learn(6, 8);
    assert!(!link.is_outdated(at(101)) && !link.is_outdated(at(115)) && link.is_outdated(at(116)));
    link.learn(4, 6);
    assert!(!link.is_outdated(at(117)));
    link.learn(9, 10);
    assert!(!link.is_outdated(at(118)), "others are missing now");
}

#[test]
fn digests_are_equal_where_tables_are_and_only_there() {
    let (mut told, mut learnt) = (table(), Table::new(id(1), 1, true, 16));
    learnt.set_cost(id(0), 64);
    // Two have the same digest by chance once in 65,536 times.
    for (number, metric) in [(1, 64), (8, 64), (9, 100), (10, 300)] {
        told.learn(id(2), entry(id(number), 0, metric), NOW);
        select(&mut told, id(number));
        tell(&mut told, id(number));
        assert_ne!(learnt.learnt_digest(id(0)), Some(told.told_digest()));
        for (_, line) in told.told_between(0, u32::MAX) {
            learnt.learn(id(0), line, NOW);
        }
        assert_eq!(learnt.learnt_digest(id(0)), Some(told.told_digest()), "also of ways to itself");
    }
    learnt.learn(id(0), entry(id(11), 0, 64), NOW);
    assert_ne!(learnt.learnt_digest(id(0)), Some(told.told_digest()), "it was never told");
    learnt.forget_lines(id(0));
    assert_eq!((learnt.learnt_digest(id(0)), learnt.cost(id(0))), (Some(0), 64));
}

#[test]
fn a_gap_between_lines_is_closed_by_those_in_it() {
    let mut link = Link::new(1, 0);
    let gaps = |link: &Link| link.gaps().collect::<Vec<_>>();
    link.learn(0, 4);
    assert_eq!(gaps(&link), []);
    link.learn(6, 8);
    link.learn(8, 9);
    assert_eq!(gaps(&link), [(4, 6)]);
    link.learn(4, 5);
    assert_eq!(gaps(&link), [(5, 6)]);
    link.learn(5, 6);
    assert_eq!(gaps(&link), []);
    // Several are known apart, and closed in any order.
    link.learn(10, 11);
    link.learn(12, 13);
    assert_eq!(gaps(&link), [(9, 10), (11, 12)]);
    link.learn(11, 12);
    assert_eq!(gaps(&link), [(9, 10)]);
    link.learn(20, 19);
    assert_eq!(gaps(&link), [(9, 10)], "an update that ends before it begins says nothing");
    link.learn(8, 14);
    assert_eq!(gaps(&link), []);
}

#[test]
fn gaps_without_number_are_asked_for_a_few_at_a_time() {
    let mut link = Link::new(1, 0);
    (1..1000).for_each(|at| link.learn(2 * at, 2 * at + 1));
    assert_eq!(link.gaps().collect::<Vec<_>>(), [(0, 2), (3, 4), (5, 6), (7, 8)]);
    (0..1000).for_each(|at| link.learn(2 * at + 1, 2 * at + 2));
    link.learn(0, 1);
    assert_eq!(link.gaps().next(), Some((10, 11)), "what was too much to remember is missing");
}

fn set_up(stack: &mut Stack, index: usize) {
    set_up_in_life(stack, index, 1);
}

fn set_up_in_life(stack: &mut Stack, index: usize, boot: u32) {
    stack.start(Instant::BOOT, Babel::new(id(index), boot, Config::default()));
}

fn next_hop(network: &Network, from: usize, to: usize) -> Option<NodeId> {
    let babel = network.stacks[from].protocol::<Babel>()?;
    babel.table().route(id(to)).map(|(next, _)| next)
}

fn next_hops(network: &Network, to: usize) -> Vec<Option<NodeId>> {
    (0..network.stacks.len()).map(|from| next_hop(network, from, to)).collect()
}

#[test]
fn a_line_converges_within_a_second() {
    let mut network = Network::new(6, set_up).line(0);
    network.run(Duration::from_secs(1));
    let expected = [None, Some(id(0)), Some(id(1)), Some(id(2)), Some(id(3)), Some(id(4))];
    assert_eq!(next_hops(&network, 0), expected);
}

#[test]
fn a_line_that_was_never_told_is_forgotten_and_no_circle_stays_by_it() {
    let mut network = Network::new(2, set_up).line(0);
    network.run(Duration::from_secs(20));
    let (now, lie) = (network.now, entry(id(9), 0, 1));
    let body = postcard::to_allocvec(&lie).expect("a few numbers");
    network.stacks[1].act::<Babel, _>(now, |babel, context| {
        let after = babel.table().version();
        let update = Update { boot: 1, after, to: after + 1 };
        context.transmit(&update, Outgoing { body: &body, ..Outgoing::default() });
    });
    network.run(Duration::from_millis(300));
    // 1 hears of it from 0 alone. It says so by the line of that version, which 0 takes for known.
    assert_eq!([next_hop(&network, 0, 9), next_hop(&network, 1, 9)], [Some(id(1)), Some(id(0))]);
    network.run(Duration::from_secs(12));
    assert_eq!([next_hop(&network, 0, 9), next_hop(&network, 1, 9)], [None, None]);
    assert_eq!(next_hop(&network, 0, 1), Some(id(1)), "true lines are learnt anew");
}

#[test]
fn a_ring_that_is_cut_turns_around() {
    let mut network = Network::new(5, set_up).line(100);
    network.link(4, 0, 100);
    network.run(Duration::from_secs(20));
    assert_eq!(next_hop(&network, 1, 0), Some(id(0)));
    network.cut(0, 1);
    network.run(Duration::from_secs(40));
    let expected = [None, Some(id(2)), Some(id(3)), Some(id(4)), Some(id(0))];
    assert_eq!(next_hops(&network, 0), expected);
}

#[test]
fn a_node_that_restarts_is_known_anew() {
    let mut network = Network::new(3, set_up).line(0);
    network.run(Duration::from_secs(10));
    network.restart(1, |stack, index| set_up_in_life(stack, index, 2));
    network.run(Duration::from_secs(10));
    assert_eq!(next_hop(&network, 0, 2), Some(id(1)));
    assert_eq!(next_hop(&network, 2, 0), Some(id(1)));
    network.restart(0, |stack, index| set_up_in_life(stack, index, 2));
    network.run(Duration::from_secs(10));
    assert_eq!(next_hop(&network, 2, 0), Some(id(1)));
}

#[test]
fn a_way_counts_on_the_life_that_told_it() {
    let mut network = Network::new(4, set_up).line(0);
    network.run(Duration::from_secs(10));
    // 1 restarts without its link to 0, unheard by 2; 3, whose way leads over 2 to it, is near now.
    network.cut(0, 1);
    network.links.remove(&(1, 2));
    network.link(1, 3, 0);
    network.restart(1, |stack, index| set_up_in_life(stack, index, 2));
    network.run(Duration::from_secs(3));
    let over = |network: &Network, from: usize| {
        network.stacks[from].protocol::<Babel>().and_then(|babel| babel.next_hop(id(0)))
    };
    let to_0 = [1, 3, 2].map(|from| over(&network, from));
    assert_eq!(
        to_0,
        [Some((id(3), 1)), Some((id(2), 1)), Some((id(1), 1))],
        "no circle: 1 is in life 2"
    );
    network.link(1, 0, 0);
    network.link(1, 2, 0);
    network.run(Duration::from_secs(10));
    assert_eq!(over(&network, 2), Some((id(1), 2)));
}

/// A link that lost no hello either way.
fn good_link() -> Link {
    let mut link = Link::new(1, 0);
    for sequence in 0..32 {
        link.hello(
            sequence,
            Duration::from_secs(2),
            Instant::from_millis(2000 * u64::from(sequence)),
        );
    }
    link.heard_there(255);
    link.renew_cost();
    link
}

#[test]
fn a_link_that_takes_no_packet_stays_down_whatever_hellos_say_until_it_takes_one() {
    let mut link = good_link();
    assert!(link.cost < INFINITE);
    for _ in 0..5 {
        link.doubt();
    }
    assert!(link.renew_cost() && link.cost == INFINITE);
    let mut tries = Vec::new();
    for sequence in 32..92 {
        let now = Instant::from_millis(2000 * u64::from(sequence));
        link.hello(sequence, Duration::from_secs(2), now);
        link.renew_cost();
        assert_eq!(link.cost, INFINITE, "hello {sequence}");
        if link.is_to_be_retried() {
            tries.push(sequence - 32);
        }
    }
    assert_eq!(tries, [0, 2, 6, 14, 30, 46], "it is tried again, ever more rarely");
    link.trust();
    assert!(link.renew_cost() && link.cost < INFINITE);
}

#[test]
fn what_arrives_shows_nothing_of_the_other_direction_and_an_acknowledgment_of_what_was_asked_does()
{
    let mut network = Network::new(2, set_up).line(0);
    network.run(Duration::from_secs(20));
    let now = network.now;
    network.stacks[0].act::<Babel, _>(now, |babel, context| {
        babel.link(id(1)).expect("it is heard").give_up();
        babel.renew_cost(id(1), context);
    });
    let cost =
        |network: &Network| network.stacks[0].protocol::<Babel>().map(|babel| babel.cost(id(1)));
    let missing = Missing { after: 0, to: 1 };
    network.stacks[1].act::<Babel, _>(now, |_, context| {
        context.send(id(0), &missing);
        // Nobody asked for these.
        context.send(id(0), &Acknowledgment { number: 0 });
        context.send(id(0), &Acknowledgment { number: 7 });
    });
    network.run(Duration::from_millis(20));
    assert_eq!(cost(&network), Some(INFINITE));
    network.run(Duration::from_secs(6));
    assert!(cost(&network) < Some(INFINITE), "it is asked, and acknowledges");
}

#[test]
fn a_link_that_was_calm_for_long_is_retried_as_soon_as_one_that_never_failed() {
    let mut link = good_link();
    link.give_up();
    link.trust();
    link.give_up();
    link.trust();
    let mut retried_after = |calm_hellos: u16, from: u16| {
        let hello = |link: &mut Link, sequence: u16| {
            let now = Instant::from_millis(2000 * u64::from(sequence));
            link.hello(sequence, Duration::from_secs(2), now);
        };
        (from..from + calm_hellos).for_each(|sequence| hello(&mut link, sequence));
        link.give_up();
        let mut hellos = 0;
        while !link.is_to_be_retried() {
            hello(&mut link, from + calm_hellos + hellos);
            hellos += 1;
        }
        link.trust();
        hellos
    };
    assert_eq!(retried_after(31, 32), 4);
    assert_eq!(retried_after(32, 100), 1);
}

#[test]
fn a_lossy_link_is_doubted_for_longer_than_a_good_one() {
    let doubts = |mut link: Link| {
        link.renew_cost();
        let mut count = 0;
        while link.cost < INFINITE {
            link.doubt();
            link.renew_cost();
            count += 1;
        }
        count
    };
    let mut lossy = good_link();
    lossy.heard_there(140);
    assert_eq!((doubts(good_link()), doubts(lossy)), (5, 9));
}

#[test]
fn a_node_is_restless_while_links_come_and_go_and_not_for_one_that_breaks() {
    let mut unrest = Unrest::default();
    let at = |seconds: u64| Instant::from_millis(seconds * 1000);
    unrest.begin(at(0));
    (0..20).for_each(|_| unrest.note(false, 4, at(5)));
    assert!(!unrest.is_restless(at(5)), "links that come up after boot were there before");
    (0..2).for_each(|_| unrest.note(false, 4, at(20)));
    assert!(!unrest.is_restless(at(20)));
    unrest.note(false, 4, at(21));
    assert!(unrest.is_restless(at(21)) && unrest.is_restless(at(25)));
    assert!(!unrest.is_restless(at(40)));
    (0..20).for_each(|_| unrest.note(true, 4, at(60)));
    assert!(!unrest.is_restless(at(60)), "nodes that are switched on don't move");
    (0..9).for_each(|_| unrest.note(false, 48, at(60)));
    assert!(!unrest.is_restless(at(60)), "nine of 48 links are few");
    (0..3).for_each(|_| unrest.note(false, 48, at(60)));
    assert!(unrest.is_restless(at(60)));
}

#[test]
fn what_nobody_uses_is_asked_for_within_a_budget_and_what_is_used_always() {
    let mut demand = Demand::default();
    let at = Instant::from_millis(100_000);
    let asked = (0..1000).filter(|index| demand.may_ask(id(*index), 1, at)).count();
    assert_eq!(asked, 24);
    demand.note(id(999), at);
    assert!(demand.may_ask(id(999), 1, at) && !demand.may_ask(id(998), 1, at));
    let later = at + Duration::from_secs(10);
    assert!(!demand.is_used(id(999), later));
    let asked = (0..1000).filter(|index| demand.may_ask(id(*index), 1, later)).count();
    assert_eq!(asked, 5, "one more every two seconds");
}

/// Lets node 0 send a search that reaches `hops` further, and returns how many node 1 may still pass on.
fn searched(network: &mut Network, destination: usize, hops: u8) -> u32 {
    let search = Search { destination: id(destination), seqno: Seqno::default(), hops };
    network.stacks[0].act::<Babel, _>(network.now, |_, context| {
        context.transmit(&search, Outgoing::default());
    });
    network.run(Duration::from_millis(20));
    network.stacks[1].protocol::<Babel>().unwrap().search_budget.left()
}

#[test]
fn a_search_that_comes_again_by_a_shorter_way_is_passed_on_once_and_a_wider_ring_is_too() {
    let mut network = Network::new(3, set_up);
    network.link(0, 1, 0);
    network.link(1, 2, 0);
    network.run(Duration::from_secs(3));
    let first = searched(&mut network, 9, 3);
    assert_eq!(searched(&mut network, 9, 6), first);
    assert_eq!(searched(&mut network, 9, 32), first - 1);
}

#[test]
fn a_neighbour_that_searches_without_end_is_passed_on_within_a_budget() {
    let mut network = Network::new(3, set_up);
    network.link(0, 1, 0);
    network.link(1, 2, 0);
    network.run(Duration::from_secs(3));
    let sent = |network: &Network| network.stacks[1].counters().frames_sent;
    let before = sent(&network);
    let left = (0..200).map(|number| searched(&mut network, 100 + number, 9)).min();
    assert_eq!(left, Some(0));
    // Four seconds: 30 at once, 50 after them, and hellos.
    assert!(sent(&network) - before < 90, "{}", sent(&network) - before);
    network.run(Duration::from_secs(3));
    assert!(searched(&mut network, 400, 9) > 20);
}

#[test]
fn a_neighbour_in_reach_of_nobody_else_finds_a_place_in_a_full_table() {
    let few = Config { neighbours_max: 4, ..Config::default() };
    let set_up = |stack: &mut Stack, index: usize| {
        let config = if index == 0 { few } else { Config::default() };
        stack.start(Instant::BOOT, Babel::new(id(index), 1, config));
    };
    let mut network = Network::new(15, set_up).clique(0);
    (0..14).for_each(|index| network.cut(index, 14));
    network.run(Duration::from_secs(20));
    network.link(0, 14, 0);
    network.run(Duration::from_secs(20));
    assert_eq!(next_hop(&network, 0, 14), Some(id(14)));
    assert!(next_hop(&network, 14, 5).is_some() && next_hop(&network, 5, 14).is_some());
}

#[test]
fn of_many_neighbours_a_few_are_asked_at_once_for_what_is_missing() {
    let mut network = Network::new(16, set_up).clique(0);
    (0..13).for_each(|index| network.cut(index, 14));
    (0..14).for_each(|index| network.cut(index, 15));
    network.run(Duration::from_secs(20));
    let babel = network.stacks[0].protocol::<Babel>().expect("it runs");
    let asked = (0..13).filter(|at| babel.pauses_until_asked(*at) == 1).count();
    assert_eq!(asked, 9, "eight with the best links, and the one that ways lead over");
}
