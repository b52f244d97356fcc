//! The most that a module may ask for, with strict defaults.

/// Bounds on a module, checked while it is translated. The defaults suit a device with 400 KB of RAM.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of the module.
    pub module_bytes: usize,
    /// Function types.
    pub types: u32,
    /// Imports.
    pub imports: u32,
    /// Functions, imported ones included; at most 65,535.
    pub functions: u32,
    /// Parameters and local variables of one function.
    pub locals: u32,
    /// Bytes of the largest frame: locals, link and operands, 8 bytes each; at most 65,528.
    pub frame_bytes: u32,
    /// Depth of nested blocks in one function.
    pub nesting: u32,
    /// Bytes of code of one function in the module.
    pub function_bytes: u32,
    /// Global variables; at most 8,191.
    pub globals: u32,
    /// Tables.
    pub tables: u32,
    /// Elements that a table has at the start, and may grow to.
    pub table_elements: u32,
    /// Data segments and element segments, each.
    pub segments: u32,
    /// Exports.
    pub exports: u32,
    /// Bytes of linear memory that a module may declare as its initial size. What an instance is given
    /// is decided by `InstanceConfig::memory_bytes_max`.
    pub memory_bytes: u64,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            module_bytes: 1 << 20,
            types: 256,
            imports: 256,
            functions: 4096,
            locals: 1024,
            frame_bytes: 16 * 1024,
            nesting: 512,
            function_bytes: 128 * 1024,
            globals: 256,
            tables: 4,
            table_elements: 4096,
            segments: 1024,
            exports: 256,
            memory_bytes: 16 << 20,
        }
    }
}

impl Limits {
    /// The limits of devices with megabytes of memory. What a module takes while it is translated, and its machine afterwards,
    /// is bounded by its bytes and its budget there.
    pub fn ample() -> Limits {
        Limits {
            module_bytes: 8 << 20,
            types: 8_192,
            imports: 256,
            functions: 40_000,
            locals: 4_096,
            frame_bytes: 48 * 1024,
            nesting: 4_096,
            function_bytes: 1 << 20,
            globals: 4_096,
            tables: 64,
            table_elements: 65_536,
            segments: 16_384,
            exports: 4_096,
            memory_bytes: 1 << 32,
        }
    }

    /// The limits of the format itself: for hosts with ample memory, tests and tools.
    pub fn widest() -> Limits {
        Limits {
            module_bytes: 1 << 30,
            types: 60_000,
            imports: 60_000,
            functions: 60_000,
            locals: 8_000,
            frame_bytes: 65_528,
            nesting: 10_000,
            function_bytes: 8 << 20,
            globals: 8_000,
            tables: 1_000,
            table_elements: 10_000_000,
            segments: 60_000,
            exports: 60_000,
            memory_bytes: 1 << 32,
        }
    }
}
