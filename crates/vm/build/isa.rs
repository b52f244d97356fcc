//! The instruction set of images, described once.
//!
//! [`instructions`] lists every instruction in the order of its opcode. Encoder constants, operand
//! layouts, the disassembler's mnemonics, both dispatchers and the reference page are generated from
//! this list. An instruction is a row of 16-bit units: the opcode, then its operands.
//!
//! A mnemonic ends in the forms of its operands: `s` a frame slot, `a` the accumulator, `i` a 16-bit
//! immediate, `z` the constant zero. Where an instruction exists with its result in the accumulator
//! (`….a`) and in a slot as well (`….s`), the second directly follows the first: the translator turns
//! one into the other by adding one to the opcode and appending the destination.

/// The kind of one operand; each takes one unit unless said otherwise.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Operand {
    /// Frame slot that is read.
    Source,
    /// Frame slot that is written.
    Destination,
    /// Sign-extended 16-bit constant.
    Immediate16,
    /// 32-bit constant (2 units).
    Immediate32,
    /// 64-bit constant (4 units).
    Immediate64,
    /// Branch displacement in bytes, from the end of the operand.
    Target,
    /// 32-bit branch displacement (2 units).
    FarTarget,
    /// Memory offset plus access size minus one.
    Reach,
    /// Index of a function, type, table, segment, global (in bytes) or host function.
    Index,
    /// Distance in bytes from this frame to the callee's.
    Delta,
    /// Slot of the return link.
    Link,
    /// Number of branch displacements that follow.
    Count,
}

impl Operand {
    pub(crate) fn units(self) -> usize {
        match self {
            Operand::Immediate32 | Operand::FarTarget => 2,
            Operand::Immediate64 => 4,
            _ => 1,
        }
    }

    /// The letter that stands for the operand in `isa::layout`.
    pub(crate) fn letter(self) -> char {
        match self {
            Operand::Source => 's',
            Operand::Destination => 'd',
            Operand::Immediate16 => 'i',
            Operand::Immediate32 => 'j',
            Operand::Immediate64 => 'k',
            Operand::Target => 't',
            Operand::FarTarget => 'T',
            Operand::Reach => 'r',
            Operand::Index => 'x',
            Operand::Delta => 'f',
            Operand::Link => 'l',
            Operand::Count => 'n',
        }
    }
}

pub(crate) struct Instruction {
    pub(crate) mnemonic: String,
    pub(crate) operands: Vec<Operand>,
    /// Rust statements over `s: &mut State`, ending in an expression of type `Flow`.
    pub(crate) body: String,
    pub(crate) float: bool,
    pub(crate) usage: Usage,
    /// Units of fuel beside its length: what it takes beyond what other instructions of its length do.
    pub(crate) surcharge: u16,
    /// On cores short of flash, instructions of the same name here share one body.
    pub(crate) shared: Option<Shared>,
    /// The same, made of those of one shape: where `shared` says nothing, or is for the cold alone.
    pub(crate) alike: Option<Shared>,
    /// The part that is peculiar to the instruction, if it may share the rest with others of its shape.
    compute: Option<Compute>,
}

/// How often programs use an instruction, and so what it may cost where flash is short.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Usage {
    /// It has a handler of its own.
    Hot,
    /// It shares a handler with others of its shape.
    Cool,
    /// All of these share one handler, which calls one function.
    Cold,
}

/// A body for several instructions, which finds its own in `op`.
#[derive(Clone)]
pub(crate) struct Shared {
    pub(crate) name: String,
    pub(crate) body: String,
}

/// `let r = expression` between what instructions of one shape have in common.
struct Compute {
    before: String,
    expression: String,
    after: String,
}

impl Instruction {
    fn new(mnemonic: &str, operands: Vec<Operand>, body: &str) -> Instruction {
        Instruction {
            mnemonic: mnemonic.into(),
            operands,
            body: body.into(),
            float: false,
            usage: Usage::Hot,
            surcharge: 0,
            shared: None,
            alike: None,
            compute: None,
        }
    }

    fn used(self, usage: Usage) -> Instruction {
        Instruction { usage, ..self }
    }

    pub(crate) fn units(&self) -> usize {
        1 + self.operands.iter().map(|operand| operand.units()).sum::<usize>()
    }
}

