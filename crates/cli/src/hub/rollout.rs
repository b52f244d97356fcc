//! `tenure rollout`: a package to many devices in stages, by a mandate that this command signs.
//!
//! The hub says which device is next, and the devices check the mandate. With `--by-command` this command does the
//! work, for devices that follow no mandates. Then it goes no further than the plan that the owner signed: other
//! packages, devices and machines it refuses, whatever the hub says.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context as _, bail, ensure};
use serde_json::{Value, json};
use tenure_hub_server::{Gates, MetricGate, Plan, SignedPlan, rollout_waits_in_words};
use tenure_package::{Mandate, Package, Placed, Selector};
use tenure_wire::control::MachineStatus;
use tenure_wire::{Capabilities, Digest, Label, Name, Share, Term, Version};

use crate::home::Home;
use crate::hub::packages::{fetch_package, push_package};
use crate::hub::session::HubSession;
use crate::machine::grant::{Grant, decide};
use crate::machine::install::{ShareArguments, held, update};
use crate::machine::lease::TermArguments;
use crate::make::build::package_at;
use crate::make::package::read_package;
use crate::reach::client::{Client, Device};
use crate::reach::network::UNREADABLE;
use crate::reach::whom::{Where, machines};
use crate::terminal::clock::parse_any_span;
use crate::terminal::output::Output;
use crate::terminal::stop::Stop;

/// Update a machine on many devices, in stages, and take it back if it does badly.
///
/// Example: tenure rollout start counter.tenure --devices attic,barn,cellar --stages 1,50% --soak 10m
#[derive(clap::Args)]
pub struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(clap::Subcommand)]
enum Command {
    Start(Box<StartArguments>),
    Run(RunArguments),
    /// Show how far a rollout is.
    Status(OneArguments),
    /// Update no further device; those that were updated are watched.
    Pause(OneArguments),
    /// Go on with a rollout that is paused; devices that failed count as done.
    Resume(OneArguments),
    /// End a rollout, and leave every device as it is.
    Abort(OneArguments),
    /// Put every device back to what it had before; `tenure rollout run` does it.
    RollBack(OneArguments),
}

/// Start a rollout: push the package, sign the plan and the devices' mandate, and watch.
///
/// The devices fetch the package from the hub; this command may end at any time.
///
/// Example: tenure rollout start counter.tenure --devices attic,barn --stages 1 --soak 10m --hub hub.example:7369
#[derive(clap::Args)]
struct StartArguments {
    /// The package, or the folder of a project, which is built first.
    #[arg(value_name = "PACKAGE")]
    package: PathBuf,
    /// The machine to update; by default it is called as its package.
    #[arg(long, value_name = "NAME")]
    machine: Option<Name>,
    /// The devices, in the order in which they are updated.
    #[arg(long, value_name = "NAMES", value_delimiter = ',', required_unless_present = "labels")]
    devices: Vec<Name>,
    /// The labels that devices carry which are updated, all of them, in the place of their names.
    #[arg(long, value_name = "LABELS", value_delimiter = ',', conflicts_with_all = ["devices", "by_command"])]
    labels: Vec<Label>,
    /// How far each stage goes, a number of devices or a percentage of them; behind the last one, all.
    #[arg(long, value_name = "STAGES", value_delimiter = ',', default_value = "1")]
    stages: Vec<String>,
    /// For how long a device must do well before the next stage.
    #[arg(long, value_name = "SPAN", default_value = "10m", value_parser = parse_any_span)]
    soak: Duration,
    /// The most faults of the machine in that time.
    #[arg(long, value_name = "COUNT", default_value_t = 0)]
    faults: u32,
    /// The most fuel that a call may take, on average since the update, by the device's reports.
    #[arg(long, value_name = "UNITS")]
    fuel_per_call: Option<u32>,
    /// The longest that the machine may wait for its turn.
    #[arg(long, value_name = "SPAN", value_parser = parse_any_span)]
    wait: Option<Duration>,
    /// A bound on a number that the machine keeps below `metrics`, as `errors<=5` or `rate>=10`; may be repeated.
    #[arg(long, value_name = "BOUND")]
    metric: Vec<MetricGate>,
    /// The most devices that may fail.
    #[arg(long, value_name = "COUNT", default_value_t = 0)]
    failures: u32,
    /// Pause when more devices fail, and don't roll back.
    #[arg(long)]
    pause_on_failure: bool,
    /// The oldest version that devices may be updated from and put back to.
    #[arg(long, value_name = "VERSION", default_value = "0.0.0")]
    from: Version,
    /// For how long devices may be updated; those that are offline until then stay as they are.
    #[arg(long, value_name = "SPAN", default_value = "7d", value_parser = parse_any_span)]
    ends_in: Duration,
    /// The rights of the machine, as for `tenure install`; by default those that it
    /// holds on each device.
    #[arg(long, value_name = "WHAT")]
    grant: Vec<Grant>,
    /// Put the machine on devices that have none of its name, too, with the share, the lease and the rights that are
    /// said here. A device that is rolled back has it in its trash.
    #[arg(long, requires = "grant", conflicts_with = "by_command")]
    install: bool,
    #[command(flatten)]
    share: ShareArguments,
    #[command(flatten)]
    term: TermArguments,
    /// Carry it out by this command and not by the devices: for devices without mandates, and a hub of an
    /// earlier version.
    #[arg(long, conflicts_with = "grant")]
    by_command: bool,
    /// Start it, and don't watch it.
    #[arg(long)]
    no_run: bool,
    #[command(flatten)]
    hub: HubArguments,
}

