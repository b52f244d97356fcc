//! Where in a program's source an offset of its image is: function names and source lines.
//!
//! A package carries neither names nor DWARF. `tenure build` leaves both beside it, in
//! NAME.debug.wasm, which is of use only if its code is the package's, byte for byte. DWARF counts
//! addresses from the start of the code section's content (WebAssembly tool conventions, "DWARF for
//! WebAssembly").

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Context as _;
use gimli::{DwLang, Dwarf, EndianArcSlice, LittleEndian, SectionId};
use tenure_package::{CodeKind, Package};
use tenure_vm::{Limits, SourceMap};
use tenure_wire::Name;
use tenure_wire::control::LogLine;
use wasmparser::{ExternalKind, KnownCustom, Parser, Payload, TypeRef};

use crate::make::module::{Module, ModuleError};
use crate::make::moved::Moved;
use crate::make::source_map::{self, LineMap};
use crate::make::variables::Variables;
use crate::terminal::output::{Beside, tell, tell_beside};
use crate::terminal::trace::{Place, SourceLine};
use crate::whole_file;

/// The most bytes of a debug module.
const DEBUG_BYTES_MAX: u64 = 256 << 20;

/// The ending of a package's debug module, instead of `tenure`.
const DEBUG_EXTENSION: &str = "debug.wasm";

/// Where the debug module of the package at `package` is.
pub fn debug_path(package: &Path) -> PathBuf {
    package.with_extension(DEBUG_EXTENSION)
}

/// A point in an image, as a fault names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Site {
    /// The function's index in the module.
    pub function: u32,
    /// The offset in the function's image code, in bytes.
    pub offset: u32,
    /// Whether the offset is the module's instead, as it is of what ran at native speed.
    pub in_module: bool,
}

/// Names and source lines of one package's code.
pub struct Symbols {
    map: SourceMap,
    names: BTreeMap<u32, String>,
    /// Where the content of the code section begins in the package's module.
    code_at: u32,
    lines: Option<addr2line::Context<Section>>,
    variables: Option<Variables>,
    /// Where the code was before it was linked with WASI's functions, if it was.
    moved: Option<Moved>,
    /// The lines by a source map, where there is no DWARF.
    mapped: Option<Mapped>,
}

/// A source map, and what is needed to use it: the package's code, and the module that the map is of.
struct Mapped {
    map: LineMap,
    code: Vec<u8>,
    module: Vec<u8>,
}

impl Mapped {
    /// The line of the instruction at this offset of the package's code.
    fn line_at(&self, offset: u32) -> Option<SourceLine> {
        let offset = source_map::original(&self.code, &self.module, offset)?;
        let (file, line) = self.map.line_at(offset)?;
        Some(SourceLine { function: None, file: file.into(), line })
    }
}

/// A section of DWARF.
pub(crate) type Section = EndianArcSlice<LittleEndian>;

