//! The errands of the owner's first terminal and of the tenants: what each calls the device for over the network, and
//! what an answer means.

use tenure_crypto::StaticSecret;
use tenure_hal::simulated::Random;
use tenure_package::{Renewal, SecretChange};
use tenure_wire::control::{
    Function, ReceiptForget, ReceiptPage, ReceiptQuery, Renew, TellTime, decode_answer,
};
use tenure_wire::{PublicKey, VerifyingKey};

use super::party::{Outcome, Party};
use super::scene::{Scene, end_us};
use super::site::Site;
use super::{DEVICE, OWNER, QUIET_US, SECRET, TENANTS, TROUBLE_US, address};

/// A request whose answer a party waits for.
enum Errand {
    Renew {
        number: u64,
    },
    Fetch,
    Forget,
    /// Ends all periods; so many reads had begun when it was sent, and the device been on for so long.
    Close {
        begun: u64,
        on_us: u64,
    },
    Change {
        version: u64,
    },
    /// Tells the time, which was this when it was sent, after so many losses of power.
    Tell {
        sent_us: u64,
        cuts: u64,
    },
}

/// An errand, and the function and the parameter of its call.
type Call = (Errand, &'static str, Vec<u8>);

/// The owner and the tenants, in the order of their places.
pub(super) struct Parties(Vec<Party<Errand>>);

impl Parties {
    /// Nobody yet.
    pub(super) fn new() -> Self {
        Self(Vec::new())
    }

    /// A tenant joins at the next place, with this secret.
    pub(super) fn join(&mut self, secret: StaticSecret, random: &mut Random) {
        self.0.push(Party::new(self.0.len() + OWNER, secret, random));
    }

    /// When one of them wants to be attended to.
    pub(super) fn next_us(&self) -> Option<u64> {
        self.0.iter().map(Party::next_us).min()
    }

    /// Lets each of them set out at once.
    pub(super) fn hurry(&mut self, now_us: u64) {
        self.0.iter_mut().for_each(|party| party.rest_until(now_us));
    }

    pub(super) fn receive(&mut self, scene: &mut Scene, from: usize, to: usize, datagram: &[u8]) {
        let now = scene.now();
        self.0[to - OWNER].receive(now, &mut scene.random, address(from), datagram);
    }

    pub(super) fn attend(&mut self, scene: &mut Scene, site: &Site) {
        for (place, party) in (OWNER..).zip(&mut self.0) {
            if let Some((errand, result)) = party.attend(scene.now(), &mut scene.random) {
                done(scene, place, errand, result);
            }
            if party.is_free(scene.now_us) {
                set_out(scene, site, place, party);
            }
            while let Some((to, datagram)) = party.transmit() {
                scene.send(place, &to, datagram);
            }
        }
    }
}

/// Lets a party do the next thing that it has to do.
fn set_out(scene: &mut Scene, site: &Site, place: usize, party: &mut Party<Errand>) {
    let Some((device_key, device)) = scene.books.device(site.node()) else { return };
    let (errand, function, parameter) = match place {
        OWNER => owners(scene, device_key),
        _ => tenants(scene, place - OWNER - 1, device_key, &device),
    };
    let (to, call) = ((address(DEVICE), device), (function, parameter));
    party.call(scene.now(), &mut scene.random, to, call, errand);
    let rest = if scene.is_quiet { 100..=500 } else { 300..=4_000 };
    party.rest_until(scene.now_us + scene.span_us(rest));
}

fn owners(scene: &mut Scene, device: VerifyingKey) -> Call {
    if let Some(forget) = scene.books.forget() {
        let parameter = encode::<ReceiptForget>(&forget);
        return (Errand::Forget, Function::receipts_forget.name(), parameter);
    }
    let is_due = scene.is_quiet && !scene.books.is_leased_until(TROUBLE_US + QUIET_US);
    match scene.random.between(0..=4) {
        what if what == 0 || is_due => {
            let number = scene.books.next_lease(0);
            let term = scene.term();
            let machine = TENANTS[0].1.parse().expect("a name");
            let renewal = Renewal { device, machine, term, sequence: number };
            let renewal = renewal.sign(&scene.keys.owner).expect("well formed");
            scene.books.offered(0, number, end_us(&term), scene.now_us);
            let parameter = encode(&Renew { renewal, ends_now: false });
            (Errand::Renew { number }, Function::renew.name(), parameter)
        }
        1..=2 if scene.is_quiet => {
            let (begun, on_us) = (scene.books.begun(), scene.books.on_us(scene.now_us));
            (Errand::Close { begun, on_us }, Function::receipts_close.name(), Vec::new())
        }
        3 => {
            let (sent_us, cuts) = (scene.now_us, scene.books.cuts);
            let time = TellTime { unix_s: scene.unix_s() };
            (Errand::Tell { sent_us, cuts }, Function::time.name(), encode(&time))
        }
        _ => (Errand::Fetch, Function::receipts.name(), encode(&ReceiptQuery { skip: 0 })),
    }
}

fn tenants(scene: &mut Scene, index: usize, device: VerifyingKey, machine: &PublicKey) -> Call {
    let removes = scene.random.chance(250);
    let (version, value) = scene.books.next_secret(index, removes);
    let tenant = &scene.tenants[index];
    let place = (device, machine);
    let name = SECRET.parse().expect("a name");
    let change = match value {
        Some(value) => {
            let key = tenant.verifying_key();
            let value = value.as_bytes();
            SecretChange::set(&mut scene.random, &key, place, (name, version), value)
                .expect("short enough")
        }
        None => SecretChange::remove(device, name, version),
    };
    let change = change.sign(tenant).expect("well formed");
    (Errand::Change { version }, Function::secret_change.name(), change)
}

fn done(scene: &mut Scene, place: usize, errand: Errand, result: Outcome) {
    // A party without an answer doesn't know whether it was done.
    let Ok(reply) = result else { return };
    let reply = reply.unwrap_or_default();
    let Scene { books, now_us, .. } = scene;
    match errand {
        Errand::Renew { number } if is_yes(&reply) => books.renewed(number, *now_us),
        Errand::Change { version } if is_yes(&reply) => books.changed(place - OWNER - 1, version),
        // A time that was told before the last loss of power is forgotten.
        Errand::Tell { sent_us, cuts } if is_yes(&reply) && cuts == books.cuts => {
            books.told(sent_us, *now_us);
        }
        Errand::Close { begun, on_us } if is_yes(&reply) => books.closed(begun, on_us),
        Errand::Fetch => {
            let page = decode_answer::<ReceiptPage>(&reply);
            let page = page.unwrap_or_else(|error| panic!("no receipts: {error}"));
            books.received(&page.receipts);
            if !page.more {
                books.fetched_all();
            }
        }
        _ => {}
    }
}

fn is_yes(reply: &[u8]) -> bool {
    decode_answer::<()>(reply).is_ok()
}

fn encode<T: serde::Serialize>(value: &T) -> Vec<u8> {
    postcard::to_allocvec(value).expect("plain data")
}
