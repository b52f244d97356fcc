//! `tenure hub`: the directory as a process.

use std::net::SocketAddr;
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use tenure_board_linux::{Durability, FileFlash, LinuxClock, LinuxEntropy, UdpLink, wait_any};
use tenure_hal::{Clock as _, Instant, Link as _, UnixTime};
use tenure_hub::{
    Config, FlashStorage, Fullness, Hub, Moment, Notice, Storage as _, TABLE_OF_DEVICES,
};
use tenure_hub_server::{
    Alarms, Certificates, Database, Entrance, Location, Rules, Running, Traces, Traffic,
    answer_beside,
};
use tenure_wire::carried::{self as connections, Shown};
use tenure_wire::console::LISTENS_ON;
use tenure_wire::printable::counted;
use tenure_wire::{Address, VerifyingKey};

use crate::home::{Home, keep_memory_private, parse_owner};
use crate::hub::receipts::read_tariff;
use crate::reach::network::{HUB_PORT, address_of, listener_at};
use crate::terminal::output::Output;
use crate::terminal::stop::Stop;
use carried::ByConnections;
use database::DatabaseArguments;
use devices_max::DevicesMax;
use health::HealthArguments;
use log::Log;
use moving::MoveArguments;
use pages::{Served, Serving};

mod alarms;
mod carried;
mod database;
mod devices_max;
mod health;
mod log;
mod moving;
mod pages;

/// The database of a hub.
const DATABASE: &str = "hub.sqlite";
/// The flash file in which earlier versions kept their records.
const FLASH: &str = "hub.flash";
/// The name of that file once its records are in the database.
const FLASH_IMPORTED: &str = "hub.flash.imported";
/// The bytes of a page of the database.
const PAGE_BYTES: u64 = 4096;
/// The most datagrams that are taken before what is due is done: more than a socket usually holds, so that none is lost
/// while handshakes are computed.
const DATAGRAMS_PER_TURN: usize = 256;
/// The datagrams that the socket is to hold while a turn takes long, in bytes; the system may let it hold fewer.
const SOCKET_BYTES: usize = 8 << 20;
/// How often it is measured whether the hub hears its devices.
const MEASURED_EVERY: std::time::Duration = std::time::Duration::from_secs(1);
/// The longest that the loop sleeps. Ctrl-C ends the wait at once, but for one that comes between a look
/// at it and the wait.
const NAP: std::time::Duration = std::time::Duration::from_secs(2);

/// Run a hub: the directory in which devices register and find one another.
///
/// Devices pin its key if they are told ADDR#KEY. Say whose devices it lists: whoever can reach a hub that is
/// open to all can put devices there, within a quota of each owner and each host.
///
/// Example: tenure hub --data hub --owner own --listen 127.0.0.1:7369
#[derive(clap::Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub struct Arguments {
    #[command(subcommand)]
    command: Option<Command>,
    #[command(flatten)]
    run: RunArguments,
}

#[derive(clap::Subcommand)]
enum Command {
    Backup(BackupArguments),
    Health(HealthArguments),
    Move(MoveArguments),
    Restore(RestoreArguments),
    VerifyAudit(VerifyArguments),
}

/// Copy the database of a hub that may be running to a new file.
///
/// The copy is of one moment, and holds the hub's seed: keep it as you keep the hub. `tenure hub restore` puts it back. A disk that
/// wouldn't have twice the database's size left for the hub takes no copy.
///
/// Example: tenure hub backup --data hub --to hub-2026-11-22.sqlite
#[derive(clap::Args)]
struct BackupArguments {
    /// The hub's folder.
    #[arg(long, value_name = "DIR")]
    data: PathBuf,
    /// The file to make.
    #[arg(long, value_name = "FILE")]
    to: PathBuf,
}

/// Put a copy in the place of the database of a hub that doesn't run.
///
/// The copy is checked first, and stays where it is. What the hub had until then is gone: back it up before, if you want it.
///
/// Example: tenure hub restore --data hub --from hub-2026-11-22.sqlite
#[derive(clap::Args)]
struct RestoreArguments {
    /// The hub's folder; made if it isn't there.
    #[arg(long, value_name = "DIR")]
    data: PathBuf,
    /// The copy, as `tenure hub backup` made it.
    #[arg(long, value_name = "FILE")]
    from: PathBuf,
}

