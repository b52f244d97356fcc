//! One function of an image as one function in C.
//!
//! Its frame's slots are variables. They go to the frame in memory where execution may stop and from there
//! on they are read, and come from there where it goes on. Fuel is what is left of a stay's budget, in bytes
//! of code: a straight line is paid where it ends.

use std::collections::HashMap;
use std::fmt::Write as _;

use tenure_vm::{FunctionType, ValueType, flow};

use crate::Module;
use crate::bounds::{Comparison, NEAR_BYTES, comparisons};
use crate::decode::Instruction;
use crate::flow::{Live, Places, Step, live, places};
use crate::lower::{ACCESS, COMPARE, TRAP, lower};
use crate::lowered::{Lowered, Next, Variable, name};
use crate::resume::{AGAIN, Ways, ways};

/// Words of arguments that don't go through memory.
const ARGUMENT_WORDS: usize = 4;

/// Instructions times slots of a function that is compiled, at most: memory and time of the analysis.
const STATES_MAX: usize = 1 << 22;
/// Bytes of C that a function may take, and as many for each byte of its code.
const TEXT_BYTES: usize = 64 << 10;
const TEXT_BYTES_BY_CODE: usize = 256;

/// A type's values as halves of slots, counted from the first.
pub(crate) fn halves(types: impl Iterator<Item = ValueType>) -> Vec<u32> {
    let of = |(slot, value_type): (u32, ValueType)| {
        let wide = matches!(value_type, ValueType::I64 | ValueType::F64);
        (slot * 2..).take(if wide { 2 } else { 1 })
    };
    (0..).zip(types).flat_map(of).collect()
}

/// How a type of functions is called.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Convention {
    /// Halves of parameters that are handed over in words, and those that lie in the callee's frame.
    pub(crate) words: Vec<u32>,
    in_frame: Vec<u32>,
    /// The result is in the upper half of what comes back; else all lie in the callee's frame.
    by_value: bool,
    results: Vec<u32>,
}

impl Convention {
    pub(crate) fn new(signature: &FunctionType<'_>) -> Convention {
        let mut words = halves(signature.params());
        let in_frame = words.split_off(words.len().min(ARGUMENT_WORDS));
        let results = halves(signature.results());
        Convention { words, in_frame, by_value: results == [0], results }
    }

    /// Whether a single result of 32 bits comes back by value.
    pub(crate) fn is_by_value(&self) -> bool {
        self.by_value
    }

    fn parameters(&self) -> String {
        self.words.iter().fold(String::new(), |text, half| format!("{text}, u32 w{half}"))
    }
}

/// A function as C knows it.
pub(crate) fn signature(module: &Module<'_>, function: u32) -> String {
    let parameters = module.convention(function).parameters();
    format!("static u64 f{function}(struct context *c, u8 *frame, i32 fuel, u32 point{parameters})")
}

/// A function being written.
struct Emitter<'m> {
    module: &'m Module<'m>,
    function: u32,
    slots: u32,
    places: Places,
    live: Vec<Live>,
    ways: Ways,
    /// The comparisons of accesses, by step.
    comparisons: HashMap<usize, Comparison>,
    /// Bytes of code that were executed and not yet paid.
    pending: u32,
    text: String,
}

/// A compiled function.
pub(crate) struct Compiled {
    pub(crate) text: String,
    /// Where execution may go on, by number.
    pub(crate) points: Vec<(u32, u32)>,
}

