//! The replay: a machine alone, told what its journal says, and compared with it at each mark.

use std::fmt;

use tenure_crypto::sha256;
use tenure_hal::simulated::RamFlash;
use tenure_hal::{FlashGeometry, Instant};
use tenure_journal::{Mark, Page, Record, Start};
use tenure_kernel::{
    Config, Diverged, Draft, Effect, Extent, Installation, Kernel, LogEntry, MachineInfo,
    MachineJournals, MachineRecord, Player, Sealer, Step, Unplayable, host_functions,
};
use tenure_package::{Journal, JournalError, Package};
use tenure_store::{
    BaseValue, Seal, Store, TAG_BYTES, Unsealable, ValueKind, base_bytes, write_base,
};
use tenure_vm::{Limits, OVERRUN_UNITS, translate_bound};
use tenure_wire::usage::Usage;
use tenure_wire::{
    Audience, Budget, Capabilities, CodeKind, Digest, MachineId, Name, Share, Term, VerifyingKey,
    Version,
};

/// The most fuel of one step.
const SLICE_FUEL: u64 = 1_000_000;
/// The fuel that the kernel thinks a turn has; the journal says how much it really has.
const TURN_FUEL_MAX: u64 = 1 << 50;
/// The largest memory, stack and tree of a machine that is replayed, in bytes together.
const MACHINE_BYTES_MAX: u64 = 256 * 1024 * 1024;
/// The sizes that a sector and a unit of programming may have, in bytes.
const SECTOR_BYTES: core::ops::RangeInclusive<u32> = 512..=64 * 1024;
const PROGRAM_BYTES_MAX: u32 = 16;
/// Sectors of a replay's flash beside those for the machine's tree.
const SECTORS_BESIDE: u32 = 64;

/// The code of a package, as a replay needs it.
#[derive(Clone, Debug)]
pub struct Code<'a> {
    /// The package's digest.
    pub package: Digest,
    /// Its version.
    pub version: Version,
    /// Its wasm.
    pub wasm: &'a [u8],
    /// The functions that others may call.
    pub exports: Vec<String>,
    /// The tree that its machines begin with: path, whether it is a text, and bytes.
    pub tree: Vec<(String, bool, Vec<u8>)>,
    /// How long all code of the package is together, in bytes: a device may keep more of it than the image.
    pub code_bytes: u64,
}

impl<'a> Code<'a> {
    /// The code of `package`; `None` if it carries no wasm.
    pub fn of(package: &Package<'a>) -> Option<Self> {
        let entries = package.tree().entries().map(|entry| {
            let is_text = entry.kind == tenure_package::ValueKind::Text;
            (entry.path.to_string(), is_text, entry.value.to_vec())
        });
        Some(Self {
            package: package.digest(),
            version: package.manifest().version,
            wasm: package.code(CodeKind::WebAssembly)?,
            exports: package.manifest().exports.clone(),
            tree: entries.collect(),
            code_bytes: package.code_bytes() as u64,
        })
    }
}

/// A spectator of a replay.
pub trait Watcher {
    /// The machine stands where the journal begins, or begins again.
    fn began(&mut self, replay: &mut Replay) {
        let _ = replay;
    }

    /// The machine has logged a line; `at_ms` is the last time that is known, in milliseconds since boot.
    fn logged(&mut self, at_ms: u64, entry: &LogEntry) {
        let _ = (at_ms, entry);
    }

    /// A step was done.
    fn stepped(&mut self, replay: &mut Replay, step: &Step) {
        let _ = (replay, step);
    }
}

/// Nobody watches.
impl Watcher for () {}

/// A machine that is run again.
pub struct Replay {
    player: Player<RamFlash>,
    at_ms: u64,
    marks: u64,
    /// The most fuel that the machine may use in all, without its turns.
    fuel_max: u64,
    /// The fuel that replays of the same journal used before.
    fuel_before: u64,
    /// The least and the most bytes that it had stored since that was last asked.
    stored: (u64, u64),
}

