//! Peers with keys who flood a device, and an owner who gets through all of it.

use core::time::Duration;

use tenure_wire::datagram::{Cookie, Echo, Initiation};
use tenure_wire::frame::{Fragment, FragmentSet};

use super::*;

const DEVICE: u32 = 0;
const OWNER: u32 = 1;
/// The places of strangers, from here on.
const STRANGERS: u32 = 100;

/// A person who calls the device.
struct Caller {
    endpoint: Endpoint<u32>,
    id: MachineId,
    place: u32,
    results: Vec<Result<Option<Vec<u8>>, NoResult>>,
}

/// A device, and strangers who have sessions with it.
struct Scene {
    now: Instant,
    entropy: Sequence,
    device: Endpoint<u32>,
    device_key: PublicKey,
    /// Another machine of the device's.
    other_key: PublicKey,
    strangers: Vec<Caller>,
    /// How many calls of strangers run that are never answered.
    unanswered: usize,
}

impl Scene {
    fn new(config: Config) -> Self {
        let mut entropy = Sequence(77);
        let (mut device, id, device_key) = super::endpoint(config, &mut entropy);
        device.identify_as(&id);
        let other = StaticSecret::generate(&mut entropy).expect("randomness");
        let other_key = other.public_key();
        device.add_machine(other).expect("room");
        let now = Instant::from_millis(20_000);
        let strangers = Vec::new();
        Self { now, entropy, device, device_key, other_key, strangers, unanswered: 0 }
    }

    fn caller(&mut self, place: u32) -> Caller {
        let (endpoint, id, _) = super::endpoint(Config::default(), &mut self.entropy);
        Caller { endpoint, id, place, results: Vec::new() }
    }

    /// Makes a call in the name of a caller, to be over in ten seconds.
    fn call(&mut self, caller: &mut Caller, function: &str, bytes: usize) {
        let key = self.device_key;
        self.call_machine(key, caller, function, bytes);
    }

    /// Calls the machine with that key, likewise.
    fn call_machine(&mut self, key: PublicKey, caller: &mut Caller, function: &str, bytes: usize) {
        let call = OutgoingCall {
            function: function.into(),
            parameter: Some(alloc::vec![3; bytes]),
            deadline: self.now + Duration::from_secs(10),
            attempts: 12,
        };
        let Caller { endpoint, id, .. } = caller;
        let (now, entropy) = (self.now, &mut self.entropy);
        endpoint.call(now, entropy, id, &key, DEVICE, None, call).expect("room");
    }

    /// A stranger who has a session with the device, with nothing under way.
    fn add_stranger(&mut self) {
        let mut stranger = self.caller(STRANGERS + self.strangers.len() as u32);
        self.call(&mut stranger, "answer", 10);
        for _ in 0..100 {
            self.exchange(&mut stranger);
            self.pass(Duration::from_millis(20));
        }
        assert_eq!(stranger.results.len(), 1, "{:?}", stranger.results);
        self.strangers.push(stranger);
    }

    fn pass(&mut self, span: Duration) {
        self.now = self.now + span;
        self.device.poll(self.now, &mut self.entropy);
    }

    /// Carries what waits between the device and a caller.
    fn exchange(&mut self, caller: &mut Caller) {
        caller.endpoint.poll(self.now, &mut self.entropy);
        while let Some((_, datagram)) = caller.endpoint.transmit() {
            self.device.receive(self.now, &mut self.entropy, caller.place, &datagram);
        }
        self.serve();
        while let Some((to, datagram)) = self.device.transmit() {
            if to == caller.place {
                caller.endpoint.receive(self.now, &mut self.entropy, DEVICE, &datagram);
            }
        }
        while let Some(event) = caller.endpoint.event() {
            if let Event::CallDone { result, .. } = event {
                caller.results.push(result);
            }
        }
    }

