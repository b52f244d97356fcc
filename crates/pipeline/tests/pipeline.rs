//! The pipeline beside a model that copies everything and shares nothing.

use std::collections::{BTreeMap, VecDeque};

use proptest::prelude::*;
use tenure_pipeline::{Config, Pipeline, Policy, SubscribeError, Subscriber, Topic, TopicPattern};

const TOPICS: [&str; 5] = ["door", "door.front", "door.front.lock", "room", "room.temperature"];
const PATTERNS: [&str; 6] = ["door", "door.front", "door.*", "room.*", "room.temperature", "*"];
const SUBSCRIBERS: u16 = 3;
const CONFIG: Config = Config {
    subscribers_max: 3,
    subscriptions_per_subscriber_max: 3,
    depth_max: 4,
    bytes_per_subscriber_max: 700,
    topics_max: 3,
};

fn topic(text: &str) -> Topic {
    text.parse().unwrap()
}

fn pattern(text: &str) -> TopicPattern {
    text.parse().unwrap()
}

#[derive(Clone, Debug)]
enum Action {
    Subscribe(u16, usize, Policy, usize),
    Unsubscribe(u16, usize),
    Remove(u16),
    Publish(usize, u8, usize),
    Next(u16),
    PutDown(u16),
}

fn action() -> impl Strategy<Value = Action> {
    let policy =
        prop_oneof![Just(Policy::DropOldest), Just(Policy::DropNewest), Just(Policy::LatestOnly)];
    prop_oneof![
        3 => (0..SUBSCRIBERS, 0..PATTERNS.len(), policy, 0..6_usize)
            .prop_map(|(who, pattern, policy, depth)| Action::Subscribe(who, pattern, policy, depth)),
        1 => (0..SUBSCRIBERS, 0..PATTERNS.len())
            .prop_map(|(who, pattern)| Action::Unsubscribe(who, pattern)),
        1 => (0..SUBSCRIBERS).prop_map(Action::Remove),
        12 => (0..TOPICS.len(), any::<u8>(), prop_oneof![0..40_usize, 200..700_usize])
            .prop_map(|(topic, byte, length)| Action::Publish(topic, byte, length)),
        6 => (0..SUBSCRIBERS).prop_map(Action::Next),
        1 => (0..SUBSCRIBERS).prop_map(Action::PutDown),
    ]
}

/// An event as the model has it.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Copied {
    number: u64,
    topic: &'static str,
    payload: Vec<u8>,
}

impl Copied {
    fn weight(&self) -> usize {
        48 + self.topic.len() + self.payload.len()
    }
}

#[derive(Debug)]
struct ModelSubscription {
    pattern: &'static str,
    policy: Policy,
    depth: usize,
    queue: VecDeque<Copied>,
    /// The numbers of all events that it matched, and what became of those that are out.
    matched: u64,
    delivered: u64,
    dropped: u64,
    told: u64,
}

#[derive(Debug, Default)]
struct ModelInbox {
    subscriptions: Vec<ModelSubscription>,
    held: Option<Copied>,
}

impl ModelInbox {
    fn bytes(&self) -> usize {
        let queued = self.subscriptions.iter().flat_map(|one| &one.queue);
        queued.chain(&self.held).map(Copied::weight).sum()
    }

    fn offer(&mut self, at: usize, event: &Copied) {
        self.subscriptions[at].matched += 1;
        let own: usize = self.subscriptions[at].queue.iter().map(Copied::weight).sum();
        let free = CONFIG.bytes_per_subscriber_max - self.bytes();
        let (depth, drops_newest) = match self.subscriptions[at].policy {
            Policy::DropOldest => (self.subscriptions[at].depth, false),
            Policy::DropNewest => (self.subscriptions[at].depth, true),
            Policy::LatestOnly => (1, false),
        };
        let is_full = self.subscriptions[at].queue.len() >= depth;
        if drops_newest && (is_full || event.weight() > free) || event.weight() > free + own {
            self.subscriptions[at].dropped += 1;
            return;
        }
        while self.subscriptions[at].queue.len() >= depth
            || self.bytes() + event.weight() > CONFIG.bytes_per_subscriber_max
        {
            self.subscriptions[at].queue.pop_front().unwrap();
            self.subscriptions[at].dropped += 1;
        }
        self.subscriptions[at].queue.push_back(event.clone());
    }
}

