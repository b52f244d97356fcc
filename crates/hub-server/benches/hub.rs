//! A hub with many devices: its start, their reports by datagrams in sessions, what it stores of them, and its pages.
//!
//! `cargo xtask bench hub` measures it with 1,000, 10,000 and 100,000 listed devices, and with 100,000 on PostgreSQL. A sample
//! of them reports, each from an endpoint of its own, with real datagrams that are handed over in memory; their own work
//! isn't in the figures. The clock of sessions is a counter, so that no bound on the pace of handshakes is in them either.
//! Pages are asked for over loopback, one at a time.

mod both;

use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, Instant as Stopwatch};

use tenure_bench_report::{Program, Row, Rows};
use tenure_crypto::{Seed, machine_id};
use tenure_directory::{enrol, seal};
use tenure_hal::simulated::{Sequence, socket_at};
use tenure_hal::{Instant, UnixTime};
use tenure_hub::{Accepted, Config, Hub, Kept, Moment, ServiceCall, Storage as _};
use tenure_hub_server::{Database, Location, Pages, Server, Visitors, serve, sign_in_request};
use tenure_pages::{Entry, NoPage, Visits};
use tenure_rpc::{Endpoint, Event, OutgoingCall};
use tenure_testbed::Cluster;
use tenure_wire::directory::{DeviceRecord, Enrolment};
use tenure_wire::hub::{Access, Answer, Pass, Scope, function};
use tenure_wire::report::Reported;
use tenure_wire::{Address, Epoch, PublicKey, Target};

use both::{MACHINES, owner, report, seed, unix_s};

const HUB: Address = Address::Udp(socket_at(0));
/// The key by which a command speaks to the hub.
const SESSION: PublicKey = PublicKey([4; 32]);
/// The most devices whose reports are timed, and how many of them report between two commits.
const SAMPLE_MAX: u32 = 1_000;
const BATCH: usize = 32;
/// The time between two looks of a device, and the most of them until all reports of a batch are answered.
const ROUND: Duration = Duration::from_millis(20);
const ROUNDS_MAX: usize = 5_000;
/// How often a page is asked for.
const VISITS: usize = 40;
/// The devices that report for a day, each minute.
const DAY_DEVICES: u32 = 50;
const DAY_MINUTES: u64 = 24 * 60;

fn main() -> ExitCode {
    let help = "Measures a hub: hub [--json] [1000] [10000] [100000] [100000-postgres] [day]\n";
    let targets = &["1000", "10000", "100000", "100000-postgres", "day"];
    Program { help, targets }.run(|target, rows| match target {
        "day" => measure_day(rows),
        target => {
            let (count, is_on_a_server) = match target.split_once('-') {
                Some((count, _)) => (count, true),
                None => (target, false),
            };
            let count = count.parse().map_err(|_| "no count of devices")?;
            measure(count, &Records::new(is_on_a_server)?, rows)
        }
    })
}

/// Where a hub keeps its records until this is dropped.
enum Records {
    Folder(tempfile::TempDir),
    Server(Cluster, String),
}

impl Records {
    fn new(is_on_a_server: bool) -> Result<Self, String> {
        if !is_on_a_server {
            return tempfile::tempdir().map(Self::Folder).map_err(|error| error.to_string());
        }
        let cluster = Cluster::start_on_the_disk().ok_or("no PostgreSQL")?;
        let database = cluster.database();
        Ok(Self::Server(cluster, database))
    }

    fn location(&self) -> Result<Location, String> {
        match self {
            Self::Folder(folder) => Ok(folder.path().join("hub.sqlite").into()),
            Self::Server(cluster, database) => Server::at(&cluster.address(database), None)
                .map(Location::server)
                .map_err(|error| error.to_string()),
        }
    }

    fn engine(&self) -> &'static str {
        match self {
            Self::Folder(_) => "",
            Self::Server(..) => " on PostgreSQL",
        }
    }
}

fn row(count: u32, engine: &str, metric: &str, unit: &'static str, value: f64) -> Row {
    Row {
        bench: format!("hub/{count} devices{engine}"),
        target: "host".into(),
        subject: "tenure".into(),
        metric: metric.into(),
        unit,
        value,
    }
}

fn address(number: u32) -> Address {
    Address::Udp(socket_at(number + 1))
}

fn name(number: u32) -> String {
    format!("device-{number}")
}

