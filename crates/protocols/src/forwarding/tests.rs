use super::*;
use crate::testing::{FixedRouter, Network, id, line_router};
use tenure_mesh::Stack;

const PORT: Port = Port::APPLICATION;

fn line(count: usize, lost_permille: u32) -> Network {
    let set_up = |stack: &mut Stack, index: usize| {
        stack.start(Instant::BOOT, Forwarding::new(Config::default()));
        stack.start(Instant::BOOT, line_router(index, count));
        stack.subscribe::<DatagramArrived>();
    };
    Network::new(count, set_up).line(lost_permille)
}

fn arrivals(network: &mut Network, index: usize) -> Vec<(NodeId, Vec<u8>)> {
    let mut arrivals = Vec::new();
    while let Some(event) = network.stacks[index].host_event() {
        if let Some((arrived, body)) = event.notification::<DatagramArrived>() {
            assert_eq!(arrived.port, PORT);
            arrivals.push((arrived.from, body.to_vec()));
        }
    }
    arrivals
}

fn send(network: &mut Network, from: usize, to: usize, body: &[u8]) {
    network.stacks[from].request(&SendDatagram { to: id(to), port: PORT }, body);
}

#[test]
fn a_datagram_makes_its_way_over_five_hops() {
    let mut network = line(6, 0);
    send(&mut network, 0, 5, b"hello");
    network.run(Duration::from_millis(50));
    assert_eq!(arrivals(&mut network, 5), [(id(0), b"hello".to_vec())]);
    assert_eq!(network.sent(), 10, "five hops, each acknowledged once");
}

#[test]
fn what_lossy_hops_lose_is_repaired_and_nothing_arrives_twice() {
    let mut network = line(6, 200);
    for number in 0..200_u16 {
        send(&mut network, 0, 5, &number.to_le_bytes());
        network.run(Duration::from_millis(500));
    }
    network.run(Duration::from_secs(5));
    let arrived = arrivals(&mut network, 5);
    let mut distinct = arrived.clone();
    distinct.sort();
    distinct.dedup();
    assert_eq!(distinct.len(), arrived.len(), "nothing arrives twice");
    assert!(arrived.len() >= 198, "{} of 200 arrived", arrived.len());
}

#[test]
fn what_is_meant_for_an_earlier_life_is_taken_by_its_end_only() {
    let set_up = |life: u32| {
        move |stack: &mut Stack, index: usize| {
            let config = Config { life: index as u32 + 1, ..Config::default() };
            stack.start(Instant::BOOT, Forwarding::new(config));
            stack.start(Instant::BOOT, FixedRouter { life, ..line_router(index, 3) });
            stack.subscribe::<DatagramArrived>();
        }
    };
    let mut network = Network::new(3, set_up(1)).line(0);
    send(&mut network, 0, 2, b"over life 1 of node 1, which is in life 2");
    send(&mut network, 0, 1, b"to whichever life");
    network.run(Duration::from_secs(1));
    assert_eq!(arrivals(&mut network, 2), []);
    assert_eq!(arrivals(&mut network, 1), [(id(0), b"to whichever life".to_vec())]);
    let refused = network.stacks[1].protocol::<Forwarding>().map(|it| it.counters().too_late);
    assert!(refused > Some(0));
    // 0 learns of the other life while it still has the datagram.
    network.stacks[0].start(network.now, FixedRouter { life: 2, ..line_router(0, 3) });
    network.stacks[1].start(network.now, FixedRouter { life: 3, ..line_router(1, 3) });
    network.run(Duration::from_secs(10));
    assert_eq!(arrivals(&mut network, 2).len(), 1);
}

#[test]
fn a_datagram_to_oneself_arrives_at_once() {
    let mut network = line(2, 0);
    send(&mut network, 0, 0, b"me");
    network.run(Duration::ZERO);
    assert_eq!(arrivals(&mut network, 0), [(id(0), b"me".to_vec())]);
}

#[test]
fn a_dead_next_hop_is_told_and_another_way_taken() {
    let mut network = line(3, 0);
    network.link(0, 2, 0);
    network.cut(0, 1);
    send(&mut network, 0, 2, b"around");
    network.run(Duration::from_millis(500));
    network.stacks[0]
        .act::<FixedRouter, _>(network.now, |router, _| router.ways.insert(id(2), id(2)));
    network.run(Duration::from_secs(5));
    assert_eq!(arrivals(&mut network, 2).len(), 1);
    assert_eq!(network.stacks[0].protocol::<FixedRouter>().unwrap().failing, [id(1)]);
}

#[test]
fn a_link_that_reports_failure_is_believed_sooner() {
    let mut network = line(2, 0);
    network.reports = true;
    network.cut(0, 1);
    send(&mut network, 0, 1, b"lost");
    network.run(Duration::from_millis(5));
    assert!(!network.stacks[0].protocol::<FixedRouter>().unwrap().failing.is_empty());
}

