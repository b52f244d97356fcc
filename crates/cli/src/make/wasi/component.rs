//! Components: one core module is a component's program, and what that imports are functions as the canonical ABI lowers them.
//!
//! What `wit-component` makes (and with it rustc, TinyGo, `wasm-tools component new`) has further modules of glue: a shim whose
//! functions call through a table, one that fills the table, one that calls `_initialize`, and perhaps an adapter that makes
//! preview 1 of 0.2. None of them is needed here: the program's imports keep their names, and are linked with our own functions.

use std::borrow::Cow;

use tenure_wire::host_call::{HostCallInfo, TABLE, WIT};
use wasmparser::{ExternalKind, Parser, Payload, TypeRef};

use super::adapter::Adapter;
use super::{COMMAND, MODULE, WasiError};
use crate::make::program::Program;

/// The program's function that gives memory for strings and lists that it is handed.
pub(super) const REALLOC: &str = "cabi_realloc";
/// What the program's functions that only the canonical ABI calls begin with.
const OWN: [&str; 2] = ["cabi_", "canonical_abi_"];
/// What the adapter's functions for asynchronous calls begin with.
pub(super) const ASYNC: &str = "async:";
/// The adapter's function that hears how a component's `run` ended.
pub(super) const RETURNED: &str = "component:returned";
/// The table of the shim, by `wit-component`'s name for it.
const SHIM_TABLE: &str = "$imports";
/// The versions of WASI that are there, by what is compatible with one another.
pub(super) const TRACKS: [&str; 2] = ["0.2", "0.3"];

/// The program of a component, or the module itself if it is none.
pub(super) fn program(bytes: &[u8]) -> Result<Cow<'_, [u8]>, WasiError> {
    if !Parser::is_component(bytes) {
        return Ok(Cow::Borrowed(bytes));
    }
    let adapter = Adapter::read(super::adapter::PREVIEW_1)?;
    let mut programs = Vec::new();
    for module in modules(bytes)? {
        if !is_glue(&Program::read(module)?, &adapter) {
            programs.push(module);
        }
    }
    match programs.as_slice() {
        [program] => Ok(Cow::Borrowed(*program)),
        programs => Err(WasiError::Modules { count: programs.len() }),
    }
}

/// The core modules of a component.
fn modules(bytes: &[u8]) -> Result<Vec<&[u8]>, WasiError> {
    let mut modules = Vec::new();
    // Whether each component or module that is being read is a component.
    let mut within = vec![true];
    for payload in Parser::new(0).parse_all(bytes) {
        match payload? {
            Payload::ModuleSection { unchecked_range, .. } => {
                // The outermost one may hold others, such as those that name what it exports, but no further programs.
                if within.len() > 1 {
                    return Err(WasiError::Composed);
                }
                within.push(false);
                modules.extend(bytes.get(unchecked_range));
            }
            Payload::ComponentSection { .. } => within.push(true),
            Payload::End(_) => {
                within.pop();
            }
            _ => {}
        }
    }
    Ok(modules)
}

/// Whether a module of a component is none of the program's.
fn is_glue(module: &Program<'_>, adapter: &Adapter) -> bool {
    let is_table =
        |kind: ExternalKind, name: &str| kind == ExternalKind::Table && name == SHIM_TABLE;
    let is_shim = module.exports.iter().any(|export| is_table(export.kind, export.name));
    // One fills the shim's table, and one has the program's `_initialize` for its start function.
    let has_no_code = module.functions.is_empty() && !module.imports.is_empty();
    // An adapter from preview 1 works in the program's memory.
    let imports_memory =
        module.imports.iter().any(|import| matches!(import.kind, TypeRef::Memory(_)));
    let is_of_preview_1 =
        |name: &str| !name.contains([':', '#']) && adapter.module.exported_function(name).is_some();
    let makes_preview_1 =
        imports_memory && module.exports.iter().any(|export| is_of_preview_1(export.name));
    is_shim || has_no_code || makes_preview_1
}

/// The name that the adapter has for a function of WASI's, or of the canonical ABI's, in whichever way a program imports it.
pub(super) fn adapter_name<'a>(module: &str, name: &'a str) -> Option<Cow<'a, str>> {
    if module == MODULE {
        return Some(Cow::Borrowed(name));
    }
    if let Some(builtin) = builtin(module, name) {
        return Some(Cow::Owned(builtin));
    }
    let (interface, version) = module.split_once('@')?;
    let track = TRACKS.into_iter().find(|track| is_of(version, track))?;
    interface.starts_with("wasi:").then(|| Cow::Owned(format!("{interface}@{track}#{name}")))
}