/// A database in which so many devices are listed.
fn filled(location: &Location, count: u32) -> Result<Database, String> {
    let mut database = Database::open(location).map_err(|error| error.to_string())?;
    for number in 0..count {
        let (kept, record) = listed(number)?;
        let accepted = Accepted {
            kept: &kept,
            record: &record,
            unix_s: unix_s(),
            ends_unix_s: record.expires_unix_s,
        };
        database.put(&accepted).map_err(|error| error.reason)?;
        if number % 1_000 == 999 {
            database.commit().map_err(|error| error.reason)?;
        }
    }
    database.commit().map_err(|error| error.reason)?;
    Ok(database)
}

fn listed(number: u32) -> Result<(Kept, DeviceRecord), String> {
    let (owner, seed) = (owner(), seed(number));
    let device_key = seed.device_signing_key().verifying_key();
    let device = name(number).parse().map_err(|_| "a name")?;
    let enrolment = Enrolment { device, device_key, number: 1 };
    let machine = |name: &str| Some((name.parse().ok()?, PublicKey([7; 32])));
    let record = DeviceRecord {
        owner: owner.verifying_key(),
        enrolment_signature: enrol(&owner, &enrolment),
        enrolment,
        sequence: 1,
        expires_unix_s: unix_s() + 24 * 60 * 60,
        epoch: Epoch([7; 8]),
        addresses: Vec::new(),
        device_machine: seed.device_secret().public_key(),
        machines: MACHINES.into_iter().filter_map(machine).collect(),
        succession: None,
    };
    let signed = seal(&seed.device_signing_key(), &record);
    Ok((Kept { record: signed, seen_at: address(number) }, record))
}

/// The report number `number` of a device, as it is handed in.
fn encoded(number: u64) -> Result<Vec<u8>, String> {
    postcard::to_allocvec(&report(number)).map_err(|error| error.to_string())
}

fn measure(count: u32, records: &Records, rows: &mut Rows) -> Result<(), String> {
    let (location, engine) = (records.location()?, records.engine());
    drop(filled(&location, count)?);
    let row = |metric: &str, unit, value| row(count, engine, metric, unit, value);
    let resident = resident_bytes();
    let began = Stopwatch::now();
    let database = Database::open(&location).map_err(|error| error.to_string())?;
    let mut load = Load::new(database, count)?;
    rows.push(row("from the start until it listens", "s", began.elapsed().as_secs_f64()));
    let grown = resident_bytes().saturating_sub(resident) as f64 / f64::from(count);
    rows.push(row("memory of a listed device", "bytes", grown));
    let sample: Vec<u32> = (0..count).step_by((count / SAMPLE_MAX).max(1) as usize).collect();
    for (number, session) in [(1, "first report, with its handshake"), (2, "report in a session")] {
        let mut turns = load.report(&sample, number)?;
        let total: Duration = turns.iter().sum();
        let each_us = total.as_secs_f64() * 1e6 / sample.len() as f64;
        rows.push(row(session, "µs", each_us));
        let p99 = percentile(&mut turns, 99).as_secs_f64() * 1e3;
        let metric = format!("{session}: p99 of an answer, {BATCH} devices a turn");
        rows.push(row(&metric, "ms", p99));
    }
    let token = load.token()?;
    let pages = Pages {
        database: location,
        tariff: None,
        is_by_tls: false,
        is_by_proxy: false,
        running: load.hub.storage().running(),
    };
    let visitors = Visitors {
        owners: NoMachine,
        guests: NoMachine,
        strangers: None,
        ticket_key: Seed::from_bytes(&[0; 32]),
    };
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0));
    let pages = listener.and_then(|listener| serve(listener, pages, visitors));
    let pages = pages.map_err(|error| error.to_string())?;
    let device = format!("/v1/machines?device={}", name(count / 2));
    for path in ["/devices", "/machines", "/alarms", &device, "/metrics"] {
        let visit = |_| visit(pages, path, &token);
        let mut times = (0..VISITS).map(visit).collect::<Result<Vec<_>, _>>()?;
        let shown = path.split('=').next().unwrap_or_default();
        let p95 = percentile(&mut times, 95).as_secs_f64() * 1e3;
        rows.push(row(&format!("p95 of {shown}"), "ms", p95));
    }
    Ok(())
}

/// Machines whose pages nobody asks for here.
#[derive(Clone)]
struct NoMachine;

impl Visits for NoMachine {
    async fn call(
        &self,
        _: Target,
        _: Vec<u8>,
        _: std::time::Instant,
    ) -> Result<Option<Vec<u8>>, NoPage> {
        Err(NoPage::Unknown)
    }

