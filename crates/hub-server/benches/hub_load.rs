//! Processes of a hub under load: `tenure hub` as it ships, and devices by the thousand that speak to it over UDP.
//!
//! `cargo xtask bench hub --database postgres` builds the command and runs this with one process and with two, after one on
//! SQLite. Each device has a socket, an endpoint and keys of its own. First all of them register at once, then they live at
//! their usual pace, and at last they ask as fast as they are answered. What a device computes isn't in the hub's figures; it
//! takes its part of the same processors, though.

mod both;
#[path = "hub_load/device.rs"]
mod device;
#[path = "hub_load/processes.rs"]
mod processes;

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::process::ExitCode;
use std::rc::Rc;
use std::time::{Duration, Instant};

use tenure_bench_report::{Program, Row, Rows};
use tokio::sync::Semaphore;
use tokio::task::{JoinSet, LocalSet};

use device::{Deed, Device};
use processes::{Engine, Processes};

/// How many devices there are, unless `TENURE_BENCH_DEVICES` says so; and for how many seconds each part lasts, unless
/// `TENURE_BENCH_SECONDS` does.
const DEVICES: usize = 2_000;
const SECONDS: u64 = 30;
/// The calls that are under way at most, as devices ask as fast as they are answered.
const UNDER_WAY_MAX: usize = 128;
/// How soon a device asks again then: it may write 20 records a minute, and report once a second.
const APART: Duration = Duration::from_millis(1_050);

fn main() -> ExitCode {
    let help = "Measures processes of a hub: hub-load [--json] [sqlite] [postgres] [postgres-2]\n\
        TENURE is the path of the command, TENURE_BENCH_DEVICES and TENURE_BENCH_SECONDS the extent.\n";
    let program = Program { help, targets: &["sqlite", "postgres", "postgres-2"] };
    program.run(|target, rows| {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|error| error.to_string())?;
        let (engine, count) = match target {
            "sqlite" => (Engine::Sqlite, 1),
            "postgres" => (Engine::Postgres, 1),
            _ => (Engine::Postgres, 2),
        };
        let processes = Processes::start(engine, count)?;
        LocalSet::new().block_on(&runtime, measure(target, &processes, rows))
    })
}

/// A number of the environment.
fn number(name: &str, usual: u64) -> Result<u64, String> {
    match std::env::var(name) {
        Ok(text) => text.parse().map_err(|_| format!("{name} is a number, not {text:?}")),
        Err(_) => Ok(usual),
    }
}

/// The answers of a part of the trial: how long each took, by what was asked, and how many were refusals.
#[derive(Default)]
struct Answers {
    times: BTreeMap<&'static str, Vec<Duration>>,
    refused: BTreeMap<String, usize>,
}

impl Answers {
    fn note(&mut self, deed: Deed, time: Duration, answer: Result<(), String>) {
        match answer {
            Ok(()) => self.times.entry(deed.name()).or_default().push(time),
            Err(error) => {
                *self.refused.entry(format!("{}: {error}", deed.name())).or_default() += 1
            }
        }
    }

    fn all(&self) -> Vec<Duration> {
        self.times.values().flatten().copied().collect()
    }
}

async fn measure(target: &str, processes: &Processes, rows: &mut Rows) -> Result<(), String> {
    let count = usize::try_from(number("TENURE_BENCH_DEVICES", DEVICES as u64)?).unwrap_or(DEVICES);
    let span = Duration::from_secs(number("TENURE_BENCH_SECONDS", SECONDS)?);
    let mut row = |metric: String, unit: &'static str, value: f64| {
        rows.push(Row {
            bench: format!("hub-load/{count} devices"),
            target: "host".into(),
            subject: target.into(),
            metric,
            unit,
            value,
        });
    };
    let (resident, disk) = (processes.resident_bytes(), processes.disk_bytes()?);
    let mut devices = Vec::new();
    for index in 0..count {
        let hub = processes.hubs()[index % processes.hubs().len()];
        devices.push(Device::new(index as u32, hub)?);
    }

    // The herd.
    let (began, used) = (Instant::now(), processes.cpu());
    let (back, answers) = at_once(devices, &Deed::Register).await?;
    devices = back;
    let (took, used) = (began.elapsed(), processes.cpu() - used);
    row("all register at once, until the last one is listed".into(), "s", took.as_secs_f64());
    row(
        "… p99 of a device, with its handshake".into(),
        "s",
        percentile(&mut answers.all(), 99).as_secs_f64(),
    );
    row("… of one core, the hub".into(), "%", percent(used.hub, took));
    row("… of one core, the server".into(), "%", percent(used.server, took));
    let each = |bytes: u64| bytes as f64 / count as f64;
    row(
        "memory of a listed device with its session, in each process".into(),
        "bytes",
        each(processes.resident_bytes().saturating_sub(resident)) / processes.hubs().len() as f64,
    );
    say_refused(target, &answers);

    // The usual pace.
    let (began, used) = (Instant::now(), processes.cpu());
    let (back, answers) = at_the_usual_pace(devices, span).await?;
    devices = back;
    let (took, used) = (began.elapsed(), processes.cpu() - used);
    let all = answers.all();
    row("at the usual pace: answers".into(), "1/s", all.len() as f64 / took.as_secs_f64());
    for (name, mut times) in answers.times.clone() {
        row(format!("… p99 of {name}"), "ms", percentile(&mut times, 99).as_secs_f64() * 1e3);
    }
    row("… of one core, the hub".into(), "%", percent(used.hub, took));
    row("… of one core, the server".into(), "%", percent(used.server, took));
    say_refused(target, &answers);

    // As fast as they are answered.
    let (began, used, own) = (Instant::now(), processes.cpu(), processes::own_cpu());
    let (_, answers) = at_full_speed(devices, span).await?;
    let (took, used, own) =
        (began.elapsed(), processes.cpu() - used, processes::own_cpu().saturating_sub(own));
    let mut all = answers.all();
    row(
        "as fast as they are answered: answers".into(),
        "1/s",
        all.len() as f64 / took.as_secs_f64(),
    );
    row("… p99".into(), "ms", percentile(&mut all, 99).as_secs_f64() * 1e3);
    row("… of one core, the hub".into(), "%", percent(used.hub, took));
    row("… of one core, the server".into(), "%", percent(used.server, took));
    row("… of one core, the devices".into(), "%", percent(own, took));
    row("disk of a device".into(), "bytes", each(processes.disk_bytes()?.saturating_sub(disk)));
    say_refused(target, &answers);
    Ok(())
}

