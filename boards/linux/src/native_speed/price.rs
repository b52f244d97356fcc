//! Prices of instructions at native speed, so that no kind is cheaper there than in the vm.
//!
//! A unit of fuel in the vm is 16 bits of image code, with a surcharge for what a small core takes long
//! for. The compiled code counts halves of a unit. A test runs each kind of instruction by the vm
//! beside it and holds the ratio.

use wasmtime::OperatorCost;

/// How many parts the compiled code counts for one unit of fuel.
pub(super) const PARTS_PER_UNIT: u64 = 2;

/// Parts for each byte that a host call copies between a machine and the kernel.
pub(super) const COPIED_PARTS_PER_BYTE: u64 = 1;

/// Sets the price of each of these instructions, in parts.
macro_rules! price {
    ($table:ident, $parts:expr, $($operator:ident)*) => { $($table.$operator = $parts;)* };
}

/// The price of each instruction, in parts of a unit of fuel.
pub(super) fn prices() -> OperatorCost {
    let mut table = OperatorCost::new();
    integers(&mut table);
    floats(&mut table);
    conversions(&mut table);
    accesses(&mut table);
    control(&mut table);
    table
}

fn integers(table: &mut OperatorCost) {
    price!(table, 6,
        I32Eqz I32Eq I32Ne I32LtS I32LtU I32GtS I32GtU I32LeS I32LeU I32GeS I32GeU
        I64Eqz I64Eq I64Ne I64LtS I64LtU I64GtS I64GtU I64LeS I64LeU I64GeS I64GeU
        I32Add I32Sub I32Mul I32And I32Or I32Xor I32Shl I32ShrS I32ShrU I32Rotl I32Rotr
        I64Add I64Sub I64Mul I64And I64Or I64Xor I64Shl I64ShrS I64ShrU I64Rotl I64Rotr
    );
    price!(table, 30, I32Clz I32Ctz I32Popcnt I32DivS I32DivU I32RemS I32RemU);
    price!(table, 36, I64Clz I64Ctz I64Popcnt);
    price!(table, 114, I64DivS I64DivU I64RemS I64RemU);
}

fn floats(table: &mut OperatorCost) {
    price!(table, 12, F32Abs F32Neg F32Copysign F64Abs F64Neg F64Copysign);
    price!(table, 34,
        F32Eq F32Ne F32Lt F32Gt F32Le F32Ge F64Eq F64Ne F64Lt F64Gt F64Le F64Ge
        F32Min F32Max F64Min F64Max
        F32Ceil F32Floor F32Trunc F64Ceil F64Floor F64Trunc
    );
    price!(table, 56, F32Add F32Sub F32Mul F32Div F32Nearest);
    price!(table, 74, F64Add F64Sub F64Mul F64Nearest);
    price!(table, 96, F32Sqrt);
    price!(table, 114, F64Div);
    price!(table, 240, F64Sqrt);
}

fn conversions(table: &mut OperatorCost) {
    price!(table, 6,
        I32WrapI64 I64ExtendI32S I64ExtendI32U
        I32Extend8S I32Extend16S I64Extend8S I64Extend16S I64Extend32S
        I32ReinterpretF32 I64ReinterpretF64 F32ReinterpretI32 F64ReinterpretI64
    );
    price!(table, 74,
        I32TruncF32S I32TruncF32U I32TruncF64S I32TruncF64U
        I64TruncF32S I64TruncF32U I64TruncF64S I64TruncF64U
        I32TruncSatF32S I32TruncSatF32U I32TruncSatF64S I32TruncSatF64U
        I64TruncSatF32S I64TruncSatF32U I64TruncSatF64S I64TruncSatF64U
        F32ConvertI32S F32ConvertI32U F32ConvertI64S F32ConvertI64U F32DemoteF64
        F64ConvertI32S F64ConvertI32U F64ConvertI64S F64ConvertI64U F64PromoteF32
    );
}

fn accesses(table: &mut OperatorCost) {
    price!(table, 4, LocalGet LocalSet LocalTee I32Const F32Const);
    price!(table, 6,
        I32Load I64Load F32Load F64Load I32Load8S I32Load8U I32Load16S I32Load16U
        I64Load8S I64Load8U I64Load16S I64Load16U I64Load32S I64Load32U
        I32Store I64Store F32Store F64Store I32Store8 I32Store16 I64Store8 I64Store16 I64Store32
        GlobalGet GlobalSet RefNull RefIsNull RefFunc I64Const F64Const
    );
    price!(table, 124, MemorySize TableGet TableSet TableSize);
    price!(table, 170,
        MemoryGrow MemoryFill MemoryCopy MemoryInit DataDrop
        TableGrow TableFill TableCopy TableInit ElemDrop
    );
    // A page of memory is mapped and zeroed by the system as it is reached.
    table.variable.memory_grow_per_page = u8::MAX;
    table.variable.table_copy_per_element = 4;
    table.variable.table_fill_per_element = 4;
    table.variable.table_init_per_element = 4;
    table.variable.table_grow_per_element = 4;
}

fn control(table: &mut OperatorCost) {
    price!(table, 6, If Br BrIf Select TypedSelect Return);
    price!(table, 8, BrTable);
    // Frame, arguments and the locals that are zeroed.
    price!(table, 32, Call CallIndirect ReturnCall ReturnCallIndirect);
}