/// Watch a rollout until it is over; one by the command is carried out.
///
/// Example: tenure rollout run 3
#[derive(clap::Args)]
struct RunArguments {
    /// Its number.
    id: u32,
    /// Take only the steps that are due now.
    #[arg(long)]
    once: bool,
    #[command(flatten)]
    hub: HubArguments,
}

#[derive(clap::Args)]
struct OneArguments {
    /// Its number.
    id: u32,
    #[command(flatten)]
    hub: HubArguments,
}

#[derive(clap::Args)]
struct HubArguments {
    /// The hub: HOST:PORT, or HOST:PORT#KEY; by default that of `tenure use`.
    #[arg(long, value_name = "ADDR", env = "TENURE_HUB")]
    hub: Option<String>,
}

/// How long after a rollout's end devices may still be put back, in seconds.
const PUT_BACK_S: u64 = 7 * 24 * 60 * 60;
/// How long the command waits before it asks the hub again.
const PAUSE: Duration = Duration::from_secs(2);

/// Runs `tenure rollout`.
///
/// # Errors
/// The hub can't be reached or refuses.
pub fn run(arguments: &Arguments, output: &Output) -> anyhow::Result<()> {
    let home = Home::from_environment()?;
    let mut client = Client::new(&home)?;
    let of = |one: &OneArguments, verb| (one.id, one.hub.hub.clone(), verb);
    let (id, hub, verb) = match &arguments.command {
        Command::Start(start) => return start_rollout(start, &home, &mut client, output),
        Command::Run(run) => {
            let mut worker = Worker::new(&home, client, run.hub.hub.clone(), run.id)?;
            let by_command = worker.by_command;
            let worked = worker.work(run.once, output);
            return worked.map_err(|error| still_on(run.id, by_command, error));
        }
        Command::Status(one) => of(one, None),
        Command::Pause(one) => of(one, Some("pause")),
        Command::Resume(one) => of(one, Some("resume")),
        Command::Abort(one) => of(one, Some("abort")),
        Command::RollBack(one) => of(one, Some("roll-back")),
    };
    let place = Where { device: None, hub, via: None };
    let mut session = HubSession::open(&mut client, &place, home.owner_key()?)?;
    let (method, path) = match verb {
        Some(verb) => ("POST", format!("/v1/rollouts/{id}/{verb}")),
        None => ("GET", format!("/v1/rollouts/{id}")),
    };
    let answer = session.ask(&mut client, method, &path, &[], &[])?;
    show(&serde_json::from_slice(&answer.body)?, output);
    Ok(())
}