fn say_refused(target: &str, answers: &Answers) {
    for (what, times) in &answers.refused {
        eprintln!("{target}: {times} times {what}");
    }
}

/// The devices that are through with a part, and the answers that they had.
type Done = Result<(Vec<Device>, Answers), String>;

/// Has each device do that until it is done.
async fn at_once(devices: Vec<Device>, deed: &Deed) -> Done {
    let answers = Rc::new(RefCell::new(Answers::default()));
    let mut tasks = JoinSet::new();
    for mut device in devices {
        let (answers, deed) = (Rc::clone(&answers), *deed);
        tasks.spawn_local(async move {
            let began = Instant::now();
            loop {
                match device.ask(deed).await {
                    Ok(()) => break,
                    Err(refused) => {
                        let again_in = refused.again_in;
                        answers.borrow_mut().note(deed, Duration::ZERO, Err(refused.reason));
                        device.rest(again_in).await;
                    }
                }
            }
            answers.borrow_mut().note(deed, began.elapsed(), Ok(()));
            device
        });
    }
    gathered(tasks, answers).await
}

/// Has each device renew its record, ask for a step, report and hand in receipts as often as one does, spread evenly.
async fn at_the_usual_pace(devices: Vec<Device>, span: Duration) -> Done {
    let (answers, count) = (Rc::new(RefCell::new(Answers::default())), devices.len());
    let ends = Instant::now() + span;
    let mut tasks = JoinSet::new();
    for (index, mut device) in devices.into_iter().enumerate() {
        let answers = Rc::clone(&answers);
        tasks.spawn_local(async move {
            let part = index as f64 / count as f64;
            let now = Instant::now();
            let mut due = Deed::ALL.map(|deed| (now + deed.every().mul_f64(part), deed));
            loop {
                due.sort_by_key(|(at, _)| *at);
                let (at, deed) = due[0];
                if at >= ends {
                    break;
                }
                device.rest(at.saturating_duration_since(Instant::now())).await;
                let began = Instant::now();
                let answer = device.ask(deed).await.map_err(|refused| refused.reason);
                answers.borrow_mut().note(deed, began.elapsed(), answer);
                due[0].0 = at + deed.every();
            }
            device
        });
    }
    gathered(tasks, answers).await
}

/// Has devices do one thing after the other, as many at once as [`UNDER_WAY_MAX`].
async fn at_full_speed(devices: Vec<Device>, span: Duration) -> Done {
    let answers = Rc::new(RefCell::new(Answers::default()));
    let places = Rc::new(Semaphore::new(UNDER_WAY_MAX));
    let ends = Instant::now() + span;
    let mut tasks = JoinSet::new();
    for (index, mut device) in devices.into_iter().enumerate() {
        let (answers, places) = (Rc::clone(&answers), Rc::clone(&places));
        tasks.spawn_local(async move {
            for step in index.. {
                let asked = Instant::now();
                {
                    let Ok(_place) = places.acquire().await else { break };
                    if Instant::now() >= ends {
                        break;
                    }
                    let (deed, began) = (Deed::ALL[step % Deed::ALL.len()], Instant::now());
                    let answer = device.ask(deed).await.map_err(|refused| refused.reason);
                    answers.borrow_mut().note(deed, began.elapsed(), answer);
                }
                device.rest(APART.saturating_sub(asked.elapsed())).await;
            }
            device
        });
    }
    gathered(tasks, answers).await
}

async fn gathered(mut tasks: JoinSet<Device>, answers: Rc<RefCell<Answers>>) -> Done {
    let mut devices = Vec::new();
    while let Some(done) = tasks.join_next().await {
        devices.push(done.map_err(|error| error.to_string())?);
    }
    Ok((devices, answers.take()))
}

fn percent(used: Duration, of: Duration) -> f64 {
    100.0 * used.as_secs_f64() / of.as_secs_f64().max(f64::MIN_POSITIVE)
}

/// The time that `part` of a hundred don't exceed.
fn percentile(times: &mut [Duration], part: usize) -> Duration {
    times.sort_unstable();
    times.get((times.len() * part).div_ceil(100).saturating_sub(1)).copied().unwrap_or_default()
}

/// Where a hub listens, and its key.
#[derive(Clone, Copy, Debug)]
struct HubAt {
    address: SocketAddr,
    key: tenure_wire::PublicKey,
}