    /// Answers the calls that ask for it at once, with a long result; the others run for ever.
    fn serve(&mut self) {
        while let Some(event) = self.device.event() {
            let Event::IncomingCall { handle, function, .. } = event else { continue };
            if function == "answer" {
                self.device.reply(self.now, handle, Ok(Some(alloc::vec![8; 5_000])));
            } else {
                self.unanswered += 1;
            }
        }
    }

    /// Sends a frame over the newest session of a stranger.
    fn say(&mut self, stranger: usize, frame: Frame<'_>) {
        let Caller { endpoint, place, .. } = &mut self.strangers[stranger];
        let finished = Finished::below(CallNumber(0));
        let Some(session) = endpoint.station.sessions.last_mut() else { return };
        let config = Config::default();
        let message = Message { finished, frame };
        let Some(datagram) = session.seal(&config, &message) else { return };
        self.device.receive(self.now, &mut self.entropy, *place, &datagram);
    }

    /// Sends one part of a long call, all but the last of which a stranger has to send.
    fn send_part(&mut self, stranger: usize, number: u64, index: usize) {
        let body = alloc::vec![1; 8_000];
        let fragment = Fragment::of(&body, 1_000, index % 7, true).expect("a part");
        self.say(stranger, Frame::Call { number: CallNumber(number), until_ms: None, fragment });
    }
}

#[test]
fn strangers_cannot_keep_others_longer_calls_out() {
    let mut scene = Scene::new(Config::default());
    (0..3).for_each(|_| scene.add_stranger());
    let mut honest = scene.caller(50);
    for (stranger, number) in [(0, 900), (0, 901), (1, 900), (1, 901), (2, 900), (2, 901)] {
        scene.send_part(stranger, number, 0);
    }
    for second in 0..40 {
        // The same part again and again, in time before the call in parts is given up.
        for (stranger, number) in [(0, 900), (0, 901), (1, 900), (1, 901), (2, 900), (2, 901)] {
            scene.send_part(stranger, number, 0);
        }
        if second % 10 == 5 {
            scene.call(&mut honest, "answer", 3_000);
        }
        for _ in 0..10 {
            scene.exchange(&mut honest);
            scene.pass(Duration::from_millis(100));
        }
    }
    assert_eq!(honest.results.len(), 4);
    assert!(honest.results.iter().all(Result::is_ok), "{:?}", honest.results);
}

#[test]
fn forged_responses_cost_no_unbounded_work() {
    let check = |forged: usize, opened_at_once: bool| {
        let mut scene = Scene::new(Config::default());
        let mut caller = scene.caller(50);
        let epoch = scene.device.epoch();
        scene.call(&mut caller, "answer", 10);
        let pair = caller.endpoint.station.peers.list[0].pair;
        caller.endpoint.station.peers.list[0].epoch = Some(epoch);
        open_anew(&mut caller.endpoint, scene.now, &mut scene.entropy, &pair, DEVICE);
        let mut initiation = Vec::new();
        while let Some((_, datagram)) = caller.endpoint.transmit() {
            initiation = datagram;
        }
        scene.device.receive(scene.now, &mut scene.entropy, 50, &initiation);
        let (_, response) = scene.device.transmit().expect("a response");
        for forgery in 0..forged {
            let mut false_one = response.clone();
            false_one[10] ^= 1 + forgery as u8;
            caller.endpoint.receive(scene.now, &mut scene.entropy, DEVICE, &false_one);
        }
        caller.endpoint.receive(scene.now, &mut scene.entropy, DEVICE, &response);
        assert_eq!(caller.endpoint.station.sessions.len() == 1, opened_at_once, "after {forged}");
        // The next transmission brings the true one again, whoever forged them.
        for _ in 0..20 {
            scene.exchange(&mut caller);
            scene.pass(Duration::from_millis(100));
        }
        assert!(caller.results[0].is_ok());
    };
    check(3, true);
    check(4, false);
    check(200, false);
}

