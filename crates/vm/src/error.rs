//! Why a module was refused.

use core::fmt;

/// A module that cannot be translated: what is wrong, and where.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TranslateError {
    /// Byte offset in the module.
    pub offset: usize,
    /// The fault there.
    pub kind: TranslateErrorKind,
}

/// The fault of a module, by who is to blame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TranslateErrorKind {
    /// The bytes are no module (wasm 2.0 §5).
    Malformed(Malformed),
    /// A module that breaks a rule (wasm 2.0 §3).
    Invalid(Invalid),
    /// Valid perhaps, but it needs a feature that this engine does not have.
    Unsupported(Feature),
    /// Larger than its limits.
    Limit(Limit),
    /// An import of a function that the host does not offer.
    UnknownImport,
    /// The host took no more of the image.
    SinkFull,
    /// The heap had no room for what a translation takes.
    OutOfMemory,
}

macro_rules! reasons {
    ($(#[$doc:meta])* $name:ident { $($variant:ident = $text:literal,)* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum $name { $(#[doc = $text] $variant,)* }

        impl fmt::Display for $name {
            fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str(match self { $($name::$variant => $text,)* })
            }
        }
    };
}

reasons! {
    /// How bytes fail to be a module.
    Malformed {
        UnexpectedEnd = "unexpected end",
        Magic = "magic header not detected",
        Version = "unknown binary version",
        Leb128 = "integer representation too long or too large",
        SectionId = "malformed section id",
        SectionOrder = "unexpected content after last section",
        SectionSize = "section size mismatch",
        Utf8 = "malformed UTF-8 encoding",
        ValueType = "malformed value type",
        ReferenceType = "malformed reference type",
        FunctionType = "malformed function type",
        ImportKind = "malformed import kind",
        ExportKind = "malformed export kind",
        LimitsFlags = "malformed limits flags",
        Mutability = "malformed mutability",
        ElementKind = "malformed elements segment kind",
        DataKind = "malformed data segment kind",
        CodeCount = "function and code section have inconsistent lengths",
        DataCount = "data count and data section have inconsistent lengths",
        DataCountRequired = "data count section required",
        TooManyLocals = "too many locals",
        BodySize = "function body size mismatch",
        Opcode = "illegal opcode",
        ZeroByte = "zero byte expected",
        BlockType = "malformed block type",
        ConstantExpression = "malformed constant expression",
    }
}

reasons! {
    /// Which rule a module breaks.
    Invalid {
        TypeMismatch = "type mismatch",
        UnknownType = "unknown type",
        UnknownFunction = "unknown function",
        UnknownTable = "unknown table",
        UnknownMemory = "unknown memory",
        UnknownGlobal = "unknown global",
        UnknownLocal = "unknown local",
        UnknownLabel = "unknown label",
        UnknownData = "unknown data segment",
        UnknownElements = "unknown elem segment",
        ImmutableGlobal = "global is immutable",
        ConstantRequired = "constant expression required",
        Alignment = "alignment must not be larger than natural",
        MemorySize = "memory size must be at most 4 GiB",
        LimitsOrder = "size minimum must not be greater than maximum",
        PageSize = "invalid custom page size",
        DuplicateExport = "duplicate export name",
        StartFunction = "start function must have type [] -> []",
        UndeclaredReference = "undeclared function reference",
        SelectArity = "invalid result arity",
        ElseRequired = "if without else must leave its operands' types unchanged",
    }
}

reasons! {
    /// A proposal that is not part of this engine.
    Feature {
        Simd = "SIMD",
        Threads = "threads",
        Exceptions = "exception handling",
        GarbageCollection = "garbage collection",
        FunctionReferences = "typed function references",
        MultipleMemories = "multiple memories",
        Memory64 = "64-bit memory",
        Floats = "floating point (left out of this build)",
        ImportedMemory = "imported memory",
        ImportedTable = "imported table",
        ImportedGlobal = "imported mutable or unknown global",
        ImportedTag = "imported tag",
        WideArithmetic = "wide arithmetic",
        StackSwitching = "stack switching",
    }
}

reasons! {
    /// Which limit a module exceeds.
    Limit {
        ModuleBytes = "module size",
        Types = "number of types",
        Imports = "number of imports",
        Functions = "number of functions",
        Locals = "number of locals",
        FrameBytes = "frame size",
        Nesting = "nesting of blocks",
        FunctionBytes = "size of a function",
        Globals = "number of globals",
        Tables = "number of tables",
        TableElements = "number of table elements",
        Segments = "number of segments",
        Exports = "number of exports",
        MemoryBytes = "declared memory",
        ImageBytes = "size of the image",
    }
}

impl fmt::Display for TranslateError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.kind {
            TranslateErrorKind::Malformed(reason) => {
                write!(formatter, "malformed module: {reason}")?
            }
            TranslateErrorKind::Invalid(reason) => write!(formatter, "invalid module: {reason}")?,
            TranslateErrorKind::Unsupported(feature) => {
                write!(formatter, "unsupported feature: {feature}")?
            }
            TranslateErrorKind::Limit(limit) => write!(formatter, "over the limit: {limit}")?,
            TranslateErrorKind::UnknownImport => formatter.write_str("unknown import")?,
            TranslateErrorKind::SinkFull => formatter.write_str("no room for the image")?,
            TranslateErrorKind::OutOfMemory => {
                formatter.write_str("out of memory while it was translated")?
            }
        }
        write!(formatter, " at byte {}", self.offset)
    }
}

impl core::error::Error for TranslateError {}

impl From<Malformed> for TranslateErrorKind {
    fn from(reason: Malformed) -> TranslateErrorKind {
        TranslateErrorKind::Malformed(reason)
    }
}

impl From<Invalid> for TranslateErrorKind {
    fn from(reason: Invalid) -> TranslateErrorKind {
        TranslateErrorKind::Invalid(reason)
    }
}

impl From<Feature> for TranslateErrorKind {
    fn from(feature: Feature) -> TranslateErrorKind {
        TranslateErrorKind::Unsupported(feature)
    }
}

impl From<Limit> for TranslateErrorKind {
    fn from(limit: Limit) -> TranslateErrorKind {
        TranslateErrorKind::Limit(limit)
    }
}
