//! The functions that are neither the program's nor the adapter's, but stand between the two.

use tenure_wire::host_call::{HostCallInfo, ParameterKind};
use wasm_encoder::{BlockType, Function, ValType};

use super::layout::RESULT_BYTES;

/// Bytes of alignment of all that lies in the memory.
pub(super) const ALIGNMENT: u32 = 16;

/// Where things are in the memory.
#[derive(Clone, Copy, Debug)]
pub(super) struct Places {
    pub(super) settings: u32,
    /// Room for a result; 0 without one.
    pub(super) result: u32,
    pub(super) files: u32,
    pub(super) tasks: u32,
    /// The program's memory.
    pub(super) base: u32,
}

impl Places {
    pub(super) fn new(
        adapter_bytes: u32,
        settings_bytes: u32,
        has_result: bool,
        (files_bytes, tasks_bytes): (u32, u32),
    ) -> Self {
        let settings = adapter_bytes.next_multiple_of(ALIGNMENT);
        let behind = (settings + settings_bytes).next_multiple_of(ALIGNMENT);
        let (result, files) = match has_result {
            true => (behind, behind + RESULT_BYTES),
            false => (0, behind),
        };
        let tasks = (files + files_bytes).next_multiple_of(ALIGNMENT);
        let base = (tasks + tasks_bytes).next_multiple_of(ALIGNMENT);
        Self { settings, result, files, tasks, base }
    }
}

/// A function that returns a number.
pub(super) fn constant(number: u32) -> Function {
    let mut function = Function::new([]);
    function.instructions().i32_const(number as i32).end();
    function
}

/// The address of a program's as it is in the memory. An address from which that leads beyond the last one traps.
pub(super) fn moved_address(base: u32) -> Function {
    let mut function = Function::new([]);
    let last = 0_u32.wrapping_sub(base).wrapping_sub(1) as i32;
    let mut code = function.instructions();
    code.local_get(0).i32_const(last).i32_gt_u().if_(BlockType::Empty).unreachable().end();
    code.local_get(0).i32_const(base as i32).i32_add().end();
    function
}

/// The program's memory, by pages of its own size.
#[derive(Clone, Copy, Debug)]
pub(super) struct Memory {
    pub(super) base: u32,
    pub(super) page_bytes_log2: u32,
    /// The global that holds how many pages the program has.
    pub(super) pages: u32,
    /// The most pages, if it says so.
    pub(super) pages_max: Option<u64>,
}

impl Memory {
    /// `memory.size`.
    pub(super) fn size(&self) -> Function {
        let mut function = Function::new([]);
        function.instructions().global_get(self.pages).end();
        function
    }

    /// `memory.grow`. Memory that an earlier run has left is taken first; it holds zeros.
    pub(super) fn grow(&self) -> Function {
        const MEMORY_BYTES_MAX: u64 = u32::MAX as u64;
        let by_pages = |pages: u64| (pages << self.page_bytes_log2) + u64::from(self.base);
        let most = self.pages_max.map_or(MEMORY_BYTES_MAX, by_pages).min(MEMORY_BYTES_MAX);
        let (by, needed) = (0, 1);
        let mut function = Function::new([(1, ValType::I64)]);
        let mut code = function.instructions();
        code.global_get(self.pages).i64_extend_i32_u().local_get(by).i64_extend_i32_u().i64_add();
        code.i64_const(self.page_bytes_log2.into()).i64_shl();
        code.i64_const(self.base.into()).i64_add().local_tee(needed);
        code.i64_const(most as i64).i64_gt_u();
        code.if_(BlockType::Empty).i32_const(-1).return_().end();
        code.local_get(needed).memory_size(0).i64_extend_i32_u().i64_gt_u().if_(BlockType::Empty);
        code.local_get(needed).i32_wrap_i64().memory_size(0).i32_sub().memory_grow(0);
        code.i32_const(-1).i32_eq().if_(BlockType::Empty).i32_const(-1).return_().end().end();
        code.global_get(self.pages);
        code.global_get(self.pages).local_get(by).i32_add().global_set(self.pages).end();
        function
    }

    /// `memory.copy`; `moved` is [`moved_address`].
    pub(super) fn copy(moved: u32) -> Function {
        let mut function = Function::new([]);
        let mut code = function.instructions();
        code.local_get(0).call(moved).local_get(1).call(moved).local_get(2).memory_copy(0, 0).end();
        function
    }

    /// `memory.fill`.
    pub(super) fn fill(moved: u32) -> Function {
        let mut function = Function::new([]);
        let mut code = function.instructions();
        code.local_get(0).call(moved).local_get(1).local_get(2).memory_fill(0).end();
        function
    }

    /// `memory.init` of a segment.
    pub(super) fn init(moved: u32, segment: u32) -> Function {
        let mut function = Function::new([]);
        let mut code = function.instructions();
        code.local_get(0).call(moved).local_get(1).local_get(2).memory_init(0, segment).end();
        function
    }

    /// Makes zeros of all that a run has left.
    pub(super) fn clear(&self, function: &mut Function) {
        let mut code = function.instructions();
        code.i32_const(self.base as i32).i32_const(0).global_get(self.pages);
        code.i32_const(self.page_bytes_log2 as i32).i32_shl().memory_fill(0);
    }
}

/// A host call of the program's own: its pointers are moved, and null stays null where it means something.
pub(super) fn host_call(call: &HostCallInfo, import: u32, moved: u32) -> Function {
    let mut function = Function::new([]);
    let mut slot = 0;
    let mut code = function.instructions();
    for parameter in call.parameters {
        match parameter.kind {
            ParameterKind::Word => {
                code.local_get(slot);
            }
            ParameterKind::Optional => {
                code.local_get(slot).if_(BlockType::Result(ValType::I32));
                code.local_get(slot).call(moved).else_().i32_const(0).end().local_get(slot + 1);
            }
            ParameterKind::Text | ParameterKind::Bytes | ParameterKind::Buffer => {
                code.local_get(slot).call(moved).local_get(slot + 1);
            }
        }
        slot += parameter.kind.slots() as u32;
    }
    code.call(import).end();
    function
}

/// `proc_exit`: the program's functions that are under way return once `exited` is set.
pub(super) fn exit(of_adapter: u32, exited: u32) -> Function {
    let mut function = Function::new([]);
    let mut code = function.instructions();
    code.local_get(0).call(of_adapter).i32_const(1).global_set(exited).end();
    function
}
