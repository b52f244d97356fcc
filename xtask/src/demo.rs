//! `cargo demo`: the main job, live: a hub and three devices as processes, machines on them that
//! call one another, store, spin, crash and survive.

mod cast;
mod outside;
mod page;

use std::path::Path;
use std::process::Command;

use anyhow::{Result, ensure};
use tenure_vm::TrapKind;
use tenure_wire::console::WHILE_SERVING;
use tenure_wire::host_call::HostError;

use crate::paint;
use crate::process;
use crate::setup::{self, Need};
use crate::tenure::{self, Profile};
pub(crate) use cast::Player;
use cast::{Cast, Device};

/// Build everything and show the main job: three devices, a hub, machines that call one another.
#[derive(clap::Args, Default)]
#[command(after_help = "Example: cargo demo --keep")]
pub(crate) struct Arguments {
    /// Leave hub and devices running at the end, until Ctrl-C, to be looked at.
    #[arg(long)]
    keep: bool,
}

pub(crate) fn run(arguments: &Arguments, root: &Path) -> Result<()> {
    set_up()?;
    title("Building the command `tenure`; the first time takes minutes");
    explain(
        "Without native speed, whose compiler takes longest to build and which nothing here asks for.",
    );
    let features = ["--no-default-features"];
    process::run(process::cargo(root).args(["build", "--package", "tenure-cli"]).args(features))?;
    let cast = show(&tenure::path(root, Profile::Debug)?, root)?;
    closing(&cast);
    if arguments.keep {
        cast.wait_for_ctrl_c()?;
    }
    Ok(())
}

/// Installs what the demo takes beside the command.
pub(crate) fn set_up() -> Result<()> {
    setup::ensure(&[Need::Wasm, Need::Clang, Need::OpenSsl, Need::Broker])
}

/// Shows the main job by a command `tenure`, and returns those who play it.
pub(crate) fn show(tenure: &Path, root: &Path) -> Result<Cast> {
    let mut cast = Cast::new(tenure)?;
    title("Building the example machines");
    let examples = [
        "thermostat",
        "dashboard",
        "counter",
        "spinner",
        "crasher",
        "nihilo-a",
        "nihilo-b",
        "panel",
        "climate",
    ];
    let probe = ("crates/cli/tests/devices".to_owned(), "probe");
    for (folder, name) in
        examples.map(|name| ("examples".to_owned(), name)).into_iter().chain([probe])
    {
        explain(name);
        cast.build(&root.join(folder).join(name), name)?;
    }
    play(&mut cast)?;
    outside::play(&mut cast, &root.join("examples"))?;
    title("The hub's pages show the fleet; the owner's key signs in");
    cast.show_pages(&["attic", "cellar", "garden"])?;
    Ok(cast)
}

/// The scenes, one after another. Each checks what it shows.
fn play(cast: &mut Cast) -> Result<()> {
    title("A hub and three devices start, each a process of its own");
    cast.start_hub()?;
    let attic = cast.start_device("attic")?;
    let cellar = cast.start_device("cellar")?;
    let garden = cast.start_device("garden")?;

    title("Two programs for the 2020 Nihilo, unchanged: y in the garden finds x and calls its RPC");
    explain(
        "As then, y takes the first machine elsewhere that it hears of, so these two come first.",
    );
    cast.install(&attic, &["nihilo-a"])?;
    cast.install(&garden, &["nihilo-b"])?;
    garden.wait_for_line("hello, world")?;

    title("More machines are installed; each gets a key that never leaves its device");
    cast.install(&attic, &["thermostat"])?;
    cast.install(&cellar, &["thermostat", "counter", "crasher"])?;
    cast.install(&garden, &["dashboard", "probe"])?;

    calls(cast, &cellar, &garden)?;
    spinner(cast, &cellar)?;
    crasher(cast, &cellar, &garden)?;
    power_cut(cast, &attic, &garden)?;
    mesh(cast)
}

fn calls(cast: &mut Cast, cellar: &Device, garden: &Device) -> Result<()> {
    title("The dashboard in the garden calls the thermostats in attic and cellar by name");
    explain(
        "Each call is end-to-end encrypted between the two machines; the hub only tells where.",
    );
    cast.call(cellar, "thermostat", "set", Some("17.5"))?;
    let page = cast.call(garden, "dashboard", "show", None)?;
    ensure!(page.contains("attic: 21.0") && page.contains("cellar: 17.5"), "unexpected: {page}");

    title("It stored what it was told: its tree, as its owner sees it");
    let tree = cast.show(&["tree", "thermostat"], Some(cellar))?;
    ensure!(tree.contains("17.5"), "unexpected: {tree}");
    Ok(())
}