/// The adapter's name for what the canonical ABI itself has for asynchronous functions: `[waitable-set-new]`,
/// `[async-lower][stream-read-0]write-via-stream` and their like, as `wit-component` names them (`validation.rs`).
fn builtin(module: &str, name: &str) -> Option<String> {
    if is_of_run(module.strip_prefix("[export]").unwrap_or_default()) && name == "[task-return]run"
    {
        return Some(RETURNED.to_owned());
    }
    let (is_lowered, rest) = match name.strip_prefix("[async-lower]") {
        Some(rest) => (true, rest),
        None => (false, name),
    };
    let (operation, of) = rest.strip_prefix('[')?.split_once(']')?;
    let is_root = module == "$root" || module == "[export]$root";
    if is_root && of.is_empty() && !operation.ends_with("-unit") {
        return Some(format!("{ASYNC}{}", operation.replace("-i32", "")));
    }
    let (operation, item) = operation.rsplit_once('-')?;
    let (kind, verb) = operation.split_once('-')?;
    // All streams of `wasi:cli` are of bytes, and all its futures of how that went.
    let is_of_cli = module.starts_with("wasi:cli/")
        && module.split_once('@').is_some_and(|(_, version)| is_of(version, TRACKS[1]));
    let is_known = match item {
        "unit" => is_root && kind == "stream",
        item => is_of_cli && item.parse::<u32>().is_ok(),
    };
    // One that isn't lowered so would have to wait within the call.
    let waits = matches!(verb, "read" | "write") && !is_lowered;
    if !is_known || waits || !matches!(kind, "stream" | "future") {
        return None;
    }
    match (verb, item) {
        ("new", "unit") => Some(format!("{ASYNC}stream-new-unit")),
        _ => Some(format!("{ASYNC}{operation}")),
    }
}

/// Whether a version is one of those that are compatible. One before a release is with none.
fn is_of(version: &str, track: &str) -> bool {
    let rest = version.strip_prefix(track);
    rest.is_some_and(|rest| rest.is_empty() || (rest.starts_with('.') && !rest.contains('-')))
}

/// The host call that a component imports by that name.
pub(super) fn host_call(module: &str, name: &str) -> Option<&'static HostCallInfo> {
    let (interface, version) = module.split_once('@')?;
    let (package, interface) = interface.split_once('/')?;
    let is_ours = package == WIT.package && interface == WIT.interface && version == WIT.version;
    is_ours.then(|| TABLE.iter().find(|call| call.name.replace('_', "-") == name)).flatten()
}

/// Whether that is an import of a component's, by its module's name.
pub(super) fn is_interface(module: &str) -> bool {
    module.contains([':', '/', '$', '['])
}

/// The advice for one who has to do without an interface.
pub(super) fn instead(interface: &str) -> &'static str {
    let (name, version) = interface.split_once('@').unwrap_or((interface, ""));
    let package = name.split('/').next().unwrap_or(name);
    match package {
        "wasi:http" => {
            "a machine reaches servers by the host call `call` with a URL: import tenure:machine/host, or the SDK"
        }
        "wasi:sockets" => {
            "machines have no sockets, and reach servers and one another by the host call `call`: import \
             tenure:machine/host, or the SDK"
        }
        "wasi:cli" | "wasi:clocks" | "wasi:filesystem" | "wasi:io" | "wasi:random"
            if !TRACKS.into_iter().any(|track| is_of(version, track)) =>
        {
            "of WASI, preview 1, 0.2 and 0.3 are there: build it for one of them"
        }
        "wasi:filesystem" if is_of(version, "0.3") => {
            "of 0.3, there are cli, clocks and random, and files are reached by wasi:filesystem 0.2, as Rust's standard \
             library has it for wasm32-wasip2"
        }
        package if package == WIT.package => {
            "the versions differ: the package as this command has it lies in .tenure/sdk/wit of each project"
        }
        package if package.starts_with("wasi:") => {
            "the interfaces that are there stand in docs/wasi.md; build it without this one"
        }
        _ => {
            "it is none of WASI's, and nothing else is linked in: compile what implements it into the same core module, \
             and don't leave it to composition"
        }
    }
}

/// The function that is the program, of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Command {
    pub(super) function: u32,
    /// Whether it returns how it went, as a component's `run` does: 0 or 1.
    pub(super) returns_result: bool,
    /// The function by which it goes on, where it is asynchronous: then it returns what it waits for.
    pub(super) callback: Option<u32>,
}

/// Whether an interface is `wasi:cli/run`.
fn is_of_run(interface: &str) -> bool {
    let version = interface.strip_prefix("wasi:cli/run@");
    version.is_some_and(|version| TRACKS.into_iter().any(|track| is_of(version, track)))
}

