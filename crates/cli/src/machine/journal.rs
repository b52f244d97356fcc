//! `tenure journal`: what enters a machine, kept on its device, fetched by its tenant, and replayed here.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail, ensure};
use clap::Subcommand;
use serde_json::json;
use tenure_audit::{Code, Journal, ReplayError, Watcher};
use tenure_board_linux::LinuxEntropy;
use tenure_crypto::StaticSecret;
use tenure_kernel::LogEntry;
use tenure_package::{
    JournalPiece, JournalPlace, JournalQuery, JournalRequest, Package, SealedPiece,
};
use tenure_wire::control::{Client as _, JournalKeep};
use tenure_wire::printable::{counted, printable};
use tenure_wire::{Name, VerifyingKey};

use crate::home::Home;
use crate::make::package::read_package;
use crate::make::symbols::{Site, Symbols};
use crate::reach::client::Client;
use crate::reach::whom::{TenantWhere, Where};
use crate::terminal::output::Output;
use crate::terminal::verdict::Verdict;
use crate::whole_file;

/// The most fuel that a replay of a journal takes: about a day of a fast device.
pub const FUEL_MAX: u64 = 1_000_000_000_000;

/// Keep a machine's journal: all that enters it, in a ring on its device.
///
/// The owner says that it is kept, and how large the ring is. The machine's tenant fetches it, sealed on its way;
/// `tenure replay` runs the machine again, and `tenure bill --audit` holds its bill against that.
///
/// Example: tenure journal keep thermostat 262144
#[derive(clap::Args)]
pub struct Arguments {
    #[command(subcommand)]
    action: Action,
}

#[derive(Subcommand)]
enum Action {
    /// Have a machine keep a journal from now on.
    Keep(Keep),
    /// End a machine's journal and delete it.
    End(End),
    /// Fetch the journal of a machine of yours.
    Fetch(Fetch),
}

#[derive(clap::Args)]
struct Keep {
    /// The machine.
    machine: Name,
    /// The size of the ring in bytes: twice the machine's memory and tree, and the records. Writing it counts against the
    /// machine's budget of flash.
    #[arg(value_parser = clap::value_parser!(u32).range(1..))]
    bytes: u32,
    #[command(flatten)]
    place: Where,
}

#[derive(clap::Args)]
struct End {
    /// The machine.
    machine: Name,
    #[command(flatten)]
    place: Where,
}

#[derive(clap::Args)]
struct Fetch {
    /// The machine.
    machine: Name,
    /// Where to write it; by default MACHINE.journal.
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
    #[command(flatten)]
    place: TenantWhere,
}

/// Runs `tenure journal`.
///
/// # Errors
/// The device can't be reached or refuses, or the file can't be written.
pub fn run(arguments: &Arguments, output: &Output) -> anyhow::Result<()> {
    match &arguments.action {
        Action::Keep(Keep { machine, bytes, place }) => keep(machine, *bytes, place, output),
        Action::End(End { machine, place }) => keep(machine, 0, place, output),
        Action::Fetch(arguments) => fetch(arguments, output),
    }
}

fn keep(machine: &Name, bytes: u32, place: &Where, output: &Output) -> anyhow::Result<()> {
    let mut client = Client::new(&Home::from_environment()?)?;
    let device = place.connect(&mut client)?;
    let keep = JournalKeep { machine: machine.clone(), bytes };
    client.at(&device.route).journal_keep(keep)?;
    let text = match bytes {
        0 => format!("{machine} keeps no journal any more"),
        _ => format!("{machine} keeps a journal of {bytes} bytes at most"),
    };
    output.line(&text, &json!({ "machine": machine.as_str(), "journal_bytes": bytes }));
    Ok(())
}

fn fetch(arguments: &Fetch, output: &Output) -> anyhow::Result<()> {
    let Fetch { machine, place, .. } = arguments;
    let (journal, bytes) = fetched(machine, place)?;
    let path = match &arguments.output {
        Some(path) => path.clone(),
        None => PathBuf::from(format!("{machine}.journal")),
    };
    whole_file::write_private(&path, &bytes)
        .with_context(|| format!("can't write {}", path.display()))?;
    let (pages, shown) = (journal.pages.len(), path.display().to_string());
    output.line(
        &format!("{pages} pages of the journal of {machine} are in {shown}"),
        &json!({
            "machine": machine.as_str(),
            "pages": pages,
            "bytes": bytes.len(),
            "path": shown,
        }),
    );
    Ok(())
}

