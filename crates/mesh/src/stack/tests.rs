use alloc::vec;
use alloc::vec::Vec;
use core::time::Duration;

use serde::{Deserialize, Serialize};

use super::*;
use crate::{
    Awaits, Declared, Expires, FramerConfig, Handles, Hears, Intercepts, Question, Reception,
    Satellite, Serves,
};

/// Counts hellos, repeats them to whoever listens here, and asks what two numbers make.
#[derive(Debug, Default)]
struct Greeter {
    heard: Vec<(NodeId, u32, Vec<u8>)>,
    sums: Vec<(u16, u16, Option<u32>)>,
    beats: u32,
}

#[derive(Debug, Serialize, Deserialize)]
struct Hello {
    count: u32,
}

#[derive(Serialize, Deserialize)]
struct Beat;

#[derive(Serialize, Deserialize)]
struct Add(u16, u16);
impl Request for Add {
    const NUMBER: u16 = 0x7001;
    type Reply = u32;
}

#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Greeted {
    count: u32,
}
impl Notification for Greeted {
    const NUMBER: u16 = 0x7001;
}

crate::protocol! {
    Greeter = 200, "greeter";
    messages { Hello = 1 }
    timers { Beat = 1 }
    asks { Add }
    tells { Greeted }
}

impl Protocol for Greeter {
    fn start(&mut self, context: &mut Context<'_, Self>) {
        context.every(Duration::from_secs(1), &Beat);
    }
    fn stop(&mut self, context: &mut Context<'_, Self>) {
        context.broadcast(&Hello { count: 999 });
    }
}

impl Expires<Beat> for Greeter {
    fn expire(&mut self, _: Beat, context: &mut Context<'_, Self>) {
        self.beats += 1;
        let outgoing = crate::Outgoing { body: b"body", ..crate::Outgoing::default() };
        context.transmit(&Hello { count: self.beats }, outgoing);
        context.ask(&Add(self.beats as u16, 40), &[]);
    }
}

impl Handles<Hello> for Greeter {
    fn handle(
        &mut self,
        Hello { count }: Hello,
        reception: Reception<'_>,
        context: &mut Context<'_, Self>,
    ) {
        self.heard.push((reception.from, count, reception.body.to_vec()));
        context.tell(&Greeted { count }, b"told");
    }
}

impl Awaits<Add> for Greeter {
    fn answered(&mut self, Add(a, b): Add, sum: Option<u32>, _: &mut Context<'_, Self>) {
        self.sums.push((a, b, sum));
    }
}

/// Adds, and notes what it hears.
#[derive(Debug, Default)]
struct Adder {
    told: Vec<u32>,
    restarted: Vec<NodeId>,
}

crate::protocol! {
    Adder = 201, "adder";
    serves { Add }
    hears { Greeted, Restarted }
}

impl Protocol for Adder {}
impl Serves<Add> for Adder {
    fn serve(
        &mut self,
        Add(a, b): Add,
        _: &Question<'_, Add>,
        _: &mut Context<'_, Self>,
    ) -> Option<u32> {
        Some(u32::from(a) + u32::from(b))
    }
}
impl Hears<Greeted> for Adder {
    fn hear(&mut self, Greeted { count }: Greeted, body: &[u8], _: &mut Context<'_, Self>) {
        assert_eq!(body, b"told");
        self.told.push(count);
    }
}
impl Hears<Restarted> for Adder {
    fn hear(&mut self, restarted: Restarted, _: &[u8], _: &mut Context<'_, Self>) {
        self.restarted.push(restarted.neighbour);
    }
}

/// Puts a byte in front of what goes out, and takes it away from what comes in; stops what has
/// none; keeps what carries the number it is told to.
#[derive(Debug, Default)]
struct Marker {
    mark: u8,
    passed: u32,
    keeps: bool,
    kept: Vec<(Passage, Vec<u8>)>,
}

crate::protocol! {
    Marker = 202, "marker";
    intercepts;
}

impl Protocol for Marker {}
impl Intercepts for Marker {
    fn intercept(
        &mut self,
        passage: &Passage,
        message: &mut Vec<u8>,
        _: &mut Context<'_, Self>,
    ) -> Verdict {
        self.passed += 1;
        match passage.way {
            Way::Out { .. } if self.keeps => {
                self.kept.push((*passage, message.clone()));
                return Verdict::Stop;
            }
            Way::Out { .. } => message.push(self.mark),
            Way::In { .. } if message.last() == Some(&self.mark) => {
                message.pop();
            }
            Way::In { .. } => return Verdict::Stop,
            Way::Within { .. } => {}
        }
        Verdict::Pass
    }
}

