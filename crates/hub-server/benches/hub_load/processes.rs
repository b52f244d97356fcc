//! The processes of a hub and of its database's server, and what they take.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::ops::Sub;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use tenure_testbed::Cluster;

use super::HubAt;
use super::both::owner;
use super::device::hub_at;

/// A process's clock has so many ticks a second: `USER_HZ`, which is 100 wherever Linux runs.
const TICKS_PER_S: u64 = 100;
const PAGE_BYTES: u64 = 4_096;

/// Where a hub keeps its records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Engine {
    Sqlite,
    Postgres,
}

/// The time on a processor that was taken.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Used {
    pub(crate) hub: Duration,
    pub(crate) server: Duration,
}

impl Sub for Used {
    type Output = Self;

    fn sub(self, before: Self) -> Self {
        Self {
            hub: self.hub.saturating_sub(before.hub),
            server: self.server.saturating_sub(before.server),
        }
    }
}

/// Processes of one hub, which end when this is dropped.
pub(crate) struct Processes {
    hubs: Vec<HubAt>,
    children: Vec<Child>,
    server: Option<(Cluster, String)>,
    folder: tempfile::TempDir,
}

impl Processes {
    pub(crate) fn start(engine: Engine, count: usize) -> Result<Self, String> {
        let program = std::env::var_os("TENURE").ok_or("TENURE names no command `tenure`")?;
        let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
        let server = match engine {
            Engine::Sqlite => None,
            Engine::Postgres => {
                let cluster = Cluster::start_on_the_disk().ok_or("no PostgreSQL")?;
                let database = cluster.database();
                Some((cluster, database))
            }
        };
        let mut all = Self { hubs: Vec::new(), children: Vec::new(), server, folder };
        for _ in 0..count {
            let mut hub = Command::new(&program);
            hub.args(["hub", "--json", "--listen", "127.0.0.1:0", "--owner"]);
            hub.arg(owner().verifying_key().to_string());
            hub.env("TENURE_HOME", all.folder.path().join("home")).env_remove("TENURE_DATABASE");
            match &all.server {
                Some((cluster, database)) => {
                    hub.arg("--database").arg(cluster.address(database));
                }
                None => {
                    hub.arg("--data").arg(all.folder.path().join("hub"));
                }
            }
            let child = hub.stdout(Stdio::piped()).spawn();
            let mut child = child.map_err(|error| format!("{}: {error}", program.display()))?;
            let output = child.stdout.take().ok_or("no output")?;
            all.children.push(child);
            let mut lines = BufReader::new(output).lines();
            let line = lines.next().and_then(Result::ok).ok_or("the hub doesn't start")?;
            let event: serde_json::Value =
                serde_json::from_str(&line).map_err(|_| format!("the hub says {line}"))?;
            let text = |name: &str| event[name].as_str().unwrap_or_default().to_string();
            all.hubs.push(hub_at(&text("address"), &text("key"))?);
            // What it tells of each device is read and not shown.
            thread::spawn(move || lines.for_each(drop));
        }
        Ok(all)
    }

    pub(crate) fn hubs(&self) -> &[HubAt] {
        &self.hubs
    }

    /// The time on a processor that all processes have taken so far.
    pub(crate) fn cpu(&self) -> Used {
        let hub = self.children.iter().map(|child| cpu_of(&child.id().to_string(), false)).sum();
        let server = self.server.as_ref().map_or(Duration::ZERO, |(cluster, _)| {
            let file = fs::read_to_string(cluster.folder().join("data/postmaster.pid"));
            let file = file.unwrap_or_default();
            let Some(first) = file.lines().next() else { return Duration::ZERO };
            let children = fs::read_to_string(format!("/proc/{first}/task/{first}/children"));
            let children = children.unwrap_or_default();
            let theirs: Duration = children.split_whitespace().map(|pid| cpu_of(pid, false)).sum();
            // Those that ended are counted by the first process, which waited for them.
            cpu_of(first, true) + theirs
        });
        Used { hub, server }
    }

    /// The resident memory of the hub's processes.
    pub(crate) fn resident_bytes(&self) -> u64 {
        self.children.iter().map(|child| resident_bytes_of(child.id())).sum()
    }

    /// The bytes of the database.
    pub(crate) fn disk_bytes(&self) -> Result<u64, String> {
        match &self.server {
            Some((cluster, database)) => {
                let size = cluster.sql(database, "SELECT pg_database_size(current_database())");
                size.trim().parse().map_err(|_| format!("no size: {size}"))
            }
            None => {
                let length = |name: &str| {
                    let path = self.folder.path().join("hub").join(name);
                    fs::metadata(path).map_or(0, |file| file.len())
                };
                Ok(length("hub.sqlite") + length("hub.sqlite-wal"))
            }
        }
    }
}

impl Drop for Processes {
    fn drop(&mut self) {
        for child in &mut self.children {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// The time on a processor that this process has taken.
pub(crate) fn own_cpu() -> Duration {
    cpu_of("self", false)
}

/// The time of a process in user mode and in the kernel, and that of its children that ended (proc_pid_stat(5): utime,
/// stime, cutime, cstime).
fn cpu_of(pid: &str, with_children: bool) -> Duration {
    let stat = fs::read_to_string(Path::new("/proc").join(pid).join("stat")).unwrap_or_default();
    // The name before it may hold spaces. The first field behind it is the third.
    let rest = stat.rsplit(") ").next().unwrap_or_default();
    let fields: Vec<u64> = rest.split(' ').map(|field| field.trim().parse().unwrap_or(0)).collect();
    let wanted = if with_children { 11..15 } else { 11..13 };
    let ticks: u64 = fields.get(wanted).unwrap_or_default().iter().sum();
    Duration::from_millis(ticks * 1_000 / TICKS_PER_S)
}

/// The resident memory of a process (proc_pid_statm(5)).
fn resident_bytes_of(pid: u32) -> u64 {
    let statm = fs::read_to_string(format!("/proc/{pid}/statm")).unwrap_or_default();
    let pages = statm.split(' ').nth(1).and_then(|pages| pages.parse::<u64>().ok());
    pages.unwrap_or(0) * PAGE_BYTES
}