/// Check that nobody changed the audit log of a hub or of a backup.
///
/// Prints its last number and hash. Keep both elsewhere: entries that were cut off at the end show only by them.
///
/// Example: tenure hub verify-audit hub-2026-11-22.sqlite
#[derive(clap::Args)]
struct VerifyArguments {
    /// The database: a backup, or the `hub.sqlite` of a hub.
    #[arg(
        value_name = "DATABASE",
        required_unless_present_any = ["database", "database_file"],
        conflicts_with = "database_file"
    )]
    file: Option<PathBuf>,
    #[command(flatten)]
    server: DatabaseArguments,
}

/// The arguments of a hub that runs.
#[derive(clap::Args)]
struct RunArguments {
    /// The folder that holds the hub; made if it isn't there.
    #[arg(long, value_name = "DIR", required_unless_present_any = ["database", "database_file"])]
    data: Option<PathBuf>,
    #[command(flatten)]
    server: DatabaseArguments,
    /// The most MiB that the database takes; beyond it, writes are refused as on a full disk.
    #[arg(long, value_name = "MIB", default_value = "4096", value_parser = clap::value_parser!(u64).range(1..=16 << 20))]
    disk_max: u64,
    /// Where to listen.
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:7369")]
    listen: String,
    /// Serve pages and an API over HTTP there, to whom signs in with `tenure login`. For other computers give it a
    /// certificate, or put a proxy with TLS before it and name its address with --pages-url.
    #[arg(long, value_name = "ADDR")]
    pages: Option<SocketAddr>,
    /// Serve them over TLS with the certificate in this file: a chain in PEM, the hub's own first. It is read again
    /// when it changes.
    #[arg(long, value_name = "FILE", requires = "pages", requires = "tls_key")]
    tls_cert: Option<PathBuf>,
    /// The certificate's private key, in PEM.
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    tls_key: Option<PathBuf>,
    /// The address under which browsers reach the pages.
    #[arg(long, value_name = "URL", requires = "pages")]
    pages_url: Option<String>,
    /// Show the pages of machines also to those who aren't signed in, where a machine's lease lets everybody call
    /// (`callers = ["*"]`) or the hub for its guests.
    #[arg(long, requires = "pages")]
    guests: bool,
    /// Write a line to standard error for each request to the pages and the API, and for what fails; without it, for
    /// what fails alone.
    #[arg(long, value_name = "FORM", value_enum, requires = "pages")]
    log: Option<Log>,
    /// Send traces to this collector of OpenTelemetry, by OTLP over HTTP: its address, below which /v1/traces is.
    #[arg(long, value_name = "URL", env = "OTEL_EXPORTER_OTLP_ENDPOINT")]
    otlp: Option<String>,
    /// The prices of bills on the pages, as `tenure bill` takes them.
    #[arg(long, value_name = "FILE", requires = "pages")]
    tariff: Option<PathBuf>,
    /// Raise alarms by the rules in this file, and tell the servers that it names.
    #[arg(long, value_name = "FILE")]
    alarms: Option<PathBuf>,
    /// List only devices of this owner: as `tenure key --own` prints one, or the signing key alone, or `own` for your
    /// own; may be repeated.
    #[arg(long, value_name = "KEY", required_unless_present = "open")]
    owner: Vec<Whose>,
    /// List anybody's devices.
    #[arg(long, conflicts_with = "owner")]
    open: bool,
    /// The most kilobytes in a second that the hub relays between devices that nobody else gets through to, as behind a home's
    /// router, and others of their owner; `none` relays nothing.
    #[arg(long, value_name = "KB/S|none", default_value = "10000")]
    relay: RelayRate,
    /// With --open, the most devices of one owner, and of one host.
    #[arg(long, value_name = "COUNT", requires = "open")]
    quota: Option<usize>,
    /// The most devices that the hub lists, up to 1000000: those beyond are refused, and those that are listed go on. Without it
    /// there are as many as half of the memory of this computer, or of the hub's cgroup, has room for, from 1000 to 100000.
    #[arg(
        long,
        value_name = "COUNT",
        env = "TENURE_DEVICES_MAX",
        value_parser = clap::value_parser!(u64).range(1..=devices_max::MOST)
    )]
    devices_max: Option<u64>,
}

