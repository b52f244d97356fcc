//! Leases and secrets of two tenants on one device, over a network and through losses of power.
//!
//! The owner renews a lease, at times too late, tells the time and fetches receipts; each tenant sets, rotates and
//! removes a secret of the same name; a machine of each reads its own again and again. The owner restarts, stops, restores,
//! updates and removes the machines meanwhile from a second terminal. All of them are
//! parties on a network that loses, doubles and flips; the device's power goes at random flash
//! operations, and it sleeps in between. What must hold is in `books`.

mod books;
mod errands;
mod hands;
mod party;
mod scene;
mod site;

use std::time::Duration;

use tenure_crypto::Seed;
use tenure_hal::planted::Weakness;
use tenure_hal::simulated::{Random, socket_at};
use tenure_wire::Address;

use crate::network::Network;
use crate::panics;
use crate::place::Keys;
use crate::scenario::NetworkPlan;
use crate::siege::watched;
pub use books::Tally;
use errands::Parties;
use hands::Hands;
use scene::{Parcel, Scene};
use site::Site;

const CHECKPOINT: Duration = Duration::from_secs(2);
const PERIOD_S: u64 = 4;
/// The wall clock when the world begins.
const UNIX_S_AT_START: u64 = 1_800_000_000;
/// How long there is trouble, and how long there is none after that.
const TROUBLE_US: u64 = 60_000_000;
const QUIET_US: u64 = 20_000_000;

const DEVICE: usize = 0;
const OWNER: usize = 1;
/// The tenants' places follow on the owner's; a tenant's machine is called as it is.
const TENANTS: [(usize, &str); 2] = [(2, "alice"), (3, "bob")];
const SECRET: &str = "wifi";

/// The weaknesses that can be planted here.
pub const WEAKNESSES: [(&str, Weakness); 1] = [("restore", Weakness::RestoreForgetsUse)];

/// Runs the world of `seed` to its end, with that weakness planted, or none.
///
/// # Errors
/// The invariant that failed, and when.
pub fn run(seed: u64, planted: Option<Weakness>) -> Result<Tally, String> {
    watched::begin(planted);
    let mut tally = Tally::default();
    let caught = panics::catch(|| tally = World::new(seed).run());
    watched::begin(None);
    caught.map(|()| tally)
}

/// The world under way: whoever has something to do is lent the scene for it.
struct World {
    scene: Scene,
    site: Site,
    hands: Hands,
    parties: Parties,
}

impl World {
    fn new(seed: u64) -> Self {
        let mut random = Random::new(seed ^ 0x7E4A47);
        let mut keys = Keys::draw(&mut random);
        // The owner's key for sessions belongs to the seed that signs for it.
        let owner = Seed::from_bytes(&keys.owner.to_bytes()).device_secret();
        keys.known.machine = owner.public_key();
        let tenants = [keys.tenant.clone(), Keys::draw(&mut random).tenant];
        let mut parties = Parties::new();
        parties.join(owner, &mut random);
        for tenant in &tenants {
            let secret = Seed::from_bytes(&tenant.to_bytes()).device_secret();
            parties.join(secret, &mut random);
        }
        let places = OWNER + TENANTS.len() + 1;
        let network = Network::new(trouble(&mut random), places, random.branch());
        let mut site = Site::draw(&mut random);
        let hands = Hands::draw(&mut random);
        let mut scene = Scene::new(keys, tenants, network, random);
        site.begin(&mut scene);
        Self { scene, site, hands, parties }
    }

    fn run(mut self) -> Tally {
        while self.scene.now_us < TROUBLE_US + QUIET_US {
            self.scene.now_us = self.next_us().max(self.scene.now_us + 1);
            if !self.scene.is_quiet && self.scene.now_us >= TROUBLE_US {
                self.end_trouble();
            }
            while let Some(parcel) = self.scene.arrival() {
                self.arrive(&parcel);
            }
            if self.site.due_us() <= self.scene.now_us {
                self.attend_to_device();
            }
            self.parties.attend(&mut self.scene, &self.site);
        }
        self.site.fetch_the_rest(&mut self.scene);
        self.scene.books.close(self.scene.now_us)
    }

    /// When something happens next.
    fn next_us(&self) -> u64 {
        let dues = [Some(self.site.due_us()), self.parties.next_us(), self.scene.arrival_us()];
        dues.into_iter().flatten().min().unwrap_or(self.scene.now_us)
    }

    fn end_trouble(&mut self) {
        self.scene.calm();
        self.site.restore_power();
        self.parties.hurry(self.scene.now_us);
    }

    fn arrive(&mut self, Parcel { from, to, datagram }: &Parcel) {
        match *to {
            DEVICE => self.site.receive(&mut self.scene, *from, datagram),
            to => self.parties.receive(&mut self.scene, *from, to, datagram),
        }
    }

    fn attend_to_device(&mut self) {
        let Some(mut node) = self.site.awake(&mut self.scene) else { return };
        self.hands.attend(&mut self.scene, &self.site, &mut node);
        self.site.poll(&mut self.scene, node);
    }
}

fn address(place: usize) -> Address {
    Address::Udp(socket_at(place as u32))
}

fn trouble(random: &mut Random) -> NetworkPlan {
    let worst = |random: &mut Random, most: u64| *random.pick(&[0, most / 3, most]);
    NetworkPlan {
        delay_ms: 1..=random.between(2..=150),
        lost: worst(random, 300),
        doubled: worst(random, 200),
        replayed: worst(random, 50),
        flipped: worst(random, 100),
        partition_every_ms: None,
    }
}

#[cfg(test)]
mod tests;