    async fn entries(&self) -> Result<Vec<Entry>, NoPage> {
        Ok(Vec::new())
    }
}

/// The time that `part` of a hundred don't exceed.
fn percentile(times: &mut [Duration], part: usize) -> Duration {
    times.sort_unstable();
    times.get((times.len() * part).div_ceil(100).saturating_sub(1)).copied().unwrap_or_default()
}

/// The resident memory of this process (proc_pid_statm(5)).
fn resident_bytes() -> u64 {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages = statm.split(' ').nth(1).and_then(|pages| pages.parse::<u64>().ok());
    pages.unwrap_or(0) * 4096
}

/// A hub, and devices that report to it.
struct Load {
    hub: Hub<Database>,
    began_unix_s: u64,
    now: Instant,
    entropy: Sequence,
    devices: Vec<(u32, Endpoint<Address>)>,
}

impl Load {
    fn new(mut database: Database, count: u32) -> Result<Self, String> {
        let mut entropy = Sequence(1);
        database.admit(vec![owner().verifying_key()], Some(String::new()));
        let owners = vec![owner().verifying_key()];
        let config = Config { owners, ..Config::for_devices(count as usize) };
        let began_unix_s = unix_s();
        let unix_time = UnixTime { seconds: began_unix_s };
        let mut moment = Moment { now: Instant::BOOT, unix_time, entropy: &mut entropy };
        let hub = Hub::open(config, database, &mut moment).map_err(|error| error.to_string())?;
        Ok(Self { hub, began_unix_s, now: Instant::BOOT, entropy, devices: Vec::new() })
    }

    /// Lets each device send its report number `number`; returns how long the hub took for each turn of a batch.
    fn report(&mut self, sample: &[u32], number: u64) -> Result<Vec<Duration>, String> {
        if self.devices.is_empty() {
            for number in sample {
                let config = tenure_rpc::Config::default();
                let endpoint = Endpoint::new(config, self.now, &mut self.entropy);
                let mut endpoint = endpoint.map_err(|_| "an endpoint")?;
                endpoint.add_machine(seed(*number).device_secret()).map_err(|_| "a machine")?;
                self.devices.push((*number, endpoint));
            }
        }
        let mut times = Vec::new();
        let mut devices = std::mem::take(&mut self.devices);
        for batch in devices.chunks_mut(BATCH) {
            times.push(self.report_batch(batch, number)?);
        }
        self.devices = devices;
        Ok(times)
    }

    /// The hub's time from the first datagram of a batch of reports until the last answer has left.
    fn report_batch(
        &mut self,
        batch: &mut [(u32, Endpoint<Address>)],
        number: u64,
    ) -> Result<Duration, String> {
        let key = self.hub.key();
        // Enough for the bound on a host's handshakes, which all have here.
        self.now = self.now + Duration::from_secs(2);
        for (device, endpoint) in &mut *batch {
            let call = OutgoingCall {
                function: function::REPORT.into(),
                parameter: Some(encoded(number)?),
                deadline: self.now + Duration::from_secs(60),
                attempts: 20,
            };
            let own = machine_id(&seed(*device).device_secret().public_key());
            let called = endpoint.call(self.now, &mut self.entropy, &own, &key, HUB, None, call);
            called.map_err(|_| "a call")?;
        }
        let (mut spent, mut answers) = (Duration::ZERO, 0);
        for _ in 0..ROUNDS_MAX {
            if answers == batch.len() {
                return Ok(spent);
            }
            self.now = self.now + ROUND;
            let mut sent = Vec::new();
            for (device, endpoint) in &mut *batch {
                endpoint.poll(self.now, &mut self.entropy);
                sent.extend(
                    std::iter::from_fn(|| endpoint.transmit()).map(|(_, one)| (*device, one)),
                );
            }
            let (answered, time) = self.turn(sent);
            spent += time;
            for (to, datagram) in answered {
                let found = batch.iter_mut().find(|(device, _)| address(*device) == to);
                let Some((_, endpoint)) = found else { continue };
                endpoint.receive(self.now, &mut self.entropy, HUB, &datagram);
                while let Some(event) = endpoint.event() {
                    let Event::CallDone { result, .. } = event else { continue };
                    let bytes = result.map_err(|error| format!("{error:?}"))?.unwrap_or_default();
                    let answer: Answer<Reported> =
                        postcard::from_bytes(&bytes).map_err(|error| error.to_string())?;
                    answer.map_err(|error| error.to_string())?;
                    answers += 1;
                }
            }
        }
        Err(format!("{} of {} reports have no answer", batch.len() - answers, batch.len()))
    }