/// Collects one instruction: reads its sources, computes, writes its result.
struct Form {
    mnemonic: String,
    operands: Vec<Operand>,
    body: String,
    units: usize,
    /// The result is in the accumulator, and goes to the slot that the last operand names.
    stores_accumulator: bool,
    /// Length of the body before `let r`, and what `r` is.
    compute: Option<(usize, String)>,
}

impl Form {
    fn new(mnemonic: &str) -> Form {
        Form {
            mnemonic: mnemonic.into(),
            operands: vec![],
            body: String::new(),
            units: 1,
            stores_accumulator: false,
            compute: None,
        }
    }

    fn suffix(mut self, text: &str) -> Form {
        self.mnemonic.push('.');
        self.mnemonic.push_str(text);
        self
    }

    fn line(mut self, text: &str) -> Form {
        self.body.push_str(text);
        self.body.push('\n');
        self
    }

    fn operand(mut self, operand: Operand) -> (Form, usize) {
        let at = self.units;
        self.operands.push(operand);
        self.units += operand.units();
        (self, at)
    }

    /// Binds `name` to a source of the given form: `s`, `a`, `i` or `z`; `width` is 32 or 64.
    fn source(self, name: &str, form: char, width: usize) -> Form {
        match form {
            's' => {
                let (form, at) = self.operand(Operand::Source);
                form.line(&format!("let {name} = s.read{width}({at});"))
            }
            'a' => self.line(&format!("let {name} = s.accumulator;")),
            'i' => {
                let (form, at) = self.operand(Operand::Immediate16);
                form.line(&format!("let {name} = s.immediate({at}) as u{width};"))
            }
            'z' => self.line(&format!("let {name} = 0u{width};")),
            _ => unreachable!("no such source form"),
        }
    }

    /// Writes `r` to the accumulator (`a`), or to a slot; a 32-bit result stays in the accumulator too.
    fn result(self, form_of_result: char, width: usize, mirror: bool) -> Form {
        let mut form = if mirror { self.line("s.accumulator = r;") } else { self };
        match form_of_result {
            'a' => form,
            's' => {
                let (with_slot, at) = form.operand(Operand::Destination);
                form = with_slot;
                if mirror {
                    form.stores_accumulator = true;
                    return form;
                }
                form.line(&format!("s.write{width}({at}, r);"))
            }
            _ => unreachable!("no such result form"),
        }
    }

    /// The end of an instruction after which the next comes.
    fn advance(self) -> Form {
        let units = self.units;
        let end = if self.stores_accumulator { "store_accumulator" } else { "advance" };
        self.line(&format!("s.{end}({units})"))
    }

    /// Binds `r`.
    fn compute(mut self, expression: &str) -> Form {
        self.compute = Some((self.body.len(), expression.into()));
        self.line(&format!("let r = {expression};"))
    }

    fn next(self) -> Instruction {
        self.advance().done()
    }

    fn done(self) -> Instruction {
        let compute = self.compute.map(|(before, expression)| {
            let after = before + format!("let r = {expression};\n").len();
            Compute {
                before: self.body[..before].into(),
                expression,
                after: self.body[after..].into(),
            }
        });
        Instruction { compute, ..Instruction::new(&self.mnemonic, self.operands, &self.body) }
    }
}

/// i32 operations with every form: (mnemonic, expression over `a` and `b`).
const I32_HOT: [(&str, &str); 10] = [
    ("add", "a.wrapping_add(b)"),
    ("sub", "a.wrapping_sub(b)"),
    ("mul", "a.wrapping_mul(b)"),
    ("and", "a & b"),
    ("or", "a | b"),
    ("xor", "a ^ b"),
    ("shl", "a.wrapping_shl(b)"),
    ("shr_s", "(a as i32).wrapping_shr(b) as u32"),
    ("shr_u", "a.wrapping_shr(b)"),
    ("rotl", "a.rotate_left(b & 31)"),
];

/// The operations of `I32_HOT` that also take the accumulator on the right of a slot.
const I32_SLOT_ACCUMULATOR: [&str; 4] = ["sub", "shl", "shr_s", "shr_u"];