impl Program<'_> {
    /// The function that is the program, if it is a command's: a component's `run`, or `_start`.
    pub(super) fn command(&self) -> Option<Command> {
        let run = |lifted: &str| {
            let is_it = |name: &str| {
                let name = name.strip_prefix(lifted).and_then(|it| it.strip_suffix("#run"));
                name.is_some_and(is_of_run)
            };
            let is_function = |kind: ExternalKind| kind == ExternalKind::Func;
            let export = self.exports.iter().find(|it| is_function(it.kind) && is_it(it.name));
            export.map(|export| export.index)
        };
        let plain = |function| Command { function, returns_result: true, callback: None };
        let lifted = |function| Command {
            function,
            returns_result: true,
            callback: run("[callback][async-lift]"),
        };
        let start = |function| Command { function, returns_result: false, callback: None };
        run("")
            .map(plain)
            .or_else(|| run("[async-lift]").map(lifted))
            .or_else(|| self.exported_function(COMMAND).map(start))
    }

    /// Whether an exported function is there for the canonical ABI alone.
    pub(super) fn is_of_the_abi(name: &str) -> bool {
        OWN.into_iter().any(|start| name.starts_with(start))
    }

    /// Whether it imports functions that are linked in here.
    pub(super) fn needs_linking(&self) -> bool {
        self.imports.iter().any(|import| import.module == MODULE) || self.is_of_component()
    }

    /// Whether it imports or exports what components do, beside preview 1.
    pub(super) fn is_of_component(&self) -> bool {
        let imports = self.imports.iter().filter(|import| import.module != MODULE);
        let mut imports = imports.map(|import| (import.module, import.name));
        let is_known = |(module, name): (&str, &str)| {
            adapter_name(module, name).is_some() || host_call(module, name).is_some()
        };
        imports.any(is_known) || self.command().is_some_and(|command| command.returns_result)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_compatible_versions() {
        let name = |module: &str| adapter_name(module, "now").map(Cow::into_owned);
        let expected = Some("wasi:clocks/wall-clock@0.2#now".to_owned());
        for version in ["0.2", "0.2.0", "0.2.12"] {
            assert_eq!(name(&format!("wasi:clocks/wall-clock@{version}")), expected);
        }
        let later = Some("wasi:clocks/wall-clock@0.3#now".to_owned());
        assert_eq!(name("wasi:clocks/wall-clock@0.3.2"), later);
        for version in
            ["0.20.0", "0.2.0-rc-2023-11-10", "0.3.0-rc-2025-09-16", "0.1.0", "1.2.0", ""]
        {
            assert_eq!(name(&format!("wasi:clocks/wall-clock@{version}")), None, "{version}");
        }
        assert_eq!(name("wasi:clocks/wall-clock"), None);
        assert_eq!(name("other:clocks/wall-clock@0.2.0"), None);
        assert_eq!(name(MODULE).as_deref(), Some("now"));
    }

    #[test]
    fn functions_of_the_abi_are_those_for_streams_of_bytes_and_their_outcome() {
        let cli = "wasi:cli/stdin@0.3.2";
        for (module, name, expected) in [
            (cli, "[stream-new-0]read-via-stream", Some("async:stream-new")),
            (cli, "[async-lower][stream-read-0]read-via-stream", Some("async:stream-read")),
            (cli, "[async-lower][future-write-1]read-via-stream", Some("async:future-write")),
            (cli, "[stream-cancel-write-0]read-via-stream", Some("async:stream-cancel-write")),
            (cli, "[future-drop-readable-1]read-via-stream", Some("async:future-drop-readable")),
            ("$root", "[waitable-set-new]", Some("async:waitable-set-new")),
            ("$root", "[context-get-i32-0]", Some("async:context-get-0")),
            ("$root", "[async-lower][subtask-cancel]", Some("async:subtask-cancel")),
            ("$root", "[stream-new-unit]", Some("async:stream-new-unit")),
            ("$root", "[async-lower][stream-write-unit]", Some("async:stream-write")),
            ("[export]$root", "[task-cancel]", Some("async:task-cancel")),
            ("[export]wasi:cli/run@0.3.0", "[task-return]run", Some(RETURNED)),
            // It would wait within the call.
            (cli, "[stream-read-0]read-via-stream", None),
            // Its items may be anything.
            ("my:parts/engine@0.3.0", "[stream-new-0]turn", None),
            ("wasi:cli/stdin@0.2.0", "[stream-new-0]read-via-stream", None),
            ("my:parts/engine@0.3.0", "[task-return]run", None),
        ] {
            let found = builtin(module, name);
            assert_eq!(found.as_deref(), expected, "{module} {name}");
        }
    }

    #[test]
    fn host_calls_are_found_by_their_names_in_wit() {
        let module = format!("{}/{}@{}", WIT.package, WIT.interface, WIT.version);
        for call in TABLE {
            let found = host_call(&module, &call.name.replace('_', "-"));
            assert_eq!(found.map(|it| it.number), Some(call.number));
        }
        assert!(host_call(&module, "fly").is_none());
        assert!(host_call("tenure:machine/host@9.0.0", "log").is_none());
    }
}