    /// Hands datagrams to the hub as its process does; returns its own, and the time that it took.
    fn turn(&mut self, sent: Vec<(u32, Vec<u8>)>) -> (Vec<(Address, Vec<u8>)>, Duration) {
        // A device reports once a second at most.
        let seconds = self.began_unix_s + self.now.as_micros() / 1_000_000;
        let unix_time = UnixTime { seconds };
        let mut moment = Moment { now: self.now, unix_time, entropy: &mut self.entropy };
        let began = Stopwatch::now();
        for (device, datagram) in sent {
            self.hub.receive(&mut moment, address(device), &datagram);
        }
        self.hub.poll(&mut moment);
        let answers: Vec<_> = std::iter::from_fn(|| self.hub.transmit()).collect();
        (answers, began.elapsed())
    }

    /// A token that reads.
    fn token(&mut self) -> Result<String, String> {
        let access = Access::Token {
            name: "bench".parse().map_err(|_| "a name")?,
            days: 1,
            scopes: vec![Scope::Read],
        };
        let hub = self.hub.key();
        let request = sign_in_request(&owner(), hub, SESSION, access);
        let parameter = postcard::to_allocvec(&request).map_err(|error| error.to_string())?;
        let pass: Answer<Pass> =
            call(self.hub.storage(), (&SESSION, &hub), function::SIGN_IN, &parameter, unix_s())?;
        Ok(pass.map_err(|error| error.to_string())?.secret)
    }
}

/// Calls a function of the database and commits.
fn call<T: serde::de::DeserializeOwned>(
    database: &mut Database,
    (peer, hub): (&PublicKey, &PublicKey),
    function: &str,
    parameter: &[u8],
    unix_s: u64,
) -> Result<T, String> {
    let call = ServiceCall { peer, hub, function, parameter, unix_s };
    let answer = database.call(&call).map_err(|error| format!("{error:?}"))?.unwrap_or_default();
    database.commit().map_err(|error| error.reason)?;
    postcard::from_bytes(&answer).map_err(|error| error.to_string())
}

/// Asks for a page, and returns how long that took.
fn visit(pages: SocketAddr, path: &str, token: &str) -> Result<Duration, String> {
    let failed = |error: std::io::Error| error.to_string();
    let began = Stopwatch::now();
    let mut stream = TcpStream::connect(pages).map_err(failed)?;
    let request = format!(
        "GET {path} HTTP/1.1\r\nhost: hub\r\nconnection: close\r\nauthorization: Bearer {token}\r\n\r\n"
    );
    stream.write_all(request.as_bytes()).map_err(failed)?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).map_err(failed)?;
    let time = began.elapsed();
    if answer.starts_with("HTTP/1.1 200") { Ok(time) } else { Err(format!("{path}: {answer}")) }
}

/// Lets devices report for a day, and says how much the database has grown.
fn measure_day(rows: &mut Rows) -> Result<(), String> {
    let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
    let path = folder.path().join("hub.sqlite");
    let mut database = filled(&path.clone().into(), DAY_DEVICES)?;
    let began_unix_s = unix_s() - DAY_MINUTES * 60;
    let keys: Vec<PublicKey> =
        (0..DAY_DEVICES).map(|number| seed(number).device_secret().public_key()).collect();
    let before = bytes_of(&path)?;
    for minute in 0..DAY_MINUTES {
        let (unix_s, parameter) = (began_unix_s + minute * 60, encoded(minute + 1)?);
        for peer in &keys {
            let call = ServiceCall {
                peer,
                hub: &SESSION,
                function: function::REPORT,
                parameter: &parameter,
                unix_s,
            };
            database.call(&call).map_err(|error| format!("{error:?}"))?;
        }
        database.commit().map_err(|error| error.reason)?;
    }
    drop(database);
    let grown = bytes_of(&path)?.saturating_sub(before) as f64 / f64::from(DAY_DEVICES);
    rows.push(row(
        DAY_DEVICES,
        "",
        "stored of a device that reports each minute, after a day",
        "bytes",
        grown,
    ));
    Ok(())
}

/// The size of a database that nobody has open.
fn bytes_of(path: &Path) -> Result<u64, String> {
    let log = std::fs::metadata(path.with_extension("sqlite-wal")).map_or(0, |file| file.len());
    Ok(std::fs::metadata(path).map_err(|error| error.to_string())?.len() + log)
}
