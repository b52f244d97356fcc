//! Worlds that a seed draws: a rollout of a good version while the hub is off or stands still for minutes, devices lose their power or
//! their network for a while, one lies, the owner types at two terminals, and somebody with a bad key asks without end.
//!
//! The promise: nobody's absence but a device's own, and nobody's word but a device's own, takes a healthy device back.

use tenure_hal::simulated::Random;
use tenure_hub::{ServiceCall, Storage as _};
use tenure_wire::PublicKey;
use tenure_wire::hub::{Answer, HubRefusal, Request, Response, function};
use tenure_wire::rollout::{Seen, Sight, Work, WorkQuery};

use super::NAMES;
use super::rig::{Fleet, package};

/// How many things happen, and how long it is quiet after each, in seconds.
const HAPPENINGS: usize = 40;
const PAUSE_S: u64 = 12;
/// A device that is away for as long is still listed.
const AWAY_S: u64 = 20;
/// The device that lies, in the last stage.
const LIAR: usize = 4;
const BAD_KEY: PublicKey = PublicKey([66; 32]);

struct World {
    fleet: Fleet,
    random: Random,
    id: i64,
    has_lied: bool,
    /// How often the hub was away, and how often something else happened.
    absences: usize,
    others: usize,
}

impl World {
    fn new(seed: u64, hears: bool) -> Self {
        let mut fleet = Fleet::new(&NAMES);
        fleet.hears = hears;
        let good = package("1.1.0", false);
        fleet.push(&good);
        let id = fleet.start(&good, &NAMES);
        let random = Random::new(seed ^ 0xF1EE7);
        Self { fleet, random, id, has_lied: false, absences: 0, others: 0 }
    }

    fn happen(&mut self) {
        let device = self.random.between(0..=NAMES.len() as u64 - 1) as usize;
        let what = self.random.between(0..=6);
        self.absences += usize::from(what < 2);
        self.others += usize::from(what >= 2);
        match what {
            // Longer than a record lasts, and than a device may be silent in the middle of its update.
            0 => self.be_away(61, 200),
            1 => self.be_away(601, 700),
            2 => self.fleet.restart_device(device),
            3 => {
                self.fleet.devices[device].is_online = false;
                self.fleet.pass(AWAY_S);
                self.fleet.devices[device].is_online = true;
            }
            4 => self.lie(),
            5 => self.type_at_two_terminals(),
            _ => self.ask_with_a_bad_key(),
        }
        self.fleet.pass(PAUSE_S);
    }

    fn be_away(&mut self, least_s: u64, most_s: u64) {
        self.fleet.hub_is_away = true;
        let away_s = self.random.between(least_s..=most_s);
        self.fleet.pass(away_s);
        // Otherwise it stood still, as a paused guest does, and wakes where it was.
        if self.random.between(0..=1) == 0 {
            self.fleet.restart_hub();
        }
        self.fleet.hub_is_away = false;
    }

    /// A device that nobody asked to update says that it refuses.
    fn lie(&mut self) {
        let state = self.state_of(LIAR);
        if state != "waiting" {
            return;
        }
        let sight = Sight::Refused { reason: "because I say so".into() };
        let query = WorkQuery { seen: Some(Seen { rollout: self.id as u64, sight }), labels: None };
        let key = self.fleet.devices[LIAR].node.device_machine();
        let answer: Answer<Work> =
            self.call(key, function::WORK, &postcard::to_allocvec(&query).unwrap());
        assert!(answer.is_ok(), "it is a listed device: {answer:?}");
        self.has_lied = true;
    }

    /// One terminal pauses the rollout, the other one resumes it, both look at it, and both ask for the same again.
    fn type_at_two_terminals(&mut self) {
        for act in ["pause", "pause", "resume", "resume"] {
            let path = format!("/v1/rollouts/{}/{act}", self.id);
            let (status, answer) = self.fleet.ask("POST", &path, &[]);
            assert!([200, 409].contains(&status), "{act}: {status} {answer}");
            self.look();
        }
    }

