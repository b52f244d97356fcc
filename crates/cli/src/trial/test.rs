//! `tenure test`: runs a project's tests on devices in memory, among pretended machines.

mod actor;
mod server;
mod world;

use std::cell::LazyCell;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, bail};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer};
use serde_json::json;
use tenure_package::Package;
use tenure_wire::control::LogLine;
use tenure_wire::printable::counted;
use tenure_wire::{Name, Target};

use crate::home::Home;
use crate::machine::grant::{Grant, decide};
use crate::make::build;
use crate::make::symbols::MachineSymbols;
use crate::terminal::output::{Output, log_object, log_texts};
use crate::terminal::trace::Place;
use crate::{whole_file, written_file};
use server::{PretendedServer, Servers};
use world::World;

/// The file's name.
const FILE_NAME: &str = "tests.toml";
/// The most bytes of it.
const FILE_BYTES_MAX: u64 = 16 << 20;
/// The name of the device on which the machine runs, unless the file says otherwise.
const DEVICE: &str = "here";

/// Build a machine project and run its tests.
///
/// tests.toml says who calls what and what comes of it. The machine runs on a device in memory, on
/// the very software that devices run; machines around it are pretended. What the machine has logged is shown with a
/// test that fails, and the source line of a fault.
///
/// Example: tenure test thermostat
#[derive(clap::Args)]
pub struct Arguments {
    /// The project's folder.
    #[arg(default_value = ".")]
    project: PathBuf,
    /// Only tests whose names contain this.
    #[arg(long, value_name = "TEXT")]
    filter: Option<String>,
}

/// The tests of a project.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct TestFile {
    /// The name of the machine's device.
    device: Option<Name>,
    /// The owner's grant, as `tenure install --grant` takes it; without it all that is asked.
    #[serde(default)]
    grant: Vec<String>,
    /// The machines around the one that is tested.
    #[serde(default)]
    machine: Vec<Pretended>,
    /// The servers outside.
    #[serde(default)]
    server: Vec<PretendedServer>,
    /// The tests, which run one after the other on the same machine.
    test: Vec<Test>,
}

/// A pretended machine.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Pretended {
    /// `name`, on the same device, or `name@device`.
    name: String,
    /// Its answers, by function.
    #[serde(default)]
    answers: BTreeMap<String, String>,
}

/// One call and what comes of it.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Test {
    /// The behaviour that it shows.
    name: String,
    /// The time that passes before the call, on the false clock: `10s`, an hour at most.
    #[serde(default, deserialize_with = "time")]
    after: Duration,
    /// The caller: one of the pretended machines; without it the owner.
    caller: Option<String>,
    /// Which function.
    call: String,
    /// With which parameter.
    parameter: Option<String>,
    /// The result.
    expect: Option<String>,
    /// Something that the result contains.
    contains: Option<String>,
    /// The error that the caller gets instead.
    error: Option<String>,
}

/// How a test ended: what came, in words, if that isn't what was expected.
type Verdict = Result<(), String>;

/// Runs `tenure test`.
///
/// # Errors
/// The project doesn't build, its tests can't be read, or one of them fails.
pub fn run(arguments: &Arguments, output: &Output) -> anyhow::Result<()> {
    let home = Home::from_environment()?;
    let file = read(&arguments.project)?;
    let built = build::build(&arguments.project, None, &home)?;
    // They are read for a test that fails.
    let symbols = LazyCell::new(|| {
        let mut symbols = MachineSymbols::default();
        symbols.insert_beside(&built.path, &built.bytes);
        symbols
    });
    let mut world = set_up(&file, &built.bytes)?;
    let wanted = |test: &&Test| {
        arguments.filter.as_ref().is_none_or(|text| test.name.contains(text.as_str()))
    };
    let (mut ran, mut failed) = (0, 0);
    for test in file.test.iter().filter(wanted) {
        let verdict = perform(&mut world, test)?;
        ran += 1;
        failed += usize::from(verdict.is_err());
        report(test, &verdict, &world.take_log(), |line| symbols.trace_in(line), output);
    }
    if ran == 0 {
        bail!("no test has that in its name");
    }
    let passed = ran - failed;
    output.line(
        &format!("{passed} of {} passed", counted(ran, "test")),
        &json!({ "passed": passed, "failed": failed }),
    );
    if failed > 0 {
        bail!("{failed} of {} failed", counted(ran, "test"));
    }
    Ok(())
}

