//! The life of a few devices, told to a hub by a way on which statements fail, connections break and answers to commits are
//! lost, and to others by a calm one.

use super::world;

use tenure_crypto::sha256;
use tenure_directory::{enrol, seal};
use tenure_hal::simulated::socket_at;
use tenure_hub::{Accepted, Kept, Storage as _};
use tenure_testbed::Shaken;
use tenure_wire::control::RoomStatus;
use tenure_wire::directory::{DeviceRecord, Enrolment};
use tenure_wire::hub::{Answer, Receipts, Taken, function};
use tenure_wire::report::{DeviceReport, FaultReport, MachineReport, Report, Reported};
use tenure_wire::{Address, Digest, Epoch, PublicKey};
use world::place::Place;
use world::{ENDED, World, device, owner, receipt};

const DEVICES: [(u8, &str); 3] = [(10, "attic"), (11, "cellar"), (12, "shed")];
const ROUNDS_MIN: u64 = 6;
const ROUNDS_MAX: u64 = 200;

/// What is kept of it all, but for the numbers that a database gives.
const KEPT: [&str; 8] = [
    "SELECT name, owner, device_key, machines, first_unix_s, heard_unix_s, expires_unix_s FROM devices ORDER BY name",
    "SELECT number, unix_s, who, action, subject, detail, owner FROM audit ORDER BY number",
    "SELECT device_key, machine, number, digest, previous, taken_unix_s, fuel FROM receipts ORDER BY 1, 2, 3",
    "SELECT device, boot, number, taken_unix_s, uptime_s FROM reports ORDER BY device",
    "SELECT device, machine, calls, fuel, package_calls, package_fuel FROM machine_reports ORDER BY 1, 2",
    "SELECT device, span_s, from_unix_s, machine, calls, fuel, faults FROM machine_use ORDER BY 1, 2, 3, 4",
    "SELECT device, boot, number, machine, happened_unix_s, text FROM faults ORDER BY 1, 2, 3",
    "SELECT name, value FROM figures ORDER BY name",
];

#[test]
fn nothing_acknowledged_is_lost_and_nothing_is_done_twice() {
    let Some(place) = Place::shaken_by(Shaken::losing_commits) else { return };
    let mut shaken = World::at(place);
    let mut teller = Teller::default();
    let mut rounds = 0;
    while rounds < ROUNDS_MIN || !has_met_everything(&shaken) {
        teller.tell(&mut shaken, rounds);
        rounds += 1;
        assert!(rounds < ROUNDS_MAX, "{:?}", shaken.place.way());
    }
    let kept = kept(&shaken);
    for calm in [Place::on_a_server(), Some(Place::in_a_folder())].into_iter().flatten() {
        let (mut calm, mut teller) = (World::at(calm), Teller::default());
        (0..rounds).for_each(|round| teller.tell(&mut calm, round));
        assert_eq!(kept, self::kept(&calm), "after {rounds} rounds");
    }
}

fn has_met_everything(world: &World) -> bool {
    let way = world.place.way().unwrap();
    way.commits_lost() > 0 && way.met().iter().all(|times| *times > 0)
}

/// The rows of it all, and the end of the audit log, whose hash covers all of its entries.
fn kept(world: &World) -> Vec<String> {
    let mut rows: Vec<String> = KEPT.iter().flat_map(|query| world.place.rows(query)).collect();
    let entry = world.place.read(|| world.database.verify_audit());
    rows.push(format!("{entry:?}"));
    rows
}

/// What devices tell.
#[derive(Default)]
struct Teller {
    /// The last receipt of each.
    previous: [Option<Digest>; DEVICES.len()],
}

impl Teller {
    /// Each device renews its record, reports, and hands in a receipt, once a minute. Who hears no answer does so again.
    fn tell(&mut self, world: &mut World, round: u64) {
        let at = ENDED + 60 * round;
        for (index, (number, name)) in DEVICES.into_iter().enumerate() {
            let (kept, record) = record(number, name, round);
            world.keep(|world| {
                let ends_unix_s = record.expires_unix_s;
                let accepted = Accepted { kept: &kept, record: &record, unix_s: at, ends_unix_s };
                // The commit fails as well.
                let _ = world.database.put(&accepted);
            });
            let key: PublicKey = device(number).device_secret().public_key();
            let reported: Answer<Reported> =
                world.call_from(key, function::REPORT, &report(round), at);
            reported.unwrap();
            let previous = self.previous[index].unwrap_or(Digest([0; 32]));
            let bytes = receipt(number, 1, 1, round, previous, 5 + round);
            self.previous[index] = Some(sha256(&[&bytes]));
            let receipts = Receipts { receipts: vec![bytes] };
            let taken: Answer<Taken> = world.call_from(key, function::TAKE_RECEIPTS, &receipts, at);
            let taken = taken.unwrap();
            assert_eq!(taken.new + taken.known, 1);
        }
    }
}

fn record(number: u8, name: &str, round: u64) -> (Kept, DeviceRecord) {
    let (owner, seed) = (owner(1), device(number));
    let device_key = seed.device_signing_key().verifying_key();
    let enrolment = Enrolment { device: name.parse().unwrap(), device_key, number: 1 };
    // Its machines change now and then.
    let machines = 1 + (round / 3) % 2;
    let machine = |index| (format!("m{index}").parse().unwrap(), PublicKey([number; 32]));
    let record = DeviceRecord {
        owner: owner.verifying_key(),
        enrolment_signature: enrol(&owner, &enrolment),
        enrolment,
        sequence: 1 + round,
        expires_unix_s: ENDED + 60 * round + 60,
        epoch: Epoch([7; 8]),
        addresses: Vec::new(),
        device_machine: seed.device_secret().public_key(),
        machines: (0..machines).map(machine).collect(),
        succession: None,
    };
    let signed = seal(&seed.device_signing_key(), &record);
    (Kept { record: signed, seen_at: Address::Udp(socket_at(3)) }, record)
}

fn report(round: u64) -> Report {
    let room = RoomStatus {
        memory_bytes_promised: 1_000,
        memory_bytes_max: 2_000,
        store_bytes_used: 950,
        store_bytes_max: 1_000,
        code_bytes_used: 5,
        code_bytes_max: 6,
        store_erases: 1,
    };
    let machine = MachineReport {
        name: "m0".parse().unwrap(),
        package: Digest([5; 32]),
        version: "1.0.0".parse().unwrap(),
        state: "idle".into(),
        repute: "good".into(),
        queue_length: 0,
        tasks_done: 10 * round,
        fuel_used: 1_000 * round,
        waited_max_us: 7,
        memory_bytes: 64,
        memory_bytes_max: 65_536,
        stored_bytes: 0,
        metrics: vec![("rate".parse().unwrap(), -4)],
    };
    let fault = FaultReport {
        number: round,
        machine: "m0".parse().unwrap(),
        unix_s: None,
        text: format!("unreachable {round}"),
    };
    let version = "0.1.0".into();
    Report {
        boot: 3,
        number: round,
        device: DeviceReport { version, uptime_s: 60 * round, room, heap: None, neighbours: None },
        machines: vec![machine],
        faults: vec![fault],
        faults_lost: 0,
    }
}