/// How much a hub relays.
#[derive(Clone, Copy, Debug)]
struct RelayRate {
    bytes_per_second: Option<u32>,
}

impl std::str::FromStr for RelayRate {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> anyhow::Result<Self> {
        if text == "none" {
            return Ok(Self { bytes_per_second: None });
        }
        let kilobytes: u32 = text.parse().context("neither a number of kilobytes nor `none`")?;
        let bytes = kilobytes.checked_mul(1_000).filter(|bytes| *bytes > 0);
        Ok(Self { bytes_per_second: Some(bytes.context("from 1 to 4294967 KB/s")?) })
    }
}

/// Whose devices a hub lists.
#[derive(Clone, Copy, Debug)]
enum Whose {
    /// Those of the user who starts it.
    Own,
    /// Those of the owner with this key.
    Key(VerifyingKey),
}

impl std::str::FromStr for Whose {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "own" => Ok(Self::Own),
            keys if keys.contains('/') => {
                parse_owner(keys).map(|owner| Self::Key(owner.verifying_key))
            }
            key => key.parse().map(Self::Key).map_err(|error| format!("`own`, or a key: {error}")),
        }
    }
}

/// Runs `tenure hub` until it is told to stop.
///
/// # Errors
/// The folder isn't a hub's, the address is taken, or the flash fails.
pub fn run(arguments: &Arguments, output: &Output) -> anyhow::Result<()> {
    match &arguments.command {
        Some(Command::Backup(backup)) => back_up(backup, output),
        Some(Command::Health(arguments)) => health::run(arguments, output),
        Some(Command::Move(arguments)) => moving::run(arguments, output),
        Some(Command::Restore(restore)) => put_back(restore, output),
        Some(Command::VerifyAudit(verify)) => verify_audit(verify, output),
        None => serve(&arguments.run, output),
    }
}