const I32_COLD: [(&str, &str); 5] = [
    ("rotr", "a.rotate_right(b & 31)"),
    (
        "div_s",
        "{ if b == 0 { return Flow::DivideByZero } match (a as i32).checked_div(b as i32) { Some(q) => q as u32, None => return Flow::IntegerOverflow } }",
    ),
    ("div_u", "{ if b == 0 { return Flow::DivideByZero } a / b }"),
    (
        "rem_s",
        "{ if b == 0 { return Flow::DivideByZero } (a as i32).wrapping_rem(b as i32) as u32 }",
    ),
    ("rem_u", "{ if b == 0 { return Flow::DivideByZero } a % b }"),
];

/// Comparisons in pairs of opposites, so that `index ^ 1` negates.
const COMPARISONS: [(&str, &str); 10] = [
    ("eq", "a == b"),
    ("ne", "a != b"),
    ("lt_s", "(a as iN) < b as iN"),
    ("ge_s", "a as iN >= b as iN"),
    ("lt_u", "a < b"),
    ("ge_u", "a >= b"),
    ("gt_s", "a as iN > b as iN"),
    ("le_s", "a as iN <= b as iN"),
    ("gt_u", "a > b"),
    ("le_u", "a <= b"),
];

/// (forms of a and b, how many of `COMPARISONS`).
const I32_COMPARISON_FORMS: [(&str, usize); 6] =
    [("ss", 6), ("as", 10), ("si", 6), ("ai", 6), ("sz", 2), ("az", 2)];
const I64_COMPARISON_FORMS: [(&str, usize); 3] = [("ss", 6), ("si", 6), ("sz", 2)];

const I64_HOT: [(&str, &str); 10] = [
    ("add", "a.wrapping_add(b)"),
    ("sub", "a.wrapping_sub(b)"),
    ("mul", "a.wrapping_mul(b)"),
    ("and", "a & b"),
    ("or", "a | b"),
    ("xor", "a ^ b"),
    ("shl", "a.wrapping_shl(b as u32)"),
    ("shr_s", "(a as i64).wrapping_shr(b as u32) as u64"),
    ("shr_u", "a.wrapping_shr(b as u32)"),
    ("rotl", "a.rotate_left(b as u32 & 63)"),
];

const I64_COLD: [(&str, &str); 5] = [
    ("rotr", "a.rotate_right(b as u32 & 63)"),
    (
        "div_s",
        "{ if b == 0 { return Flow::DivideByZero } match (a as i64).checked_div(b as i64) { Some(q) => q as u64, None => return Flow::IntegerOverflow } }",
    ),
    ("div_u", "{ if b == 0 { return Flow::DivideByZero } a / b }"),
    (
        "rem_s",
        "{ if b == 0 { return Flow::DivideByZero } (a as i64).wrapping_rem(b as i64) as u64 }",
    ),
    ("rem_u", "{ if b == 0 { return Flow::DivideByZero } a % b }"),
];

/// Operations of one slot: (mnemonic, source width, expression, result width).
const UNARY: [(&str, usize, &str, usize); 13] = [
    ("i32.clz", 32, "a.leading_zeros()", 32),
    ("i32.ctz", 32, "a.trailing_zeros()", 32),
    ("i32.popcnt", 32, "a.count_ones()", 32),
    ("i64.clz", 64, "a.leading_zeros() as u64", 64),
    ("i64.ctz", 64, "a.trailing_zeros() as u64", 64),
    ("i64.popcnt", 64, "a.count_ones() as u64", 64),
    ("i64.extend8_s", 64, "a as i8 as u64", 64),
    ("i64.extend16_s", 64, "a as i16 as u64", 64),
    ("i64.extend32_s", 64, "a as i32 as u64", 64),
    ("i64.extend_i32_s", 32, "a as i32 as u64", 64),
    ("i64.extend_i32_u", 32, "a as u64", 64),
    ("copy32", 32, "a", 32),
    ("copy64", 64, "a", 64),
];

/// Loads of an i32: (mnemonic, bytes, State method, conversion).
const LOADS32: [(&str, usize, &str); 5] = [
    ("load32", 4, "load32(p)"),
    ("load8_s", 1, "load8(p) as i8 as u32"),
    ("load8_u", 1, "load8(p) as u32"),
    ("load16_s", 2, "load16(p) as i16 as u32"),
    ("load16_u", 2, "load16(p) as u32"),
];