#[test]
fn without_a_way_a_datagram_is_dropped_and_counted() {
    let mut network = line(2, 0);
    send(&mut network, 0, 7, b"nowhere");
    network.run(Duration::from_secs(7));
    let forwarding = network.stacks[0].protocol::<Forwarding>().unwrap();
    assert_eq!((forwarding.counters.no_way, forwarding.under_way.len()), (0, 1));
    network.run(Duration::from_millis(1_200));
    let forwarding = network.stacks[0].protocol::<Forwarding>().unwrap();
    assert_eq!((forwarding.counters.no_way, forwarding.under_way.len()), (1, 0));
}

#[test]
fn a_full_node_drops_what_has_waited_for_a_way_for_long_and_takes_what_has_one() {
    let mut network = line(2, 0);
    let most = Config::default().datagrams_max;
    (0..most).for_each(|_| send(&mut network, 0, 7, b"nowhere"));
    network.run(Duration::from_secs(1));
    send(&mut network, 0, 1, b"too soon");
    network.run(Duration::from_millis(1_500));
    assert_eq!(arrivals(&mut network, 1).len(), 0);
    send(&mut network, 0, 1, b"there is room");
    network.run(Duration::from_millis(100));
    assert_eq!(arrivals(&mut network, 1).len(), 1);
    let counters = network.stacks[0].protocol::<Forwarding>().unwrap().counters;
    assert_eq!((counters.full, counters.no_way), (1, 1));
}

#[test]
fn routers_that_point_at_each_other_lose_a_datagram_after_its_hops() {
    let mut network = line(3, 0);
    network.stacks[0].start(
        network.now,
        FixedRouter { ways: [(id(9), id(1))].into(), ..FixedRouter::default() },
    );
    network.stacks[1].start(
        network.now,
        FixedRouter { ways: [(id(9), id(0))].into(), ..FixedRouter::default() },
    );
    send(&mut network, 0, 9, b"round");
    network.run(Duration::from_secs(10));
    assert!(network.sent() <= 2 * (u64::from(HOPS_MAX) + 2), "{}", network.sent());
}

#[test]
fn too_much_and_too_long_is_refused() {
    let mut network = line(2, 1000);
    send(&mut network, 0, 1, &[0; 2000]);
    for _ in 0..40 {
        send(&mut network, 0, 1, &[0; 100]);
    }
    network.run(Duration::from_millis(1));
    let mut taken = [0; 3];
    while let Some(event) = network.stacks[0].host_event() {
        taken[event.reply::<SendDatagram>().unwrap().1.unwrap() as usize] += 1;
    }
    assert_eq!(taken, [32, 8, 1]);
}

#[test]
fn a_restarted_sender_is_heard_though_its_numbers_begin_anew() {
    let set_up = |stack: &mut Stack, index: usize| {
        stack.start(Instant::BOOT, Forwarding::new(Config::default()));
        stack.start(Instant::BOOT, line_router(index, 2));
        stack.subscribe::<DatagramArrived>();
    };
    let mut network = Network::new(2, set_up).line(0);
    for _ in 0..3 {
        send(&mut network, 0, 1, b"first");
        network.run(Duration::from_millis(50));
        network.restart(0, set_up);
    }
    assert_eq!(arrivals(&mut network, 1).len(), 3);
}

#[test]
fn a_way_that_comes_late_is_taken() {
    let mut network = line(3, 0);
    network.stacks[0].start(network.now, FixedRouter { ways: [].into(), ..FixedRouter::default() });
    send(&mut network, 0, 2, b"late");
    network.run(Duration::from_millis(500));
    network.stacks[0]
        .act::<FixedRouter, _>(network.now, |router, _| router.ways.insert(id(2), id(1)));
    network.run(Duration::from_millis(200));
    assert_eq!(arrivals(&mut network, 2).len(), 1);
}

#[test]
fn a_link_that_repairs_needs_no_acknowledgement_and_one_that_does_not_loses() {
    for (repair, expected) in [(Repair::ByLink, 180..201), (Repair::Never, 40..95)] {
        let set_up = |stack: &mut Stack, index: usize| {
            stack.start(Instant::BOOT, Forwarding::new(Config { repair, ..Config::default() }));
            stack.start(Instant::BOOT, line_router(index, 6));
            stack.subscribe::<DatagramArrived>();
        };
        let mut network = Network::new(6, set_up).line(200);
        network.reports = true;
        for _ in 0..200 {
            send(&mut network, 0, 5, b"once");
            network.run(Duration::from_millis(500));
        }
        let arrived = arrivals(&mut network, 5).len();
        assert!(expected.contains(&arrived), "{repair:?}: {arrived} of 200 arrived");
    }
}