fn serve(arguments: &RunArguments, output: &Output) -> anyhow::Result<()> {
    keep_memory_private();
    let stop = Stop::on_signals()?;
    let devices_max = DevicesMax::choose(arguments.devices_max);
    let config = config(arguments, devices_max.count)?;
    let rules = arguments.alarms.as_deref();
    let rules = rules.map(|path| alarms::read(path, arguments.tariff.is_some())).transpose()?;
    // A port that is in use leaves no folder behind.
    let mut link = UdpLink::bind(address_of(&arguments.listen, HUB_PORT)?)?;
    link.hold(SOCKET_BYTES);
    // Another port, from which it looks whether devices answer others than their hub.
    let mut elsewhere = UdpLink::bind(SocketAddr::new(link.address().ip(), 0))?;
    let entrance = arguments.pages.map(|address| entrance(address, arguments)).transpose()?;
    log::begin(arguments.log);
    // Until the end, when what is left of them is sent.
    let _traces = arguments.otlp.as_deref().map(Traces::begin).transpose()?;
    let (clock, mut entropy) = (LinuxClock::start(), LinuxEntropy);
    check_clock(&clock)?;
    let mut database = open_database(arguments)?;
    let is_new = database.seed()?.is_none();
    let running = database.running();
    let unix_time = || UnixTime { seconds: running.unix_s() };
    // Before anybody asks by the pages: the silence until now proves nothing.
    running.hear(unix_time().seconds);
    let owners = config.owners.clone();
    let mut moment = Moment { now: clock.now(), unix_time: unix_time(), entropy: &mut entropy };
    let mut hub = Hub::open(config, database, &mut moment)?;
    running.tell_fullness(&hub.fullness());
    hub.storage().admit(owners.clone(), None);
    // Before anybody asks.
    hub.storage().end_former_owners();
    let serving = entrance.map(|entrance| serving(entrance, arguments)).transpose()?;
    // Connections come to the pages' port.
    let by_connections = serving.is_some().then(|| ByConnections::listen(&running)).transpose()?;
    let pages = serving.map(|serving| serving.start(hub.storage())).transpose()?;
    hub.storage().admit(owners, pages.as_ref().map(|pages| pages.url.clone()));
    if let Some(rules) = rules {
        watch(rules, arguments, &running)?;
    }
    answer_beside(hub.storage(), &location(arguments)?)?;
    announce(&hub, &devices_max, &link, pages.as_ref(), output);
    if is_new {
        announce_key(output);
    }
    let mut datagram = vec![0; 65_536];
    let mut ears = Ears::default();
    while !stop.is_requested() {
        let began = clock.now();
        hub.storage().check_place()?;
        let mut is_drained = false;
        for _ in 0..DATAGRAMS_PER_TURN {
            let Some((length, from)) = link.receive(&mut datagram)? else {
                is_drained = true;
                break;
            };
            ears.received += 1;
            // That is the address of a connection, or of nobody.
            if connections::host_of(&from).is_some() {
                continue;
            }
            let mut moment =
                Moment { now: clock.now(), unix_time: unix_time(), entropy: &mut entropy };
            hub.receive(&mut moment, from.into(), &datagram[..length]);
        }
        let mut moment = Moment { now: clock.now(), unix_time: unix_time(), entropy: &mut entropy };
        if let Some(by_connections) = &by_connections {
            by_connections.receive(&mut hub, &mut moment, DATAGRAMS_PER_TURN);
        }
        for _ in 0..DATAGRAMS_PER_TURN {
            let Some((length, from)) = elsewhere.receive(&mut datagram)? else { break };
            hub.receive_elsewhere(&moment, &from.into(), &datagram[..length]);
        }
        // Before anything is judged by it.
        ears.measure(&link, &hub, &running, &moment);
        hub.poll(&mut moment);
        // A hub that can't keep what devices say, or whose socket overflows, is as good as deaf: they aren't silent because
        // of that. Nor does one hear by a clock that shows a time which it can't be.
        if is_drained && hub.storage().keeps_records() && clock.unix_time().is_some() {
            running.hear(moment.unix_time.seconds);
        }
        running.tell_fullness(&hub.fullness());
        running.tell_relayed(hub.relay_counts());
        while let Some((to, datagram)) = hub.transmit() {
            // A datagram that isn't sent is one that is lost: it will be sent again.
            if let Address::Udp(to) = to
                && !running.carried().send(&to, &datagram)
            {
                let _ = link.send(&to, &datagram);
            }
        }
        while let Some((to, question)) = hub.question() {
            if let Address::Udp(to) = to {
                let _ = elsewhere.send(&to, &question);
            }
        }
        while let Some(notice) = hub.notice() {
            show(&notice, output);
        }
        let took = clock.now().since(began);
        ears.turn = ears.turn.max(took);
        // Who comes next is told to come later, if it was long.
        hub.took(took);
        let until = hub.poll_at().map_or(NAP, |at| at.since(clock.now()));
        let mut sockets: Vec<&dyn AsFd> = vec![&link, &elsewhere];
        sockets.extend(by_connections.as_ref().map(|by_connections| by_connections as &dyn AsFd));
        wait_any(&sockets, until.min(NAP))?;
    }
    hub.end();
    output.line("stopped", &serde_json::json!({ "event": "stopped" }));
    Ok(())
}

/// What comes to the hub's socket.
#[derive(Default)]
struct Ears {
    received: u64,
    dropped: u64,
    /// The system's count of those that were dropped, which begins anew at 2³².
    counted: u32,
    measured_at: Option<Instant>,
    /// The longest turn since then.
    turn: std::time::Duration,
}

impl Ears {
    /// Measures whether the hub hears its devices, now and then.
    fn measure(
        &mut self,
        link: &UdpLink,
        hub: &Hub<Database>,
        running: &Running,
        moment: &Moment<'_>,
    ) {
        if self.measured_at.is_some_and(|at| moment.now.since(at) < MEASURED_EVERY) {
            return;
        }
        self.measured_at = Some(moment.now);
        if let Some(counted) = link.dropped() {
            self.dropped += u64::from(counted.wrapping_sub(self.counted));
            self.counted = counted;
        }
        let unix_s = moment.unix_time.seconds;
        let (received, dropped) = (self.received, self.dropped);
        let (renewals, counts) = (hub.renewals(unix_s), hub.counts());
        let turn_ms = u64::try_from(std::mem::take(&mut self.turn).as_millis()).unwrap_or(u64::MAX);
        running.measure(unix_s, Traffic { received, dropped, renewals, counts, turn_ms });
    }
}