/// The journal of a machine of this user's, as its device keeps it now, and its bytes in a file.
///
/// # Errors
/// The device can't be reached or refuses, or gives something else.
pub fn fetched(machine: &Name, place: &TenantWhere) -> anyhow::Result<(Journal, Vec<u8>)> {
    let home = Home::from_environment()?;
    let (mut client, key) = (Client::new(&home)?, home.tenant_key()?);
    let device = place.connect(&mut client)?;
    let secret = StaticSecret::generate(&mut LinuxEntropy)
        .map_err(|error| anyhow::anyhow!("no key for the answers: {error}"))?;
    let tenant = key.verifying_key();
    let query =
        JournalQuery { device: device.key, machine: machine.clone(), key: secret.public_key() };
    let signed = query.sign(&key)?;
    let journal = gather(device.key, |page, offset| {
        let from = JournalPlace { page, offset };
        let request = JournalRequest { query: signed.clone(), from };
        let request = request.to_bytes().context("the question can't be encoded")?;
        let sealed: Vec<u8> = client.at(&device.route).journal(&request)?;
        let sealed: SealedPiece =
            postcard::from_bytes(&sealed).context("the device's answer can't be read")?;
        Ok(sealed.open((&query, &tenant), from, &secret)?)
    })?;
    let bytes = journal.to_bytes().context("the journal can't be encoded")?;
    Journal::parse(&bytes).context("what the device gave")?;
    Ok((journal, bytes))
}

/// Puts the journal of a machine of `device` together from the pieces that `ask` gets, by page and offset.
fn gather(
    device: VerifyingKey,
    mut ask: impl FnMut(u64, u32) -> anyhow::Result<JournalPiece>,
) -> anyhow::Result<Journal> {
    let mut journal: Option<Journal> = None;
    let mut next = 0;
    loop {
        let mut last = ask(next, 0)?;
        let (number, machine, previous) = (last.page, last.machine, last.previous);
        if number != next {
            // Older pages have gone meanwhile, and so has all that goes before this one.
            ensure!(number > next, "the device gave another page than it was asked for");
            journal = None;
        }
        let (mut page, page_bytes) = (core::mem::take(&mut last.bytes), last.page_bytes as usize);
        while page.len() < page_bytes && last.page == number {
            last = ask(number, page.len() as u32)?;
            ensure!(!last.bytes.is_empty(), "the device gave nothing more of page {number}");
            page.append(&mut last.bytes);
        }
        if last.page != number {
            (journal, next) = (None, last.page);
            continue;
        }
        let begun = journal.get_or_insert_with(|| Journal {
            device,
            machine,
            previous,
            pages: Vec::new(),
            head: Vec::new(),
        });
        begun.pages.push(page);
        next = number.saturating_add(1);
        if last.pages == next {
            let mut journal = journal.take().context("the device gave no page")?;
            journal.head = last.head;
            return Ok(journal);
        }
    }
}

/// The words for a journal without a package.
const NO_PACKAGE: &str =
    "this is a machine's journal, and is run from the machine's package: add --package PACKAGE";

/// The exit status of a run that isn't as the journal says, and of a bill that isn't as the run says.
pub const DIFFERS: u8 = 3;

/// Whether a file begins as a journal does.
///
/// # Errors
/// The file can't be read.
pub fn is_in(path: &Path) -> anyhow::Result<bool> {
    let mut start = Vec::new();
    let read = File::open(path).and_then(|file| file.take(8).read_to_end(&mut start));
    read.with_context(|| path.display().to_string())?;
    Ok(Journal::begins(&start))
}

/// The most bytes of a journal in a file: a device's flash holds less.
const FILE_BYTES_MAX: u64 = 256 << 20;

/// The journal in a file.
///
/// # Errors
/// The file can't be read, or isn't a journal whose device signed it.
pub fn read(path: &Path) -> anyhow::Result<Journal> {
    let bytes = whole_file::read_named(path, FILE_BYTES_MAX)
        .with_context(|| format!("can't read {}", path.display()))?;
    Journal::parse(&bytes).with_context(|| path.display().to_string())
}

/// Runs the machine of a journal again, and shows its log.
///
/// # Errors
/// [`Verdict`] if the machine does something else; or the journal or the package can't be used.
pub fn replay(path: &Path, package: Option<&Path>, output: &Output) -> anyhow::Result<()> {
    let journal = read(path)?;
    let Some(package_path) = package else { bail!(NO_PACKAGE) };
    let bytes = read_package(package_path)?;
    let package = Package::parse(&bytes)?;
    let code = code(package_path, &package)?;
    let mut spectator = Spectator { output };
    match tenure_audit::replay(&journal, &code, FUEL_MAX, &mut spectator) {
        Ok(replayed) => {
            let name = replayed.name.as_ref().map_or("the machine", Name::as_str);
            let skipped = match replayed.skipped {
                0 => String::new(),
                pages => format!("; of another package: {}", counted(pages, "page")),
            };
            output.line(
                &format!(
                    "the same run of {name}: {}, {}, {} units of fuel without its turns{skipped}",
                    counted(replayed.pages, "page"),
                    counted(replayed.marks, "mark"),
                    replayed.fuel
                ),
                &json!({
                    "event": "replayed",
                    "machine": name,
                    "pages": replayed.pages,
                    "pages_of_other_packages": replayed.skipped,
                    "starts": replayed.starts,
                    "marks": replayed.marks,
                    "fuel": replayed.fuel,
                }),
            );
            Ok(())
        }
        Err(error) => Err(explained(error, package_path, &package, output)),
    }
}