/// Another of the same kind, so that two can stand in a row.
#[derive(Debug, Default)]
struct SecondMarker(Marker);
crate::protocol! {
    SecondMarker = 203, "second marker";
    intercepts;
}
impl Protocol for SecondMarker {}
impl Intercepts for SecondMarker {
    fn intercept(
        &mut self,
        passage: &Passage,
        message: &mut Vec<u8>,
        context: &mut Context<'_, Self>,
    ) -> Verdict {
        self.0.intercept(passage, message, &mut Context::new(context.surroundings))
    }
}

fn stack(node: u64) -> Stack {
    let framer = FramerConfig::new(NodeId::from_number(node), 1, [0; 8]);
    Stack::new(StackConfig::default(), Framer::new(framer, Unsealed))
}

fn at(millis: u64) -> Instant {
    Instant::from_millis(millis)
}

/// Runs a stack until nothing is left to do now; gives what it sent.
fn settle(stack: &mut Stack, now: Instant) -> Vec<(Destination, Vec<u8>)> {
    let mut frames = Vec::new();
    while stack.poll(now) == Some(now) {
        let mut frame = Vec::new();
        while let Some(to) = stack.transmit(now, &mut frame) {
            frames.push((to, frame.clone()));
        }
    }
    frames
}

fn carry(frames: &[(Destination, Vec<u8>)], to: &mut Stack, now: Instant) {
    for (_, frame) in frames {
        let _ = to.receive(now, frame, None);
    }
    settle(to, now);
}

#[test]
fn a_message_with_its_body_reaches_the_neighbours_handler() {
    let (mut one, mut two) = (stack(1), stack(2));
    one.start(at(0), Greeter::default());
    two.start(at(0), Greeter::default());
    two.start(at(0), Adder::default());
    two.subscribe::<Greeted>();
    assert_eq!(one.poll(at(0)), Some(at(1000)));
    let frames = settle(&mut one, at(1000));
    assert_eq!(frames.len(), 1);
    carry(&frames, &mut two, at(1000));
    let greeter = two.protocol::<Greeter>().unwrap();
    assert_eq!(greeter.heard, [(NodeId::from_number(1), 1, b"body".to_vec())]);
    assert_eq!(two.protocol::<Adder>().unwrap().told, [1]);
    let event = two.host_event().unwrap();
    assert_eq!(event.notification::<Greeted>(), Some((Greeted { count: 1 }, &b"told"[..])));
}

#[test]
fn a_request_is_answered_by_who_serves_it_or_by_nobody() {
    let mut stack = stack(1);
    stack.start(at(0), Greeter::default());
    settle(&mut stack, at(1000));
    stack.start(at(1500), Adder::default());
    settle(&mut stack, at(2000));
    assert!(stack.stop(at(2500), Adder::DESCRIPTION.number));
    settle(&mut stack, at(3000));
    let sums = &stack.protocol::<Greeter>().unwrap().sums;
    assert_eq!(*sums, [(1, 40, None), (2, 40, Some(42)), (3, 40, None)]);
    assert_eq!(stack.counters().unserved, 2);
    stack.start(at(3000), Adder::default());
    stack.request(&Add(1, 2), &[]);
    settle(&mut stack, at(3000));
    let (request, reply) = stack.host_event().unwrap().reply::<Add>().unwrap();
    assert_eq!((request.0, request.1, reply), (1, 2, Some(3)));
}

#[test]
fn a_request_whose_server_stops_before_its_turn_is_answered_by_nobody() {
    let mut stack = stack(1);
    stack.start(at(0), Adder::default());
    stack.request(&Add(1, 2), &[]);
    stack.stop(at(0), Adder::DESCRIPTION.number);
    settle(&mut stack, at(0));
    assert_eq!(stack.host_event().unwrap().reply::<Add>().unwrap().1, None);
}

#[test]
fn a_long_request_that_nobody_serves_is_answered_too() {
    let mut stack = stack(1);
    for _ in 0..4 {
        stack.request(&Add(1, 2), &[0; 10_000]);
        settle(&mut stack, at(0));
        assert_eq!(stack.host_event().unwrap().reply::<Add>().unwrap().1, None);
    }
}