fn start_rollout(
    arguments: &StartArguments,
    home: &Home,
    client: &mut Client,
    output: &Output,
) -> anyhow::Result<()> {
    let has_terms = !arguments.share.is_empty() || !arguments.term.is_empty();
    if has_terms && !arguments.install {
        bail!(
            "a machine that is updated keeps its share and its lease; with --install a new one gets these"
        );
    }
    let bytes = read_package(&package_at(&arguments.package, home)?)?;
    let package = Package::parse(&bytes)?;
    let owner = home.owner_key()?;
    let place = Where { device: None, hub: arguments.hub.hub.clone(), via: None };
    let mut session = HubSession::open(client, &place, owner.clone())?;
    let seconds = |time: Duration| i64::try_from(time.as_secs()).unwrap_or(i64::MAX);
    let plan = Plan {
        machine: arguments.machine.clone().unwrap_or_else(|| package.manifest().name.clone()),
        package: package.digest(),
        tenant: package.tenant(),
        from: arguments.from,
        devices: arguments.devices.clone(),
        labels: arguments.labels.clone(),
        stages: arguments.stages.clone(),
        soak_s: seconds(arguments.soak),
        faults_max: arguments.faults.into(),
        gates: Gates {
            fuel_per_call_max: arguments.fuel_per_call.map(i64::from),
            waited_us_max: arguments
                .wait
                .map(|wait| i64::try_from(wait.as_micros()).unwrap_or(i64::MAX)),
            metrics: arguments.metric.clone(),
        },
        failures_max: arguments.failures.into(),
        pause_on_failure: arguments.pause_on_failure,
        ends_unix_s: seconds(Duration::from_secs(client.unix_s())) + seconds(arguments.ends_in),
    };
    push_package(client, &mut session, &package, &bytes, output)?;
    if let Some(list) = client.authority().signed_list().map(<[u8]>::to_vec) {
        // It may have been out of reach when a device was revoked. One that knows a newer list keeps that.
        session.request(client, "POST", "/v1/revocations", &[], &list)?;
    }
    let signed = SignedPlan::sign(&plan, &owner);
    let signed = match arguments.by_command {
        true => signed,
        false => signed.with_mandate(&mandate(arguments, home, &plan, &package)?.sign(&owner)?),
    };
    let body = serde_json::to_vec(&signed)?;
    let answer = session.ask(client, "POST", "/v1/rollouts", &[], &body)?;
    let started: Value = serde_json::from_slice(&answer.body)?;
    show(&started, output);
    if arguments.no_run {
        return Ok(());
    }
    let id = started["id"].as_u64().and_then(|id| u32::try_from(id).ok());
    let id = id.context(UNREADABLE)?;
    let watched = Client::new(home)
        .and_then(|client| Worker::new(home, client, arguments.hub.hub.clone(), id))
        .and_then(|mut worker| worker.work(false, output));
    watched.map_err(|error| still_on(id, arguments.by_command, error))
}

/// `error`, which ended the watching of a rollout; the rollout doesn't end by it, unless it is over.
fn still_on(id: u32, by_command: bool, error: anyhow::Error) -> anyhow::Error {
    if error.downcast_ref::<Over>().is_some() {
        return error;
    }
    anyhow::anyhow!("{error:#}; {}", without_this_command(id, by_command))
}

/// What becomes of a rollout that isn't over when the command that watched it ends.
fn without_this_command(id: u32, by_command: bool) -> String {
    match by_command {
        true => format!(
            "rollout {id} stands still until `tenure rollout run {id}` carries it out further"
        ),
        false => format!(
            "rollout {id} goes on without this command: `tenure rollout run {id}` watches it again"
        ),
    }
}

/// A rollout is over, and not as it should be.
#[derive(Debug, thiserror::Error)]
#[error("rollout {id} is over: {outcome}")]
struct Over {
    id: u32,
    outcome: String,
}

