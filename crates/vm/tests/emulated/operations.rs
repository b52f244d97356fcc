//! All operations of programs, as bodies of a loop: every kind of instruction, with operands that make it dear.

use super::common::{Random, assemble};

/// A template and what it is called. `{i}` and `{j}` stand for two i32, `{l}` and `{m}` i64, `{f}` and
/// `{g}` f32, `{d}` and `{e}` f64, all of them in locals; `{c}` for a constant.
pub(crate) struct Operation {
    pub(crate) name: String,
    template: String,
    /// Its memory was never touched before.
    cold: bool,
}

/// A program: how often its loop goes round, and its module.
pub(crate) struct Program {
    pub(crate) wasm: Vec<u8>,
    pub(crate) rounds: u32,
}

const ROUNDS: u32 = 16;
/// How often a body stands in the loop.
const COPIES: usize = 8;
/// The total work of an operation.
pub(crate) const TIMES: u32 = ROUNDS * COPIES as u32;

const I32: [&str; 7] = ["0", "1", "-1", "7", "0x80000000", "0x7fffffff", "0x12345678"];
const I64: [&str; 9] = [
    "0",
    "1",
    "-1",
    "7",
    "0x100000001",
    "0x8000000000000000",
    "0x7fffffffffff",
    "0xfedcba9876543210",
    "0x123456789abcdef",
];
const F32: [&str; 10] = [
    "0x0",
    "0x1",
    "0x7fffff",
    "0x3f800000",
    "0xbf800001",
    "0x7f7fffff",
    "0x7f800000",
    "0x7fc00000",
    "0x40490fdb",
    "0x1e3ce508",
];
const F64: [&str; 10] = [
    "0x0",
    "0x1",
    "0xfffffffffffff",
    "0x3ff0000000000000",
    "0xbff0000000000001",
    "0x7fefffffffffffff",
    "0x7ff0000000000000",
    "0x7ff8000000000000",
    "0x400921fb54442d18",
    "0x20c49ba5e353f7cf",
];

impl Operation {
    fn new(name: &str, template: &str) -> Operation {
        Operation { name: name.into(), template: template.into(), cold: false }
    }

    /// The operation with each choice of operands: all pairs.
    pub(crate) fn programs(&self) -> Vec<Program> {
        let firsts = self.choices(["{i}", "{l}", "{f}", "{d}"]);
        let seconds = self.choices(["{j}", "{m}", "{g}", "{e}"]);
        let pairs = (0..firsts).flat_map(|first| (0..seconds).map(move |second| (first, second)));
        pairs.map(|(first, second)| program(&[(self, first, second)])).collect()
    }

    fn choices(&self, of: [&str; 4]) -> usize {
        let lists = of.into_iter().zip([I32.len(), I64.len(), F32.len(), F64.len()]);
        let used = lists.filter(|(name, _)| self.template.contains(name));
        used.map(|(_, length)| length).max().unwrap_or(1)
    }
}

/// A loop of these operations, each with its operands.
pub(crate) fn program(operations: &[(&Operation, usize, usize)]) -> Program {
    let cold = operations.iter().any(|(operation, ..)| operation.cold);
    let mut setup = String::new();
    let mut body = String::new();
    for (index, (operation, first, second)) in operations.iter().enumerate() {
        let mut text = operation.template.clone();
        for (place, list, value_type, bits) in [
            ("{i}", &I32[..], "i32", ""),
            ("{l}", &I64[..], "i64", ""),
            ("{f}", &F32[..], "f32", "i32"),
            ("{d}", &F64[..], "f64", "i64"),
        ] {
            let other = match place {
                "{i}" => "{j}",
                "{l}" => "{m}",
                "{f}" => "{g}",
                _ => "{e}",
            };
            for (place, nth, name) in [(place, first, "first"), (other, second, "second")] {
                if !text.contains(place) {
                    continue;
                }
                let local = format!("${value_type}{name}{index}");
                let value = list[nth % list.len()];
                setup += &match bits {
                    "" => format!("(local.set {local} ({value_type}.const {value}))"),
                    _ => format!(
                        "(local.set {local} ({value_type}.reinterpret_{bits} ({bits}.const {value})))"
                    ),
                };
                text = text.replace(place, &format!("(local.get {local})"));
            }
        }
        text = text.replace("{c}", &(first * 31 + second).to_string());
        body += &text;
    }
    let copies = (COPIES / operations.len().max(1)).max(1);
    Program { wasm: module(&setup, &body.repeat(copies), operations.len(), cold), rounds: ROUNDS }
}