const LOADS64: [(&str, usize, &str); 7] = [
    ("load64", 8, "load64(p)"),
    ("load64_8_s", 1, "load8(p) as i8 as u64"),
    ("load64_8_u", 1, "load8(p) as u64"),
    ("load64_16_s", 2, "load16(p) as i16 as u64"),
    ("load64_16_u", 2, "load16(p) as u64"),
    ("load64_32_s", 4, "load32(p) as i32 as u64"),
    ("load64_32_u", 4, "load32(p) as u64"),
];

/// Stores: (mnemonic, bytes, slot width).
const STORES: [(&str, usize, usize); 4] =
    [("store32", 4, 32), ("store8", 1, 32), ("store16", 2, 32), ("store64", 8, 64)];

pub(crate) fn instructions() -> Vec<Instruction> {
    let mut list = Vec::new();
    i32_operations(&mut list);
    comparisons(&mut list);
    i64_operations(&mut list);
    constants_and_copies(&mut list);
    memory(&mut list);
    control(&mut list);
    outer(&mut list);
    float::instructions(&mut list);
    for instruction in &mut list {
        instruction.surcharge = surcharge::surcharge(&instruction.mnemonic);
    }
    share(&mut list);
    list
}

/// Gives instructions of one shape that aren't hot a body in common. A surcharge is part of the shape: each has a handler of its
/// own, which would hold the code of all.
fn share(list: &mut [Instruction]) {
    let shape = |instruction: &Instruction| {
        let may_share = instruction.usage > Usage::Hot;
        let compute = instruction.compute.as_ref().filter(|_| may_share)?;
        let kind = (instruction.usage, instruction.surcharge);
        Some((kind, compute.before.clone(), compute.after.clone()))
    };
    let shapes: Vec<_> = list.iter().map(shape).collect();
    for index in 0..list.len() {
        let Some((_, before, after)) = &shapes[index] else { continue };
        let alike: Vec<usize> = (0..list.len()).filter(|&i| shapes[i] == shapes[index]).collect();
        if alike.len() < 2 {
            continue;
        }
        let mut arms = String::new();
        for &i in &alike {
            let expression = list[i].compute.as_ref().map_or("", |compute| &compute.expression);
            let pattern = if i == alike[alike.len() - 1] { "_".into() } else { i.to_string() };
            arms += &format!("{pattern} => {expression},\n");
        }
        list[index].alike = Some(Shared {
            name: format!("op_shared_{}", alike[0]),
            body: format!("{before}let r = match op {{\n{arms}}};\n{after}"),
        });
    }
}

fn binary(name: &str, expression: &str, sources: &str, result: char, width: usize) -> Form {
    let forms: Vec<char> = sources.chars().collect();
    let mirror = width == 32;
    Form::new(name)
        .suffix(&format!("{sources}.{result}"))
        .source("a", forms[0], width)
        .source("b", forms[1], width)
        .compute(expression)
        .result(result, width, mirror)
}

fn i32_operations(list: &mut Vec<Instruction>) {
    for (name, expression) in I32_HOT {
        for sources in ["ss", "as", "si", "ai"] {
            for result in ['a', 's'] {
                list.push(binary(&format!("i32.{name}"), expression, sources, result, 32).next());
            }
        }
    }
    for wanted in I32_SLOT_ACCUMULATOR {
        let (name, expression) = I32_HOT.iter().find(|(name, _)| *name == wanted).unwrap();
        for result in ['a', 's'] {
            list.push(binary(&format!("i32.{name}"), expression, "sa", result, 32).next());
        }
    }
    for (name, expression) in I32_COLD {
        for result in ['a', 's'] {
            let form = binary(&format!("i32.{name}"), expression, "ss", result, 32);
            let shared = Some(shared_i32_cold());
            list.push(Instruction { shared, ..form.next().used(Usage::Cool) });
        }
    }
    for (name, expression) in [("extend8_s", "a as i8 as u32"), ("extend16_s", "a as i16 as u32")] {
        for source in ['s', 'a'] {
            for result in ['a', 's'] {
                list.push(
                    Form::new(&format!("i32.{name}.{source}.{result}"))
                        .source("a", source, 32)
                        .line(&format!("let r = {expression};"))
                        .result(result, 32, true)
                        .next(),
                );
            }
        }
    }
}