#[test]
fn datagrams_wait_for_each_other_while_neighbours_are_late_and_no_longer() {
    let (mut pace, mut random) = (Pace::default(), Random::new(1));
    let at = Instant::from_millis;
    let [quick, late] = [5, 80].map(Duration::from_millis);
    (0..100).for_each(|count| pace.learn(quick, at(count)));
    let mut turn = |pace: &mut Pace, now| {
        let turn = pace.next_turn(now);
        pace.take_turn(turn, &mut random);
        turn
    };
    assert_eq!([0; 2].map(|_| turn(&mut pace, at(100))), [at(100); 2]);
    (0..40).for_each(|count| pace.learn(late, at(1_000 + 100 * count)));
    assert_eq!(pace.pause_us, PAUSE_MAX_US);
    let turns = [0; 3].map(|_| turn(&mut pace, at(5_000)));
    assert_eq!(turns[0], at(5_000));
    assert!(
        turns[1] >= at(5_120) && turns[2] >= turns[1] + Duration::from_millis(120),
        "{turns:?}"
    );
    (0..100).for_each(|count| pace.learn(quick, at(10_000 + count)));
    assert_eq!(pace.pause_us, 0);
}

#[test]
fn a_link_that_is_slow_by_itself_is_no_full_air() {
    let mut pace = Pace::default();
    (0..100).for_each(|count| pace.learn(Duration::from_millis(60), Instant::from_millis(count)));
    assert_eq!(pace.pause_us, 0);
}

#[test]
fn a_neighbour_without_room_is_given_a_datagram_again_and_is_not_doubted() {
    let mut network = line(3, 0);
    let most = Config::default().datagrams_max;
    (0..most).for_each(|_| send(&mut network, 1, 7, b"nowhere"));
    network.run(Duration::from_millis(1));
    send(&mut network, 0, 2, b"later");
    network.run(Duration::from_millis(1_500));
    assert_eq!(arrivals(&mut network, 2).len(), 0);
    assert!(network.sent() < 40, "{}", network.sent());
    network.run(Duration::from_millis(1_500));
    assert_eq!(arrivals(&mut network, 2).len(), 1);
    assert_eq!(network.stacks[0].protocol::<FixedRouter>().unwrap().failing, []);
}

/// A node that swallows datagrams for others, and acknowledges them.
#[derive(Debug)]
struct Hole;

/// Its messages, as forwarding's go on the air.
#[derive(Serialize, Deserialize)]
struct Swallowed(Datagram);
#[derive(Serialize, Deserialize)]
struct Answer(Acknowledgement);
#[derive(Serialize, Deserialize)]
struct Said(Witness);

tenure_mesh::protocol! {
    Hole = 2, "hole";
    messages { Swallowed = 1, Answer = 2, Said = 3 }
}

impl Protocol for Hole {}

impl Handles<Swallowed> for Hole {
    fn handle(
        &mut self,
        Swallowed(Datagram { hop, sending, .. }): Swallowed,
        reception: Reception<'_>,
        context: &mut Context<'_, Self>,
    ) {
        context.send(reception.from, &Answer(Acknowledgement { hop, sending }));
    }
}

impl Handles<Answer> for Hole {
    fn handle(&mut self, _: Answer, _: Reception<'_>, _: &mut Context<'_, Self>) {}
}

impl Handles<Said> for Hole {
    fn handle(&mut self, _: Said, _: Reception<'_>, _: &mut Context<'_, Self>) {}
}

/// A node that has no room for anything, ever.
#[derive(Debug)]
struct Full;

#[derive(Serialize, Deserialize)]
struct Refused(Datagram);
#[derive(Serialize, Deserialize)]
struct Refusal(Busy);

tenure_mesh::protocol! {
    Full = 2, "full";
    messages { Refused = 1, Refusal = 4 }
}

impl Protocol for Full {}

impl Handles<Refused> for Full {
    fn handle(
        &mut self,
        Refused(Datagram { hop, .. }): Refused,
        reception: Reception<'_>,
        context: &mut Context<'_, Self>,
    ) {
        context.send(reception.from, &Refusal(Busy { hop }));
    }
}

impl Handles<Refusal> for Full {
    fn handle(&mut self, _: Refusal, _: Reception<'_>, _: &mut Context<'_, Self>) {}
}

/// Sends a datagram from 0 to 2 each quarter of a second.
fn send_for(network: &mut Network, seconds: u32) {
    for _ in 0..seconds * 4 {
        send(network, 0, 2, b"on");
        network.run(Duration::from_millis(250));
    }
}

fn ratings(network: &Network) -> Vec<(NodeId, bool)> {
    let router = network.stacks[0].protocol::<FixedRouter>().expect("it runs");
    router.rated.clone()
}