/// The mandate that says what `plan` says.
fn mandate(
    arguments: &StartArguments,
    home: &Home,
    plan: &Plan,
    package: &Package<'_>,
) -> anyhow::Result<Mandate> {
    let manifest = package.manifest();
    let keeps = arguments.grant.is_empty() || arguments.grant.contains(&Grant::Same);
    let grants = match keeps {
        true => None,
        false => Some(decide(&arguments.grant, &manifest.capabilities, None)?),
    };
    let ends_unix_s = u64::try_from(plan.ends_unix_s)?;
    let terms = || -> anyhow::Result<Placed> {
        let share = arguments.share.over(Share::default())?;
        Ok(Placed { share, term: arguments.term.over(Term::default()) })
    };
    let placed = arguments.install.then(terms).transpose()?;
    Ok(Mandate {
        number: home.next_number(0),
        machine: plan.machine.clone(),
        devices: match plan.labels.is_empty() {
            true => Selector::Names(plan.devices.clone()),
            false => Selector::Labels(plan.labels.clone()),
        },
        tenant: plan.tenant,
        package: plan.package,
        version: manifest.version,
        from: plan.from,
        budget: manifest.budget,
        grants,
        ends_unix_s,
        placed,
        back_until_unix_s: ends_unix_s + u64::try_from(plan.soak_s)? + PUT_BACK_S,
    })
}

/// Prints how a rollout is.
fn show(rollout: &Value, output: &Output) {
    let word = |name: &str| rollout[name].as_str().unwrap_or("?").to_string();
    let number = |name: &str| rollout[name].as_i64().unwrap_or(0);
    let stages = rollout["stages"].as_array().map_or(0, Vec::len);
    let devices = rollout["devices"].as_object().cloned().unwrap_or_default();
    let counted: Vec<String> = devices
        .iter()
        .filter(|(_, count)| count.as_i64() != Some(0))
        .map(|(state, count)| format!("{count} {state}"))
        .collect();
    let reason = match word("reason") {
        reason if reason.is_empty() => String::new(),
        reason => format!(" ({reason})"),
    };
    let waits = rollout["waits"].as_array().into_iter().flatten().map(|wait| {
        let (devices, reason) = (wait["devices"].as_i64().unwrap_or(0), wait["reason"].as_str());
        (devices, reason.unwrap_or("?").to_string())
    });
    let waits = rollout_waits_in_words(&waits.collect::<Vec<_>>());
    let text = format!(
        "rollout {}: {} to {}, {}{reason}\n  stage {} of {stages}; {}{}",
        number("id"),
        word("machine"),
        word("version"),
        word("state"),
        number("stage"),
        counted.join(", "),
        waits.iter().map(|wait| format!("\n  {wait}")).collect::<String>()
    );
    output.line(&text, rollout);
}

/// Carries out one rollout.
struct Worker {
    client: Client,
    session: HubSession,
    hub: Option<String>,
    id: u32,
    plan: Plan,
    /// Whether this command carries it out, and not the devices.
    by_command: bool,
    /// Packages that were fetched, by their digests.
    packages: BTreeMap<Digest, Vec<u8>>,
    /// The rights of the machine on a device before its update.
    held: BTreeMap<Name, Capabilities>,
}

/// A step that the hub asks for.
struct Task {
    device: Name,
    action: String,
    package: Digest,
}

impl Worker {
    fn new(home: &Home, mut client: Client, hub: Option<String>, id: u32) -> anyhow::Result<Self> {
        let owner = home.owner_key()?;
        let place = Where { device: None, hub: hub.clone(), via: None };
        let mut session = HubSession::open(&mut client, &place, owner.clone())?;
        let path = format!("/v1/rollouts/{id}/plan");
        let answer = session.ask(&mut client, "GET", &path, &[], &[])?;
        let signed: SignedPlan = serde_json::from_slice(&answer.body)?;
        let plan = signed.open(&owner.verifying_key()).context("the hub's plan of this rollout")?;
        let by_command = signed.mandate.is_none();
        let (packages, held) = (BTreeMap::new(), BTreeMap::new());
        Ok(Self { client, session, hub, id, plan, by_command, packages, held })
    }