impl Replay {
    /// The machine as it was at `start`, which may use `fuel_max` units of fuel.
    ///
    /// # Errors
    /// As [`ReplayError`] says.
    pub fn new(code: &Code<'_>, start: &Start, fuel_max: u64) -> Result<Self, ReplayError> {
        if start.package != code.package {
            return Err(ReplayError::OtherPackage { recorded: start.package });
        }
        let store = flash_of(start)?;
        let kernel_config = Config {
            slice_fuel: TURN_FUEL_MAX,
            memory_bytes_max: MACHINE_BYTES_MAX as usize,
            effects_max: usize::MAX / 8,
            log_bytes_per_second: 1 << 40,
            ..Config::default()
        };
        let (image, base) = images(code)?;
        let sector_bytes = 4096;
        let sectors = |bytes: usize| (bytes as u32).div_ceil(sector_bytes) + 1;
        let sector_count = sectors(image.len()) + sectors(base.len());
        let region = RamFlash::new(FlashGeometry { sector_bytes, sector_count, program_bytes: 4 });
        let id = start.machine;
        let booted = Kernel::boot(store, region, kernel_config, Instant::BOOT, |_| id);
        let mut kernel = booted.map_err(|_| ReplayError::Start)?;
        if start.is_sealed {
            kernel.seal_with(Box::new(Lengths));
        }
        let image = keep(&mut kernel, &image)?;
        let base = if base.is_empty() { None } else { Some(keep(&mut kernel, &base)?) };
        let record = record_of(code, start, image, base);
        let installed = kernel.tenancy(Instant::BOOT).install(Installation { record, id });
        installed.map_err(|_| ReplayError::Start)?;
        let begun = Player::begin(kernel, id, &start.state);
        let mut player = begun.map_err(ReplayError::Unplayable)?;
        let kernel = player.kernel_mut();
        // It says that it was installed, which it was long ago.
        while kernel.effect().is_some() {}
        let _ = kernel.take_usage(Instant::BOOT, id);
        let mut replay =
            Self { player, at_ms: start.at_ms, marks: 0, fuel_max, fuel_before: 0, stored: (0, 0) };
        let stored = replay.stored_bytes();
        replay.stored = (stored, stored);
        Ok(replay)
    }

    /// The same after other replays of its journal, which used so much of the fuel.
    #[must_use]
    pub fn after(self, fuel: u64) -> Self {
        Self { fuel_before: fuel, ..self }
    }

    /// Adds records to be played.
    pub fn add(&mut self, records: Vec<Record>) {
        self.player.add(records);
    }

    /// Does the next thing of the journal.
    ///
    /// # Errors
    /// [`ReplayError::Differs`], or [`ReplayError::State`] at a mark where the machine's state is another than the device
    /// had.
    pub fn step(&mut self) -> Result<Step, ReplayError> {
        let step = self.player.step(SLICE_FUEL).map_err(ReplayError::Differs)?;
        match &step {
            Step::Took(Record::Task(task)) => self.at_ms = task.at_ms,
            Step::Took(Record::Woken(woken)) => self.at_ms = woken.at_ms,
            Step::Took(Record::Mark(mark)) => self.compare(mark)?,
            _ => {}
        }
        let stored = self.stored_bytes();
        self.stored = (self.stored.0.min(stored), self.stored.1.max(stored));
        if self.player.fuel().saturating_add(self.fuel_before) > self.fuel_max {
            return Err(ReplayError::Fuel { fuel_max: self.fuel_max });
        }
        Ok(step)
    }

    /// Plays `records` to their end.
    ///
    /// # Errors
    /// As [`Replay::step`].
    pub fn play(
        &mut self,
        records: Vec<Record>,
        watcher: &mut dyn Watcher,
    ) -> Result<(), ReplayError> {
        self.add(records);
        loop {
            let step = self.step();
            while let Some(effect) = self.player.kernel_mut().effect() {
                if let Effect::Log(entry) = effect {
                    watcher.logged(self.at_ms, &entry);
                }
            }
            let step = step?;
            if step == Step::End {
                return Ok(());
            }
            watcher.stepped(self, &step);
        }
    }

