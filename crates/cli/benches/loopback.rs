//! The cost of a call from one process to another over UDP on loopback: the first, with a handshake,
//! and later ones.
//!
//! `cargo bench -p tenure-cli -- [--json]`. A device runs in a thread of its own; each figure is the
//! median of many calls, writes not waiting for the disk.

mod echo;

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use tenure_board_linux::{Durability, UdpLink};
use tenure_cli::device::process::{Running, open_flash, roomy_kernel};
use tenure_cli::home::Home;
use tenure_cli::machine::install::{Terms, place};
use tenure_cli::reach::client::{Client, OwnerKeys, Route};
use tenure_cli::terminal::clock::now_in_milliseconds;
use tenure_cli::terminal::output::Output;
use tenure_node::{Config, Door as _};

const FIRST_CALLS: usize = 25;
const LATER_CALLS: usize = 2_000;
const TIMEOUT: Duration = Duration::from_secs(5);

fn main() -> Result<()> {
    let json = std::env::args().any(|argument| argument == "--json");
    let folder = tempfile::tempdir()?;
    let home = Home::at(folder.path().join("home"));
    let device = DeviceThread::start(folder.path(), &home)?;
    let report = |metric: &str, value: f64| {
        if json {
            println!(
                "{{\"bench\":\"loopback\",\"target\":\"host\",\"subject\":\"tenure\",\
                 \"metric\":\"{metric}\",\"unit\":\"us\",\"value\":{value:.1}}}"
            );
        } else {
            println!("{metric:<44} {value:>10.1} us");
        }
    };
    let mut firsts = Vec::new();
    let mut laters = Vec::new();
    for _ in 0..FIRST_CALLS {
        let mut client = Client::new(&home)?;
        let route = device.echo(&mut client)?;
        firsts.push(call(&mut client, &route)?);
        for _ in 0..LATER_CALLS / FIRST_CALLS {
            laters.push(call(&mut client, &route)?);
        }
    }
    report("round trip of the first call of 64 bytes", median(firsts));
    report("round trip of a later call of 64 bytes", median(laters));
    device.stop()
}

/// Microseconds of one call of 64 bytes that returns them.
fn call(client: &mut Client, route: &Route) -> Result<f64> {
    let begun = Instant::now();
    let result = client.call(route, "echo", Some(vec![7; 64]), TIMEOUT)?;
    let spent = begun.elapsed().as_secs_f64() * 1e6;
    anyhow::ensure!(result.is_some_and(|bytes| bytes == [7; 64]), "another answer");
    Ok(spent)
}

fn median(mut times: Vec<f64>) -> f64 {
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

/// A device with one echoing machine.
struct DeviceThread {
    address: SocketAddr,
    stop: Arc<AtomicBool>,
    thread: JoinHandle<Result<()>>,
}

impl DeviceThread {
    fn start(folder: &Path, home: &Home) -> Result<Self> {
        let keys = OwnerKeys::of(home)?;
        let mut config = Config::new("bench".parse()?, keys.owner());
        config.kernel = roomy_kernel();
        config.rpc = tenure_rpc::Config::large();
        let flash = open_flash(folder, Durability::ProcessKill)?;
        let link = UdpLink::bind(([127, 0, 0, 1], 0).into())?;
        let mut device = Running::start(config, flash, link, home, folder, None, false)?;
        let package = echo::package("echo", home)?;
        let key = device.node().device_key();
        let terms = Terms::default();
        let placement = place(&keys, key, &package, &terms, now_in_milliseconds())?;
        device.with_moment(|node, moment| node.install(moment, &package, &placement))?;
        let (address, stop) = (device.address(), Arc::new(AtomicBool::new(false)));
        let asked = Arc::clone(&stop);
        let thread = std::thread::spawn(move || {
            let silent = Output::silent();
            while !asked.load(Ordering::Relaxed) {
                device.turn(&silent)?;
            }
            Ok(())
        });
        Ok(Self { address, stop, thread })
    }

    /// The way to the machine, found with `client`.
    fn echo(&self, client: &mut Client) -> Result<Route> {
        let device = client.device(&self.address.into())?;
        let machines = tenure_cli::reach::whom::machines(client, &device)?;
        let machine = machines.first().context("the device has no machine")?;
        Ok(Route { key: machine.key, ..device.route })
    }

    fn stop(self) -> Result<()> {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.join().map_err(|_| anyhow::anyhow!("the device panicked"))?
    }
}
