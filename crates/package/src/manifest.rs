//! The manifest of a package: its description and its wishes.

use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;
use core::fmt;
use core::marker::PhantomData;

use serde::de::{Error as _, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use tenure_wire::capability::{CAPABILITIES_MAX, Right};
use tenure_wire::limits::{FUNCTION_BYTES_MAX, TIMERS_MAX};
use tenure_wire::printable::misleads;
use tenure_wire::timer::{PERIOD_MS_MIN, PackageTimer};
use tenure_wire::{Audience, Budget, Capabilities, CodeKind, LogLevel, Name};

use tenure_wire::Version;

/// The most functions that a package offers.
pub const EXPORTS_MAX: usize = 64;
/// The longest description, in bytes.
pub const DESCRIPTION_BYTES_MAX: usize = 256;

/// A package's description of itself and its wishes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Manifest {
    /// The package's name, and its machine's unless the owner chooses another.
    pub name: Name,
    /// The package's version.
    pub version: Version,
    /// One line for those who choose among packages.
    pub description: String,
    /// The functions that callers may call. `entry`, if it is among them, runs when the machine
    /// starts.
    #[serde(deserialize_with = "list_of_exports")]
    pub exports: Vec<String>,
    /// The budget that the machine asks for; the owner grants at most this.
    pub budget: Budget,
    /// The rights that the machine asks for.
    pub capabilities: Capabilities,
    /// The kinds of code that the package carries, in their order.
    #[serde(deserialize_with = "list_of_kinds")]
    pub code: Vec<CodeKind>,
    /// The engine that the machine would like.
    pub engine: Engine,
    /// The timers that the machine begins with.
    #[serde(deserialize_with = "list_of_timers")]
    pub timers: Vec<PackageTimer>,
    /// The callers who are told the machine's own words on its failures.
    pub errors: Audience,
    /// The least grave of the machine's lines that its log takes.
    pub log: LogLevel,
}

/// The engine that a machine's WebAssembly would like. Every device can run it in the vm.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Engine {
    /// The vm: it can be suspended anywhere.
    #[default]
    Vm,
    /// Compiled to native code where the device can; it can't be suspended inside a call then.
    NativeSpeed,
}

impl Manifest {
    /// The manifest of a package of WebAssembly that offers no function and asks for no right, with the default
    /// budget.
    #[must_use]
    pub fn new(name: Name, version: Version) -> Self {
        Self {
            name,
            version,
            description: String::new(),
            exports: Vec::new(),
            budget: Budget::default(),
            capabilities: Capabilities::default(),
            code: vec![CodeKind::WebAssembly],
            engine: Engine::default(),
            timers: Vec::new(),
            errors: Audience::default(),
            log: LogLevel::default(),
        }
    }

    /// Checks everything that the types don't.
    ///
    /// # Errors
    /// The first thing that is beyond a limit or said twice.
    pub fn check(&self) -> Result<(), ManifestError> {
        if self.description.len() > DESCRIPTION_BYTES_MAX {
            return Err(ManifestError::Description);
        }
        if self.exports.len() > EXPORTS_MAX {
            return Err(ManifestError::Exports);
        }
        if let Some(export) =
            self.exports.iter().position(|name| !is_word(name, FUNCTION_BYTES_MAX))
        {
            return Err(ManifestError::ExportName { export });
        }
        if let Some(export) = duplicate(&self.exports) {
            return Err(ManifestError::ExportTwice { export });
        }
        if self.code.is_empty() || duplicate(&self.code).is_some() {
            return Err(ManifestError::Code);
        }
        if self.timers.len() > TIMERS_MAX {
            return Err(ManifestError::Timers);
        }
        let is_refused = |timer: &PackageTimer| {
            !is_word(&timer.function, FUNCTION_BYTES_MAX) || !timer.when.is_possible()
        };
        let functions: Vec<_> = self.timers.iter().map(|timer| &timer.function).collect();
        let refused = self.timers.iter().position(is_refused).or_else(|| duplicate(&functions));
        if let Some(timer) = refused {
            return Err(ManifestError::Timer { timer });
        }
        self.capabilities.check().map_err(ManifestError::Capability)
    }
}

/// Whether `text` can name something: visible characters that a terminal shows as they are, not too
/// many.
fn is_word(text: &str, bytes_max: usize) -> bool {
    let is_refused = |character: char| character.is_whitespace() || misleads(character);
    !text.is_empty() && text.len() <= bytes_max && !text.chars().any(is_refused)
}

/// Where the first item stands that was there before.
fn duplicate<T: PartialEq>(list: &[T]) -> Option<usize> {
    (1..list.len()).find(|position| list[..*position].contains(&list[*position]))
}

fn list_of_exports<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
    deserializer.deserialize_seq(ShortList::<String, EXPORTS_MAX>(PhantomData))
}

fn list_of_kinds<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<CodeKind>, D::Error> {
    const KINDS_MAX: usize = CodeKind::ALL.len();
    deserializer.deserialize_seq(ShortList::<CodeKind, KINDS_MAX>(PhantomData))
}

fn list_of_timers<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Vec<PackageTimer>, D::Error> {
    deserializer.deserialize_seq(ShortList::<PackageTimer, TIMERS_MAX>(PhantomData))
}

/// Reads a list and believes what there is, not what its length says: serde would reserve up to a
/// megabyte for an alleged length.
struct ShortList<T, const MAX: usize>(PhantomData<T>);

impl<'de, T: Deserialize<'de>, const MAX: usize> Visitor<'de> for ShortList<T, MAX> {
    type Value = Vec<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a list of at most {MAX} items")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut sequence: A) -> Result<Vec<T>, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = sequence.next_element()? {
            if list.len() == MAX {
                return Err(A::Error::invalid_length(MAX + 1, &self));
            }
            list.push(item);
        }
        Ok(list)
    }
}

/// The fault of a manifest. Its author is to blame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ManifestError {
    /// The description is too long.
    Description,
    /// There are too many exports.
    Exports,
    /// An export's name is empty, too long or has invisible characters.
    ExportName {
        /// Which, counted from 0.
        export: usize,
    },
    /// An export is there twice.
    ExportTwice {
        /// The second one, counted from 0.
        export: usize,
    },
    /// It has no kind of code, or one of them twice.
    Code,
    /// There are too many timers.
    Timers,
    /// A timer's function has no name or another timer, or the timer never fires, or too often.
    Timer {
        /// Which, counted from 0.
        timer: usize,
    },
    /// A list of capabilities is too long or names something twice.
    Capability(Right),
}

impl fmt::Display for ManifestError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Description => {
                write!(f, "the description is longer than {DESCRIPTION_BYTES_MAX} bytes")
            }
            Self::Exports => write!(f, "there are more than {EXPORTS_MAX} exports"),
            Self::ExportName { export } => write!(
                f,
                "export {} has no name of 1 to {FUNCTION_BYTES_MAX} visible characters",
                export + 1
            ),
            Self::ExportTwice { export } => write!(f, "export {} is there twice", export + 1),
            Self::Code => f.write_str("no kind of code is listed, or one of them twice"),
            Self::Timers => write!(f, "there are more than {TIMERS_MAX} timers"),
            Self::Timer { timer } => write!(
                f,
                "timer {} has no function of its own, never fires, or fires oftener than each {PERIOD_MS_MIN} ms",
                timer + 1
            ),
            Self::Capability(right) => write!(
                f,
                "the capabilities list more than {CAPABILITIES_MAX} {0}, or one of them twice",
                right.list()
            ),
        }
    }
}

impl core::error::Error for ManifestError {}

#[cfg(test)]
mod tests;