fn check_clock(clock: &LinuxClock) -> anyhow::Result<()> {
    if clock.unix_time().is_none() {
        bail!(
            "this computer's clock shows a time that it can't be: set it, and start the hub again"
        );
    }
    Ok(())
}

fn config(arguments: &RunArguments, devices_max: usize) -> anyhow::Result<Config> {
    let key_of = |whose: &Whose| match whose {
        Whose::Own => Ok(Home::from_environment()?.owner_key()?.verifying_key()),
        Whose::Key(key) => Ok(*key),
    };
    let owners = arguments.owner.iter().map(key_of).collect::<anyhow::Result<_>>()?;
    let relay_bytes_per_second = arguments.relay.bytes_per_second;
    let mut config = Config {
        owners,
        relay_bytes_per_second,
        looks_from_elsewhere: true,
        ..Config::for_devices(devices_max)
    };
    if let Some(quota) = arguments.quota {
        config.devices_per_owner_max = quota;
        config.devices_per_host_max = quota;
    }
    Ok(config)
}

/// The way in to the pages.
fn entrance(address: SocketAddr, arguments: &RunArguments) -> anyhow::Result<Entrance> {
    let certificates = match (&arguments.tls_cert, &arguments.tls_key) {
        (Some(certificate), Some(key)) => Some(Certificates::read(certificate, key)?),
        _ => None,
    };
    let listener = listener_at(address).context("no pages")?;
    Ok(Entrance { listener, certificates })
}

/// How the pages are served.
fn serving(entrance: Entrance, arguments: &RunArguments) -> anyhow::Result<Serving> {
    Ok(Serving {
        entrance,
        location: location(arguments)?,
        tariff: arguments.tariff.as_deref().map(read_tariff).transpose()?,
        url: pages_url(arguments),
        are_strangers_let_in: arguments.guests,
    })
}

/// Where people find the pages, if the operator says so.
fn pages_url(arguments: &RunArguments) -> Option<String> {
    arguments.pages_url.as_deref().map(|url| url.trim_end_matches('/').to_string())
}

/// Begins to look at the rules of alarms, on a thread of its own.
fn watch(rules: Rules, arguments: &RunArguments, running: &Running) -> anyhow::Result<()> {
    let tariff = arguments.tariff.as_deref().map(read_tariff).transpose()?;
    let alarms = Alarms::open(&location(arguments)?, running, rules, tariff, alarms::reach()?)?;
    let alarms = alarms.linking_to(pages_url(arguments));
    alarms.start().context("can't look at the rules of alarms")
}

/// Where the database is: on the server that is named, or in the hub's folder.
fn location(arguments: &RunArguments) -> anyhow::Result<Location> {
    match server(arguments)? {
        Some(server) => Ok(server),
        None => Ok(folder(arguments)?.join(DATABASE).into()),
    }
}

/// The database on a server, if it is there. A folder that is named comes before the environment.
fn server(arguments: &RunArguments) -> anyhow::Result<Option<Location>> {
    let RunArguments { data, server, .. } = arguments;
    match (data, server.is_on_the_command_line()) {
        (Some(_), true) => bail!("--data and --database name two places for the hub; name one"),
        (Some(_), false) => Ok(None),
        (None, _) => server.location(),
    }
}

fn folder(arguments: &RunArguments) -> anyhow::Result<&Path> {
    arguments.data.as_deref().context("say where the hub is with --data")
}

fn open_database(arguments: &RunArguments) -> anyhow::Result<Database> {
    let mut database = match server(arguments)? {
        Some(server) => Database::open(server)?,
        None => open_folder(folder(arguments)?)?,
    };
    let pages = arguments.disk_max.saturating_mul(1 << 20) / PAGE_BYTES;
    database.limit_pages(Some(u32::try_from(pages).unwrap_or(u32::MAX)))?;
    Ok(database)
}

