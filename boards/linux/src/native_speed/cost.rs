//! The effort that a module is to the compiler, counted before it gets there.
//!
//! Length alone doesn't bound that. The compiler brings each function into a form in which a value that several ways lead to
//! is a parameter of the block where they meet: each variable may be one of each block, and so are a block's own parameters
//! and results. Loops within loops are looked at again and again. Each function has a frame of code, and one by which it is
//! called from outside for each of its values. What is counted here took 1 to 8 µs each in the worst cases of a
//! generator of shapes (`benches/compiler.rs`), and 3 in a program by others.

use wasmparser::{BlockType, FunctionBody, Operator};

/// The most of one function, and of a module. A program of 1.3 MB by others has 21,000 in its largest function, and
/// 1,100,000 in all.
const FUNCTION_COST_MAX: u64 = 100_000;
const MODULE_COST_MAX: u64 = 1_000_000;

/// The costs of what no variable is needed for.
const FUNCTION_COST: u64 = 40;
/// Of a value that a function takes or gives, for those who call it from outside.
const OUTER_VALUE_COST: u64 = 6;
const BRANCH_COST: u64 = 15;
const BLOCK_COST: u64 = 10;
const INDIRECT_CALL_COST: u64 = 35;
const TABLE_COST: u64 = 25;
const DIVISION_COST: u64 = 5;

/// The values that a block, a call or a function takes and gives.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Arity {
    pub(super) parameters: u64,
    pub(super) results: u64,
}

/// The counts of a module, as its sections come.
#[derive(Debug, Default)]
pub(super) struct Effort {
    /// By the numbers of types.
    pub(super) types: Vec<Arity>,
    /// The types of functions by their numbers, imported ones first.
    pub(super) functions: Vec<u32>,
    /// How many of those are imported.
    pub(super) imported: usize,
    /// Functions with code that have come.
    bodies: usize,
    sum: u64,
}

/// A function or a module takes the compiler too long, or isn't WebAssembly.
#[derive(Debug)]
pub(super) struct TooMuch;

impl Effort {
    /// Counts the next function.
    ///
    /// # Errors
    /// It is too much, alone or with those before.
    pub(super) fn add(&mut self, body: &FunctionBody<'_>) -> Result<(), TooMuch> {
        let own = self.functions.get(self.imported + self.bodies).copied();
        self.bodies += 1;
        let own = own.map(|index| self.of_type(index)).unwrap_or_default();
        let mut variables = own.parameters;
        for local in body.get_locals_reader().map_err(|_| TooMuch)? {
            variables = variables.saturating_add(local.map_err(|_| TooMuch)?.0.into());
        }
        let cost = self.of_code(body, own, variables)?;
        self.sum = self.sum.saturating_add(cost);
        if self.sum > MODULE_COST_MAX { Err(TooMuch) } else { Ok(()) }
    }

    /// The sum of all that was counted.
    pub(super) fn sum(&self) -> u64 {
        self.sum
    }

    fn of_code(&self, body: &FunctionBody<'_>, own: Arity, variables: u64) -> Result<u64, TooMuch> {
        let mut cost =
            FUNCTION_COST + OUTER_VALUE_COST * (own.parameters + own.results) + variables;
        // The values that a branch to each open block brings along, and whether that is a loop.
        let mut labels = vec![(own.results, false)];
        let mut loops = 0;
        let brought = |labels: &[(u64, bool)], depth: u32| {
            let at = labels.len().checked_sub(1 + depth as usize);
            at.and_then(|at| labels.get(at)).map(|(values, _)| *values).unwrap_or_default()
        };
        for operator in body.get_operators_reader().map_err(|_| TooMuch)? {
            let more = match operator.map_err(|_| TooMuch)? {
                Operator::Block { blockty } | Operator::If { blockty } => {
                    let arity = self.of_block(blockty);
                    labels.push((arity.results, false));
                    BLOCK_COST + variables + arity.parameters + arity.results
                }
                Operator::Loop { blockty } => {
                    let arity = self.of_block(blockty);
                    labels.push((arity.parameters, true));
                    loops += 1;
                    BLOCK_COST + variables + arity.parameters + arity.results + loops
                }
                Operator::Else => variables,
                Operator::End => {
                    loops -= u64::from(labels.pop().is_some_and(|(_, is_loop)| is_loop));
                    0
                }
                Operator::Br { relative_depth } | Operator::BrIf { relative_depth } => {
                    BRANCH_COST + brought(&labels, relative_depth)
                }
                Operator::BrTable { targets } => {
                    let each = 1 + brought(&labels, targets.default());
                    BRANCH_COST + each.saturating_mul(1 + u64::from(targets.len()))
                }
                Operator::Return => own.results,
                Operator::Call { function_index } | Operator::ReturnCall { function_index } => {
                    let of_function = self.functions.get(function_index as usize);
                    let arity = of_function.map(|index| self.of_type(*index)).unwrap_or_default();
                    arity.parameters + arity.results
                }
                Operator::CallIndirect { type_index, .. }
                | Operator::ReturnCallIndirect { type_index, .. } => {
                    let arity = self.of_type(type_index);
                    INDIRECT_CALL_COST + arity.parameters + arity.results
                }
                Operator::TableGet { .. } | Operator::TableSet { .. } => TABLE_COST,
                Operator::I32DivS
                | Operator::I32DivU
                | Operator::I32RemS
                | Operator::I32RemU
                | Operator::I64DivS
                | Operator::I64DivU
                | Operator::I64RemS
                | Operator::I64RemU => DIVISION_COST,
                _ => 0,
            };
            cost = cost.saturating_add(more);
            if cost > FUNCTION_COST_MAX {
                return Err(TooMuch);
            }
        }
        Ok(cost)
    }

    fn of_type(&self, index: u32) -> Arity {
        self.types.get(index as usize).copied().unwrap_or_default()
    }

    fn of_block(&self, kind: BlockType) -> Arity {
        match kind {
            BlockType::Empty => Arity::default(),
            BlockType::Type(_) => Arity { parameters: 0, results: 1 },
            BlockType::FuncType(index) => self.of_type(index),
        }
    }
}