#[test]
fn a_protocol_is_replaced_while_others_lose_nothing() {
    let (mut one, mut two) = (stack(1), stack(2));
    one.start(at(0), Greeter::default());
    two.start(at(0), Greeter::default());
    two.start(at(0), Adder::default());
    let frames = settle(&mut one, at(1000));
    for (_, frame) in &frames {
        two.receive(at(999), frame, None).unwrap();
    }
    // The new greeter handles the events that wait for the old one, and its timer starts anew.
    two.start(at(999), Greeter::default());
    let goodbye = settle(&mut two, at(999));
    assert_eq!(goodbye.len(), 1, "the old one says goodbye");
    assert_eq!(two.protocol::<Greeter>().unwrap().heard.len(), 1);
    assert_eq!(two.protocol::<Adder>().unwrap().told, [1]);
    assert_eq!(two.poll_at(at(999)), Some(at(1999)));
}

#[test]
fn an_answer_to_an_earlier_life_is_dropped() {
    let mut stack = stack(1);
    stack.start(at(0), Greeter::default());
    stack.start(at(0), Adder::default());
    stack.act::<Greeter, _>(at(0), |_, context| context.ask(&Add(5, 5), &[]));
    assert!(stack.step(at(0)), "the adder answers");
    stack.start(at(0), Greeter::default());
    settle(&mut stack, at(0));
    assert!(stack.protocol::<Greeter>().unwrap().sums.is_empty());
    assert_eq!(stack.counters().unclaimed, 1);
}

#[test]
fn timers_come_before_notifications_messages_and_requests() {
    let mut stack = stack(1);
    stack.start(at(0), Greeter::default());
    stack.start(at(0), Adder::default());
    let mut other = self::stack(2);
    other.start(at(0), Greeter::default());
    let frames = settle(&mut other, at(1000));
    stack.request(&Add(1, 1), &[]);
    stack.receive(at(1000), &frames[0].1, None).unwrap();
    stack.tell(&Greeted { count: 7 }, b"told");
    assert!(stack.step(at(1000)));
    assert_eq!(stack.protocol::<Greeter>().unwrap().beats, 1);
    assert!(stack.step(at(1000)));
    assert_eq!(stack.protocol::<Adder>().unwrap().told, [7]);
    assert!(stack.step(at(1000)));
    assert_eq!(stack.protocol::<Greeter>().unwrap().heard.len(), 1);
    assert!(stack.host_event().is_none());
    settle(&mut stack, at(1000));
    assert!(stack.host_event().unwrap().reply::<Add>().is_some());
}

#[test]
fn a_plain_frame_reaches_the_host_alone_and_only_one_that_wants_it() {
    let (mut member, mut stranger) = (stack(1), stack(2));
    member.start(at(0), Greeter::default());
    settle(&mut member, at(0));
    let mut frame = Vec::new();
    stranger.send_plain(b"let me in, please").unwrap();
    assert_eq!(stranger.poll_at(at(0)), Some(at(0)));
    assert_eq!(stranger.transmit(at(0), &mut frame), Some(Destination::All));
    assert_eq!(member.receive(at(0), &frame, None), Err(Rejected::Version));
    assert_eq!(member.plain_frame(), None);
    member.hear_plain_frames();
    assert_eq!(member.receive(at(0), &frame, None), Err(Rejected::Plain));
    assert_eq!(member.plain_frame().as_deref(), Some(&b"let me in, please"[..]));
    assert!(member.protocol::<Greeter>().unwrap().heard.is_empty());
}

#[test]
fn plain_frames_that_wait_are_few_and_short() {
    let mut stack = stack(1);
    stack.hear_plain_frames();
    let mut frame = Vec::new();
    assert_eq!(stack.send_plain(&[0; crate::PLAIN_BYTES_MAX + 1]), Err(SendError::TooLong));
    assert_eq!(stack.send_plain(&[]), Err(SendError::TooLong));
    assert_eq!((0..100).filter(|_| stack.send_plain(&[7; 512]).is_ok()).count(), 4);
    assert!(stack.transmit(at(0), &mut frame).is_some());
    let taken = (0..100).filter(|_| stack.receive(at(0), &frame, None) == Err(Rejected::Plain));
    assert_eq!(taken.count(), 4);
    frame.push(0);
    stack.plain_frame();
    assert_eq!(stack.receive(at(0), &frame, None), Err(Rejected::Malformed), "too long");
    assert_eq!(stack.receive(at(0), &frame[..1], None), Err(Rejected::Malformed), "empty");
}