    /// Works until the rollout is over, or takes the steps that are due now.
    fn work(&mut self, once: bool, output: &Output) -> anyhow::Result<()> {
        let stop = Stop::on_signals()?;
        let mut last = String::new();
        while !stop.is_requested() {
            let path = format!("/v1/rollouts/{}/next", self.id);
            let answer = self.session.ask(&mut self.client, "POST", &path, &[], &[])?;
            let next: Value = serde_json::from_slice(&answer.body)?;
            for task in next["tasks"].as_array().into_iter().flatten() {
                self.take(&read_task(task)?, output)?;
            }
            let path = format!("/v1/rollouts/{}", self.id);
            let answer = self.session.ask(&mut self.client, "GET", &path, &[], &[])?;
            let text = String::from_utf8_lossy(&answer.body).into_owned();
            if text != last {
                show(&serde_json::from_str(&text)?, output);
                last = text;
            }
            if next["is_over"] == true {
                return outcome(self.id, &next);
            }
            if once {
                return Ok(());
            }
            std::thread::sleep(PAUSE);
        }
        let text = without_this_command(self.id, self.by_command);
        output.line(&text, &json!({ "event": "watched-no-more", "rollout": self.id }));
        Ok(())
    }

    /// Does what the hub asks for on one device. What goes wrong there is told to the hub.
    fn take(&mut self, task: &Task, output: &Output) -> anyhow::Result<()> {
        ensure!(self.plan.devices.contains(&task.device), "the plan has no device {}", task.device);
        let is_target = task.package == self.plan.package;
        ensure!(is_target || task.action == "revert", "the plan is of another package");
        let place =
            Where { device: Some(task.device.to_string()), hub: self.hub.clone(), via: None };
        let reached = place.connect(&mut self.client).and_then(|device| {
            let all = machines(&mut self.client, &device)?;
            let machine = all.into_iter().find(|machine| machine.name == self.plan.machine);
            let missing = || format!("it has no machine {}", self.plan.machine);
            Ok((device, machine.with_context(missing)?))
        });
        let (device, machine) = match reached {
            Ok(reached) => reached,
            Err(error) => return self.tell_missing(&task.device, &error),
        };
        match task.action.as_str() {
            "look" => self.tell_machine(&task.device, &machine),
            "update" => self.update(task, &device, machine, output),
            "revert" => self.revert(task, &device, machine, output),
            other => bail!("the hub asks for `{other}`: it runs another version"),
        }
    }

    fn update(
        &mut self,
        task: &Task,
        device: &Device,
        machine: MachineStatus,
        output: &Output,
    ) -> anyhow::Result<()> {
        if let Some(obstacle) = self.obstacle(&machine, task.package) {
            let saw = json!({ "saw": "held", "reason": obstacle });
            return self.tell(&task.device, &saw).map(drop);
        }
        let before = json!({
            "saw": "before",
            "has": machine.digest.to_string(),
            "version": machine.version,
        });
        if !self.tell(&task.device, &before)? {
            return Ok(());
        }
        if machine.digest == task.package {
            return self.tell_machine(&task.device, &machine);
        }
        let held = held(&mut self.client, device, &machine)?;
        self.held.insert(task.device.clone(), held);
        let bytes = match self.package(task.package) {
            Ok(bytes) => bytes,
            Err(error) => return self.tell_missing(&task.device, &error),
        };
        let grants = [Grant::Same];
        match update(&mut self.client, device, &bytes, &machine, &grants) {
            Ok(machine) => {
                say(output, "updated", &task.device, &machine);
                self.tell_machine(&task.device, &machine)
            }
            Err(error) => {
                let saw = json!({ "saw": "refused", "reason": format!("{error:#}") });
                self.tell(&task.device, &saw).map(drop)
            }
        }
    }

    /// The reason for which a machine isn't updated: by an old plan, a hub that was broken into would take it back to an
    /// old version.
    fn obstacle(&mut self, machine: &MachineStatus, target: Digest) -> Option<String> {
        let now_s = i64::try_from(self.client.unix_s()).unwrap_or(i64::MAX);
        if now_s > self.plan.ends_unix_s {
            return Some("the plan's time is over".into());
        }
        if machine.version < self.plan.from {
            return Some(format!(
                "it has {}, which is older than the plan allows",
                machine.version
            ));
        }
        if machine.digest == target {
            return None;
        }
        let bytes = self.package(target).ok()?;
        let version = Package::parse(&bytes).ok()?.manifest().version;
        let is_newer = machine.version > version;
        is_newer.then(|| format!("it has {}, which is newer than {version}", machine.version))
    }