fn open_folder(folder: &Path) -> anyhow::Result<Database> {
    let (path, flash) = (folder.join(DATABASE), folder.join(FLASH));
    // The lock comes before the database, where a full disk may break off the making of a hub, and the reserve outlasts it.
    let own = ["lock", "reserve"].map(|extension| path.with_extension(extension));
    let is_others = |file: std::io::Result<std::fs::DirEntry>| {
        file.is_ok_and(|file| !own.contains(&file.path()))
    };
    let holds_something = std::fs::read_dir(folder).is_ok_and(|mut files| files.any(is_others));
    if holds_something && !path.exists() && !flash.exists() {
        bail!("{} holds other files and is no hub's; name a new or empty folder", folder.display());
    }
    std::fs::create_dir_all(folder)
        .with_context(|| format!("can't make the folder {}", folder.display()))?;
    let mut database = Database::open(&path)?;
    if flash.exists() {
        import(&mut database, &flash, &folder.join(FLASH_IMPORTED))?;
    }
    Ok(database)
}

/// Takes over the flash file of an earlier version, and renames it. A hub that ended between the two
/// has the records already.
fn import(database: &mut Database, flash: &Path, renamed: &Path) -> anyhow::Result<()> {
    if database.seed()?.is_none() {
        let file = FileFlash::open(flash, Durability::PowerLoss)?;
        let mut storage = FlashStorage::open(file, &mut LinuxEntropy)?;
        let unix_s = LinuxClock::start().unix_time().map_or(0, |time| time.seconds);
        database.import(&mut storage, unix_s)?;
    }
    std::fs::rename(flash, renamed).with_context(|| format!("can't rename {}", flash.display()))
}

fn back_up(arguments: &BackupArguments, output: &Output) -> anyhow::Result<()> {
    let from = arguments.data.join(DATABASE);
    if !from.exists() {
        bail!("{} holds no hub", arguments.data.display());
    }
    check_room(&from, &arguments.to)?;
    Database::back_up(&from, &arguments.to)?;
    let to = arguments.to.display().to_string();
    output.line(&format!("backup: {to}"), &serde_json::json!({ "backup": to }));
    Ok(())
}

/// Whether a copy leaves the hub room on a disk that both share: as much as another copy.
fn check_room(from: &Path, to: &Path) -> anyhow::Result<()> {
    let folder = to.parent().filter(|folder| !folder.as_os_str().is_empty());
    let folder = folder.unwrap_or(Path::new("."));
    let (Ok(database), Ok(there)) = (std::fs::metadata(from), std::fs::metadata(folder)) else {
        // Whoever opens them says what is wrong.
        return Ok(());
    };
    let disk = rustix::fs::statvfs(folder)
        .with_context(|| format!("can't look at the disk of {}", folder.display()))?;
    let (bytes, free) = (database.len(), disk.f_bavail.saturating_mul(disk.f_frsize));
    let is_shared = database.dev() == there.dev();
    if free < bytes.saturating_mul(if is_shared { 2 } else { 1 }) {
        bail!(
            "no copy is made: {} MiB are free at {}, and the database has {}; the hub needs room beside a copy",
            free >> 20,
            folder.display(),
            bytes.div_ceil(1 << 20)
        );
    }
    Ok(())
}

fn put_back(arguments: &RestoreArguments, output: &Output) -> anyhow::Result<()> {
    let RestoreArguments { data, from } = arguments;
    if !from.is_file() {
        bail!("{} is no file", from.display());
    }
    std::fs::create_dir_all(data)
        .with_context(|| format!("can't make the folder {}", data.display()))?;
    Database::restore(from, &data.join(DATABASE))
        .with_context(|| format!("can't restore from {}", from.display()))?;
    let (copy, folder) = (from.display().to_string(), data.display().to_string());
    let object = serde_json::json!({ "restored": folder, "from": copy });
    output.line(&format!("restored: {folder} holds what {copy} holds"), &object);
    Ok(())
}

fn verify_audit(arguments: &VerifyArguments, output: &Output) -> anyhow::Result<()> {
    let location = match &arguments.file {
        Some(file) => Some(Location::from(file)),
        None => arguments.server.location()?,
    };
    let location = location.context("say which database")?;
    match Database::read(&location)?.verify_audit()? {
        Ok(Some(last)) => {
            let (number, hash) = (last.number, last.hash.to_string());
            let text = format!("{number} entries, unbroken; the last has the hash {hash}");
            output.line(&text, &serde_json::json!({ "entries": number, "hash": hash }));
        }
        Ok(None) => output.line("no entries", &serde_json::json!({ "entries": 0 })),
        Err(broken) => bail!(
            "{location}: entry {} doesn't follow the one before it: the log was changed there",
            broken.number
        ),
    }
    Ok(())
}