#[test]
fn interceptors_wrap_and_unwrap_in_opposite_order() {
    let (mut one, mut two) = (stack(1), stack(2));
    for stack in [&mut one, &mut two] {
        stack.start(at(0), Greeter::default());
        stack.start(at(0), Marker { mark: 7, ..Marker::default() });
        stack.start(at(0), SecondMarker(Marker { mark: 8, ..Marker::default() }));
        let greeter = Some(Greeter::DESCRIPTION.number);
        stack.intercept(Marker::DESCRIPTION.number, greeter, Covers::Network).unwrap();
        stack.intercept(SecondMarker::DESCRIPTION.number, None, Covers::Network).unwrap();
    }
    let frames = settle(&mut one, at(1000));
    assert!(frames[0].1.ends_with(&[7, 8]));
    carry(&frames, &mut two, at(900));
    assert_eq!(two.protocol::<Greeter>().unwrap().heard[0].2, b"body");
    assert_eq!(two.protocol::<Marker>().unwrap().passed, 1);
    // One who doesn't wrap isn't heard.
    let mut bare = stack(3);
    bare.start(at(0), Greeter::default());
    carry(&settle(&mut bare, at(1000)), &mut two, at(900));
    assert_eq!(two.protocol::<Greeter>().unwrap().heard.len(), 1);
    assert_eq!(two.counters().stopped, 1);
}

#[test]
fn what_an_interceptor_keeps_goes_on_behind_it() {
    let mut stack = stack(1);
    stack.start(at(0), Greeter::default());
    stack.start(at(0), Marker { mark: 7, keeps: true, ..Marker::default() });
    stack.start(at(0), SecondMarker(Marker { mark: 8, ..Marker::default() }));
    stack.intercept(Marker::DESCRIPTION.number, None, Covers::Network).unwrap();
    stack.intercept(SecondMarker::DESCRIPTION.number, None, Covers::Network).unwrap();
    assert!(settle(&mut stack, at(1000)).is_empty());
    stack.act::<Marker, _>(at(1001), |marker, context| {
        let (passage, mut message) = marker.kept.pop().unwrap();
        message.push(9);
        context.resume(passage, &message);
    });
    let frames = settle(&mut stack, at(1001));
    assert!(frames[0].1.ends_with(&[9, 8]), "{:?}", frames[0].1);
}

#[test]
fn only_what_intercepts_here_can_be_put_between() {
    let mut stack = stack(1);
    stack.start(at(0), Greeter::default());
    let greeter = Greeter::DESCRIPTION.number;
    assert_eq!(stack.intercept(greeter, None, Covers::Network), Err(NotHere));
    let marker = Marker::DESCRIPTION.number;
    assert_eq!(stack.intercept(marker, None, Covers::Network), Err(NotHere));
}

#[test]
fn an_interceptor_within_the_node_sees_requests_and_answers() {
    let mut stack = stack(1);
    stack.start(at(0), Greeter::default());
    stack.start(at(0), Adder::default());
    stack.start(at(0), Marker::default());
    stack.intercept(Marker::DESCRIPTION.number, None, Covers::Node).unwrap();
    settle(&mut stack, at(1000));
    assert_eq!(stack.protocol::<Marker>().unwrap().passed, 2);
    assert_eq!(stack.protocol::<Greeter>().unwrap().sums, [(1, 40, Some(41))]);
}

#[test]
fn a_satellite_takes_part_as_if_it_were_here() {
    let mut stack = stack(1);
    let mut satellite: Satellite = Satellite::new(StackConfig::default(), stack.node(), 1000);
    stack.start(at(0), Greeter::default());
    satellite.start(at(0), Adder::default());
    let number = stack.attach(&satellite.protocols());
    settle(&mut stack, at(1000));
    let mut parcels = 0;
    while let Some(parcel) = stack.parcel_for(number) {
        satellite.accept(&parcel);
        parcels += 1;
    }
    assert_eq!(parcels, 1);
    satellite.poll(at(1000));
    while let Some(parcel) = satellite.parcel() {
        stack.accept(at(1000), parcel);
    }
    settle(&mut stack, at(1000));
    assert_eq!(stack.protocol::<Greeter>().unwrap().sums, [(1, 40, Some(41))]);
    stack.detach(number);
    settle(&mut stack, at(2000));
    assert_eq!(stack.protocol::<Greeter>().unwrap().sums[1], (2, 40, None));
}