fn read(project: &Path) -> anyhow::Result<TestFile> {
    let path = project.join(FILE_NAME);
    let text = whole_file::read_text(&path, FILE_BYTES_MAX)
        .with_context(|| format!("there are no tests: can't read {}", path.display()))?;
    let file: TestFile = written_file::parse(&text).with_context(|| path.display().to_string())?;
    for test in &file.test {
        let expectations =
            [&test.expect, &test.contains, &test.error].into_iter().flatten().count();
        if expectations != 1 {
            bail!(
                "{}: the test `{}` needs one of expect, contains and error",
                path.display(),
                test.name
            );
        }
    }
    Ok(file)
}

/// Puts the machine and all who are around it on their devices.
fn set_up(file: &TestFile, package: &[u8]) -> anyhow::Result<World> {
    let device = match &file.device {
        Some(device) => device.clone(),
        None => DEVICE.parse()?,
    };
    let asked = Package::parse(package)?.manifest().capabilities.clone();
    let grants: Vec<Grant> = match file.grant.as_slice() {
        [] => vec![Grant::All],
        words => words
            .iter()
            .map(|word| word.parse().map_err(anyhow::Error::msg))
            .collect::<Result<_, _>>()
            .with_context(|| format!("{FILE_NAME}: grant"))?,
    };
    let servers = Servers::new(&file.server).context(FILE_NAME)?;
    let mut world = World::new(device.clone(), servers)?;
    for pretended in &file.machine {
        let place = || format!("{FILE_NAME}: machine `{}`", pretended.name);
        let (machine, there) = match pretended.name.parse::<Target>().with_context(place)? {
            Target::Local(machine) => (machine, device.clone()),
            Target::Remote { machine, device } => (machine, device),
            _ => bail!("{}: write NAME or NAME@DEVICE", place()),
        };
        let package = actor::package(&machine, &pretended.answers).with_context(place)?;
        world.pretend(&pretended.name, &there, &package).with_context(place)?;
    }
    world.install(package, decide(&grants, &asked, None)?)?;
    Ok(world)
}

/// The longest time that a test lets pass: each 20 ms of it are a step of all devices.
const AFTER_MAX: Duration = Duration::from_secs(60 * 60);

fn time<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Duration, D::Error> {
    let text = String::deserialize(deserializer)?;
    let time = humantime::parse_duration(&text).ok().filter(|time| *time <= AFTER_MAX);
    time.ok_or_else(|| D::Error::custom("`after` is a time up to 1h, such as `10s`"))
}

fn perform(world: &mut World, test: &Test) -> anyhow::Result<Verdict> {
    world.pass(test.after);
    let parameter = test.parameter.as_deref().map(str::as_bytes);
    let result = match &test.caller {
        None => world.call_as_owner(&test.call, parameter)?,
        Some(caller) => world.call_as(caller, &test.call, parameter)?,
    };
    let came = match result {
        Ok(value) => Ok(String::from_utf8_lossy(&value.unwrap_or_default()).into_owned()),
        Err(error) => Err(error),
    };
    let is_expected = match (&test.expect, &test.contains, &test.error, &came) {
        (Some(expected), _, _, Ok(came)) => came == expected,
        (_, Some(part), _, Ok(came)) => came.contains(part.as_str()),
        (_, _, Some(expected), Err(came)) => came == expected,
        _ => false,
    };
    Ok(match (is_expected, came) {
        (true, _) => Ok(()),
        (false, Ok(came)) => Err(format!("the result {came:?}")),
        (false, Err(came)) => Err(format!("the error `{came}`")),
    })
}

/// Reports a test, and what the machine has logged if it failed, with where its faults are by `trace`.
fn report(
    test: &Test,
    verdict: &Verdict,
    log: &[LogLine],
    trace: impl Fn(&LogLine) -> Vec<Place>,
    output: &Output,
) {
    let Err(came) = verdict else {
        let object = json!({ "test": test.name, "passed": true });
        return output.line(&format!("ok      {}", test.name), &object);
    };
    let expected = match test {
        Test { expect: Some(result), .. } => format!("the result {result:?}"),
        Test { contains: Some(part), .. } => format!("a result that contains {part:?}"),
        Test { error, .. } => format!("the error `{}`", error.as_deref().unwrap_or_default()),
    };
    let mut text =
        format!("FAILED  {}\n        expected {expected}\n        there was {came}", test.name);
    let mut logged = Vec::new();
    for line in log {
        let trace = trace(line);
        for part in log_texts(line, &trace) {
            text.push_str(&format!("\n        {:<7} {part}", line.level));
        }
        logged.push(log_object(line, &trace));
    }
    let object = json!({
        "test": test.name,
        "passed": false,
        "expected": expected,
        "was": came,
        "log": logged,
    });
    output.line(&text, &object);
}