fn spinner(cast: &mut Cast, cellar: &Device) -> Result<()> {
    title("A machine that spins forever arrives in the cellar; the counter there goes on counting");
    cast.install(cellar, &["spinner"])?;
    cellar.wait_for_line("still spinning")?;
    for expected in ["1", "2", "3"] {
        let count = cast.call(cellar, "counter", "add", None)?;
        ensure!(count == expected, "the counter says {count}, not {expected}");
    }
    Ok(())
}

fn crasher(cast: &mut Cast, cellar: &Device, garden: &Device) -> Result<()> {
    title("A machine traps: it alone is stopped, and its owner learns where");
    let refusal = cast.call_that_fails(cellar, "crasher", "out_of_bounds")?;
    ensure!(refusal.contains(&TrapKind::OutOfBounds.to_string()), "unexpected: {refusal}");
    cellar.wait_for_line(WHILE_SERVING)?;
    let count = cast.call(cellar, "counter", "add", None)?;
    ensure!(count == "4", "the counter says {count}, not 4");
    explain("After a back-off the crasher runs again:");
    let pong = cast.call(cellar, "crasher", "ping", None)?;
    ensure!(pong == "pong", "unexpected: {pong}");
    explain("A machine that calls it learns that it failed, and nothing of its inside:");
    let told = cast.call(garden, "probe", "call", Some("crasher@cellar out_of_bounds"))?;
    ensure!(told == HostError::Execution.to_string(), "unexpected: {told}");
    cast.show(&["list"], Some(cellar)).map(drop)
}

fn power_cut(cast: &mut Cast, attic: &Device, garden: &Device) -> Result<()> {
    title("The attic loses power (kill -9) right after an acknowledged write");
    cast.call(attic, "thermostat", "set", Some("23.5"))?;
    attic.kill()?;
    let page = cast.call(garden, "dashboard", "show", None)?;
    ensure!(page.contains("attic: (unreachable)"), "unexpected: {page}");

    title("It comes back: same keys, same machines, nothing lost");
    cast.restart_device(attic)?;
    let page = cast.call(garden, "dashboard", "show", None)?;
    ensure!(page.contains("attic: 23.5"), "unexpected: {page}");
    Ok(())
}

fn mesh(cast: &mut Cast) -> Result<()> {
    title(
        "Three more devices, without a hub: the shed hears only the gate, the gate also the barn",
    );
    let (_gate, at_gate) = cast.start_mesh_device("gate", &[])?;
    let (shed, _) = cast.start_mesh_device("shed", &[&at_gate])?;
    let (barn, _) = cast.start_mesh_device("barn", &[&at_gate])?;
    cast.install(&barn, &["thermostat"])?;
    cast.install(&shed, &["probe"])?;

    title("A machine in the shed calls the barn's thermostat by name, over the gate");
    explain("Their records cross the mesh first; without them neither finds or admits the other.");
    explain("The gate relays what it can't read: the session is between the two machines.");
    let ask = "thermostat@barn read";
    cast.wait_for_answer(&shed, ["probe", "call", ask], "21.0")?;
    let answer = cast.call(&shed, "probe", "call", Some(ask))?;
    ensure!(answer == "21.0", "unexpected: {answer}");
    Ok(())
}

fn closing(cast: &Cast) {
    title("That was the main job. To look further");
    println!("  cargo demo --keep        leave all of it running, with its pages");
    println!("  {} --help", cast.tenure().display());
    println!("  tenure new my-machine    write one of your own, in Rust or C");
    println!("  docs/                    how it works; examples/ what machines look like\n");
}

fn title(text: &str) {
    println!("\n{}", paint::stdout().strong(format!("── {text}")));
}

fn explain(text: &str) {
    println!("{}", paint::stdout().faint(format!("   {text}")));
}

/// The command as one would type it, for the screen.
fn prompt(command: &Command) -> String {
    let words = command.get_args().map(|word| word.to_string_lossy().into_owned());
    format!("$ tenure {}", words.collect::<Vec<_>>().join(" "))
}