#[test]
fn a_timer_in_a_satellite_goes_off_there() {
    let mut satellite: Satellite =
        Satellite::new(StackConfig::default(), NodeId::from_number(1), 1000);
    let mut stack = stack(1);
    satellite.start(at(0), Greeter::default());
    stack.attach(&satellite.protocols());
    assert_eq!(satellite.poll(at(0)), Some(at(1000)));
    satellite.poll(at(1000));
    while let Some(parcel) = satellite.parcel() {
        stack.accept(at(1000), parcel);
    }
    assert_eq!(settle(&mut stack, at(1000)).len(), 1, "its message goes out");
}

#[test]
fn queues_overflow_by_count_and_not_by_memory() {
    let mut stack = stack(1);
    stack.start(at(0), Adder::default());
    for _ in 0..10_000 {
        stack.tell(&Greeted { count: 1 }, b"told");
        stack.request(&Add(1, 1), &[]);
    }
    let counters = *stack.counters();
    assert!(counters.notifications_lost > 9_000);
    assert!(counters.requests_lost > 9_000);
    settle(&mut stack, at(0));
    let told = stack.protocol::<Adder>().unwrap().told.len() as u64;
    assert_eq!(told + counters.notifications_lost, 10_000);
}

#[test]
fn a_protocol_is_told_that_a_neighbour_lives_anew() {
    let mut two = stack(2);
    two.start(at(0), Adder::default());
    two.start(at(0), Greeter::default());
    for epoch in [5, 6] {
        let config = FramerConfig::new(NodeId::from_number(1), epoch, [0; 8]);
        let mut one =
            Stack::<Framer<Unsealed>>::new(StackConfig::default(), Framer::new(config, Unsealed));
        one.start(at(0), Greeter::default());
        carry(&settle(&mut one, at(1000)), &mut two, at(900));
    }
    assert_eq!(two.protocol::<Adder>().unwrap().restarted, [NodeId::from_number(1)]);
    assert_eq!(two.protocol::<Greeter>().unwrap().heard.len(), 2, "its first number counts again");
}

#[test]
fn interceptors_that_cause_one_another_end() {
    /// Sends a message of its own for each that passes.
    #[derive(Default)]
    struct Echo;
    #[derive(Serialize, Deserialize)]
    struct Noise;
    crate::protocol! { Echo = 210, "echo"; messages { Noise = 1 } intercepts; }
    impl Protocol for Echo {}
    impl Handles<Noise> for Echo {
        fn handle(&mut self, _: Noise, _: Reception<'_>, _: &mut Context<'_, Self>) {}
    }
    impl Intercepts for Echo {
        fn intercept(
            &mut self,
            _: &Passage,
            _: &mut Vec<u8>,
            context: &mut Context<'_, Self>,
        ) -> Verdict {
            context.broadcast(&Noise);
            Verdict::Pass
        }
    }
    #[derive(Default)]
    struct Other;
    #[derive(Serialize, Deserialize)]
    struct Din;
    crate::protocol! { Other = 211, "other"; messages { Din = 1 } intercepts; }
    impl Protocol for Other {}
    impl Handles<Din> for Other {
        fn handle(&mut self, _: Din, _: Reception<'_>, _: &mut Context<'_, Self>) {}
    }
    impl Intercepts for Other {
        fn intercept(
            &mut self,
            _: &Passage,
            _: &mut Vec<u8>,
            context: &mut Context<'_, Self>,
        ) -> Verdict {
            context.broadcast(&Din);
            Verdict::Pass
        }
    }
    let mut stack = stack(1);
    stack.start(at(0), Echo);
    stack.start(at(0), Other);
    stack.intercept(Echo::DESCRIPTION.number, None, Covers::Network).unwrap();
    stack.intercept(Other::DESCRIPTION.number, None, Covers::Network).unwrap();
    stack.act::<Echo, _>(at(0), |_, context| context.broadcast(&Noise));
    assert_eq!(stack.counters().circular, 1);
}

#[test]
fn malformed_bytes_of_a_declared_message_are_counted() {
    let mut two = stack(2);
    two.start(at(0), Greeter::default());
    let mut framer = Framer::new(FramerConfig::new(NodeId::from_number(1), 1, [0; 8]), Unsealed);
    for message in [&[1][..], &[2, 0], &[1, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF]] {
        let greeter = Greeter::DESCRIPTION.number;
        framer.send(at(0), greeter, Destination::All, Duration::ZERO, message).unwrap();
    }
    let mut frame = vec![];
    framer.transmit(at(0), &mut frame).unwrap();
    two.receive(at(0), &frame, None).unwrap();
    settle(&mut two, at(0));
    assert_eq!(two.counters().malformed_events, 3);
}
