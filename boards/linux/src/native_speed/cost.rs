//! The effort that a module is to the compiler, counted before it gets there.
//!
//! Length alone doesn't bound that. The compiler brings each function into a form in which a value that several ways lead to
//! is a parameter of the block where they meet: each variable may be one of each block, and so are a block's own parameters
//! and results. Their number is what its time and memory go by, and what is counted here.

use wasmparser::{BlockType, FunctionBody, Operator};

/// The most such parameters of one function, and of a module. 15 KB of WebAssembly may have six million, which took
/// seconds and 300 MB; compilers make some hundred for each kilobyte.
const FUNCTION_COST_MAX: u64 = 400_000;
const MODULE_COST_MAX: u64 = 4_000_000;

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
        let mut cost = variables;
        // The values that a branch to each open block brings along.
        let mut labels = vec![own.results];
        let brought = |labels: &[u64], depth: u32| {
            let at = labels.len().checked_sub(1 + depth as usize);
            at.and_then(|at| labels.get(at)).copied().unwrap_or_default()
        };
        for operator in body.get_operators_reader().map_err(|_| TooMuch)? {
            let more = match operator.map_err(|_| TooMuch)? {
                Operator::Block { blockty } | Operator::If { blockty } => {
                    let arity = self.of_block(blockty);
                    labels.push(arity.results);
                    variables + arity.parameters + arity.results
                }
                Operator::Loop { blockty } => {
                    let arity = self.of_block(blockty);
                    labels.push(arity.parameters);
                    variables + arity.parameters + arity.results
                }
                Operator::Else => variables,
                Operator::End => {
                    labels.pop();
                    0
                }
                Operator::Br { relative_depth } | Operator::BrIf { relative_depth } => {
                    brought(&labels, relative_depth)
                }
                Operator::BrTable { targets } => {
                    brought(&labels, targets.default()).saturating_mul(1 + u64::from(targets.len()))
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
                    arity.parameters + arity.results
                }
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