/// The model and the real thing, side by side.
struct Both {
    real: Pipeline<usize>,
    model: BTreeMap<u16, ModelInbox>,
    number: u64,
}

impl Both {
    fn apply(&mut self, action: &Action) {
        match *action {
            Action::Subscribe(who, at, policy, depth) => self.subscribe(who, at, policy, depth),
            Action::Unsubscribe(who, at) => {
                let known = self.model.entry(who).or_default();
                let before = known.subscriptions.len();
                known.subscriptions.retain(|one| one.pattern != PATTERNS[at]);
                let gone = known.subscriptions.len() < before;
                let real = self.real.unsubscribe(Subscriber(who), &pattern(PATTERNS[at]));
                assert_eq!(real, gone);
            }
            Action::Remove(who) => {
                self.model.remove(&who);
                self.real.remove(Subscriber(who));
            }
            Action::Publish(at, byte, length) => self.publish(TOPICS[at], vec![byte; length]),
            Action::Next(who) => self.next(who),
            Action::PutDown(who) => {
                self.model.entry(who).or_default().held = None;
                self.real.put_down(Subscriber(who));
            }
        }
    }

    fn subscribe(&mut self, who: u16, at: usize, policy: Policy, depth: usize) {
        let real = self.real.subscribe(Subscriber(who), pattern(PATTERNS[at]), policy, depth, at);
        if depth == 0 || depth > CONFIG.depth_max {
            assert_eq!(real, Err(SubscribeError::Depth { depth_max: CONFIG.depth_max }));
            return;
        }
        let inbox = self.model.entry(who).or_default();
        let known = inbox.subscriptions.iter_mut().find(|one| one.pattern == PATTERNS[at]);
        if let Some(known) = known {
            (known.policy, known.depth) = (policy, depth);
            while known.queue.len() > depth {
                known.queue.pop_front();
                known.dropped += 1;
            }
        } else if inbox.subscriptions.len() >= CONFIG.subscriptions_per_subscriber_max {
            assert_eq!(real, Err(SubscribeError::TooManySubscriptions));
            return;
        } else {
            inbox.subscriptions.push(ModelSubscription {
                pattern: PATTERNS[at],
                policy,
                depth,
                queue: VecDeque::new(),
                matched: 0,
                delivered: 0,
                dropped: 0,
                told: 0,
            });
        }
        assert_eq!(real, Ok(()));
    }

    fn publish(&mut self, to: &'static str, payload: Vec<u8>) {
        self.number += 1;
        let event = Copied { number: self.number, topic: to, payload };
        let published = self.real.publish(&topic(to), &event.payload).unwrap();
        let mut matching = 0;
        for inbox in self.model.values_mut() {
            for at in 0..inbox.subscriptions.len() {
                if pattern(inbox.subscriptions[at].pattern).matches(&topic(to)) {
                    matching += 1;
                    inbox.offer(at, &event);
                }
            }
        }
        assert_eq!(published.queued + published.dropped, matching);
    }

