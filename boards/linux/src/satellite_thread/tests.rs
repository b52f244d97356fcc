use std::time::Duration;

use serde::{Deserialize, Serialize};
use tenure_mesh::{
    Context, Expires, Framer, FramerConfig, NodeId, Notification, Protocol, Question, Request,
    Serves, Stack, StackConfig, Unsealed,
};
use tenure_testbed::patience;

use super::*;
use crate::wait::{Woken, wait_any};

/// How long is the body, and on which thread was it measured?
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Measure;

impl Request for Measure {
    const NUMBER: u16 = 0x7001;
    type Reply = (usize, bool);
}

#[derive(Debug, Serialize, Deserialize)]
struct Tick;

/// Its protocol's timer went off.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Ticked;

impl Notification for Ticked {
    const NUMBER: u16 = 0x7002;
}

#[derive(Default)]
struct Slow;

tenure_mesh::protocol! {
    Slow = 200, "slow";
    timers { Tick = 1 }
    serves { Measure }
    tells { Ticked }
}

impl Protocol for Slow {
    fn start(&mut self, context: &mut Context<'_, Self>) {
        context.after(Duration::from_millis(5), &Tick);
    }
}

impl Expires<Tick> for Slow {
    fn expire(&mut self, _: Tick, context: &mut Context<'_, Self>) {
        context.tell(&Ticked, &[]);
    }
}

impl Serves<Measure> for Slow {
    fn serve(
        &mut self,
        _: Measure,
        question: &Question<'_, Measure>,
        _: &mut Context<'_, Self>,
    ) -> Option<(usize, bool)> {
        Some((question.body.len(), std::thread::current().name() == Some("mesh satellite")))
    }
}

#[test]
fn its_protocols_serve_and_tell_from_a_thread_of_their_own() {
    let clock = LinuxClock::start();
    let config = FramerConfig::new(NodeId::from_number(1), 1, [0; 8]);
    let framer = Framer::new(config, Unsealed);
    let mut stack = Stack::<Framer<Unsealed>>::new(StackConfig::default(), framer);
    stack.subscribe::<Ticked>();
    let mut satellite: Satellite = Satellite::new(StackConfig::default(), stack.node(), 1_000);
    satellite.start(clock.now(), Slow);
    let number = stack.attach(&satellite.protocols());
    let thread = SatelliteThread::start(satellite, clock).unwrap();
    stack.request(&Measure, b"four");
    let (mut measured, mut ticked) = (None, false);
    while measured.is_none() || !ticked {
        stack.poll(clock.now());
        while let Some(event) = stack.parcel_for(number) {
            thread.hand_over(event);
        }
        while let Some(wanted) = thread.wanted() {
            stack.accept(clock.now(), wanted);
        }
        stack.poll(clock.now());
        while let Some(event) = stack.host_event() {
            measured = measured.or(event.reply::<Measure>().map(|(_, reply)| reply));
            ticked |= event.notification::<Ticked>().is_some();
        }
        if measured.is_none() || !ticked {
            assert_eq!(wait_any(&[&thread], patience()), Ok(Woken::ByDatagram));
        }
    }
    assert_eq!(measured, Some(Some((4, true))));
    assert!(thread.is_running());
    drop(thread);
    stack.detach(number);
    stack.request(&Measure, b"four");
    stack.poll(clock.now());
    let unanswered = stack.host_event().and_then(|event| event.reply::<Measure>());
    assert_eq!(unanswered, Some((Measure, None)), "nobody serves it any more");
}