    /// The kernel with the machine.
    pub fn kernel(&mut self) -> &mut Kernel<RamFlash> {
        self.player.kernel_mut()
    }

    /// The machine's id.
    pub fn machine(&self) -> MachineId {
        self.player.machine()
    }

    /// The digest of the machine's state; `None` in the middle of a long host call.
    pub fn state(&mut self) -> Option<Digest> {
        let id = self.machine();
        Some(sha256(&[&MachineJournals::of(self.kernel()).state(id)?]))
    }

    /// The last time that the journal says, in milliseconds since boot.
    pub fn at_ms(&self) -> u64 {
        self.at_ms
    }

    /// How many marks were compared.
    pub fn marks(&self) -> u64 {
        self.marks
    }

    /// How many bytes the machine has stored.
    pub fn stored_bytes(&self) -> u64 {
        self.info().map_or(0, |info| info.stored_bytes as u64)
    }

    /// The least and the most bytes that the machine had stored since this was last asked.
    pub fn take_stored(&mut self) -> (u64, u64) {
        let stored = self.stored_bytes();
        core::mem::replace(&mut self.stored, (stored, stored))
    }

    /// The machine's use since this was last asked; of its fuel, that of the replay's own turns.
    pub fn take_usage(&mut self) -> Usage {
        let id = self.machine();
        self.kernel().take_usage(Instant::BOOT, id).unwrap_or_default()
    }

    /// Fuel that the machine has used, without what turns cost.
    pub fn fuel(&self) -> u64 {
        self.player.fuel()
    }

    /// How many bytes of memory the machine has now.
    pub fn memory_bytes(&self) -> u64 {
        self.info().map_or(0, |info| info.memory_bytes as u64)
    }

    /// How many bytes of memory its budget has for it.
    pub fn memory_bytes_max(&self) -> u64 {
        self.info().map_or(0, |info| info.record.budget.memory_bytes.into())
    }

    /// The most fuel that the machine can owe after a turn: its last instruction's, which may have moved all memory, and what
    /// the vm uses beyond what it was given.
    pub fn owed_max(&self) -> u64 {
        self.info().map_or(0, |info| {
            let Budget { memory_bytes, stack_bytes, .. } = info.record.budget;
            u64::from(memory_bytes) + u64::from(stack_bytes) + u64::from(OVERRUN_UNITS)
        })
    }

    /// How many bytes its code takes in flash.
    pub fn code_bytes(&self) -> u64 {
        self.info()
            .map_or(0, |info| info.record.extents().map(|extent| u64::from(extent.bytes)).sum())
    }

    fn info(&self) -> Option<MachineInfo<'_>> {
        self.player.kernel().machines().find(|info| info.id == self.machine())
    }

    fn compare(&mut self, mark: &Mark) -> Result<(), ReplayError> {
        self.marks += 1;
        let Some(recorded) = mark.state else { return Ok(()) };
        match self.state() {
            Some(found) if found == recorded => Ok(()),
            _ => Err(ReplayError::State { marks: self.marks }),
        }
    }
}

/// A store for the machine's tree, on flash like the device's.
fn flash_of(start: &Start) -> Result<Store<RamFlash>, ReplayError> {
    let Start { budget, sector_bytes, program_bytes, .. } = start;
    let machine_bytes = u64::from(budget.memory_bytes)
        .saturating_add(budget.stack_bytes.into())
        .saturating_add(u64::from(budget.stored_bytes) * 4);
    if machine_bytes > MACHINE_BYTES_MAX
        || !SECTOR_BYTES.contains(sector_bytes)
        || !sector_bytes.is_power_of_two()
        || !program_bytes.is_power_of_two()
        || *program_bytes > PROGRAM_BYTES_MAX
    {
        return Err(ReplayError::Start);
    }
    // Four times what it may store: a store that is full is another's concern.
    let sector_count = budget.stored_bytes.saturating_mul(4) / sector_bytes + SECTORS_BESIDE;
    let geometry =
        FlashGeometry { sector_bytes: *sector_bytes, sector_count, program_bytes: *program_bytes };
    Store::format(RamFlash::new(geometry)).map_err(|_| ReplayError::Start)
}