/// The loop without a body, to be subtracted.
pub(crate) fn empty() -> Program {
    Program { wasm: module("", "", 0, false), rounds: ROUNDS }
}

fn module(setup: &str, body: &str, operands: usize, cold: bool) -> Vec<u8> {
    let mut locals = String::new();
    for index in 0..operands {
        for value_type in ["i32", "i64", "f32", "f64"] {
            locals += &format!(
                "(local ${value_type}first{index} {value_type})\
                 (local ${value_type}second{index} {value_type})"
            );
        }
    }
    let warm = if cold {
        ""
    } else {
        "(func (export \"warm\") (memory.fill (i32.const 0) (i32.const 0) (i32.const 131072)))"
    };
    let zeros = |count: usize| format!("(func $zeros{count} (local {}))", "i64 ".repeat(count));
    let items = "0 ".repeat(300);
    let bytes = "a".repeat(4096);
    let text = format!(
        "(module (memory 2 16) (table $t 300 4000 funcref) (table $u 300 funcref)
         (global $g (mut i32) (i32.const 1)) (global $h (mut i64) (i64.const 1))
         (type $v (func)) (type $w (func (param i32 i32) (result i32)))
         (func $none) (func $two (param i32 i32) (result i32) (local.get 0))
         (func $three (param i32 i64 i64) (result i64 i64) (local.get 1) (local.get 2))
         {} {} {} {}
         (func $tail (return_call $none))
         (func $tail_indirect (return_call_indirect $t (type $v) (i32.const 0)))
         (elem (table $t) (i32.const 0) func {items}) (elem (table $u) (i32.const 0) func {items})
         (elem $e func {items}) (elem $dropped func 0) (data $d \"{bytes}\") (data $gone \"a\") {warm}
         (func (export \"run\") (param $n i32) (local $r i32) (local $s i64) (local $x f32)
          (local $y f64) (local $z i32) (local $at i32) {locals}
          {setup} (loop $again {body}
          (br_if $again (local.tee $n (i32.sub (local.get $n) (i32.const 1)))))))",
        zeros(4),
        zeros(100),
        zeros(400),
        zeros(1020)
    );
    assemble(&text)
}

/// A random program of up to six operations.
pub(crate) fn random<'o>(
    operations: &'o [Operation],
    random: &mut Random,
) -> Vec<(&'o Operation, usize, usize)> {
    let length = 1 + random.below(6);
    (0..length).map(|_| random_one(operations, random)).collect()
}

/// One operation with random operands.
pub(crate) fn random_one<'o>(
    operations: &'o [Operation],
    random: &mut Random,
) -> (&'o Operation, usize, usize) {
    let of = &operations[random.below(operations.len() as u64) as usize];
    (of, random.below(90) as usize, random.below(90) as usize)
}

/// All of them.
pub(crate) fn operations() -> Vec<Operation> {
    let mut list = Vec::new();
    integers(&mut list);
    floats(&mut list);
    conversions(&mut list);
    constants(&mut list);
    memory(&mut list);
    bulk(&mut list);
    control(&mut list);
    list
}