    fn next(&mut self, who: u16) {
        let inbox = self.model.entry(who).or_default();
        let first = |one: &ModelSubscription| one.queue.front().map(|event| event.number);
        let heads = inbox.subscriptions.iter().enumerate();
        let next = heads.filter_map(|(at, one)| Some((first(one)?, at))).min();
        let has_next = self.real.has_next(Subscriber(who), |_| true);
        assert_eq!(has_next, next.is_some());
        let real = self.real.next(Subscriber(who), |_| true);
        let Some((_, at)) = next else {
            assert!(real.is_none());
            return;
        };
        let subscription = &mut inbox.subscriptions[at];
        let event = subscription.queue.pop_front().unwrap();
        subscription.delivered += 1;
        let (tag, real) = real.unwrap();
        assert_eq!(PATTERNS[*tag], subscription.pattern);
        assert_eq!((real.topic, real.payload), (event.topic, &event.payload[..]));
        assert_eq!(real.number, event.number);
        subscription.told += real.dropped_before;
        inbox.held = Some(event);
    }

    fn check(&self) {
        let mut subscriptions = self.real.subscriptions();
        let mut distinct = BTreeMap::new();
        for (who, inbox) in &self.model {
            assert!(inbox.bytes() <= CONFIG.bytes_per_subscriber_max);
            for model in &inbox.subscriptions {
                let real = subscriptions.next().unwrap();
                assert_eq!(real.subscriber, Subscriber(*who));
                assert_eq!(real.pattern.to_string(), model.pattern);
                assert_eq!(real.queued, model.queue.len());
                assert_eq!((real.delivered, real.dropped), (model.delivered, model.dropped));
                let queued = model.queue.len() as u64;
                assert_eq!(model.matched, model.delivered + model.dropped + queued);
                assert!(model.told <= model.dropped);
            }
            let queued = inbox.subscriptions.iter().flat_map(|one| &one.queue);
            for event in queued.chain(&inbox.held) {
                distinct.insert(event.number, event.weight());
            }
            let held = self.real.held(Subscriber(*who)).map(|event| event.number);
            assert_eq!(held, inbox.held.as_ref().map(|event| event.number));
        }
        assert!(subscriptions.next().is_none());
        assert_eq!(
            self.real.bytes(),
            distinct.values().sum::<usize>(),
            "each payload is kept once"
        );
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn pipeline_and_model_agree(actions in prop::collection::vec(action(), 0..120)) {
        let mut both = Both { real: Pipeline::new(CONFIG), model: BTreeMap::new(), number: 0 };
        for action in &actions {
            both.apply(action);
            both.check();
        }
        // Once everything is read, every drop has been told of.
        for who in 0..SUBSCRIBERS {
            while both.real.has_next(Subscriber(who), |_| true) {
                both.next(who);
            }
            both.real.put_down(Subscriber(who));
        }
        prop_assert_eq!(both.real.bytes(), 0);
    }

    #[test]
    fn what_one_subscriber_does_changes_nothing_for_another(
        actions in prop::collection::vec(action(), 0..120),
    ) {
        let run = |with_others: bool| {
            let mut pipeline: Pipeline<usize> = Pipeline::new(CONFIG);
            let mut seen = Vec::new();
            for action in &actions {
                match *action {
                    Action::Subscribe(who, at, policy, depth) if who == 0 || with_others => {
                        let who = Subscriber(who);
                        let _ = pipeline.subscribe(who, pattern(PATTERNS[at]), policy, depth, at);
                    }
                    Action::Unsubscribe(who, at) if who == 0 || with_others => {
                        pipeline.unsubscribe(Subscriber(who), &pattern(PATTERNS[at]));
                    }
                    Action::Remove(who) if who == 0 || with_others => pipeline.remove(Subscriber(who)),
                    Action::Publish(at, byte, length) => {
                        pipeline.publish(&topic(TOPICS[at]), &vec![byte; length]).unwrap();
                    }
                    Action::Next(who) if who == 0 || with_others => {
                        let next = pipeline.next(Subscriber(who), |_| true);
                        let event = next.map(|(_, event)| {
                            (event.topic.to_string(), event.payload.to_vec(), event.number,
                                event.dropped_before)
                        });
                        if who == 0 {
                            seen.push(event);
                        }
                    }
                    _ => {}
                }
            }
            seen
        };
        prop_assert_eq!(run(true), run(false));
    }

    #[test]
    fn what_is_written_down_goes_on_as_it_was(
        before in prop::collection::vec(action(), 0..60),
        after in prop::collection::vec(action(), 0..60),
    ) {
        let mut both = Both { real: Pipeline::new(CONFIG), model: BTreeMap::new(), number: 0 };
        before.iter().for_each(|action| both.apply(action));
        let bytes = postcard::to_allocvec(both.real.state()).unwrap();
        both.real = Pipeline::with_state(CONFIG, postcard::from_bytes(&bytes).unwrap());
        for action in &after {
            both.apply(action);
            both.check();
        }
    }
}

#[test]
fn drops_are_told_where_they_happened() {
    let mut pipeline = Pipeline::new(Config::default());
    let (oldest, newest, latest) = (Subscriber(1), Subscriber(2), Subscriber(3));
    for (who, policy) in
        [(oldest, Policy::DropOldest), (newest, Policy::DropNewest), (latest, Policy::LatestOnly)]
    {
        pipeline.subscribe(who, pattern("count"), policy, 2, ()).unwrap();
    }
    for number in 0..5_u8 {
        pipeline.publish(&topic("count"), &[number]).unwrap();
    }
    let mut read = |who| {
        let mut seen = Vec::new();
        while let Some(((), event)) = pipeline.next(who, |()| true) {
            seen.push((event.payload[0], event.dropped_before));
        }
        pipeline.publish(&topic("count"), &[9]).unwrap();
        let ((), event) = pipeline.next(who, |()| true).unwrap();
        seen.push((event.payload[0], event.dropped_before));
        seen
    };
    assert_eq!(read(oldest), [(3, 3), (4, 0), (9, 0)]);
    assert_eq!(read(newest), [(0, 0), (1, 0), (9, 4)], "three of the five, and the oldest's nine");
    assert_eq!(read(latest), [(9, 6), (9, 0)]);
    assert_eq!(pipeline.dropped(oldest, &pattern("count")), Some(3));
}

#[test]
fn topics_beyond_those_that_are_counted_are_counted_together() {
    let mut pipeline: Pipeline<()> = Pipeline::new(CONFIG);
    for name in ["a", "b", "c", "d", "e", "a"] {
        pipeline.publish(&topic(name), b"").unwrap();
    }
    let counted: Vec<_> =
        pipeline.topics().map(|status| (status.topic.to_string(), status.published)).collect();
    assert_eq!(counted, [("a".into(), 2), ("b".into(), 1), ("c".into(), 1)]);
    assert_eq!(pipeline.uncounted(), 2);
}

#[test]
fn an_event_that_is_too_long_reaches_nobody() {
    let mut pipeline = Pipeline::new(Config::default());
    let who = Subscriber(1);
    pipeline.subscribe(who, pattern("*"), Policy::DropOldest, 1, ()).unwrap();
    assert!(pipeline.publish(&topic("frame"), &[0; 2049]).is_err());
    assert!(!pipeline.has_next(who, |()| true));
    assert_eq!(pipeline.publish(&topic("frame"), &[0; 2048]).unwrap().queued, 1);
}

#[test]
fn publisher_that_subscribes_does_not_hear_itself_where_it_says_who_it_is() {
    let mut pipeline = Pipeline::new(Config::default());
    let (before, publisher, behind) = (Subscriber(1), Subscriber(2), Subscriber(3));
    for who in [before, publisher, behind] {
        pipeline.subscribe(who, pattern("*"), Policy::DropOldest, 1, ()).unwrap();
    }
    assert_eq!(pipeline.publish_by(publisher, &topic("door"), b"open").unwrap().queued, 2);
    let heard = [before, publisher, behind].map(|who| pipeline.has_next(who, |()| true));
    assert_eq!(heard, [true, false, true]);
    assert_eq!(pipeline.dropped(publisher, &pattern("*")), Some(0));
}
