//! The functions in the midst of which a program may exit: those that call `proc_exit` or its like, and those that call such ones.

use std::collections::BTreeSet;

use wasmparser::{BinaryReaderError, ElementItems, Operator};

use super::program::Program;

/// The calls behind which a program looks whether it has exited.
#[derive(Default)]
pub(super) struct Exits {
    /// The functions that may exit, the imported ones that do among them.
    functions: BTreeSet<u32>,
    /// Whether one of them may be called by a pointer.
    by_pointer: bool,
}

impl Exits {
    /// The exits of a program; `imported` are the functions that exit, by its own indices.
    pub(super) fn of(
        program: &Program<'_>,
        imported: BTreeSet<u32>,
    ) -> Result<Self, BinaryReaderError> {
        if imported.is_empty() {
            return Ok(Self::default());
        }
        let calls = Calls::of(program)?;
        let mut exits = Self { functions: imported, by_pointer: false };
        loop {
            let before = (exits.functions.len(), exits.by_pointer);
            exits.by_pointer = !calls.pointed_at.is_disjoint(&exits.functions);
            for (function, called) in &calls.callers {
                if !called.direct.is_disjoint(&exits.functions)
                    || (exits.by_pointer && called.by_pointer)
                {
                    exits.functions.insert(*function);
                }
            }
            if before == (exits.functions.len(), exits.by_pointer) {
                return Ok(exits);
            }
        }
    }

    /// Whether a program may have exited behind this instruction.
    pub(super) fn may_be_behind(&self, operator: &Operator<'_>) -> bool {
        match operator {
            Operator::Call { function_index } => self.functions.contains(function_index),
            Operator::CallIndirect { .. } | Operator::CallRef { .. } => self.by_pointer,
            _ => false,
        }
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
    direct: BTreeSet<u32>,
    by_pointer: bool,
}

impl Calls {
    fn of(program: &Program<'_>) -> Result<Self, BinaryReaderError> {
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
                        called.direct.insert(function_index);
                    }
                    Operator::CallIndirect { .. }
                    | Operator::CallRef { .. }
                    | Operator::ReturnCallIndirect { .. }
                    | Operator::ReturnCallRef { .. } => called.by_pointer = true,
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
