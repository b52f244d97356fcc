//! The functions in the midst of which a program may leave, and doesn't come back to who called them: those that call one by
//! which it leaves, and those that call such ones.

use std::collections::BTreeSet;

use wasm_encoder::Function;
use wasmparser::{BinaryReaderError, ElementItems, FuncType, Operator, ValType};

use super::program::Program;

/// The calls behind which a program looks whether it has left.
#[derive(Default)]
pub(super) struct Leavers {
    /// The functions that may leave, those by which a program leaves among them.
    functions: BTreeSet<u32>,
    /// The types of those of them that may be called by a pointer.
    kinds: BTreeSet<u32>,
    /// For each type the first one that is the same.
    first_same: Vec<u32>,
    /// The functions that are called by others, or by a pointer.
    called: BTreeSet<u32>,
}

impl Leavers {
    /// Those of a program that leaves by the functions `ways_out`.
    pub(super) fn of(
        program: &Program<'_>,
        ways_out: impl IntoIterator<Item = u32>,
    ) -> Result<Self, BinaryReaderError> {
        let functions: BTreeSet<u32> = ways_out.into_iter().collect();
        if functions.is_empty() {
            return Ok(Self::default());
        }
        let first_same = (0..program.types.len() as u32).map(|it| program.first_same_type(it));
        let mut leavers = Self { functions, first_same: first_same.collect(), ..Self::default() };
        let calls = Calls::of(program, &leavers)?;
        loop {
            let before = leavers.functions.len();
            let pointed_at = calls.pointed_at.intersection(&leavers.functions);
            let kinds = pointed_at.filter_map(|function| program.type_index(*function));
            leavers.kinds = kinds.map(|kind| leavers.first_same_type(kind)).collect();
            for (function, called) in &calls.callers {
                if !called.functions.is_disjoint(&leavers.functions)
                    || !called.kinds.is_disjoint(&leavers.kinds)
                {
                    leavers.functions.insert(*function);
                }
            }
            if before == leavers.functions.len() {
                break;
            }
        }
        leavers.called = calls.pointed_at;
        for (_, called) in calls.callers {
            leavers.called.extend(called.functions);
        }
        Ok(leavers)
    }

    /// Whether a program may have left behind this instruction.
    pub(super) fn may_be_behind(&self, operator: &Operator<'_>) -> bool {
        match operator {
            Operator::Call { function_index } => self.functions.contains(function_index),
            Operator::CallIndirect { type_index, .. } | Operator::CallRef { type_index } => {
                self.kinds.contains(&self.first_same_type(*type_index))
            }
            _ => false,
        }
    }

    /// Whether a program may leave in the midst of this function.
    pub(super) fn contains(&self, function: u32) -> bool {
        self.functions.contains(&function)
    }

    /// Whether the program itself calls this function.
    pub(super) fn is_called(&self, function: u32) -> bool {
        self.called.contains(&function)
    }

    fn first_same_type(&self, index: u32) -> u32 {
        self.first_same.get(index as usize).copied().unwrap_or(index)
    }
}

/// Appends a zero for each result of a function of this type.
pub(super) fn append_zeros(function: &mut Function, kind: Option<&FuncType>) {
    let mut code = function.instructions();
    for result in kind.map_or(&[][..], |kind| kind.results()) {
        match result {
            ValType::I64 => code.i64_const(0),
            ValType::F32 => code.f32_const(0.0.into()),
            ValType::F64 => code.f64_const(0.0.into()),
            ValType::Ref(kind) if kind.is_func_ref() => code.ref_null(wasm_encoder::HeapType::FUNC),
            ValType::Ref(_) => code.ref_null(wasm_encoder::HeapType::EXTERN),
            _ => code.i32_const(0),
        };
    }
}

/// Which functions call which.
#[derive(Default)]
struct Calls {
    callers: Vec<(u32, Called)>,
    /// The functions that stand in tables, or whose address is taken.
    pointed_at: BTreeSet<u32>,
}

#[derive(Default)]
struct Called {
    functions: BTreeSet<u32>,
    /// The types of calls by pointers.
    kinds: BTreeSet<u32>,
}

impl Calls {
    fn of(program: &Program<'_>, types: &Leavers) -> Result<Self, BinaryReaderError> {
        let mut calls = Self::default();
        for element in &program.elements {
            match &element.items {
                ElementItems::Functions(functions) => {
                    for function in functions.clone() {
                        calls.pointed_at.insert(function?);
                    }
                }
                ElementItems::Expressions(_, expressions) => {
                    for expression in expressions.clone() {
                        calls.look_for_pointers(&mut expression?.get_operators_reader())?;
                    }
                }
            }
        }
        for global in &program.globals {
            calls.look_for_pointers(&mut global.init_expr.get_operators_reader())?;
        }
        for (body, function) in program.bodies.iter().zip(program.imported_count()..) {
            let mut called = Called::default();
            let mut operators = body.get_operators_reader()?;
            while !operators.eof() {
                match operators.read()? {
                    Operator::Call { function_index } | Operator::ReturnCall { function_index } => {
                        called.functions.insert(function_index);
                    }
                    Operator::CallIndirect { type_index, .. }
                    | Operator::CallRef { type_index }
                    | Operator::ReturnCallIndirect { type_index, .. }
                    | Operator::ReturnCallRef { type_index } => {
                        called.kinds.insert(types.first_same_type(type_index));
                    }
                    Operator::RefFunc { function_index } => {
                        calls.pointed_at.insert(function_index);
                    }
                    _ => {}
                }
            }
            calls.callers.push((function, called));
        }
        Ok(calls)
    }

    fn look_for_pointers(
        &mut self,
        operators: &mut wasmparser::OperatorsReader<'_>,
    ) -> Result<(), BinaryReaderError> {
        while !operators.eof() {
            if let Operator::RefFunc { function_index } = operators.read()? {
                self.pointed_at.insert(function_index);
            }
        }
        Ok(())
    }
}
