//! From compiled code and `tenure.toml` to a signed package.

use tenure_crypto::SigningKey;
use tenure_kernel::{NativeBinary, NativeError};
use tenure_package::{CodeKind, Manifest, PackageBuilder, PackageError, ValueKind};
use tenure_wire::path;
use tenure_wire::timer::PackageTimer;

use crate::make::module::Module;
use crate::make::project_file::{ProjectFile, TimerError};
use crate::make::refusal::{self, Names, Refusal, Taker, smaller_memory};
use crate::make::wasi::TreeValue;
use crate::make::zones::{self, ZoneNameError};

/// The store of a device that is a process, in bytes: the largest of all boards.
pub const STORE_BYTES: u32 = 2 * 1024 * 1024;

/// The function that runs when a machine starts.
pub const START_FUNCTION: &str = "entry";

/// Why a project can't be packed. Its author is to blame, and `tenure.toml` or the code to change.
#[derive(Debug, thiserror::Error)]
pub enum PackError {
    /// It offers what it doesn't have.
    #[error(
        "tenure.toml names {name:?}, but the code ({kind}) has no such function; it has: {}",
        .functions.join(", ")
    )]
    Export {
        /// The missing function.
        name: String,
        /// In what code.
        kind: CodeKind,
        /// The functions that are there.
        functions: Vec<String>,
    },
    /// It offers what nobody can call.
    #[error(
        "tenure.toml names {name:?}, which has parameters or results; a function that is called has none: it reads \
         its parameters and writes its result by host calls"
    )]
    Parameters {
        /// The function.
        name: String,
    },
    /// It offers a function that it calls private, or calls its start so.
    #[error("{name:?} can't be private: it is the start, or stands in `exports`, too")]
    Private {
        /// The function's name.
        name: String,
    },
    /// A timer can't be set.
    #[error("tenure.toml, [timers], {function}: {error}")]
    Timer {
        /// Whose.
        function: String,
        /// Why.
        error: TimerError,
    },
    /// The zone of its timers is none.
    #[error("tenure.toml, zone: {0}")]
    Zone(ZoneNameError),
    /// It starts with more memory than it asks for.
    #[error(
        "the code starts with {needed} bytes of memory, but tenure.toml asks for {asked}; set \
         memory_bytes in [budget] to at least {needed}{advice}"
    )]
    Memory {
        /// Bytes that it starts with.
        needed: u64,
        /// Bytes that it asks for.
        asked: u32,
        /// Another way out.
        advice: &'static str,
    },
    /// A value of the initial tree is of a kind that trees don't have.
    #[error(
        "tenure.toml sets {path} in [tree] to {found}; a tree has texts (\"…\"), and bytes as lists \
         of numbers from 0 to 255"
    )]
    Value {
        /// Where.
        path: String,
        /// The kind of the value.
        found: &'static str,
    },
    /// A path of the initial tree is none.
    #[error("tenure.toml, [tree]: {0}")]
    Path(String),
    /// A budget that no machine can live on.
    #[error(
        "tenure.toml sets {name} = {value} in [{table}], with which no machine can do anything; leave it out for \
         the default"
    )]
    TooLittle {
        /// In which table.
        table: &'static str,
        /// Which.
        name: &'static str,
        /// To what.
        value: u32,
    },
    /// A budget that no device has.
    #[error(
        "tenure.toml sets {name} = {value} in [budget], and the largest store of a device has {most} bytes"
    )]
    TooMuch {
        /// Which.
        name: &'static str,
        /// To what.
        value: u32,
        /// The most that makes sense.
        most: u64,
    },
    /// A topic that machines can't publish.
    #[error(
        "tenure.toml asks to publish {0}, which no owner can grant: what is below `device` comes from the \
         device's peripherals alone"
    )]
    DeviceTopic(String),
    /// No device would run it.
    #[error("devices don't run this code: {0}")]
    Code(#[from] Refusal),
    /// No device would load it.
    #[error(transparent)]
    Native(#[from] NativeError),
    /// It is beyond a limit of packages.
    #[error(transparent)]
    Package(#[from] PackageError),
}

/// A compiler's result for a project, with the facts that packing needs.
#[derive(Clone, Debug)]
pub struct CompiledCode {
    /// The functions that can be called.
    functions: Vec<String>,
    /// The exported functions that can't be called.
    uncallable: Vec<String>,
    /// The memory it starts with, in bytes.
    memory_bytes: u64,
    /// The way out if that is too much.
    advice: &'static str,
    kind: CodeKind,
    bytes: Vec<u8>,
    /// The names of a module's functions.
    names: Names,
}

/// The maker of a module, and with it how large its memory is at the start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Linked {
    /// A linker of ours: no memory in vain.
    Exactly,
    /// A linker of ours that makes memories of whole pages of 64 KiB.
    InPages,
    /// Another tool.
    Elsewhere,
}

impl CompiledCode {
    /// A module, with the names of its functions.
    pub fn module(module: Module, linked: Linked, names: Names) -> Self {
        let advice = match linked {
            Linked::Exactly => ", or build.stack_bytes lower",
            Linked::InPages => {
                ", or install lld-22, whose memories needn't be whole pages of 64 KiB"
            }
            Linked::Elsewhere => concat!(", or ", smaller_memory!()),
        };
        let Module { functions, uncallable, memory_bytes, code } = module;
        let kind = CodeKind::WebAssembly;
        Self { functions, uncallable, memory_bytes, advice, kind, bytes: code, names }
    }

    /// The exported functions that can't be called, since they have parameters or results.
    pub fn uncallable(&self) -> &[String] {
        &self.uncallable
    }

    /// The module's bytes, if it is one.
    pub fn wasm(&self) -> Option<&[u8]> {
        (self.kind == CodeKind::WebAssembly).then_some(&*self.bytes)
    }

    /// The refusal of a module by boards with some hundred kilobytes, if it passes a limit of theirs.
    pub fn refusal_by_boards(&self) -> Option<Refusal> {
        refusal::check_for(Taker::Board, self.wasm()?, &self.names).err()
    }

    /// A native binary.
    ///
    /// # Errors
    /// [`PackError::Native`].
    pub fn native(bytes: Vec<u8>) -> Result<Self, PackError> {
        let binary = NativeBinary::parse(&bytes)?;
        Ok(Self {
            functions: binary.exports().map(|(name, _)| name.to_owned()).collect(),
            uncallable: Vec::new(),
            memory_bytes: binary.memory_bytes().into(),
            advice: " and some more for its heap, or build.stack_bytes lower: native code lies in \
                     its machine's memory",
            kind: binary.kind(),
            bytes,
            names: Names::new(),
        })
    }
}

/// Packs and signs what compilers made of `project`, what was compiled from its wasm for processors, and the files that its
/// program finds.
///
/// # Errors
/// See [`PackError`].
pub fn pack(
    project: &ProjectFile,
    compiled: Vec<CompiledCode>,
    faster: Vec<(CodeKind, Vec<u8>)>,
    files: Vec<TreeValue>,
    key: &SigningKey,
) -> Result<Vec<u8>, PackError> {
    for code in &compiled {
        if code.kind == CodeKind::WebAssembly {
            refusal::check(&code.bytes, &code.names)?;
        }
        let (needed, asked) = (code.memory_bytes, project.budget.memory_bytes);
        if needed > u64::from(asked) {
            return Err(PackError::Memory { needed, asked, advice: code.advice });
        }
    }
    check_description(project)?;
    let exports = exports(project, &compiled)?;
    let manifest = Manifest {
        name: project.name.clone(),
        version: project.version,
        description: project.description.clone(),
        exports,
        budget: project.budget,
        capabilities: project.capabilities.clone(),
        code: compiled.iter().map(|code| code.kind).collect(),
        engine: project.engine,
        timers: timers(project, &compiled)?,
        errors: project.errors,
        log: project.log,
    };
    let sections: Vec<_> = compiled.into_iter().map(|code| code.bytes).collect();
    let mut builder = PackageBuilder::with_code(manifest, &sections)?;
    for (kind, bytes) in faster {
        builder = builder.compiled(kind, bytes)?;
    }
    let mut builder = add_values(builder, "", &project.tree)?;
    for (path, kind, value) in files {
        builder = builder.value(&path, kind, &value)?;
    }
    Ok(builder.sign(key)?)
}

/// Refuses what no device and no owner could ever give.
fn check_description(project: &ProjectFile) -> Result<(), PackError> {
    let budget = &project.budget;
    let least = [
        ("budget", "queue_length", u32::from(budget.queue_length), 1),
        ("budget", "stack_bytes", budget.stack_bytes, 64),
        ("build", "stack_bytes", project.build.stack_bytes, 64),
    ];
    if budget.stored_bytes > STORE_BYTES {
        let (name, value) = ("stored_bytes", budget.stored_bytes);
        return Err(PackError::TooMuch { name, value, most: STORE_BYTES.into() });
    }
    let too_little = least.into_iter().find(|(_, _, value, least)| value < least);
    if let Some((table, name, value, _)) = too_little {
        return Err(PackError::TooLittle { table, name, value });
    }
    let topics = project.capabilities.publish.iter().map(ToString::to_string);
    let of_device = |topic: &String| topic == "device" || topic.starts_with("device.");
    topics.into_iter().find(of_device).map_or(Ok(()), |topic| Err(PackError::DeviceTopic(topic)))
}

/// The functions that the package offers: those of the project, or all of the code, but for private ones.
fn exports(project: &ProjectFile, compiled: &[CompiledCode]) -> Result<Vec<String>, PackError> {
    let all = compiled.first().map(|code| code.functions.clone()).unwrap_or_default();
    let exports = project.exports.clone().unwrap_or(all);
    if let Some(both) = project.private.iter().find(|name| {
        *name == START_FUNCTION || project.exports.as_ref().is_some_and(|all| all.contains(name))
    }) {
        return Err(PackError::Private { name: both.clone() });
    }
    let mut named = exports.iter().chain(&project.private);
    named.try_for_each(|name| check_there(name, compiled))?;
    Ok(exports.into_iter().filter(|name| !project.private.contains(name)).collect())
}

/// The timers that the machine begins with.
fn timers(
    project: &ProjectFile,
    compiled: &[CompiledCode],
) -> Result<Vec<PackageTimer>, PackError> {
    project.zone.as_deref().map(zones::rules).transpose().map_err(PackError::Zone)?;
    let timers = project.timers.iter().map(|(function, timer)| {
        check_there(function, compiled)?;
        let when = timer.when(project.zone.as_deref());
        let when = when.map_err(|error| PackError::Timer { function: function.clone(), error })?;
        Ok(PackageTimer { function: function.clone(), when })
    });
    timers.collect()
}

/// Checks that all kinds of code have a function of that name.
fn check_there(name: &String, compiled: &[CompiledCode]) -> Result<(), PackError> {
    let lacking = compiled.iter().find(|code| !code.functions.contains(name));
    lacking.map_or(Ok(()), |code| {
        if code.uncallable.contains(name) {
            return Err(PackError::Parameters { name: name.clone() });
        }
        let (name, kind, functions) = (name.clone(), code.kind, code.functions.clone());
        Err(PackError::Export { name, kind, functions })
    })
}

/// Puts a table's values into the tree below `parent`.
fn add_values(
    mut builder: PackageBuilder,
    parent: &str,
    table: &toml::Table,
) -> Result<PackageBuilder, PackError> {
    for (name, value) in table {
        let path = if parent.is_empty() { name.clone() } else { format!("{parent}.{name}") };
        let checked = path::check_value(&path);
        checked.map_err(|error| PackError::Path(path::refusal(&path, error)))?;
        builder = match value {
            toml::Value::String(text) => builder.value(&path, ValueKind::Text, text.as_bytes())?,
            toml::Value::Table(table) => add_values(builder, &path, table)?,
            toml::Value::Array(numbers) => match bytes(numbers) {
                Some(bytes) => builder.value(&path, ValueKind::Bytes, &bytes)?,
                None => return Err(PackError::Value { path, found: "a list of something else" }),
            },
            other => return Err(PackError::Value { path, found: other.type_str() }),
        };
    }
    Ok(builder)
}

fn bytes(numbers: &[toml::Value]) -> Option<Vec<u8>> {
    numbers.iter().map(|number| u8::try_from(number.as_integer()?).ok()).collect()
}
