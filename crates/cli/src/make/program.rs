//! A module in its parts.

use wasmparser::{
    BinaryReader, BinaryReaderError, CompositeInnerType, Data, Element, Export, FuncType,
    FunctionBody, Global, MemoryType, Name, NameMap, NameSectionReader, Parser, Payload, Table,
    TypeRef, ValType,
};

/// A module, as it was read.
#[derive(Default)]
pub(super) struct Program<'a> {
    /// The types of functions; others are nothing.
    pub(super) types: Vec<Option<FuncType>>,
    pub(super) type_section: Option<wasmparser::TypeSectionReader<'a>>,
    pub(super) imports: Vec<Import<'a>>,
    /// The types of its own functions.
    pub(super) functions: Vec<u32>,
    pub(super) tables: Vec<Table<'a>>,
    pub(super) memories: Vec<MemoryType>,
    pub(super) globals: Vec<Global<'a>>,
    pub(super) exports: Vec<Export<'a>>,
    pub(super) start: Option<u32>,
    pub(super) elements: Vec<Element<'a>>,
    /// Where the code section's content begins.
    pub(super) code_at: usize,
    pub(super) bodies: Vec<FunctionBody<'a>>,
    pub(super) data: Vec<Data<'a>>,
    /// Sections that mean nothing to who runs it: name and content.
    pub(super) customs: Vec<(&'a str, &'a [u8])>,
}

/// An import.
#[derive(Clone, Copy)]
pub(super) struct Import<'a> {
    pub(super) module: &'a str,
    pub(super) name: &'a str,
    pub(super) kind: TypeRef,
}

impl<'a> Program<'a> {
    pub(super) fn read(bytes: &'a [u8]) -> Result<Self, BinaryReaderError> {
        let mut program = Self::default();
        for payload in Parser::new(0).parse_all(bytes) {
            program.take(payload?)?;
        }
        Ok(program)
    }

    fn take(&mut self, payload: Payload<'a>) -> Result<(), BinaryReaderError> {
        match payload {
            Payload::TypeSection(section) => {
                self.type_section = Some(section.clone());
                for group in section {
                    for subtype in group?.into_types() {
                        self.types.push(match subtype.composite_type.inner {
                            CompositeInnerType::Func(function) => Some(function),
                            _ => None,
                        });
                    }
                }
            }
            Payload::ImportSection(section) => {
                for import in section {
                    let import = import?;
                    let (module, name, kind) = (import.module, import.name, import.ty);
                    self.imports.push(Import { module, name, kind });
                }
            }
            Payload::FunctionSection(section) => {
                self.functions = section.into_iter().collect::<Result<_, _>>()?;
            }
            Payload::TableSection(section) => {
                self.tables = section.into_iter().collect::<Result<_, _>>()?;
            }
            Payload::MemorySection(section) => {
                self.memories = section.into_iter().collect::<Result<_, _>>()?;
            }
            Payload::GlobalSection(section) => {
                self.globals = section.into_iter().collect::<Result<_, _>>()?;
            }
            Payload::ExportSection(section) => {
                self.exports = section.into_iter().collect::<Result<_, _>>()?;
            }
            Payload::StartSection { func, .. } => self.start = Some(func),
            Payload::ElementSection(section) => {
                self.elements = section.into_iter().collect::<Result<_, _>>()?;
            }
            Payload::CodeSectionStart { range, .. } => self.code_at = range.start,
            Payload::CodeSectionEntry(body) => self.bodies.push(body),
            Payload::DataSection(section) => {
                self.data = section.into_iter().collect::<Result<_, _>>()?;
            }
            Payload::CustomSection(section) => self.customs.push((section.name(), section.data())),
            _ => {}
        }
        Ok(())
    }

    /// The imported functions, in the order of their indices.
    pub(super) fn imported_functions(&self) -> impl Iterator<Item = (&Import<'a>, u32)> {
        self.imports.iter().filter_map(|import| match import.kind {
            TypeRef::Func(kind) => Some((import, kind)),
            _ => None,
        })
    }

    /// Whether that is emscripten's call by which its JavaScript would hear that the memory has grown: nobody has to. Its
    /// standalone output has it where memory may grow (`-sALLOW_MEMORY_GROWTH`), and no other beside WASI's.
    pub(super) fn is_notice_of_growth(&self, import: &Import<'_>) -> bool {
        let is_notice =
            |kind: &FuncType| kind.params() == [ValType::I32] && kind.results().is_empty();
        (import.module, import.name) == ("env", "emscripten_notify_memory_growth")
            && matches!(import.kind, TypeRef::Func(kind) if self.kind(kind).is_some_and(is_notice))
    }

    /// How many functions are imported.
    pub(super) fn imported_count(&self) -> u32 {
        self.imported_functions().count() as u32
    }

    /// How many globals are imported.
    pub(super) fn imported_globals(&self) -> u32 {
        let is_global = |import: &&Import<'_>| matches!(import.kind, TypeRef::Global(_));
        self.imports.iter().filter(is_global).count() as u32
    }

    /// The type of that index.
    pub(super) fn kind(&self, index: u32) -> Option<&FuncType> {
        self.types.get(index as usize)?.as_ref()
    }

    /// The type of a function.
    pub(super) fn function_kind(&self, function: u32) -> Option<&FuncType> {
        self.kind(self.type_index(function)?)
    }

    /// The index of a function's type.
    pub(super) fn type_index(&self, function: u32) -> Option<u32> {
        let imported = self.imported_count();
        match function.checked_sub(imported) {
            Some(own) => self.functions.get(own as usize).copied(),
            None => self.imported_functions().nth(function as usize).map(|(_, kind)| kind),
        }
    }

    /// The first type that is the same as that of this index.
    pub(super) fn first_same_type(&self, index: u32) -> u32 {
        let kind = self.kind(index);
        let found = self.types.iter().position(|it| it.as_ref() == kind && kind.is_some());
        found.map_or(index, |found| found as u32)
    }

    /// The names that it gives its functions.
    pub(super) fn function_names(&self) -> Vec<(u32, String)> {
        self.named(|part| match part {
            Name::Function(names) => Some(names),
            _ => None,
        })
    }

    /// The names that it gives its globals.
    pub(super) fn global_names(&self) -> Vec<(u32, String)> {
        self.named(|part| match part {
            Name::Global(names) => Some(names),
            _ => None,
        })
    }

    fn named(&self, part: impl Fn(Name<'a>) -> Option<NameMap<'a>>) -> Vec<(u32, String)> {
        let mut names = Vec::new();
        for (_, data) in self.customs.iter().filter(|(name, _)| *name == "name") {
            let parts = NameSectionReader::new(BinaryReader::new(data, 0));
            // A broken name section is as good as none from there on (wasm spec §7.4.1).
            for map in parts.flatten().filter_map(&part) {
                let namings = map.into_iter().flatten();
                names.extend(namings.map(|naming| (naming.index, naming.name.to_owned())));
            }
        }
        names
    }

    /// The function that it exports under that name.
    pub(super) fn exported_function(&self, name: &str) -> Option<u32> {
        let is_it = |export: &&Export<'_>| {
            export.kind == wasmparser::ExternalKind::Func && export.name == name
        };
        self.exports.iter().find(is_it).map(|export| export.index)
    }
}