/// Why a package's code can't be explained.
#[derive(Debug, thiserror::Error)]
pub enum SymbolError {
    /// The package's code is nothing that a device runs.
    #[error("devices don't run this package's code: {0}")]
    Code(#[from] tenure_vm::TranslateError),
    /// The package carries native code alone.
    #[error("the package carries no wasm")]
    NoModule,
    /// The package's code or the debug module isn't well formed.
    #[error(transparent)]
    Module(#[from] ModuleError),
    /// The debug module was left by another build.
    #[error("it belongs to another build of the package; build the package again")]
    OtherBuild,
    /// The DWARF in it can't be read.
    #[error("its debug information can't be read: {0}")]
    Dwarf(#[from] gimli::Error),
}

impl From<wasmparser::BinaryReaderError> for SymbolError {
    fn from(error: wasmparser::BinaryReaderError) -> Self {
        Self::Module(error.into())
    }
}

impl Symbols {
    /// The facts about a package's code: names of imports and exports, and with its debug module
    /// all names and the source lines.
    ///
    /// # Errors
    /// See [`SymbolError`].
    pub fn of(package: &Package<'_>, debug: Option<&[u8]>) -> Result<Self, SymbolError> {
        let code = package.code(CodeKind::WebAssembly).ok_or(SymbolError::NoModule)?;
        let map = SourceMap::new(code, &tenure_kernel::host_functions(), &Limits::ample())?;
        let mut sections = Sections::read(code)?;
        let code_at = sections.code_at;
        let (mut lines, mut variables, mut moved, mut mapped) = (None, None, None, None);
        if let Some(debug) = debug {
            if Module::read(debug)?.code != code {
                return Err(SymbolError::OtherBuild);
            }
            sections = Sections::read(debug)?;
            let dwarf = Arc::new(sections.dwarf(debug)?);
            lines = Some(addr2line::Context::from_arc_dwarf(Arc::clone(&dwarf))?);
            variables = Some(Variables::new(dwarf));
            let places = sections.custom.get(Moved::SECTION).cloned();
            moved = places.and_then(|range| debug.get(range)).map(Moved::from_bytes);
            let text = sections.custom.get(LineMap::SECTION).cloned();
            let map = text.and_then(|range| LineMap::from_json(debug.get(range)?).ok());
            mapped = map.map(|map| Mapped { map, code: code.to_vec(), module: debug.to_vec() });
        }
        let mut symbols =
            Self { map, names: sections.names, code_at, lines, variables, moved, mapped };
        symbols.make_names_readable();
        Ok(symbols)
    }

    /// Demangles the names, each by the language that its function was written in.
    fn make_names_readable(&mut self) {
        let names = std::mem::take(&mut self.names);
        let readable = names.into_iter().map(|(function, name)| {
            let language = is_mangled(&name).then(|| self.language_of(function)).flatten();
            (function, readable(&name, language))
        });
        self.names = readable.collect();
    }

    /// The language of the unit that a function is of, if DWARF says so.
    fn language_of(&self, function: u32) -> Option<DwLang> {
        let address = self.address(Site { function, offset: 0, in_module: false })?;
        let mut frames = self.lines.as_ref()?.find_frames(address).skip_all_loads().ok()?;
        frames.next().ok()??.function?.language
    }

    /// As [`Self::of`], with the debug module that lies beside the package, if one does.
    ///
    /// # Errors
    /// It is there and can't be used.
    pub fn beside(path: &Path, package: &Package<'_>) -> anyhow::Result<Self> {
        let debug_path = debug_path(path);
        match whole_file::read(&debug_path, DEBUG_BYTES_MAX) {
            Ok(debug) => Self::of(package, Some(&debug))
                .with_context(|| format!("can't use {}", debug_path.display())),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                Ok(Self::of(package, None)?)
            }
            Err(error) => Err(error).context(format!("can't read {}", debug_path.display())),
        }
    }

    /// As [`Self::beside`], for somebody who asks for names and lines; where no debug module lies beside the package, that is
    /// told.
    ///
    /// # Errors
    /// As [`Self::beside`].
    pub fn beside_or_told(path: &Path, package: &Package<'_>) -> anyhow::Result<Self> {
        let debug = debug_path(path);
        if !debug.exists() {
            let text = format!(
                "no {} lies beside {}, where `tenure build` put one: names and lines are missing",
                debug.file_name().unwrap_or_default().display(),
                path.display()
            );
            tell_beside(Beside::Note, &text);
        }
        Self::beside(path, package)
    }

    /// A function's name, if known.
    pub fn name(&self, function: u32) -> Option<&str> {
        self.names.get(&function).map(String::as_str)
    }

    /// The function and line at `site`.
    pub fn place(&self, site: Site) -> Place {
        let function = self.name(site.function).map(str::to_owned);
        Place { function, lines: self.lines_at(site).unwrap_or_default() }
    }

    /// The functions of this name, or whose path ends with it; angle brackets don't count, which Rust puts around types.
    pub(crate) fn functions(&self, name: &str) -> impl Iterator<Item = u32> {
        let plain = |name: &str| name.replace(['<', '>'], "");
        let name = plain(name);
        let is_named = move |own: &str| {
            let own = plain(own);
            own.strip_suffix(&*name).is_some_and(|path| path.is_empty() || path.ends_with("::"))
        };
        let named = self.names.iter().filter(move |(_, own)| is_named(own));
        named.map(|(function, _)| *function)
    }

    /// The names of all functions that have one.
    pub(crate) fn function_names(&self) -> impl Iterator<Item = &str> {
        self.names.values().map(String::as_str)
    }

    /// The variables of the source, if there is DWARF.
    pub(crate) fn variables(&self) -> Option<&Variables> {
        self.variables.as_ref()
    }

    /// Whether lines are known of instructions one by one; by a source map they are dear.
    pub(crate) fn has_dwarf(&self) -> bool {
        self.mapped.is_none() && self.lines.is_some()
    }

    fn in_module(&self, site: Site) -> Option<u32> {
        match site.in_module {
            true => Some(site.offset),
            false => self.map.module_offset(site.function, site.offset),
        }
    }

    /// The address of `site` as DWARF counts.
    pub(crate) fn address(&self, site: Site) -> Option<u64> {
        let address = u64::from(self.in_module(site)?.checked_sub(self.code_at)?);
        match &self.moved {
            Some(moved) => moved.original(address),
            None => Some(address),
        }
    }

    fn lines_at(&self, site: Site) -> Option<Vec<SourceLine>> {
        if let Some(mapped) = &self.mapped {
            return Some(mapped.line_at(self.in_module(site)?).into_iter().collect());
        }
        let address = self.address(site)?;
        let mut frames = self.lines.as_ref()?.find_frames(address).skip_all_loads().ok()?;
        let mut lines = Vec::new();
        // Damaged debug information could nest without end.
        const INLINED_MAX: usize = 64;
        while let Ok(Some(frame)) = frames.next()
            && lines.len() < INLINED_MAX
        {
            let name = frame
                .function
                .as_ref()
                .and_then(|name| Some(readable(&name.raw_name().ok()?, name.language)));
            let Some(location) = frame.location else { continue };
            if let (Some(file), Some(line)) = (location.file, location.line) {
                lines.push(SourceLine { function: name, file: file.into(), line });
            }
        }
        Some(lines)
    }
}

/// The names of a module's functions, as far as it tells them; none of what is no module.
pub fn names(module: &[u8]) -> BTreeMap<u32, String> {
    let names = Sections::read(module).map(|sections| sections.names).unwrap_or_default();
    names.into_iter().map(|(function, name)| (function, readable(&name, None))).collect()
}

/// The parts of a module beside its code.
#[derive(Default)]
struct Sections {
    names: BTreeMap<u32, String>,
    code_at: u32,
    custom: BTreeMap<String, Range<usize>>,
}

impl Sections {
    fn read(bytes: &[u8]) -> Result<Self, SymbolError> {
        let mut sections = Self::default();
        for payload in Parser::new(0).parse_all(bytes) {
            match payload? {
                Payload::ImportSection(imports) => {
                    let mut functions = 0..;
                    for import in imports {
                        let import = import?;
                        if let (TypeRef::Func(_), Some(index)) = (import.ty, functions.next()) {
                            sections.names.insert(index, import.name.to_owned());
                        }
                    }
                }
                Payload::ExportSection(exports) => {
                    for export in exports {
                        let export = export?;
                        if export.kind == ExternalKind::Func {
                            sections.names.insert(export.index, export.name.to_owned());
                        }
                    }
                }
                Payload::CodeSectionStart { range, .. } => sections.code_at = range.start as u32,
                Payload::CustomSection(section) => {
                    if let KnownCustom::Name(names) = section.as_known() {
                        // A broken name section is as good as none from there on (wasm spec §7.4.1).
                        let _ = sections.read_names(names);
                    }
                    let (start, length) = (section.data_offset(), section.data().len());
                    sections.custom.insert(section.name().to_owned(), start..start + length);
                }
                _ => {}
            }
        }
        Ok(sections)
    }

    fn read_names(&mut self, names: wasmparser::NameSectionReader<'_>) -> Result<(), SymbolError> {
        for part in names {
            let wasmparser::Name::Function(functions) = part? else { continue };
            for naming in functions {
                let naming = naming?;
                // An imported or exported function goes by the name that both sides know.
                self.names.entry(naming.index).or_insert_with(|| naming.name.to_owned());
            }
        }
        Ok(())
    }

    fn dwarf(&self, bytes: &[u8]) -> Result<Dwarf<Section>, gimli::Error> {
        Dwarf::load(|id: SectionId| {
            let range = self.custom.get(id.name()).cloned().unwrap_or_default();
            let section: Arc<[u8]> = bytes.get(range).unwrap_or_default().into();
            Ok::<_, gimli::Error>(Section::new(section, LittleEndian))
        })
    }
}

/// A name as its author wrote it: demangled if `language` mangles, or nobody knows, and without the hash that Rust's
/// linker adds. A name that isn't mangled stays: the demangler takes `i` for the type `int`.
fn readable(name: &str, language: Option<DwLang>) -> String {
    let may_be_mangled = is_mangled(name) && language.is_none_or(mangles);
    let demangled = match may_be_mangled {
        true => addr2line::demangle_auto(Cow::Borrowed(name), None),
        false => Cow::Borrowed(name),
    };
    match demangled.rsplit_once("::h") {
        Some((path, hash)) if hash.len() == 16 && hash.bytes().all(|b| b.is_ascii_hexdigit()) => {
            path.to_owned()
        }
        _ => demangled.into_owned(),
    }
}

/// Whether a name begins as those of C++'s ABI (Itanium, §5.1.2) and of Rust (RFC 2603) do.
fn is_mangled(name: &str) -> bool {
    ["_Z", "__Z", "_R"].iter().any(|prefix| name.starts_with(prefix))
}

fn mangles(language: DwLang) -> bool {
    [
        gimli::DW_LANG_Rust,
        gimli::DW_LANG_C_plus_plus,
        gimli::DW_LANG_C_plus_plus_03,
        gimli::DW_LANG_C_plus_plus_11,
        gimli::DW_LANG_C_plus_plus_14,
        gimli::DW_LANG_C_plus_plus_17,
        gimli::DW_LANG_C_plus_plus_20,
    ]
    .contains(&language)
}

/// The words between the place of a fault and the calls that led to it, as the kernel writes them.
const CALLED_FROM: &str = ", called from ";

impl Site {
    /// The site that the text of a fault names, as the kernel writes it.
    pub fn in_text(text: &str) -> Option<Self> {
        let (_, site) = text.rsplit_once("in function ")?;
        let (function, place) = site.split_once(" at ")?;
        let in_module = place.starts_with("module ");
        let (_, offset) = place.split_once("offset 0x")?;
        let offset = offset.split_once(CALLED_FROM).map_or(offset, |(offset, _)| offset);
        Some(Self {
            function: function.parse().ok()?,
            offset: u32::from_str_radix(offset, 16).ok()?,
            in_module,
        })
    }

    /// The site that the text of a fault names, and the calls that led there, innermost first.
    pub fn trace_in_text(text: &str) -> Vec<Self> {
        let Some(first) = Self::in_text(text) else { return Vec::new() };
        let callers = text.rsplit_once(CALLED_FROM).map_or("", |(_, callers)| callers);
        let callers = callers.split(", ").map_while(|site| site.parse().ok());
        let in_module = first.in_module;
        let callers = callers.map(|site: Self| Self { in_module, ..site });
        std::iter::once(first).chain(callers).collect()
    }
}

impl std::str::FromStr for Site {
    type Err = &'static str;

    /// Reads FUNCTION:OFFSET, as in `12:0x3a`.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        const FORM: &str = "a place in the code is FUNCTION:OFFSET, as in 12:0x3a";
        let (function, offset) = text.split_once(':').ok_or(FORM)?;
        let offset = match offset.strip_prefix("0x") {
            Some(digits) => u32::from_str_radix(digits, 16),
            None => offset.parse(),
        };
        let function = function.parse().map_err(|_| FORM)?;
        Ok(Self { function, offset: offset.map_err(|_| FORM)?, in_module: false })
    }
}

/// The symbols of machines, by their names.
#[derive(Default)]
pub struct MachineSymbols(BTreeMap<Name, Symbols>);

impl MachineSymbols {
    /// Explains what `machine` does by `symbols` from now on.
    pub fn insert(&mut self, machine: Name, symbols: Symbols) {
        self.0.insert(machine, symbols);
    }