    /// Everything that a key which nobody knows may try.
    fn ask_with_a_bad_key(&mut self) {
        let query = WorkQuery { seen: None, labels: None };
        let query = postcard::to_allocvec(&query).unwrap();
        let rollback = format!("/v1/rollouts/{}/roll-back", self.id);
        for path in ["/v1/devices", "/v1/rollouts", &rollback, "/v2/counter/tags/list"] {
            for _ in 0..20 {
                let work: Answer<Work> = self.call(BAD_KEY, function::WORK, &query);
                assert_eq!(work.err(), Some(HubRefusal::Stranger));
                let request = Request {
                    pass: "made up".into(),
                    method: "POST".into(),
                    path: path.into(),
                    headers: Vec::new(),
                    body: vec![0; 64],
                };
                let request = postcard::to_allocvec(&request).unwrap();
                let answer: Answer<Response> = self.call(BAD_KEY, function::REQUEST, &request);
                assert_eq!(answer.err(), Some(HubRefusal::Pass), "{path}");
            }
        }
    }

    fn call<T: serde::de::DeserializeOwned>(
        &mut self,
        peer: PublicKey,
        function: &str,
        parameter: &[u8],
    ) -> T {
        let (unix_s, key) = (self.fleet.unix_s(), self.fleet.hub.key());
        let database = &mut self.fleet.hub.storage().database;
        let call = ServiceCall { peer: &peer, hub: &key, function, parameter, unix_s };
        let answer = database.call(&call).unwrap().unwrap();
        database.commit().unwrap();
        postcard::from_bytes(&answer).unwrap()
    }

    fn state_of(&self, device: usize) -> String {
        let name = NAMES[device];
        let query = format!("SELECT state FROM rollout_devices WHERE device = '{name}'");
        self.fleet.rows(&query).pop().unwrap()
    }

    /// Looks at the rollout, which must be on its way or done, with each device in one state.
    fn look(&mut self) -> bool {
        let rollout = self.fleet.rollout(self.id);
        let state = rollout["state"].as_str().unwrap();
        assert!(["running", "paused", "done"].contains(&state), "it was taken back: {rollout}");
        let states: Vec<String> = (0..NAMES.len()).map(|device| self.state_of(device)).collect();
        for (device, state) in states.iter().enumerate() {
            let may_fail = device == LIAR && self.has_lied;
            let is_well = !["failed", "reverting", "reverted"].contains(&state.as_str());
            assert!(is_well || may_fail, "{} was taken back: {states:?} {rollout}", NAMES[device]);
        }
        let kinds = ["waiting", "updating", "soaking", "healthy", "failed"];
        let counted: u64 = kinds.iter().filter_map(|kind| rollout["devices"][kind].as_u64()).sum();
        assert_eq!(counted, NAMES.len() as u64, "{rollout}");
        state == "done"
    }

    /// Runs to the end: the rollout is done, and each device but one that refused has the new version.
    fn run(mut self) -> (usize, usize) {
        for _ in 0..HAPPENINGS {
            self.happen();
            self.look();
        }
        self.fleet.drive(self.id);
        assert!(self.look(), "it is done in the end: {}", self.fleet.rollout(self.id));
        let refused = self.state_of(LIAR) == "failed";
        for (device, version) in self.fleet.versions().iter().enumerate() {
            let has = if device == LIAR && refused { "1.0.0" } else { "1.1.0" };
            assert_eq!(version, has, "{}", NAMES[device]);
        }
        (self.absences, self.others)
    }
}

#[test]
fn rollout_of_a_good_version_takes_no_healthy_device_back_whoever_is_away_or_lies() {
    let (mut absences, mut others) = (0, 0);
    for seed in 1..=3 {
        let (away, beside) = World::new(seed, true).run();
        (absences, others) = (absences + away, others + beside);
    }
    assert!(absences > 15 && others > 40, "{absences} absences, and {others} other happenings");
}

/// The mistake that the worlds look for: a hub that takes its own absence for that of its devices.
#[test]
#[should_panic(expected = "was taken back")]
fn hub_that_takes_its_own_absence_for_its_devices_is_found() {
    for seed in 1..=3 {
        World::new(seed, false).run();
    }
}