/// The image of the code, and the tree that its machines begin with, as they stand in code flash.
fn images(code: &Code<'_>) -> Result<(Vec<u8>, Vec<u8>), ReplayError> {
    let mut image = Vec::new();
    let (functions, Digest(digest)) = (host_functions(), code.package);
    translate_bound(code.wasm, &functions, &Limits::ample(), &digest, &mut image)
        .map_err(|_| ReplayError::Code)?;
    let mut values: Vec<BaseValue<'_>> = code
        .tree
        .iter()
        .map(|(path, is_text, bytes)| BaseValue { path, kind: kind(*is_text), bytes })
        .collect();
    let mut base = Vec::with_capacity(base_bytes(&values));
    if !values.is_empty() {
        let written = write_base(&mut values, |bytes| {
            base.extend_from_slice(bytes);
            Ok::<(), ReplayError>(())
        });
        written?;
    }
    Ok((image, base))
}

fn keep(kernel: &mut Kernel<RamFlash>, bytes: &[u8]) -> Result<Extent, ReplayError> {
    let region = kernel.code();
    let extent = region.reserve(bytes.len() as u32).map_err(|_| ReplayError::Code)?;
    let mut draft = Draft::new(extent);
    region.append(&mut draft, bytes).map_err(|_| ReplayError::Code)?;
    region.finish(draft).map_err(|_| ReplayError::Code)
}

/// The record of the machine, without the limits that the journal has the consequences of.
fn record_of(code: &Code<'_>, start: &Start, image: Extent, base: Option<Extent>) -> MachineRecord {
    MachineRecord {
        name: start.name.clone(),
        public_key: start.public_key,
        salt: [0; 16],
        package: code.package,
        package_name: start.name.clone(),
        package_version: code.version,
        tenant: VerifyingKey([0; 32]),
        exports: code.exports.clone(),
        timers: Vec::new(),
        budget: Budget {
            queue_length: u16::MAX,
            task_fuel: 0,
            fuel_per_second: 0,
            flash_bytes_per_day: u32::MAX,
            messages_per_second: u32::MAX,
            message_bytes_per_second: u32::MAX,
            ..start.budget
        },
        share: Share::default(),
        grants: Capabilities::default(),
        errors: Audience::default(),
        log: start.log,
        term: Term::default(),
        placement: 1,
        code: CodeKind::WebAssembly,
        image,
        faster: None,
        base,
    }
}

fn kind(is_text: bool) -> ValueKind {
    if is_text { ValueKind::Text } else { ValueKind::Bytes }
}

/// Seals that hide nothing and make values as long as real ones do.
struct Lengths;

impl Sealer for Lengths {
    fn kernel_tree(&self) -> Box<dyn Seal> {
        Box::new(Self)
    }

    fn machine_tree(&self, _: &MachineRecord) -> Box<dyn Seal> {
        Box::new(Self)
    }

    fn seal_state(&mut self, _: &MachineRecord, _: &mut Vec<u8>) {}

    fn open_state(&self, _: &MachineRecord, _: &mut Vec<u8>) -> Result<(), Unsealable> {
        Ok(())
    }
}

impl Seal for Lengths {
    fn seal(&self, _: u64, _: &[u8], _: &mut [u8]) -> [u8; TAG_BYTES] {
        [0; TAG_BYTES]
    }

    fn open(&self, _: u64, _: &[u8], _: &mut [u8], _: &[u8; TAG_BYTES]) -> Result<(), Unsealable> {
        Ok(())
    }
}

/// A journal that was replayed, and was the same.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Replayed {
    /// The machine's name.
    pub name: Option<Name>,
    /// How many pages were replayed.
    pub pages: u64,
    /// How many pages were not: the machine ran another package then.
    pub skipped: u64,
    /// How many times it begins with the machine's state.
    pub starts: u64,
    /// How many marks were compared.
    pub marks: u64,
    /// Fuel that the machine used, without what turns cost.
    pub fuel: u64,
}