    /// Explains what the machine of a package does that lies at `path`, by the debug module beside it; says on standard error
    /// if that can't be.
    pub fn insert_beside(&mut self, path: &Path, package: &[u8]) {
        let Ok(package) = Package::parse(package) else { return };
        match Symbols::beside(path, &package) {
            Ok(symbols) => self.insert(package.manifest().name.clone(), symbols),
            Err(error) => {
                let text = format!("faults won't be explained: {}", tell(&error));
                tell_beside(Beside::Warning, &text);
            }
        }
    }

    /// Where the fault happened that a line of the log tells of, and the calls that led there, innermost
    /// first; empty if it tells of none, or nothing is known of its place.
    pub fn trace_in(&self, line: &LogLine) -> Vec<Place> {
        if line.level != "fault" {
            return Vec::new();
        }
        self.trace(&line.machine, &line.message)
    }

    /// Where a fault of `machine` happened, and the calls that led there, as far as they are known.
    pub fn trace(&self, machine: &Name, fault: &str) -> Vec<Place> {
        let Some(symbols) = self.0.get(machine) else { return Vec::new() };
        let sites = Site::trace_in_text(fault);
        let mut places: Vec<Place> = sites.into_iter().map(|site| symbols.place(site)).collect();
        let known = places.iter().rposition(Place::is_known).map_or(0, |last| last + 1);
        places.truncate(known);
        places
    }