#[test]
fn a_next_hop_that_acknowledges_and_drops_is_told_to_the_router_within_ten_seconds() {
    let mut network = line(3, 0);
    send_for(&mut network, 10);
    assert_eq!(ratings(&network), [], "one that passes on isn't suspected");
    let forwarding = network.stacks[0].protocol::<Forwarding>().expect("it runs");
    assert!((2..=3).contains(&forwarding.counters().watched), "{:?}", forwarding.counters());
    network.stacks[1].start(network.now, Hole);
    send_for(&mut network, 10);
    assert_eq!(ratings(&network).first(), Some(&(id(1), false)));
    // It passes on again: so much is seen, since there is no other way.
    let config = Config { life: 7, ..Config::default() };
    network.stacks[1].start(network.now, Forwarding::new(config));
    send_for(&mut network, 6);
    assert_eq!(ratings(&network).last(), Some(&(id(1), true)));
}

#[test]
fn a_suspected_next_hop_is_tried_with_datagrams_of_nobodys_while_others_go_around_it() {
    let mut network = line(4, 0);
    network.link(0, 3, 0);
    network.link(3, 2, 0);
    network.stacks[1].start(network.now, Hole);
    send_for(&mut network, 10);
    let around = |router: &mut FixedRouter, _: &mut Context<'_, FixedRouter>| {
        router.ways.insert(id(2), id(3));
    };
    network.stacks[0].act::<FixedRouter, _>(network.now, around);
    arrivals(&mut network, 2);
    send_for(&mut network, 30);
    assert_eq!(arrivals(&mut network, 2).len(), 120, "what goes around it arrives");
    assert_eq!(ratings(&network).last(), Some(&(id(1), false)), "it is still one");
    network.stacks[1].start(network.now, Forwarding::new(Config::default()));
    send_for(&mut network, 90);
    assert_eq!(ratings(&network).last(), Some(&(id(1), true)));
    assert_eq!(arrivals(&mut network, 2).len(), 360, "and nothing of nobody's is told");
}

#[test]
fn word_that_nobody_asked_for_proves_nothing() {
    let mut network = line(3, 0);
    network.stacks[1].start(network.now, Hole);
    for _ in 0..40 {
        send(&mut network, 0, 2, b"on");
        network.stacks[1].act::<Hole, _>(network.now, |_, context| {
            context.send(id(0), &Said(Witness { hop: 9_999, passed: true }));
            context.send(id(0), &Said(Witness { hop: 1, passed: false }));
        });
        network.run(Duration::from_millis(250));
    }
    assert_eq!(ratings(&network).first(), Some(&(id(1), false)));
}

/// Nodes 0, 1 and 2 in a line, and 3 that leads around 1, which has no room.
fn full_between() -> Network {
    let mut network = line(4, 0);
    network.link(0, 3, 0);
    network.link(3, 2, 0);
    network.stacks[1].start(network.now, Full);
    network
}

#[test]
fn a_next_hop_that_never_has_room_is_told_to_the_router_before_a_datagram_is_given_up() {
    let mut network = full_between();
    send(&mut network, 0, 2, b"patient");
    network.run(Duration::from_secs(5));
    assert_eq!(ratings(&network), [(id(1), false)]);
    let around = |router: &mut FixedRouter, _: &mut Context<'_, FixedRouter>| {
        router.ways.insert(id(2), id(3));
    };
    network.stacks[0].act::<FixedRouter, _>(network.now, around);
    network.run(Duration::from_secs(1));
    assert_eq!(arrivals(&mut network, 2), [(id(0), b"patient".to_vec())]);
    // It is tried after a while, and passes on again.
    network.stacks[1].start(network.now, Forwarding::new(Config::default()));
    send_for(&mut network, 60);
    assert_eq!(ratings(&network).last(), Some(&(id(1), true)));
}

#[test]
fn a_neighbour_that_is_busy_for_ever_does_not_slow_down_what_goes_elsewhere() {
    let mut network = full_between();
    let elsewhere = |network: &mut Network| {
        for _ in 0..40 {
            send(network, 0, 2, b"to who is busy");
            send(network, 0, 3, b"elsewhere");
            network.run(Duration::from_millis(250));
        }
        let forwarding = network.stacks[0].protocol::<Forwarding>().expect("it runs");
        let pause_us = forwarding.pace.pause_us;
        (arrivals(network, 3).len(), pause_us)
    };
    let around = |router: &mut FixedRouter, _: &mut Context<'_, FixedRouter>| {
        router.ways.insert(id(3), id(3));
    };
    network.stacks[0].act::<FixedRouter, _>(network.now, around);
    elsewhere(&mut network);
    let (arrived, pause_us) = elsewhere(&mut network);
    assert!(arrived >= 39 && pause_us < PAUSE_MIN_US, "{arrived} of 40, pause {pause_us} us");
}