/// Compiles a function; one that would take too much is left to the interpreter.
pub(crate) fn compile(module: &Module<'_>, function: u32, list: Vec<Instruction>) -> Compiled {
    let slots = module.shape(function).frame_bytes as u32 / 8;
    if list.len() * slots as usize > STATES_MAX {
        return interpreted(module, function);
    }
    let code_bytes: u32 = list.iter().map(|one| one.end - one.at).sum();
    let text_max = TEXT_BYTES + TEXT_BYTES_BY_CODE * code_bytes as usize;
    let steps: Vec<Step> =
        list.into_iter().map(|instruction| step(module, function, instruction)).collect();
    let (places, live) = (places(&steps), live(&steps, slots));
    let comparisons = comparisons(&steps, &places);
    let Some(ways) = ways(&steps, &places, &live, slots, text_max) else {
        return interpreted(module, function);
    };
    let points = places.points.iter().map(|(at, number)| (*at, *number)).collect();
    let mut emitter = Emitter {
        module,
        function,
        slots,
        places,
        live,
        ways,
        comparisons,
        pending: 0,
        text: String::new(),
    };
    emitter.head(&steps);
    for (index, step) in steps.iter().enumerate() {
        emitter.label(index, step.instruction.at);
        emitter.step(index, step);
        if emitter.text.len() > text_max {
            return interpreted(module, function);
        }
    }
    emitter.text += "}\n";
    Compiled { text: emitter.text, points }
}

/// A function that hands its arguments to the interpreter.
pub(crate) fn interpreted(module: &Module<'_>, function: u32) -> Compiled {
    let mut text = signature(module, function) + " {\n";
    for half in &module.convention(function).words {
        let _ = writeln!(text, "SLOT({}) = w{half};", half * 4);
    }
    let at = module.shape(function).code_at;
    let _ = writeln!(text, "return stop(c, frame, fuel, {at}u, INTERPRET, 0);\n}}");
    Compiled { text, points: Vec::new() }
}

/// Lowers an instruction, and adds what it touches beyond its operands.
fn step(module: &Module<'_>, function: u32, instruction: Instruction) -> Step {
    let mut lowered = lower(&instruction, module.bounds);
    let half = |first: u32| move |half: u32| Variable::Half(first * 2 + half);
    let mut callee = None;
    match lowered.next {
        Next::Call => {
            let first = instruction.operand(1) / 8;
            let params = halves(module.shape(instruction.operand(0)).signature.params());
            lowered.reads.extend(params.into_iter().map(half(first)));
            callee = Some(first);
        }
        Next::CallIndirect => {
            match module.indirect(instruction.operand(0) as u16) {
                Some(indirect) => {
                    let first = instruction.operand(2) / 8;
                    let convention = &indirect.convention;
                    let params = convention.words.iter().chain(&convention.in_frame);
                    lowered.reads.extend(params.copied().map(half(first)));
                    callee = Some(first);
                }
                // Its end is a trap, which the interpreter finds.
                None => everything(&instruction, &mut lowered, module, function),
            }
        }
        Next::Return if instruction.mnemonic == "return" => {
            let results = halves(module.shape(function).signature.results());
            lowered.reads.extend(results.into_iter().map(Variable::Half));
        }
        Next::Outside => everything(&instruction, &mut lowered, module, function),
        _ => {}
    }
    Step { instruction, lowered, callee }
}

/// An instruction that is left to others reads its operands; calls read arguments, wherever they lie.
fn everything(
    instruction: &Instruction,
    lowered: &mut Lowered,
    module: &Module<'_>,
    function: u32,
) {
    lowered.next = Next::Outside;
    lowered.text.clear();
    let shape = module.shape(function);
    let calls = instruction.mnemonic.contains("call");
    let halves: Vec<u32> = if instruction.mnemonic == "host" {
        halves(shape.signature.params())
    } else if calls {
        let link = shape.link as u32 / 8;
        (0..shape.frame_bytes as u32 / 4).filter(|half| half / 2 != link).collect()
    } else {
        instruction.sources().flat_map(|slot| [slot * 2, slot * 2 + 1]).collect()
    };
    lowered.reads = halves.into_iter().map(Variable::Half).collect();
    if !calls {
        lowered.reads.push(Variable::Accumulator);
    }
}

