//! From compiled code and `tenure.toml` to a signed package.

use tenure_crypto::SigningKey;
use tenure_package::{CodeKind, Manifest, PackageBuilder, PackageError, ValueKind};
use tenure_vm::Limits;

use crate::module::Module;
use crate::project_file::ProjectFile;

/// Why a project can't be packed. Its author is to blame, and `tenure.toml` or the code to change.
#[derive(Debug, thiserror::Error)]
pub enum PackError {
    /// It offers what it doesn't have.
    #[error(
        "tenure.toml exports {name:?}, but the code has no such function; it has: {}",
        .functions.join(", ")
    )]
    Export {
        /// What isn't there.
        name: String,
        /// What is.
        functions: Vec<String>,
    },
    /// It starts with more memory than it asks for.
    #[error(
        "the code starts with {needed} bytes of memory, but tenure.toml asks for {asked}; set \
         memory_bytes in [budget] to at least {needed}{}",
        if *.exact { ", or build.stack_bytes lower" } else {
            ", or install lld-22, whose memories needn't be whole pages of 64 KiB"
        }
    )]
    Memory {
        /// What it starts with.
        needed: u64,
        /// What it asks for.
        asked: u32,
        /// Whether the linker made the memory as small as it can be.
        exact: bool,
    },
    /// A value of the initial tree is of a kind that trees don't have.
    #[error(
        "tenure.toml sets {path} in [tree] to {found}; a tree has texts (\"…\"), and bytes as lists \
         of numbers from 0 to 255"
    )]
    Value {
        /// Where.
        path: String,
        /// What it is.
        found: &'static str,
    },
    /// No device would run it.
    #[error("devices don't run this code: {0}")]
    Code(tenure_vm::TranslateError),
    /// It is beyond a limit of packages.
    #[error(transparent)]
    Package(#[from] PackageError),
}

/// Packs and signs a module. `exact_memory` says that its linker made no memory in vain.
///
/// # Errors
/// See [`PackError`].
pub fn pack(
    project: &ProjectFile,
    module: Module,
    exact_memory: bool,
    key: &SigningKey,
) -> Result<Vec<u8>, PackError> {
    let exports = exports(project, &module)?;
    check_code(&module.code)?;
    if module.memory_bytes > u64::from(project.budget.memory_bytes) {
        return Err(PackError::Memory {
            needed: module.memory_bytes,
            asked: project.budget.memory_bytes,
            exact: exact_memory,
        });
    }
    let manifest = Manifest {
        name: project.name.clone(),
        version: project.version,
        description: project.description.clone(),
        exports,
        budget: project.budget,
        capabilities: project.capabilities.clone(),
        code: CodeKind::WebAssembly,
        engine: project.engine,
    };
    let builder = PackageBuilder::new(manifest, module.code)?;
    Ok(add_values(builder, "", &project.tree)?.sign(key)?)
}

/// Does what a device does when the package is installed there, so that its developer, and not its
/// user, learns of a mistake.
fn check_code(code: &[u8]) -> Result<(), PackError> {
    let (host, limits) = (tenure_kernel::host_functions(), Limits::default());
    tenure_vm::translate(code, &host, &limits, &mut Vec::new()).map_err(PackError::Code)
}

/// What the package offers: what the project says, or all that the code has.
fn exports(project: &ProjectFile, module: &Module) -> Result<Vec<String>, PackError> {
    let Some(exports) = &project.exports else { return Ok(module.functions.clone()) };
    match exports.iter().find(|name| !module.functions.contains(name)) {
        Some(name) => {
            Err(PackError::Export { name: name.clone(), functions: module.functions.clone() })
        }
        None => Ok(exports.clone()),
    }
}

/// Puts a table's values into the tree below `parent`.
fn add_values(
    mut builder: PackageBuilder,
    parent: &str,
    table: &toml::Table,
) -> Result<PackageBuilder, PackError> {
    for (name, value) in table {
        let path = if parent.is_empty() { name.clone() } else { format!("{parent}.{name}") };
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