fn announce(
    hub: &Hub<Database>,
    devices_max: &DevicesMax,
    link: &UdpLink,
    pages: Option<&Served>,
    output: &Output,
) {
    let (address, key) = (link.address().to_string(), hub.key().to_string());
    let [.., Fullness { used: listed, .. }] = hub.fullness();
    let mut text = format!(
        "hub {LISTENS_ON} {address}, key {key}\n  for devices: --hub {address}#{key}\n  {}",
        devices_max.words(listed)
    );
    let mut object = serde_json::json!({
        "event": "listening", "address": address, "key": key, "pages": null, "devices": listed, "devices_max": devices_max.count,
    });
    if let Some(Served { url, owners, guests }) = pages {
        let websocket = url.replacen("http", "ws", 1);
        text += &format!(
            "\n  where UDP is blocked: --hub {address}#{key},{websocket}\
             \n  pages: {url}; sign in with: tenure login --hub {address}\
             \n  pages of machines: {url}/m/NAME@DEVICE, which it calls as #{owners} for the device's owner \
             and as #{guests} for guests"
        );
        object["websocket"] = websocket.into();
        object["pages"] = url.as_str().into();
        object["owners"] = owners.to_string().into();
        object["guests"] = guests.to_string().into();
    }
    output.line(&text, &object);
}

/// Says that the hub isn't one that was there before.
fn announce_key(output: &Output) {
    let text =
        "this is a new hub, with a new key: devices that know another one don't take it for theirs";
    output.line(text, &serde_json::json!({ "event": "new" }));
}

/// When a record ends that isn't good by the hub's clock, in words.
fn ends_in(ends_in_s: Option<i64>) -> String {
    let Some(ends_in_s) = ends_in_s else { return String::new() };
    let time = std::time::Duration::from_secs(ends_in_s.unsigned_abs());
    let time = humantime::format_duration(time);
    match ends_in_s < 0 {
        true => format!("; it ended {time} ago by the hub's"),
        false => format!("; it ends in {time} by the hub's"),
    }
}

/// The way out for whom a full table turned away.
fn what_helps(table: &str) -> &'static str {
    if table != TABLE_OF_DEVICES {
        return "";
    }
    "; those that are listed go on, and no new one is listed: start the hub with a larger --devices-max, or revoke devices \
     that are gone"
}

fn show(notice: &Notice, output: &Output) {
    match notice {
        Notice::Listed { device, address, machines } => output.line(
            &format!("lists {device} at {} with {}", Shown(address), counted(*machines, "machine")),
            &serde_json::json!({ "event": "listed", "device": device.as_str(), "address": address.to_string(), "machines": machines }),
        ),
        Notice::Refused { refusal, address, ends_in_s } => output.line(
            &format!("refused a record from {}: {refusal}{}", Shown(address), ends_in(*ends_in_s)),
            &serde_json::json!({ "event": "refused", "reason": refusal.to_string(), "address": address.to_string(), "ends_in_s": ends_in_s }),
        ),
        Notice::Shut { device, address, is_relayed } => output.line(
            &format!(
                "{device} at {} is behind a router or firewall that lets nobody else in{}",
                Shown(address),
                if *is_relayed { ": its owner and the owner's devices are relayed to it" } else { "; nothing is relayed to it" }
            ),
            &serde_json::json!({ "event": "shut", "device": device.as_str(), "address": address.to_string(), "relayed": is_relayed }),
        ),
        Notice::Full(Fullness { table, used, most, times_full }) => output.line(
            &format!(
                "the table of {table} was full ({most}, and {used} are taken now); {} since the start{}",
                counted(*times_full, "time"),
                what_helps(table)
            ),
            &serde_json::json!({ "event": "full", "table": table, "used": used, "most": most, "times": times_full }),
        ),
        Notice::NotStored { reason } => output.line(
            &format!("can't store, and refuses what is new: {reason}"),
            &serde_json::json!({ "event": "not-stored", "reason": reason }),
        ),
    }
}
