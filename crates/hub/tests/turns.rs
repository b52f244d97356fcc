//! A crowd that comes to a hub all at once: everybody is served, in turn.

use std::time::Duration;

use tenure_crypto::{Seed, machine_id};
use tenure_hal::simulated::{RamFlash, Sequence, place_at, socket_at};
use tenure_hal::{FlashGeometry, Instant, UnixTime};
use tenure_hub::{Config, FlashStorage, Hub, Moment};
use tenure_rpc::{Endpoint, Event, NoResult, OutgoingCall};
use tenure_wire::directory::{Query, function};
use tenure_wire::{Address, MachineId, PublicKey};

const NOW: u64 = 1_800_000_000;
const HUB: Address = Address::Udp(socket_at(0));
const FLASH: FlashGeometry =
    FlashGeometry { sector_bytes: 4096, sector_count: 16, program_bytes: 4 };
const CROWD: u32 = 400;
/// How long an answer may take, as devices wait for one.
const PATIENCE: Duration = Duration::from_secs(4);

/// One of the crowd.
struct Visitor {
    endpoint: Endpoint<Address>,
    own: MachineId,
    /// When it asks next; `None` while it waits for an answer and once it has one.
    asks_at: Option<Instant>,
    deferrals: usize,
    served_at: Option<Instant>,
}

impl Visitor {
    fn new(number: u32, entropy: &mut Sequence) -> Self {
        let mut bytes = [7; 32];
        bytes[..4].copy_from_slice(&number.to_le_bytes());
        let secret = Seed::from_bytes(&bytes).device_secret();
        let own = machine_id(&secret.public_key());
        let config = tenure_rpc::Config::default();
        let mut endpoint = Endpoint::new(config, Instant::BOOT, entropy).unwrap();
        endpoint.add_machine(secret).unwrap();
        let asks_at = Some(Instant::BOOT);
        Self { endpoint, own, asks_at, deferrals: 0, served_at: None }
    }

    fn attend(&mut self, now: Instant, hub: &PublicKey, entropy: &mut Sequence) {
        self.endpoint.poll(now, entropy);
        while let Some(event) = self.endpoint.event() {
            let Event::CallDone { result, .. } = event else { continue };
            match result {
                Ok(_) => self.served_at = Some(now),
                Err(NoResult::Deferred { again_in }) => {
                    self.deferrals += 1;
                    self.asks_at = Some(now + again_in);
                }
                Err(failure) => panic!("{failure}"),
            }
        }
        if self.asks_at.is_some_and(|at| at <= now) {
            self.asks_at = None;
            let query = Query::Device("attic".parse().unwrap());
            let call = OutgoingCall {
                function: function::RESOLVE.into(),
                parameter: Some(postcard::to_allocvec(&query).unwrap()),
                deadline: now + PATIENCE,
                attempts: 4,
            };
            self.endpoint.call(now, entropy, &self.own, hub, HUB, None, call).unwrap();
        }
    }
}

#[test]
fn crowd_that_comes_at_once_is_told_turns_and_served_at_the_pace_of_the_hub() {
    let mut entropy = Sequence(4);
    let flash = FlashStorage::open(RamFlash::new(FLASH), &mut entropy).unwrap();
    let rpc = tenure_rpc::Config {
        handshakes_per_second: 2,
        handshakes_per_second_max: 40,
        ..tenure_rpc::Config::for_callers(CROWD as usize)
    };
    let unix_time = UnixTime { seconds: NOW };
    let mut now = Instant::BOOT;
    let mut moment = Moment { now, unix_time, entropy: &mut entropy };
    let mut hub = Hub::open(Config { rpc, ..Config::default() }, flash, &mut moment).unwrap();
    let key = hub.key();
    let mut crowd: Vec<Visitor> =
        (0..CROWD).map(|number| Visitor::new(number, &mut entropy)).collect();
    // Three quarters of 40 a second are 13 s for 400.
    for _ in 0..4_000 {
        now = now + Duration::from_millis(5);
        for (place, visitor) in crowd.iter_mut().enumerate() {
            visitor.attend(now, &key, &mut entropy);
            while let Some((_, datagram)) = visitor.endpoint.transmit() {
                let from = Address::Udp(socket_at(place as u32 + 1));
                let mut moment = Moment { now, unix_time, entropy: &mut entropy };
                hub.receive(&mut moment, from, &datagram);
            }
        }
        hub.poll(&mut Moment { now, unix_time, entropy: &mut entropy });
        while let Some((to, datagram)) = hub.transmit() {
            let Address::Udp(socket) = to else { continue };
            let place = place_at(socket).unwrap() as usize - 1;
            crowd[place].endpoint.receive(now, &mut entropy, HUB, &datagram);
        }
    }
    let waiting = crowd.iter().filter(|visitor| visitor.served_at.is_none()).count();
    assert_eq!(waiting, 0, "wait after 20 s");
    let last = crowd.iter().filter_map(|visitor| visitor.served_at).max().unwrap();
    assert!(last > Instant::from_millis(11_000), "none is served faster than the hub computes");
    let twice = crowd.iter().filter(|visitor| visitor.deferrals > 1).count();
    assert!(twice < CROWD as usize / 10, "{twice} were told another turn in their turn");
    let deferred = crowd.iter().filter(|visitor| visitor.deferrals > 0).count();
    assert!(deferred > CROWD as usize / 4, "{deferred} were told a turn beyond their patience");
    let tables = hub.fullness();
    let handshakes = tables.iter().find(|table| table.table == "handshakes").unwrap();
    assert!(handshakes.times_full >= deferred as u64 && handshakes.used == 0, "{handshakes:?}");
}