/// Comparisons into the accumulator, then in the same order the branches on them.
fn comparisons(list: &mut Vec<Instruction>) {
    for branch in [false, true] {
        for (kind, width, forms) in
            [("i32", 32, &I32_COMPARISON_FORMS[..]), ("i64", 64, &I64_COMPARISON_FORMS[..])]
        {
            for &(sources, count) in forms {
                for (name, condition) in &COMPARISONS[..count] {
                    let condition = condition.replace("iN", kind);
                    list.push(comparison(kind, name, &condition, sources, width, branch));
                }
            }
        }
    }
}

fn comparison(
    kind: &str,
    name: &str,
    condition: &str,
    sources: &str,
    width: usize,
    branch: bool,
) -> Instruction {
    let forms: Vec<char> = sources.chars().collect();
    let prefix = if branch { "br." } else { "" };
    let form = Form::new(&format!("{prefix}{kind}.{name}.{sources}"))
        .source("a", forms[0], width)
        .source("b", forms[1], width);
    if branch {
        let (form, at) = form.operand(Operand::Target);
        let units = form.units;
        let form = form.compute(&format!("({condition}) as u32"));
        let form =
            form.line(&format!("if r != 0 {{ s.jump({at}) }} else {{ s.advance({units}) }}"));
        form.done().used(if width == 64 { Usage::Cool } else { Usage::Hot })
    } else {
        let form = form.line(&format!("let r = ({condition}) as u32;"));
        form.line("s.accumulator = r;").next()
    }
}

/// Division and rotation of 32 bits in one: of each two forms are neighbours, for two destinations.
fn shared_i32_cold() -> Shared {
    let mut arms = String::new();
    for (index, (_, expression)) in I32_COLD.iter().enumerate() {
        let pattern = if index == I32_COLD.len() - 1 { "_".into() } else { index.to_string() };
        arms += &format!("{pattern} => {expression},\n");
    }
    Shared {
        name: "op_shared_i32".into(),
        body: format!(
            "let index = op - crate::isa::I32_ROTR_SS_A;\n\
             let (a, b) = (s.read32(1), s.read32(2));\nlet r = match index / 2 {{\n{arms}}};\n\
             s.accumulator = r;\n\
             if index % 2 == 0 {{ s.advance(3) }} else {{ s.write32(3, r); s.advance(4) }}"
        ),
    }
}

fn i64_operations(list: &mut Vec<Instruction>) {
    for (name, expression) in I64_HOT {
        for sources in ["ss", "si"] {
            list.push(binary(&format!("i64.{name}"), expression, sources, 's', 64).next());
        }
    }
    for (name, expression) in I64_COLD {
        let form = binary(&format!("i64.{name}"), expression, "ss", 's', 64);
        let shared = (name != "rotr").then(|| Shared {
            name: "op_divide64".into(),
            body: "let nth = op - crate::isa::I64_DIV_S_SS_S;\n\
                   match wide::divide(nth, s.read64(1), s.read64(2)) {\n\
                       Ok(r) => { s.write64(3, r); s.advance(4) }\n\
                       Err(flow) => flow,\n\
                   }"
            .into(),
        });
        let usage = if name == "rotr" { Usage::Hot } else { Usage::Cold };
        list.push(Instruction { shared, ..form.next().used(usage) });
    }
}

pub(crate) fn unary(name: &str, from: usize, expression: &str, to: usize) -> Instruction {
    unary_form(name, from, expression, to).next()
}

fn unary_form(name: &str, from: usize, expression: &str, to: usize) -> Form {
    Form::new(name).source("a", 's', from).compute(expression).result('s', to, false)
}