fn integers(list: &mut Vec<Operation>) {
    for (width, local, a, b) in [("i32", "$r", "{i}", "{j}"), ("i64", "$s", "{l}", "{m}")] {
        for name in [
            "add", "sub", "mul", "div_s", "div_u", "rem_s", "rem_u", "and", "or", "xor", "shl",
            "shr_s", "shr_u", "rotl", "rotr",
        ] {
            let operation = format!("{width}.{name}");
            list.push(Operation::new(
                &operation,
                &format!("(local.set {local} ({operation} {a} {b}))"),
            ));
            list.push(Operation::new(
                &format!("{operation} in a chain"),
                &format!("(local.set {local} ({operation} ({operation} {a} {b}) {b}))"),
            ));
            list.push(Operation::new(
                &format!("{operation} with a constant"),
                &format!("(local.set {local} ({operation} {a} ({width}.const 5)))"),
            ));
        }
        for name in ["eq", "ne", "lt_s", "lt_u", "gt_s", "gt_u", "le_s", "le_u", "ge_s", "ge_u"] {
            let operation = format!("{width}.{name}");
            list.push(Operation::new(&operation, &format!("(local.set $r ({operation} {a} {b}))")));
            list.push(Operation::new(
                &format!("{operation} and branch"),
                &format!("(block (br_if 0 ({operation} {a} {b})))"),
            ));
        }
        for name in ["clz", "ctz", "popcnt"] {
            let operation = format!("{width}.{name}");
            list.push(Operation::new(
                &operation,
                &format!("(local.set {local} ({operation} {a}))"),
            ));
        }
        let operation = format!("{width}.eqz");
        list.push(Operation::new(&operation, &format!("(local.set $r ({operation} {a}))")));
    }
    for (operation, local, a) in [
        ("i32.extend8_s", "$r", "{i}"),
        ("i32.extend16_s", "$r", "{i}"),
        ("i64.extend8_s", "$s", "{l}"),
        ("i64.extend16_s", "$s", "{l}"),
        ("i64.extend32_s", "$s", "{l}"),
        ("i64.extend_i32_s", "$s", "{i}"),
        ("i64.extend_i32_u", "$s", "{i}"),
        ("i32.wrap_i64", "$r", "{l}"),
    ] {
        list.push(Operation::new(operation, &format!("(local.set {local} ({operation} {a}))")));
    }
}

fn floats(list: &mut Vec<Operation>) {
    for (width, local, a, b) in [("f32", "$x", "{f}", "{g}"), ("f64", "$y", "{d}", "{e}")] {
        for name in ["add", "sub", "mul", "div", "min", "max", "copysign"] {
            let operation = format!("{width}.{name}");
            list.push(Operation::new(
                &operation,
                &format!("(local.set {local} ({operation} {a} {b}))"),
            ));
        }
        for name in ["abs", "neg", "ceil", "floor", "trunc", "nearest", "sqrt"] {
            let operation = format!("{width}.{name}");
            list.push(Operation::new(
                &operation,
                &format!("(local.set {local} ({operation} {a}))"),
            ));
        }
        for name in ["eq", "ne", "lt", "gt", "le", "ge"] {
            let operation = format!("{width}.{name}");
            list.push(Operation::new(&operation, &format!("(local.set $r ({operation} {a} {b}))")));
        }
    }
}

fn conversions(list: &mut Vec<Operation>) {
    for (to, local) in [("i32", "$r"), ("i64", "$s")] {
        for (from, a) in [("f32", "{f}"), ("f64", "{d}")] {
            for form in ["trunc", "trunc_sat"] {
                for sign in ["s", "u"] {
                    let operation = format!("{to}.{form}_{from}_{sign}");
                    let body = format!("(local.set {local} ({operation} {a}))");
                    list.push(Operation::new(&operation, &body));
                }
            }
        }
    }
    for (to, local) in [("f32", "$x"), ("f64", "$y")] {
        for (from, a) in [("i32", "{i}"), ("i64", "{l}")] {
            for sign in ["s", "u"] {
                let operation = format!("{to}.convert_{from}_{sign}");
                let body = format!("(local.set {local} ({operation} {a}))");
                list.push(Operation::new(&operation, &body));
            }
        }
    }
    list.push(Operation::new("f32.demote_f64", "(local.set $x (f32.demote_f64 {d}))"));
    list.push(Operation::new("f64.promote_f32", "(local.set $y (f64.promote_f32 {f}))"));
}