/// Replays a journal with each of these packages, as far as its machine was of that one; `watcher` makes a watcher for each.
///
/// # Errors
/// There is no package; a file can't be used; or the machine does something else than its journal says.
pub fn replay_with<W: Watcher>(
    path: &Path,
    packages: &[PathBuf],
    mut watcher: impl FnMut() -> W,
) -> anyhow::Result<()> {
    ensure!(!packages.is_empty(), NO_PACKAGE);
    let journal = read(path)?;
    let mut seen = BTreeSet::new();
    for package_path in packages {
        let bytes = read_package(package_path)?;
        let package = Package::parse(&bytes)?;
        let code = code(package_path, &package)?;
        // One that is named twice ran once.
        if !seen.insert(code.package.0) {
            continue;
        }
        tenure_audit::replay(&journal, &code, FUEL_MAX, &mut watcher())?;
    }
    Ok(())
}

/// The code of a package, to be replayed.
///
/// # Errors
/// It carries no wasm.
pub fn code<'a>(path: &Path, package: &Package<'a>) -> anyhow::Result<Code<'a>> {
    Code::of(package).with_context(|| format!("{} carries no wasm", path.display()))
}

/// The error of a replay: a [`Verdict`] if it is a difference, which is printed, with its function and line where they are
/// known.
pub fn explained(
    error: ReplayError,
    path: &Path,
    package: &Package<'_>,
    output: &Output,
) -> anyhow::Error {
    if !error.is_difference() {
        return error.into();
    }
    let text = match &error {
        ReplayError::Differs(diverged) => {
            let place = diverged.place.and_then(|(function, offset)| {
                let symbols = Symbols::beside(path, package).ok()?;
                let place = symbols.place(Site { function, offset, in_module: false });
                let name = place.function.clone().unwrap_or_else(|| format!("function {function}"));
                let line = place.lines.first();
                let line = line.map(|line| format!(" ({}:{})", line.file.display(), line.line));
                Some(format!(", in {name}{}", line.unwrap_or_default()))
            });
            format!(
                "the run differs from the journal after {}{}: {}",
                counted(diverged.records, "record"),
                place.unwrap_or_default(),
                diverged.difference
            )
        }
        _ => error.to_string(),
    };
    output.line(&text, &json!({ "event": "differs", "difference": text }));
    Verdict { status: DIFFERS, words: "the run isn't as the journal says" }.into()
}

/// Shows the machine's log as it was.
struct Spectator<'a> {
    output: &'a Output,
}

impl Watcher for Spectator<'_> {
    fn logged(&mut self, at_ms: u64, entry: &LogEntry) {
        let LogEntry { machine, level, message, .. } = entry;
        let (seconds, ms) = (at_ms / 1000, at_ms % 1000);
        let level = level.as_str();
        self.output.line(
            &format!("{seconds}.{ms:03} {machine} {level} {}", printable(message)),
            &json!({
                "event": "log",
                "at_ms": at_ms,
                "machine": machine.as_str(),
                "level": level,
                "message": message,
            }),
        );
    }
}

#[cfg(test)]
mod tests {
    use tenure_wire::{Digest, MachineId};

    use super::*;

    fn piece(page: u64, offset: usize, pages: u64) -> JournalPiece {
        let bytes = format!("the content of page {page}").into_bytes();
        JournalPiece {
            machine: MachineId([1; 12]),
            page,
            previous: Digest([page as u8; 32]),
            page_bytes: bytes.len() as u32,
            bytes: bytes[offset..(offset + 9).min(bytes.len())].to_vec(),
            head: vec![pages as u8],
            pages,
        }
    }

    #[test]
    fn journal_is_put_together_though_pages_come_and_go_meanwhile() {
        let device = VerifyingKey([2; 32]);
        let mut asked = 0;
        let journal = gather(device, |page, offset| {
            asked += 1;
            // Page 3 is the oldest; after a few questions it is page 5, and page 6 is written.
            let (oldest, pages) = if asked < 6 { (3, 6) } else { (5, 7) };
            Ok(if page < oldest {
                piece(oldest, 0, pages)
            } else {
                piece(page, offset as usize, pages)
            })
        });
        let journal = journal.unwrap();
        let texts: Vec<_> =
            journal.pages.iter().map(|page| String::from_utf8_lossy(page)).collect();
        assert_eq!(texts, ["the content of page 5", "the content of page 6"]);
        assert_eq!((journal.previous, journal.head), (Digest([5; 32]), vec![7]));
    }

    #[test]
    fn device_that_gives_no_more_of_a_page_is_an_error() {
        let error = gather(VerifyingKey([2; 32]), |page, offset| {
            let mut piece = piece(page, 0, 1);
            if offset > 0 {
                piece.bytes.clear();
            }
            Ok(piece)
        });
        assert!(error.unwrap_err().to_string().contains("nothing more of page 0"));
    }
}
