//! Handshakes that a crowded end puts off, and what their openers make of it.

use core::time::Duration;

use tenure_wire::datagram::{Deferral, Initiation};

use super::*;

const DEVICE: u32 = 0;
const CALLER: u32 = 1;

/// A device that computes no handshake before a time, and somebody who calls it.
struct Scene {
    now: Instant,
    entropy: Sequence,
    device: Endpoint<u32>,
    opens_at: Instant,
    caller: Endpoint<u32>,
    own: MachineId,
    key: PublicKey,
    /// The initiations that reached the device.
    initiations: usize,
}

impl Scene {
    fn new(opens_in: Duration) -> Self {
        let mut entropy = Sequence(31);
        let (device, _, key) = endpoint(Config::large(), &mut entropy);
        let (caller, own, _) = endpoint(Config::default(), &mut entropy);
        let now = Instant::from_millis(5_000);
        let opens_at = now + opens_in;
        Self { now, entropy, device, opens_at, caller, own, key, initiations: 0 }
    }

    fn call(&mut self, within: Duration) {
        let call = OutgoingCall { deadline: self.now + within, ..call() };
        let Self { now, entropy, caller, own, key, .. } = self;
        caller.call(*now, entropy, own, key, DEVICE, None, call).expect("room");
    }

    /// Lets time pass until the call is over, and returns its end.
    fn run(&mut self) -> Result<Option<Vec<u8>>, NoResult> {
        for _ in 0..10_000 {
            let Self { now, entropy, device, caller, .. } = self;
            device.poll(*now, entropy);
            caller.poll(*now, entropy);
            while let Some((_, datagram)) = caller.transmit() {
                let is_request = device.handshake_request(*now, &CALLER, &datagram).is_some();
                self.initiations += usize::from(is_request);
                if is_request && *now < self.opens_at {
                    device.defer_request(CALLER, &datagram, self.opens_at.since(*now));
                } else {
                    device.receive(*now, entropy, CALLER, &datagram);
                }
            }
            while let Some(event) = device.event() {
                if let Event::IncomingCall { handle, .. } = event {
                    device.reply(*now, handle, Ok(Some([7].to_vec())));
                }
            }
            while let Some((_, datagram)) = device.transmit() {
                caller.receive(*now, entropy, DEVICE, &datagram);
            }
            while let Some(event) = caller.event() {
                if let Event::CallDone { result, .. } = event {
                    return result;
                }
            }
            *now = *now + Duration::from_millis(10);
        }
        panic!("the call has no end");
    }
}

#[test]
fn opener_waits_for_the_turn_that_it_is_told_and_seldom_asks_until_then() {
    let mut scene = Scene::new(Duration::from_secs(20));
    scene.call(Duration::from_secs(60));
    assert_eq!(scene.run(), Ok(Some([7].to_vec())));
    let took = scene.now.since(scene.opens_at);
    assert!(
        scene.now >= scene.opens_at && took < Duration::from_secs(1),
        "{took:?} behind its turn"
    );
    // Two that are told the turn, one in each four seconds, and one in its turn.
    assert!((4..=8).contains(&scene.initiations), "{}", scene.initiations);
}

#[test]
fn call_whose_turn_is_beyond_its_deadline_says_when_that_is() {
    let mut scene = Scene::new(Duration::from_secs(20));
    scene.call(Duration::from_secs(4));
    let Err(NoResult::Deferred { again_in }) = scene.run() else { panic!("it is over") };
    assert!((15_900..=16_100).contains(&again_in.as_millis()), "{again_in:?}");
    // In its turn another call is answered at once.
    scene.now = scene.now + again_in;
    scene.call(Duration::from_secs(4));
    assert_eq!(scene.run(), Ok(Some([7].to_vec())));
}

#[test]
fn turn_in_an_hour_is_believed_for_a_minute() {
    let mut scene = Scene::new(Duration::from_secs(3_600));
    scene.call(Duration::from_secs(4));
    let Err(NoResult::Deferred { again_in }) = scene.run() else { panic!("it is over") };
    assert!(again_in <= Duration::from_secs(60), "{again_in:?}");
}