fn constants(list: &mut Vec<Operation>) {
    for (name, body) in [
        ("local.set", "(local.set $r (local.get $z))"),
        ("local.set of 64 bits", "(local.set $s {l})"),
        ("two local.set", "(local.set $r (local.get $z)) (local.set $at (local.get $n))"),
        ("i32.const", "(local.set $r (i32.const {c}))"),
        ("i32.const of 32 bits", "(local.set $r (i32.const 0x12345678))"),
        ("i64.const", "(local.set $s (i64.const {c}))"),
        ("i64.const of 64 bits", "(local.set $s (i64.const 0x123456789abcdef))"),
        ("f64.const", "(local.set $y (f64.const 3.14))"),
        ("select", "(local.set $r (select {i} {j} (local.get $n)))"),
        ("select of 64 bits", "(local.set $s (select {l} {m} (local.get $n)))"),
        ("global.get", "(local.set $r (global.get $g))"),
        ("global.get of 64 bits", "(local.set $s (global.get $h))"),
        ("global.set", "(global.set $g {i})"),
        ("global.set of 64 bits", "(global.set $h {l})"),
    ] {
        list.push(Operation::new(name, body));
    }
}

fn memory(list: &mut Vec<Operation>) {
    let mut add = |name: String, body: String| list.push(Operation::new(&name, &body));
    for (place, offset) in [("", 64), (", one byte off", 65), (", two off", 66), (", four off", 68)]
    {
        for (width, local) in [("i32", "$r"), ("i64", "$s"), ("f32", "$x"), ("f64", "$y")] {
            let more: &[&str] = match width {
                "i32" => &["load", "load8_s", "load8_u", "load16_s", "load16_u"],
                "i64" => {
                    &["load", "load8_s", "load8_u", "load16_s", "load16_u", "load32_s", "load32_u"]
                }
                _ => &["load"],
            };
            for name in more {
                let operation = format!("{width}.{name} offset={offset}");
                let body = format!("(local.set {local} ({operation} (local.get $at)))");
                add(format!("{width}.{name}{place}"), body);
                let body = format!(
                    "(local.set {local} ({operation} (i32.add (local.get $at) (local.get $z))))"
                );
                add(format!("{width}.{name} at a sum{place}"), body);
            }
            let value = format!("(local.get {local})");
            let more: &[&str] = match width {
                "i32" => &["store", "store8", "store16"],
                "i64" => &["store", "store8", "store16", "store32"],
                _ => &["store"],
            };
            for name in more {
                let operation = format!("{width}.{name} offset={offset}");
                add(
                    format!("{width}.{name}{place}"),
                    format!("({operation} (local.get $at) {value})"),
                );
                let constant = format!("({operation} (local.get $at) ({width}.const 1))");
                add(format!("{width}.{name} of a constant{place}"), constant);
            }
        }
        let body = format!("(local.set $r (i32.load (i32.const {offset})))");
        add(format!("i32.load at a constant{place}"), body);
    }
    add(
        "i32.load at a far offset".into(),
        "(local.set $r (i32.load offset=70000 (local.get $at)))".into(),
    );
    add("memory.size".into(), "(local.set $r (memory.size))".into());
    add("memory.grow by nothing".into(), "(local.set $r (memory.grow (i32.const 0)))".into());
    add("memory.grow by too much".into(), "(local.set $r (memory.grow (i32.const 100)))".into());
    list.push(Operation {
        cold: true,
        ..Operation::new(
            "i32.store to memory that was never touched",
            "(i32.store (local.get $at) (i32.const 1))\
             (local.set $at (i32.add (local.get $at) (i32.const 1000)))",
        )
    });
    list.push(Operation {
        cold: true,
        ..Operation::new(
            "i32.store far out in memory that was never touched",
            "(i32.store offset=1000 (local.get $at) (i32.const 1))\
             (local.set $at (i32.add (i32.shl (local.get $at) (i32.const 1)) (i32.const 1000)))
             (local.set $at (select (local.get $at) (i32.const 0) (i32.lt_u (local.get $at) (i32.const 130000))))",
        )
    });
    list.push(Operation {
        cold: true,
        ..Operation::new(
            "memory.grow by a page that is touched",
            "(local.set $at (i32.mul (i32.const 65536) (memory.grow (i32.const 1))))\
             (local.set $at (select (i32.const 0) (local.get $at) (i32.lt_s (local.get $at) (i32.const 0))))
             (i32.store (local.get $at) (i32.const 1))",
        )
    });
}