#[test]
fn datagrams_of_no_session_get_a_few_refusals_a_second_and_the_rest_none() {
    let mut scene = Scene::new(Config::default());
    let mut datagram = Data::header(SessionIndex(7), 1).to_vec();
    datagram.extend_from_slice(&[0; 40]);
    let mut refused = 0;
    for at in 0..1_000 {
        scene.device.receive(scene.now, &mut scene.entropy, STRANGERS + at, &datagram);
        refused += core::iter::from_fn(|| scene.device.transmit()).count();
        scene.pass(Duration::from_millis(10));
    }
    assert!((80..=88).contains(&refused), "{refused} refusals in ten seconds");
}

#[test]
fn reply_asked_for_again_and_again_is_sent_within_a_budget() {
    let mut scene = Scene::new(Config::default());
    scene.add_stranger();
    let Caller { endpoint, .. } = &mut scene.strangers[0];
    let number = CallNumber(endpoint.station.peers.list[0].next_number.0 - 1);
    let mut sent = 0;
    for _ in 0..1_000 {
        scene.say(0, Frame::Want { number, burst: 32, fragments: FragmentSet::ALL });
        scene.say(0, Frame::Query { number });
        sent += core::iter::from_fn(|| scene.device.transmit()).count();
        scene.pass(Duration::from_millis(10));
    }
    assert!(sent <= 64 * 11 + 10, "{sent} datagrams in ten seconds");
}

#[test]
fn call_asked_for_again_and_again_is_sent_in_eight_bursts_a_second() {
    let mut scene = Scene::new(Config::default());
    let mut caller = scene.caller(50);
    scene.call(&mut caller, "run", 8_000);
    for _ in 0..20 {
        scene.exchange(&mut caller);
        scene.pass(Duration::from_millis(20));
    }
    assert_eq!(scene.unanswered, 1, "the call runs, and all of it has arrived");
    let call = &caller.endpoint.outgoing.calls[0];
    let number = call.number;
    let parts = call.sent.len();
    let finished = Finished::below(CallNumber(0));
    let mut sent = 0;
    for _ in 0..5_000 {
        let frame = Frame::Missing { number, fragments: FragmentSet::ALL };
        let session = scene.device.station.sessions.last_mut().expect("a session");
        let datagram = session.seal(&Config::default(), &Message { finished, frame });
        let datagram = datagram.expect("a fresh session");
        caller.endpoint.receive(scene.now, &mut scene.entropy, DEVICE, &datagram);
        caller.endpoint.poll(scene.now, &mut scene.entropy);
        sent += core::iter::from_fn(|| caller.endpoint.transmit()).count();
        scene.pass(Duration::from_millis(1));
    }
    // The share of one second may be there at the beginning; the timeouts of five seconds come on top. A burst
    // shrinks to one part where all is said to be lost.
    let timeouts = 12;
    assert!(sent >= 8 * 5, "{sent} datagrams: the budget was not reached");
    assert!(sent <= (8 * 6 + timeouts) * parts, "{sent} datagrams in five seconds");
}

#[test]
fn pair_that_opens_session_after_session_has_three_of_them() {
    let mut scene = Scene::new(Config::default());
    (0..2).for_each(|_| scene.add_stranger());
    let pair = scene.strangers[0].endpoint.station.peers.list[0].pair;
    let mut greedy = scene.strangers.remove(0);
    let other = scene.device.station.sessions.last().expect("the other stranger's").pair;
    let mut most = 0;
    for _ in 0..20 {
        open_anew(&mut greedy.endpoint, scene.now, &mut scene.entropy, &pair, DEVICE);
        for _ in 0..50 {
            scene.exchange(&mut greedy);
            scene.pass(Duration::from_millis(20));
        }
        let of_pair =
            |pair| scene.device.station.sessions.iter().filter(|one| one.pair == pair).count();
        let of_greedy = scene.device.station.sessions.len() - of_pair(other);
        most = most.max(of_greedy);
        assert!(of_greedy <= 3, "{of_greedy} sessions of one pair");
        assert_eq!(of_pair(other), 1, "the other stranger's session goes on");
    }
    assert_eq!(most, 3, "the bound was not reached");
    scene.call(&mut greedy, "answer", 10);
    for _ in 0..50 {
        scene.exchange(&mut greedy);
        scene.pass(Duration::from_millis(20));
    }
    assert!(greedy.results.last().is_some_and(Result::is_ok), "the newest session serves");
}