impl Emitter<'_> {
    fn line(&mut self, text: &str) {
        self.text += text;
        self.text.push('\n');
    }

    /// Begins the function: its variables, where it goes on after a stop, and its arguments.
    fn head(&mut self, steps: &[Step]) {
        let (module, function) = (self.module, self.function);
        let shape = module.shape(function);
        self.line(&format!("{} {{", signature(module, function)));
        self.line("u32 a = 0;");
        let variables: Vec<String> =
            (0..self.slots * 2).map(|half| format!("{} = 0", name(half))).collect();
        if !variables.is_empty() {
            self.line(&format!("u32 {};", variables.join(", ")));
        }
        self.line(
            "u8 *const memory = c->memory; const u32 bytes = c->memory_bytes, near = c->near;",
        );
        self.line("(void)a; (void)memory; (void)bytes; (void)near; (void)point;");
        self.goes_on();
        let convention = module.convention(function);
        for half in &convention.words {
            self.line(&format!("{} = w{half};", name(*half)));
        }
        for half in &convention.in_frame {
            self.line(&format!("{} = SLOT({});", name(*half), half * 4));
        }
        let entry = shape.code_at;
        let calls = |step: &Step| matches!(step.lowered.next, Next::Call | Next::CallIndirect);
        if steps.iter().any(calls) {
            let keep = self.keep(0);
            self.line(&format!(
                "if (UNLIKELY(STACK < (uptr)c->native_end) && point != BEGIN) {{ {keep}return stop(c, frame, fuel, {entry}u, DEEP, 0); }}"
            ));
        }
        if !self.places.looks.contains(&entry) {
            self.look(0, entry);
        }
    }

    /// Where the function goes on after a stop.
    fn goes_on(&mut self) {
        let cases = std::mem::take(&mut self.ways.entry);
        self.line(&cases.to_c("point"));
    }

    /// Writes the variables needed at an instruction to the frame.
    fn keep(&self, index: usize) -> String {
        self.keep_below(index, self.slots)
    }

    fn keep_below(&self, index: usize, slots: u32) -> String {
        let halves = self.live[index].halves(self.slots).filter(|half| half / 2 < slots);
        halves
            .fold(String::new(), |text, half| format!("{text}SLOT({}) = {};", half * 4, name(half)))
    }

    fn accumulator(&self, index: usize) -> &'static str {
        if self.live[index].has(Variable::Accumulator, self.slots) { "a" } else { "0" }
    }

    /// Stops at an instruction if the fuel is used up.
    fn look(&mut self, index: usize, at: u32) {
        let (keep, accumulator) = (self.keep(index), self.accumulator(index));
        let check = flow::CHECK;
        let onward = self.ways.heads.remove(&at).map(|head| head.to_c(AGAIN)).unwrap_or_default();
        self.line(&format!(
            "if (UNLIKELY(fuel < 0)) {{ {onward}{keep}return stop(c, frame, fuel, {at}u, {check}, {accumulator}); }}"
        ));
    }

    fn pay(&mut self) {
        if self.pending > 0 {
            self.line(&format!("fuel -= {};", self.pending));
            self.pending = 0;
        }
    }

    fn label(&mut self, index: usize, at: u32) {
        let (is_label, is_look) =
            (self.places.labels.contains(&at), self.places.looks.contains(&at));
        let is_point = self.places.points.get(&at).is_some_and(|number| *number > 0);
        if !is_label && !is_look && !is_point {
            return;
        }
        self.pay();
        if is_label || is_point {
            self.line(&format!("L{at}:;"));
        }
        if is_look {
            self.look(index, at);
        }
    }

    /// The fuel left, with what is pending and `more` paid.
    fn fuel(&self, more: u32) -> String {
        match self.pending + more {
            0 => "fuel".into(),
            bytes => format!("fuel - {bytes}"),
        }
    }

    fn step(&mut self, index: usize, step: &Step) {
        let Step { instruction, lowered, .. } = step;
        let cost = instruction.cost + instruction.surcharge;
        match lowered.next {
            Next::Through | Next::Check | Next::Trap => {
                let text = self.marked(index, instruction.at, &lowered.text);
                self.line(&text);
                self.pending += cost;
                if lowered.next == Next::Trap {
                    self.pending = 0;
                }
            }
            Next::Jump | Next::Branch => {
                let fuel = self.fuel(cost);
                let to = instruction.targets.first().copied().unwrap_or(0);
                let taken = format!("{{ fuel = {fuel}; goto L{to}; }}");
                if lowered.next == Next::Branch {
                    self.line(&format!("if {} {taken}", lowered.text));
                    self.pending += cost;
                } else {
                    self.line(&taken);
                    self.pending = 0;
                }
            }
            Next::Bulk => {
                self.bulk(index, instruction, &lowered.text);
                self.pending += cost;
            }
            Next::Table => self.table(instruction, &lowered.text),
            Next::Call => self.call(index, step),
            Next::CallIndirect => self.call_indirect(index, step),
            Next::Return => self.leave(instruction, &lowered.text),
            Next::Outside => {
                let (keep, accumulator) = (self.keep(index), self.accumulator(index));
                let (fuel, at) = (self.fuel(0), instruction.at);
                let why = if is_outer(instruction.mnemonic) {
                    flow::OUTER.to_string()
                } else {
                    "INTERPRET".into()
                };
                self.line(&format!(
                    "{keep}return stop(c, frame, {fuel}, {at}u, {why}, {accumulator});"
                ));
                self.pending = 0;
            }
        }
    }

    /// Fills or moves bytes. If memory that isn't committed yet is among them, or the fuel ends before them, the runtime does
    /// it, step by step.
    fn bulk(&mut self, index: usize, instruction: &Instruction, operands: &str) {
        let (keep, accumulator) = (self.keep(index), self.accumulator(index));
        let (fuel, at, outer) = (self.fuel(0), instruction.at, flow::OUTER);
        // A unit of fuel is for eight bytes, or for four; for two where words don't lie alike.
        let (shift, is_out, act) = match instruction.mnemonic {
            "memory.fill" => ("3", "", "fill_bytes(memory + to, from, count);"),
            _ => (
                "((from - to) & 3 ? 1 : 2)",
                "from > bytes || count > bytes - from || ",
                "move_bytes(memory + to, memory + from, count);",
            ),
        };
        self.line(&format!(
            "{{ {operands} i32 left = {fuel}; u32 units = units_of(count, {shift});\n\
             if (UNLIKELY({is_out}to > bytes || count > bytes - to || left < 0 || units > (u32)left >> 1)) \
             {{ {keep}return stop(c, frame, left, {at}u, {outer}, {accumulator}); }}\n\
             fuel -= (i32)(units << 1); {act} }}"
        ));
    }

    /// Puts the ways out in place of their marks.
    fn marked(&self, index: usize, at: u32, text: &str) -> String {
        let fuel = self.fuel(0);
        let mut parts = text.split(TRAP);
        let mut result = parts.next().unwrap_or("").to_owned();
        for part in parts {
            let (trap, rest) = part.split_once(';').unwrap_or((part, ""));
            let number = flow::trap(trap).unwrap_or(flow::CHECK);
            let _ = write!(result, "return stop(c, frame, {fuel}, {at}u, {number}, 0);{rest}");
        }
        let (keep, accumulator) = (self.keep(index), self.accumulator(index));
        let leave = |why: &str| {
            format!("{{ {keep}return stop(c, frame, {fuel}, {at}u, {why}, {accumulator}); }}")
        };
        let access = leave(&flow::ACCESS.to_string());
        let compare = match self.comparisons.get(&index) {
            // Which of them it is, if any, the interpreter finds out.
            Some(comparison) if comparison.is_shared => compare(comparison, &leave("INTERPRET")),
            Some(comparison) => compare(comparison, &access),
            None => String::new(),
        };
        result.replace(&format!("{ACCESS};"), &access).replace(COMPARE, &compare)
    }

    fn trap(&self, at: u32, trap: &str) -> String {
        let number = flow::trap(trap).unwrap_or(flow::CHECK);
        format!("return stop(c, frame, {}, {at}u, {number}, 0);", self.fuel(0))
    }

    fn table(&mut self, instruction: &Instruction, index: &str) {
        let fuel = self.fuel(instruction.cost);
        self.line(&format!("fuel = {fuel}; switch ({index}) {{"));
        let last = instruction.targets.len().saturating_sub(1);
        for (number, to) in instruction.targets.iter().enumerate() {
            let label = if number == last { "default".into() } else { format!("case {number}") };
            self.line(&format!("{label}: goto L{to};"));
        }
        self.line("}");
        self.pending = 0;
    }

    /// Arguments in words, after those in the callee's frame are there.
    fn arguments(&mut self, convention: &Convention, first: u32) -> String {
        for half in &convention.in_frame {
            let at = first * 8 + half * 4;
            self.line(&format!("SLOT({at}) = {};", name(first * 2 + half)));
        }
        let words = convention.words.iter();
        words.fold(String::new(), |text, half| format!("{text}, {}", name(first * 2 + half)))
    }

    fn call(&mut self, index: usize, step: &Step) {
        let Instruction { at, end, cost, .. } = step.instruction;
        let (callee, delta) = (step.instruction.operand(0), step.instruction.operand(1));
        let shape = self.module.shape(callee);
        let (link, frame_bytes) = (shape.link as u32, shape.frame_bytes as u32);
        let trap = self.trap(at, "StackOverflow");
        let entry = shape.entry_units * crate::decode::UNIT_BYTES;
        self.line(&format!(
            "if (UNLIKELY((uptr)frame + {}u > (uptr)c->stack_end)) {trap}",
            delta + frame_bytes
        ));
        let convention = self.module.convention(callee);
        let arguments = self.arguments(&convention, delta / 8);
        let fuel = self.fuel(cost + entry);
        self.line(&format!(
            "{{ u64 r = f{callee}(c, frame + {delta}, {fuel}, 0{arguments}); fuel = (i32)r;"
        ));
        let link = (delta + link).to_string();
        self.after_call(index, end, delta, &convention, &link, "");
        self.pending = 0;
    }

    fn call_indirect(&mut self, index: usize, step: &Step) {
        let Instruction { at, end, cost, .. } = step.instruction;
        let (type_number, delta) =
            (step.instruction.operand(0) as u16, step.instruction.operand(2));
        let Some(indirect) = self.module.indirect(type_number) else { return };
        let (bounds, null) =
            (self.trap(at, "TableOutOfBounds"), self.trap(at, "UninitializedElement"));
        self.line(&format!("{{ u32 element = {};", step.lowered.text));
        self.line(&format!("if (UNLIKELY(element >= c->table_count)) {bounds}"));
        self.line("element = c->table[element] - 1;");
        self.line(&format!("if (UNLIKELY(element >= c->function_count)) {null}"));
        let convention = indirect.convention.clone();
        let arguments = self.arguments(&convention, delta / 8);
        let fuel = self.fuel(cost);
        self.line(&format!(
            "u64 r = t{type_number}(c, frame + {delta}, {fuel}, element{arguments});"
        ));
        // The callee's type or frame isn't right: the call itself fails, and costs nothing.
        let refused = format!(
            "if (r >> 32) return stop(c, frame, {}, {at}u, (u32)(r >> 32), 0); ",
            self.fuel(0)
        );
        let link = (delta + indirect.link as u32).to_string();
        self.line("i32 before = fuel; fuel = (i32)r;");
        let refused = refused.replace("fuel", "before");
        self.after_call(index, end, delta, &convention, &link, &refused);
        self.pending = 0;
    }

    /// Takes results, or stops as the callee did. Closes the call's block.
    fn after_call(
        &mut self,
        index: usize,
        end: u32,
        delta: u32,
        convention: &Convention,
        link: &str,
        refused: &str,
    ) {
        let after = index + 1;
        let mut results = String::new();
        let first = delta / 4;
        let needed = |half: &&u32| {
            self.live
                .get(after)
                .is_some_and(|live| live.has(Variable::Half(first + **half), self.slots))
        };
        for half in convention.results.iter().filter(needed) {
            let variable = name(first + half);
            if convention.by_value {
                let _ = write!(results, "{variable} = (u32)(r >> 32);");
            } else {
                let _ = write!(results, "{variable} = SLOT({});", (first + half) * 4);
            }
        }
        let below =
            if after < self.live.len() { self.keep_below(after, delta / 8) } else { String::new() };
        let keep = if after < self.live.len() { self.keep(after) } else { String::new() };
        let check = flow::CHECK;
        self.line(&format!(
            "if (UNLIKELY(fuel < 0)) {{ if (fuel == STOPPED) {{ {refused}SLOT({link}) = {end}u; {below}return RESULT(STOPPED, 0); }} \
             {results}{keep}return stop(c, frame, fuel, {end}u, {check}, 0); }}"
        ));
        self.line(&format!("{results}}}"));
    }

    fn leave(&mut self, instruction: &Instruction, value: &str) {
        let fuel = self.fuel(instruction.cost);
        if self.module.is_outermost(self.function) {
            self.line(&format!("c->returned = {};", instruction.cost));
        }
        match instruction.mnemonic {
            "return32.s" | "return32.a" => self.line(&format!("return RESULT({fuel}, {value});")),
            "return64.s" => {
                self.line(&format!(
                    "{{ u64 r = {value}; SLOT(0) = (u32)r; SLOT(4) = (u32)(r >> 32); }}"
                ));
                self.line(&format!("return RESULT({fuel}, 0);"));
            }
            _ => {
                let convention = self.module.convention(self.function);
                if convention.by_value {
                    self.line(&format!("return RESULT({fuel}, s0);"));
                } else {
                    for half in &convention.results {
                        self.line(&format!("SLOT({}) = {};", half * 4, name(*half)));
                    }
                    self.line(&format!("return RESULT({fuel}, 0);"));
                }
            }
        }
        self.pending = 0;
    }
}