#[test]
fn opener_that_is_always_told_to_come_at_once_sends_four_times_a_second_at_most() {
    let mut scene = Scene::new(Duration::from_secs(9));
    scene.call(Duration::from_secs(10));
    let Scene { now, entropy, device, caller, opens_at, .. } = &mut scene;
    let mut sent = 0;
    while *now < *opens_at {
        caller.poll(*now, entropy);
        while let Some((_, datagram)) = caller.transmit() {
            let Ok(Datagram::Initiation(initiation)) = Datagram::parse(&datagram) else {
                device.receive(*now, entropy, CALLER, &datagram);
                continue;
            };
            sent += 1;
            let deferral = Deferral { echo: initiation.echo(), again_in_ms: 0 };
            caller.receive(*now, entropy, DEVICE, &deferral.to_bytes());
        }
        while let Some((_, datagram)) = device.transmit() {
            caller.receive(*now, entropy, DEVICE, &datagram);
        }
        *now = *now + Duration::from_millis(10);
    }
    assert!((20..=40).contains(&sent), "{sent} in nine seconds");
    assert_eq!(scene.run(), Ok(Some([7].to_vec())), "within its deadline");
}

#[test]
fn response_counts_that_comes_before_a_turn_which_somebody_else_told() {
    let mut scene = Scene::new(Duration::ZERO);
    scene.call(Duration::from_secs(60));
    let Scene { now, entropy, device, caller, .. } = &mut scene;
    let mut said = 0;
    while said < 2 {
        *now = *now + Duration::from_millis(10);
        caller.poll(*now, entropy);
        while let Some((_, datagram)) = caller.transmit() {
            let Ok(Datagram::Initiation(initiation)) = Datagram::parse(&datagram) else {
                device.receive(*now, entropy, CALLER, &datagram);
                continue;
            };
            let deferral = Deferral { echo: initiation.echo(), again_in_ms: u32::MAX };
            caller.receive(*now, entropy, 9, &deferral.to_bytes());
            said += 1;
            if said == 2 {
                device.receive(*now, entropy, CALLER, &datagram);
            }
        }
        while let Some((_, datagram)) = device.transmit() {
            caller.receive(*now, entropy, DEVICE, &datagram);
        }
    }
    assert_eq!(scene.run(), Ok(Some([7].to_vec())));
    assert!(scene.now < Instant::from_millis(7_000), "{:?}", scene.now);
}

#[test]
fn request_is_what_a_handshake_would_be_computed_for() {
    let mut scene = Scene::new(Duration::ZERO);
    let Scene { now, entropy, device, caller, own, key, .. } = &mut scene;
    let epoch = Some(device.epoch());
    caller.call(*now, entropy, own, key, DEVICE, epoch, call()).expect("room");
    let (_, datagram) = caller.transmit().expect("an initiation");
    let request = device.handshake_request(*now, &CALLER, &datagram);
    assert_eq!(request, Some(HandshakeRequest { is_shown: false }));
    device.receive(*now, entropy, CALLER, &datagram);
    assert_eq!(device.handshake_request(*now, &CALLER, &datagram), None, "it was computed");
    let mut other_epoch = datagram.clone();
    other_epoch[17] ^= 1;
    assert_eq!(device.handshake_request(*now, &CALLER, &other_epoch), None);
    let mut other_machine = datagram.clone();
    other_machine[1] ^= 1;
    assert_eq!(device.handshake_request(*now, &CALLER, &other_machine), None);
    assert_eq!(device.handshake_request(*now, &CALLER, &datagram[..50]), None);
    let cookie = device.station.gate.cookie(*now, &CALLER);
    let mut shown = datagram;
    shown[45] ^= 1;
    let proof = crate::noise::proof(&cookie.0, &shown[..25], &shown[41..]);
    Initiation::set_proof(&mut shown, &proof);
    let request = device.handshake_request(*now, &CALLER, &shown);
    assert_eq!(request, Some(HandshakeRequest { is_shown: true }));
}