fn bulk(list: &mut Vec<Operation>) {
    let mut add = |name: String, body: String| list.push(Operation::new(&name, &body));
    for count in [0, 1, 3, 8, 17, 100, 1024, 4000] {
        let three =
            |to: u32, from: u32| format!("(i32.const {to}) (i32.const {from}) (i32.const {count})");
        add(format!("memory.fill of {count}"), format!("(memory.fill {})", three(8192, 7)));
        add(
            format!("memory.fill of {count}, one off"),
            format!("(memory.fill {})", three(8193, 7)),
        );
        for (to, from) in [
            (8192, 64),
            (8193, 65),
            (8192, 65),
            (8193, 64),
            (8194, 65),
            (65, 64),
            (64, 65),
            (68, 64),
        ] {
            let body = format!("(memory.copy {})", three(to, from));
            add(format!("memory.copy of {count} from {from} to {to}"), body);
        }
        for to in [8192, 8193] {
            let body = format!("(memory.init $d {})", three(to, 1));
            add(format!("memory.init of {count} to {to}"), body);
        }
        if count <= 100 {
            let fill = format!("(i32.const 0) (ref.func 0) (i32.const {count})");
            add(format!("table.fill of {count}"), format!("(table.fill $t {fill})"));
            for (to, from) in [(0, 0), (1, 0), (0, 1), (150, 0)] {
                let body = format!("(table.copy $t $t {})", three(to, from));
                add(format!("table.copy of {count} from {from} to {to}"), body);
            }
            add(
                format!("table.copy of {count} from another"),
                format!("(table.copy $t $u {})", three(0, 0)),
            );
            add(format!("table.init of {count}"), format!("(table.init $t $e {})", three(0, 0)));
        }
    }
    for (name, body) in [
        ("table.get", "(drop (table.get $t (i32.const 3)))"),
        ("table.get of another", "(drop (table.get $u (i32.const 3)))"),
        ("table.set", "(table.set $t (i32.const 3) (ref.func 0))"),
        ("table.set of another", "(table.set $u (i32.const 3) (ref.func 0))"),
        ("table.size", "(local.set $r (table.size $t))"),
        ("table.grow by nothing", "(local.set $r (table.grow $t (ref.null func) (i32.const 0)))"),
        ("table.grow by one", "(local.set $r (table.grow $t (ref.null func) (i32.const 1)))"),
        ("table.grow by 20", "(local.set $r (table.grow $t (ref.null func) (i32.const 20)))"),
        (
            "table.grow by too much",
            "(local.set $r (table.grow $t (ref.null func) (i32.const 9999)))",
        ),
        ("elem.drop", "(elem.drop $dropped)"),
        ("data.drop", "(data.drop $gone)"),
    ] {
        add(name.into(), body.into());
    }
}

fn control(list: &mut Vec<Operation>) {
    for (name, body) in [
        ("if, not taken", "(if (local.get $z) (then (local.set $r (i32.const 1))))"),
        ("if, taken", "(if (local.get $n) (then (local.set $r (i32.const 1))))"),
        (
            "if with else",
            "(if (local.get $n) (then (local.set $r (i32.const 1))) (else (local.set $r (i32.const 2))))",
        ),
        ("br", "(block (br 0))"),
        ("br_if", "(block (br_if 0 (local.get $n)))"),
        ("br_table", "(block (block (br_table 0 1 0 1 (local.get $z))))"),
        ("br_table beyond its end", "(block (block (br_table 0 1 0 1 (local.get $n))))"),
        ("call", "(call $none)"),
        ("call with arguments", "(local.set $r (call $two {i} {j}))"),
        ("call with two results", "(call $three {i} {l} {m}) (local.set $s) (local.set $s)"),
        ("call of a function with 4 locals", "(call $zeros4)"),
        ("call of a function with 100 locals", "(call $zeros100)"),
        ("call of a function with 400 locals", "(call $zeros400)"),
        ("call of a function with 1,020 locals", "(call $zeros1020)"),
        ("call_indirect", "(call_indirect $t (type $v) (i32.const 0))"),
        ("call_indirect through another table", "(call_indirect $u (type $v) (i32.const 0))"),
        ("return_call", "(call $tail)"),
        ("return_call_indirect", "(call $tail_indirect)"),
    ] {
        list.push(Operation::new(name, body));
    }
}