#[test]
fn a_called_peer_that_never_ends_its_reply_keeps_no_other_reply_out() {
    let config = Config { calls_bytes_max: 20 * 1024, ..Config::default() };
    let mut scene = Scene::new(Config::default());
    let (mut caller, id, _) = super::endpoint(config, &mut scene.entropy);
    let pair = |peer| Pair { local: id, peer: PublicKey([peer; 32]) };
    let whole = alloc::vec![1; 8_000];
    let part = Fragment::of(&whole, 1_000, 0, true).expect("a part");
    for peer in 1..=3 {
        let (now, entropy) = (scene.now, &mut scene.entropy);
        let call = OutgoingCall { deadline: now + Duration::from_secs(60), ..super::call() };
        let key = PublicKey([peer; 32]);
        caller.call(now, entropy, &id, &key, DEVICE, None, call).expect("room");
    }
    let mut reply = |now, peer: u8| {
        let number =
            caller.outgoing.call_of(&pair(peer), CallNumber(u64::from(peer))).map(|one| one.number);
        let number = number.expect("numbers go up from one");
        let mut means = caller.means(now, &mut scene.entropy);
        let Endpoint { station, outgoing, .. } = &mut caller;
        outgoing.on_reply(station, &mut means, &pair(peer), number, 0, &part);
        caller.outgoing.call_of(&pair(peer), number).is_some_and(|call| call.reply.is_some())
    };
    assert!(reply(scene.now, 1) && reply(scene.now, 2));
    assert!(!reply(scene.now, 3), "both have just begun");
    let later = scene.now + Duration::from_secs(2);
    assert!(reply(later, 3), "the first stands still");
}

/// So many commands of one user: endpoints with one key.
fn commands(scene: &mut Scene, count: u32) -> Vec<Caller> {
    let secret = StaticSecret::generate(&mut Sequence(6)).expect("randomness");
    let command = |place| {
        let (mut endpoint, ..) = super::endpoint(Config::default(), &mut scene.entropy);
        let id = endpoint.add_machine(secret.clone()).expect("room");
        Caller { endpoint, id, place: STRANGERS + place, results: Vec::new() }
    };
    (0..count).map(command).collect()
}

/// Lets each command make one call and wait for its end.
fn call_by_turns(scene: &mut Scene, commands: &mut [Caller]) {
    for command in commands {
        scene.call(command, "answer", 10);
        for _ in 0..100 {
            scene.exchange(command);
            scene.pass(Duration::from_millis(20));
        }
        assert!(command.results.pop().is_some_and(|result| result.is_ok()));
    }
}

#[test]
fn commands_of_one_user_at_once_keep_their_sessions() {
    let mut scene = Scene::new(Config::default());
    let mut commands = commands(&mut scene, 8);
    (0..3).for_each(|_| call_by_turns(&mut scene, &mut commands));
    for command in &commands {
        assert_eq!(command.endpoint.station.sessions.len(), 1, "none had to open another");
    }
}

#[test]
fn commands_beyond_the_sessions_of_one_user_get_through_and_leave_others_theirs() {
    let mut scene = Scene::new(Config::default());
    scene.add_stranger();
    let other = scene.device.station.sessions.iter().next().unwrap().pair;
    let mut commands = commands(&mut scene, 12);
    for _ in 0..2 {
        call_by_turns(&mut scene, &mut commands);
        let of_user = scene.device.station.sessions.iter().filter(|one| one.pair != other).count();
        assert_eq!(of_user, Config::default().sessions_max / 3);
        assert_eq!(
            scene.device.station.sessions.len(),
            of_user + 1,
            "the stranger's session goes on"
        );
    }
}