fn constants_and_copies(list: &mut Vec<Instruction>) {
    for (name, source, expression, result) in UNARY {
        let form = unary_form(name, source, expression, result);
        let hot = name.starts_with("copy") || name.contains("extend_i32");
        let counts = name.contains("clz") || name.contains("ctz") || name.contains("popcnt");
        let shared = counts.then(|| Shared {
            name: "op_count".into(),
            body: "let index = op - crate::isa::I32_CLZ;\nlet wide = index >= 3;\n\
                   let a = if wide { s.read64(1) } else { s.read32(1) as u64 };\n\
                   let r = wide::count(index % 3, a, wide);\ns.write32(2, r);\n\
                   if wide { s.write64(2, r as u64); }\ns.advance(3)"
                .into(),
        });
        let usage = match hot {
            true => Usage::Hot,
            false if counts => Usage::Cold,
            false => Usage::Cool,
        };
        list.push(Instruction { shared, ..form.next().used(usage) });
    }
    // Copies come in rows, before calls and where loops hand their variables on.
    let (form, _) = Form::new("copy32_pair").source("a", 's', 32).operand(Operand::Destination);
    let form = form.line("s.write32(2, a);").source("b", 's', 32);
    let (form, _) = form.operand(Operand::Destination);
    list.push(form.line("s.write32(4, b);").next());
    list.push(Form::new("copy_a").line("let r = s.accumulator;").result('s', 32, false).next());
    for (name, operand, read) in
        [("const16", Operand::Immediate16, "immediate"), ("const32", Operand::Immediate32, "wide")]
    {
        let constant = |name: &str| {
            let (form, at) = Form::new(name).operand(operand);
            form.line(&format!("let r = s.{read}({at}) as u32;"))
        };
        list.push(constant(&format!("{name}.a")).line("s.accumulator = r;").next());
        // The slot form leaves the accumulator alone: it may hold the other operand.
        list.push(constant(&format!("{name}.s")).result('s', 32, false).next());
    }
    for (name, operand, expression) in [
        ("const64_16", Operand::Immediate16, "s.immediate(1) as u64"),
        (
            "const64",
            Operand::Immediate64,
            "s.wide(1) as u32 as u64 | (s.wide(3) as u32 as u64) << 32",
        ),
    ] {
        let (form, _) = Form::new(name).operand(operand);
        list.push(form.line(&format!("let r = {expression};")).result('s', 64, false).next());
    }
    for condition in ['a', 's'] {
        for (width, results) in [(32, "as"), (64, "s")] {
            for result in results.chars() {
                list.push(
                    Form::new(&format!("select{width}.{condition}.{result}"))
                        .source("a", 's', width)
                        .source("b", 's', width)
                        .source("c", condition, 32)
                        .line("let r = if c != 0 { a } else { b };")
                        .result(result, width, width == 32)
                        .next(),
                );
            }
        }
    }
    for (name, width, mirror) in [("global.get32", 32, true), ("global.get64", 64, false)] {
        for result in if width == 32 { "as" } else { "s" }.chars() {
            let (form, at) = Form::new(&format!("{name}.{result}")).operand(Operand::Index);
            list.push(
                form.line(&format!("let r = s.global{width}({at}).read();"))
                    .result(result, width, mirror)
                    .next(),
            );
        }
    }
    for (name, width, source) in
        [("global.set32.s", 32, 's'), ("global.set32.a", 32, 'a'), ("global.set64.s", 64, 's')]
    {
        let (form, at) = Form::new(name).source("a", source, width).operand(Operand::Index);
        list.push(form.line(&format!("s.global{width}({at}).write(a);")).next());
    }
}

fn memory(list: &mut Vec<Instruction>) {
    for (name, bytes, load) in LOADS32 {
        for address in ['s', 'a'] {
            for result in ['a', 's'] {
                let form = Form::new(&format!("{name}.{address}.{result}"));
                let form = form.source("address", address, 32);
                list.push(load_instruction(form, bytes, load, result, 32));
            }
        }
    }
    for (name, bytes, load) in LOADS64 {
        let form = Form::new(name).source("address", 's', 32);
        list.push(load_instruction(form, bytes, load, 's', 64));
    }
    // Addresses known when translating: a C program's global variables.
    for result in ['a', 's'] {
        let (form, at) = Form::new(&format!("load32.i.{result}")).operand(Operand::Immediate32);
        let form = form
            .line(&format!("let address = s.wide({at}) as u32;"))
            .line("let p = match s.locate(address, 3, 4) { Ok(p) => p, Err(flow) => return flow };")
            .line("let r = s.load32(p);");
        list.push(form.result(result, 32, true).next());
    }
    for (name, bytes, width) in STORES {
        for forms in
            if width == 32 { &["ss", "sa", "as", "si", "ai"][..] } else { &["ss", "as"][..] }
        {
            let forms: Vec<char> = forms.chars().collect();
            let (form, at) = Form::new(&format!("{name}.{}{}", forms[0], forms[1]))
                .source("address", forms[0], 32)
                .source("value", forms[1], width)
                .operand(Operand::Reach);
            list.push(
                form.line(&format!("let reach = s.unit({at});"))
                    .line(&format!(
                        "let p = match s.locate(address, reach, {bytes}) {{ Ok(p) => p, Err(flow) => return flow }};"
                    ))
                    .line(&format!("s.store{}(p, value as u{0});", bytes * 8))
                    .next(),
            );
        }
    }
    // Offsets that do not fit a unit: the sum becomes the address, and must not wrap (wasm §4.4.7).
    let (form, at) = Form::new("address.s.a").source("a", 's', 32).operand(Operand::Immediate32);
    list.push(
        form.line(&format!("let offset = s.wide({at}) as u32;"))
            .line("let Some(r) = a.checked_add(offset) else { return Flow::Access };")
            .line("s.accumulator = r;")
            .next(),
    );
}