    /// Where a fault of `machine` happened.
    pub fn place(&self, machine: &Name, fault: &str) -> Option<Place> {
        let place = self.0.get(machine)?.place(Site::in_text(fault)?);
        place.is_known().then_some(place)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tenure_kernel::{Fault, FaultKind, Limit};

    #[test]
    fn name_of_c_stays_as_it_is_and_a_mangled_one_is_read_by_its_language() {
        // The one-letter codes of types (Itanium C++ ABI §5.1.5.2) and other short names that a demangler takes for one.
        for name in ["i", "d", "f", "v", "c", "St", "Ss", "PKc", "main", "Pv", "_Zone", "z"] {
            assert_eq!(readable(name, Some(gimli::DW_LANG_C11)), name);
            assert_eq!(readable(name, None), name);
        }
        for language in
            [None, Some(gimli::DW_LANG_C_plus_plus_14), Some(gimli::DW_LANG_C_plus_plus_20)]
        {
            assert_eq!(readable("_ZN3pot4warmEv", language), "pot::warm()");
        }
        assert_eq!(readable("_ZN3pot4warmEv", Some(gimli::DW_LANG_C11)), "_ZN3pot4warmEv");
        let rust = "_ZN3pot4warm17h0123456789abcdefE";
        assert_eq!(readable(rust, Some(gimli::DW_LANG_Rust)), "pot::warm");
        assert_eq!(readable("_RNvC3pot4warm", None), "pot::warm");
        assert_eq!(readable("i", Some(gimli::DW_LANG_C_plus_plus_14)), "i", "extern \"C\"");
    }

    #[test]
    fn fault_as_the_kernel_writes_it_names_its_site() {
        let kind = FaultKind::Trap(tenure_vm::TrapKind::Unreachable);
        let limit = Some(Limit::Memory { used: 16_000, bytes: 16_384 });
        let fault = Fault { kind, function: Some(12), offset: Some(0x3a), by_engine: false, limit };
        let text = format!("stopped while serving `x`: {fault}");
        assert_eq!(
            Site::in_text(&text),
            Some(Site { function: 12, offset: 0x3a, in_module: false })
        );
        let text = Fault { by_engine: true, ..fault }.to_string();
        assert_eq!(
            Site::in_text(&text),
            Some(Site { function: 12, offset: 0x3a, in_module: true })
        );
        let nowhere = Fault { function: None, offset: None, ..fault };
        assert_eq!(Site::in_text(&nowhere.to_string()), None);
        let traced = format!("{text}, called from 9:0x12, 5:0x40");
        let site = |function, offset| Site { function, offset, in_module: true };
        let trace = [site(12, 0x3a), site(9, 0x12), site(5, 0x40)];
        assert_eq!(Site::trace_in_text(&traced), trace);
        assert_eq!(Site::trace_in_text(&text), trace[..1]);
        assert_eq!(Site::trace_in_text(&format!("{text}, called from x, 5:0x40")), trace[..1]);
        for text in ["in function 1", "in function x at offset 0x1", "in function 1 at offset 0xg"]
        {
            assert_eq!(Site::in_text(text), None, "{text}");
        }
    }

    #[test]
    fn site_on_the_command_line_is_decimal_or_hexadecimal() {
        assert_eq!("12:0x3a".parse(), Ok(Site { function: 12, offset: 0x3a, in_module: false }));
        assert_eq!("12:58".parse(), Ok(Site { function: 12, offset: 58, in_module: false }));
        for text in ["", "12", "12:", ":3", "12:0x", "x:1", "1:2:3"] {
            assert!(text.parse::<Site>().is_err(), "{text}");
        }
    }

    #[test]
    fn names_lose_what_the_compiler_added() {
        for (name, plain) in [
            ("_ZN7machine4stop17h0123456789abcdefE", "machine::stop"),
            ("machine::stop::h0123456789abcdef", "machine::stop"),
            ("std::hash", "std::hash"),
            ("main", "main"),
        ] {
            assert_eq!(readable(name, None), plain);
        }
    }
}