    fn revert(
        &mut self,
        task: &Task,
        device: &Device,
        machine: MachineStatus,
        output: &Output,
    ) -> anyhow::Result<()> {
        if machine.digest == task.package {
            return self.tell_machine(&task.device, &machine);
        }
        let bytes = match self.package(task.package) {
            Ok(bytes) => bytes,
            Err(error) => return self.tell_missing(&task.device, &error),
        };
        let package = Package::parse(&bytes)?;
        let (is_known, version) =
            (package.tenant() == self.plan.tenant, package.manifest().version);
        ensure!(
            is_known && version >= self.plan.from,
            "the hub wants {} back at {version}, which the plan doesn't allow",
            task.device
        );
        let grants = match self.held.get(&task.device) {
            Some(held) => Grant::Some(Box::new(held.clone())),
            None => Grant::Same,
        };
        match update(&mut self.client, device, &bytes, &machine, &[grants]) {
            Ok(machine) => {
                say(output, "put back", &task.device, &machine);
                self.tell_machine(&task.device, &machine)
            }
            Err(error) => self.tell_missing(&task.device, &error),
        }
    }

    /// The package with that digest, from the hub's registry.
    fn package(&mut self, digest: Digest) -> anyhow::Result<Vec<u8>> {
        if let Some(bytes) = self.packages.get(&digest) {
            return Ok(bytes.clone());
        }
        let bytes = fetch_package(&mut self.client, &mut self.session, digest)?;
        self.packages.insert(digest, bytes.clone());
        Ok(bytes)
    }

    fn tell_machine(&mut self, device: &Name, machine: &MachineStatus) -> anyhow::Result<()> {
        let saw = json!({
            "saw": "machine",
            "has": machine.digest.to_string(),
            "faults": machine.faults,
            "state": machine.state,
            "repute": machine.repute,
        });
        self.tell(device, &saw).map(drop)
    }

    fn tell_missing(&mut self, device: &Name, error: &anyhow::Error) -> anyhow::Result<()> {
        let saw = json!({ "saw": "missing", "reason": format!("{error:#}") });
        self.tell(device, &saw).map(drop)
    }

    /// Tells the hub; returns whether it agrees.
    fn tell(&mut self, device: &Name, saw: &Value) -> anyhow::Result<bool> {
        let path = format!("/v1/rollouts/{}/devices/{device}", self.id);
        let body = serde_json::to_vec(saw)?;
        let answer = self.session.request(&mut self.client, "POST", &path, &[], &body)?;
        match answer.status {
            200..=299 => Ok(true),
            409 => Ok(false),
            _ => bail!("the hub: {}", crate::hub::session::reason(&answer)),
        }
    }
}

/// The end of a rollout, as a script wants it: an error unless it is done.
fn outcome(id: u32, over: &Value) -> anyhow::Result<()> {
    let word = |name: &str| over[name].as_str().unwrap_or_default();
    match (word("state"), word("reason")) {
        ("done", _) => Ok(()),
        (state, "") => bail!(Over { id, outcome: state.to_owned() }),
        (state, reason) => bail!(Over { id, outcome: format!("{state} ({reason})") }),
    }
}

fn read_task(task: &Value) -> anyhow::Result<Task> {
    let word = |name: &str| task[name].as_str().unwrap_or_default();
    Ok(Task {
        device: word("device").parse().context("the hub's task")?,
        action: word("action").to_string(),
        package: word("package").parse().context("the hub's task")?,
    })
}

fn say(output: &Output, done: &str, device: &Name, machine: &MachineStatus) {
    let (name, version) = (&machine.name, machine.version);
    output.line(
        &format!("{done} {name} on {device}: {version}"),
        &json!({ "event": done, "device": device.as_str(), "machine": name.as_str(), "version": version }),
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn watching_that_ends_says_that_the_rollout_goes_on_unless_it_is_over() {
        let gone = still_on(2, false, anyhow::anyhow!("the deadline passed")).to_string();
        assert!(gone.starts_with("the deadline passed; rollout 2 goes on"), "{gone}");
        let own = still_on(2, true, anyhow::anyhow!("the deadline passed")).to_string();
        assert!(own.contains("stands still until `tenure rollout run 2`"), "{own}");
        let over = Over { id: 2, outcome: "rolled back".to_owned() };
        assert_eq!(still_on(2, false, over.into()).to_string(), "rollout 2 is over: rolled back");
    }
}