/// Compares `address` with memory's end.
fn compare(&Comparison { below, reach, .. }: &Comparison, leave: &str) -> String {
    // Behind its last address; the C compiler takes what that is out of loops.
    let end = match reach {
        0 => "bytes".to_owned(),
        _ => format!("(bytes > {reach}u ? bytes - {reach}u : 0)"),
    };
    // Where it is far enough from the memory's end, a comparison does that others have too.
    let near = if (1..NEAR_BYTES).contains(&reach) { "UNLIKELY(low >= near) && " } else { "" };
    format!("{{ u32 low = address - {below}u; if ({near}UNLIKELY(low >= {end})) {leave} }}")
}

/// Whether the runtime executes the instruction, and not the interpreter.
fn is_outer(mnemonic: &str) -> bool {
    let family = mnemonic.split('.').next().unwrap_or("");
    mnemonic == "call_indirect.table"
        || matches!(
            family,
            "memory" | "data" | "table" | "elem" | "host" | "return_call" | "return_call_indirect"
        )
}

/// The function that calls through the first table for one type of functions.
pub(crate) fn indirect(module: &Module<'_>, type_number: u16) -> Option<String> {
    let indirect = module.indirect(type_number)?;
    let parameters = indirect.convention.parameters();
    let arguments = indirect
        .convention
        .words
        .iter()
        .fold(String::new(), |text, half| format!("{text}, w{half}"));
    let mut text = format!(
        "__attribute__((noinline)) static u64 t{type_number}(struct context *c, u8 *frame, i32 fuel, u32 function{parameters}) {{\n\
         switch (function) {{\n"
    );
    let overflow = flow::trap("StackOverflow").unwrap_or(0);
    for &function in &indirect.functions {
        let shape = module.shape(function);
        let (frame_bytes, entry) =
            (shape.frame_bytes, shape.entry_units * crate::decode::UNIT_BYTES);
        let _ = writeln!(
            text,
            "case {function}: if (UNLIKELY((iptr)(c->stack_end - frame) < {frame_bytes})) return RESULT(STOPPED, {overflow});\n\
             return f{function}(c, frame, fuel - {entry}, 0{arguments});"
        );
    }
    let mismatch = flow::trap("SignatureMismatch").unwrap_or(0);
    let _ = writeln!(text, "}}\nreturn RESULT(STOPPED, {mismatch});\n}}");
    Some(text)
}