/// Strangers do all at once what a stranger can do, for half a minute; the owner calls meanwhile, sometimes
/// with a session and sometimes after its tool was started anew, the device's own machine and another by turns.
#[test]
fn owner_gets_through_all_floods_at_once() {
    let owner_secret = StaticSecret::generate(&mut Sequence(5)).expect("randomness");
    let config = Config { owner: Some(owner_secret.public_key()), ..Config::default() };
    let mut scene = Scene::new(config.clone());
    // Fifteen strangers: twelve calls that never end, three results that are never fetched.
    (0..15).for_each(|_| scene.add_stranger());
    for stranger in 3..15 {
        let mut caller = scene.strangers.remove(stranger);
        scene.call(&mut caller, "run", 10);
        scene.exchange(&mut caller);
        scene.strangers.insert(stranger, caller);
    }
    assert_eq!(scene.unanswered, config.running_max);
    let mut owner = None;
    let mut done = 0;
    for tick in 0..1_500_u32 {
        flood(&mut scene, tick);
        if tick % 300 == 0 {
            let (mut endpoint, ..) = super::endpoint(Config::default(), &mut scene.entropy);
            let id = endpoint.add_machine(owner_secret.clone()).expect("room");
            owner = Some(Caller { endpoint, id, place: OWNER, results: Vec::new() });
        }
        let Some(owner) = &mut owner else { continue };
        if tick % 100 == 0 {
            let machines = [scene.device_key, scene.other_key];
            scene.call_machine(machines[tick as usize / 300 % 2], owner, "answer", 3_000);
        }
        scene.exchange(owner);
        for result in owner.results.drain(..) {
            assert_eq!(result.map(|value| value.map(|bytes| bytes.len())), Ok(Some(5_000)));
            done += 1;
        }
        if tick % 100 == 99 {
            assert_eq!(done, 1 + tick / 100, "a call takes longer than two seconds");
        }
        assert!(scene.device.station.sessions.len() <= config.sessions_max);
        assert!(scene.device.incoming.callers.bytes_taken() <= config.buffer_bytes_max + 2 * 8_400);
        scene.pass(Duration::from_millis(20));
    }
}

/// The datagrams of strangers in one tick.
fn flood(scene: &mut Scene, tick: u32) {
    let Scene { now, entropy, device, .. } = scene;
    let id = device.station.machines.list[0].id;
    let mut garbage = [0; 216];
    for number in 0..20 {
        entropy.fill(&mut garbage).expect("randomness");
        let header = Initiation::header(&id, SessionIndex(number), &device.epoch());
        garbage[..25].copy_from_slice(&header);
        let from = STRANGERS + (tick * 20 + number) % 500;
        if number % 2 == 0 {
            let cookie = device.station.gate.cookie(*now, &from);
            let code = crate::noise::proof(&cookie.0, &header, &garbage[41..]);
            garbage[25..41].copy_from_slice(&code);
        }
        device.receive(*now, entropy, from, &garbage);
        device.receive(*now, entropy, from, &Probe { nonce: Echo([9; 16]) }.to_bytes());
        garbage[0] = 0x13;
        device.receive(*now, entropy, from, &garbage);
        if number % 5 == 4 {
            // The board sends what waits now and then: this much is more than there is room for.
            while device.transmit().is_some() {}
        }
    }
    for stranger in 0..scene.strangers.len() {
        let number = u64::from(1_000 + tick / 100);
        scene.send_part(stranger, number, tick as usize);
        scene.say(stranger, Frame::Query { number: CallNumber(1) });
        let all = FragmentSet::ALL;
        scene.say(stranger, Frame::Want { number: CallNumber(1), burst: 32, fragments: all });
        scene.say(stranger, Frame::Prove { number: CallNumber(1), cookie: Cookie([0; 16]) });
        while scene.device.transmit().is_some() {}
    }
    scene.serve();
}