/// Replays a journal of a machine, page by page where it ran that code, with `fuel_max` units of fuel at most in
/// all.
///
/// # Errors
/// As [`ReplayError`] says.
pub fn replay(
    journal: &Journal,
    code: &Code<'_>,
    fuel_max: u64,
    watcher: &mut dyn Watcher,
) -> Result<Replayed, ReplayError> {
    let mut replayed = Replayed::default();
    let mut current: Option<Replay> = None;
    let mut skipped = None;
    for page in journal.pages()? {
        let Page { start, records, .. } = page;
        if let Some(start) = start {
            replayed.close(current.take());
            if start.machine != journal.machine {
                return Err(ReplayError::OtherMachine);
            }
            if start.package == code.package {
                let replay = Replay::new(code, &start, fuel_max)?.after(replayed.fuel);
                watcher.began(current.insert(replay));
                replayed.starts += 1;
                replayed.name = Some(start.name);
            } else {
                skipped = Some(start.package);
            }
        }
        match (&mut current, skipped) {
            (Some(replay), _) => {
                replay.play(records, watcher)?;
                replayed.pages += 1;
            }
            (None, Some(_)) => replayed.skipped += 1,
            (None, None) => return Err(ReplayError::NoStart),
        }
    }
    replayed.close(current);
    match skipped {
        Some(recorded) if replayed.starts == 0 => Err(ReplayError::OtherPackage { recorded }),
        _ => Ok(replayed),
    }
}

impl Replayed {
    fn close(&mut self, replay: Option<Replay>) {
        let Some(replay) = replay else { return };
        self.marks += replay.marks;
        self.fuel = self.fuel.saturating_add(replay.player.fuel());
    }
}

/// Why a journal isn't replayed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReplayError {
    /// The journal itself is damaged, or isn't what its device signed.
    Journal(JournalError),
    /// It doesn't begin with the machine's state.
    NoStart,
    /// It is of another package.
    OtherPackage {
        /// That package's digest.
        recorded: Digest,
    },
    /// It begins with another machine's state.
    OtherMachine,
    /// The package's wasm isn't taken by this build.
    Code,
    /// The machine at its beginning is one that can't be.
    Start,
    /// The machine's state at its beginning can't be taken up.
    Unplayable(Unplayable),
    /// The machine does something else.
    Differs(Diverged),
    /// The machine's memory, stack or tree is another at a mark.
    State {
        /// Which mark since the journal's last beginning, the first is 1.
        marks: u64,
    },
    /// It takes more fuel than is allowed.
    Fuel {
        /// How much is allowed.
        fuel_max: u64,
    },
}

impl ReplayError {
    /// Whether the machine ran, and differed from its journal.
    pub const fn is_difference(&self) -> bool {
        matches!(self, Self::Differs(_) | Self::State { .. })
    }
}

impl From<JournalError> for ReplayError {
    fn from(error: JournalError) -> Self {
        Self::Journal(error)
    }
}

impl fmt::Display for ReplayError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Journal(error) => write!(f, "{error}"),
            Self::NoStart => f.write_str(
                "the journal doesn't begin with the machine's state: its beginning is missing",
            ),
            Self::OtherPackage { recorded } => {
                write!(f, "the journal is of another package, {recorded}")
            }
            Self::OtherMachine => f.write_str("the journal begins with another machine's state"),
            Self::Code => f.write_str("this build doesn't take the package's wasm"),
            Self::Start => {
                f.write_str("what the journal says of the machine at its beginning can't be")
            }
            Self::Unplayable(error) => write!(f, "{error}"),
            Self::Differs(diverged) => write!(f, "the run differs from the journal {diverged}"),
            Self::State { marks } => write!(
                f,
                "the run differs from the journal at mark {marks}: the machine's memory, stack or tree is another"
            ),
            Self::Fuel { fuel_max } => {
                write!(
                    f,
                    "the journal takes more than {fuel_max} units of fuel; allow more, if that can be"
                )
            }
        }
    }
}

impl std::error::Error for ReplayError {}