fn load_instruction(
    form: Form,
    bytes: usize,
    load: &str,
    result: char,
    width: usize,
) -> Instruction {
    let (form, at) = form.operand(Operand::Reach);
    form.line(&format!("let reach = s.unit({at});"))
        .line(&format!(
            "let p = match s.locate(address, reach, {bytes}) {{ Ok(p) => p, Err(flow) => return flow }};"
        ))
        .line(&format!("let r = s.{load};"))
        .result(result, width, width == 32)
        .next()
}

fn control(list: &mut Vec<Instruction>) {
    use Operand::*;
    let mut add = |mnemonic: &str, operands: &[Operand], body: &str| {
        list.push(Instruction::new(mnemonic, operands.into(), body))
    };
    add("unreachable", &[], "Flow::Unreachable");
    add("br", &[Target], "s.jump(1)");
    add("br_far", &[FarTarget], "s.jump_far(1)");
    add("br_table.s", &[Source, Count], "let index = s.read32(1); s.jump_table(index, 2)");
    add("br_table.a", &[Count], "let index = s.accumulator; s.jump_table(index, 1)");
    // For functions whose branches do not fit 16 bits: displacements of 32.
    add("br_table_far.s", &[Source, Count], "let index = s.read32(1); s.jump_table_far(index, 2)");
    // A fuel check inside a long stretch without branches.
    add("check", &[], "s.pass_check(1)");
    add("call", &[Index, Delta], "s.call(s.unit(1), 3)");
    add("call_indirect", &[Index, Source, Delta], "s.call_indirect(s.unit(1), s.read32(2), 4)");
    add("return", &[Link], "s.return_to(1, 2)");
    add("return32.s", &[Source, Link], "let r = s.read32(1); s.result32(r); s.return_to(2, 3)");
    add("return32.a", &[Link], "let r = s.accumulator; s.result32(r); s.return_to(1, 2)");
    add("return64.s", &[Source, Link], "let r = s.read64(1); s.result64(r); s.return_to(2, 3)");
    add("host", &[Index], "Flow::Outer");
}

/// Instructions that the loop around the interpreter executes in safe Rust.
fn outer(list: &mut Vec<Instruction>) {
    use Operand::*;
    for (mnemonic, operands) in [
        ("memory.size", &[Destination][..]),
        ("memory.grow", &[Source, Destination]),
        ("memory.fill", &[Source, Source, Source]),
        ("memory.copy", &[Source, Source, Source]),
        ("memory.init", &[Source, Source, Source, Index]),
        ("data.drop", &[Index]),
        ("table.get", &[Source, Index, Destination]),
        ("table.set", &[Source, Source, Index]),
        ("table.size", &[Index, Destination]),
        ("table.grow", &[Source, Source, Index, Destination]),
        ("table.fill", &[Source, Source, Source, Index]),
        ("table.copy", &[Source, Source, Source, Index, Index]),
        ("table.init", &[Source, Source, Source, Index, Index]),
        ("elem.drop", &[Index]),
        // Index of the table, of the type, slot of the element.
        ("call_indirect.table", &[Index, Index, Source, Delta]),
        // First argument, then as for the calls.
        ("return_call", &[Index, Delta, Link]),
        ("return_call_indirect", &[Index, Index, Source, Delta, Link]),
    ] {
        list.push(Instruction::new(mnemonic, operands.into(), "Flow::Outer"));
    }
}

#[path = "float.rs"]
mod float;
#[path = "surcharge.rs"]
mod surcharge;
