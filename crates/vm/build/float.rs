//! The floating-point instructions.
//!
//! Every result that is a NaN is the positive quiet NaN without payload (the deterministic profile of
//! wasm 3.0), so that all CPUs and the software implementation agree on every bit.

use super::{Form, Instruction, Shared, unary};

const ARITHMETIC: [(&str, &str); 7] = [
    ("add", "float::FN::canonical(a + b)"),
    ("sub", "float::FN::canonical(a - b)"),
    ("mul", "float::FN::canonical(a * b)"),
    ("div", "float::FN::canonical(a / b)"),
    ("min", "float::FN::minimum(a, b)"),
    ("max", "float::FN::maximum(a, b)"),
    ("copysign", "a.copysign(b).to_bits()"),
];

const ROUNDING: [(&str, &str); 5] = [
    ("ceil", "float::FN::canonical(float::FN::ceil(a))"),
    ("floor", "float::FN::canonical(float::FN::floor(a))"),
    ("trunc", "float::FN::canonical(float::FN::trunc(a))"),
    ("nearest", "float::FN::canonical(float::FN::nearest(a))"),
    ("sqrt", "float::FN::canonical(float::FN::sqrt(a))"),
];

/// The opposites of `lt` and `ge` are not each other: a NaN is neither.
const COMPARISONS: [(&str, &str); 4] =
    [("eq", "a == b"), ("ne", "a != b"), ("lt", "a < b"), ("ge", "a >= b")];

pub(super) fn instructions(list: &mut Vec<Instruction>) {
    let first = list.len();
    for width in [32, 64] {
        let float = format!("f{width}");
        for (name, expression) in ARITHMETIC {
            let expression = expression.replace("FN", &float);
            list.push(
                two_sources(&format!("{float}.{name}"), width, &expression)
                    .result('s', width, false)
                    .next(),
            );
        }
        list.push(unary(&format!("{float}.abs"), width, "a & (!0 >> 1)", width));
        list.push(unary(&format!("{float}.neg"), width, &format!("a ^ 1 << {}", width - 1), width));
        for (name, expression) in ROUNDING {
            let expression = expression.replace("FN", &float);
            let expression = format!("{{ let a = f{width}::from_bits(a); {expression} }}");
            list.push(unary(&format!("{float}.{name}"), width, &expression, width));
        }
        for (name, condition) in COMPARISONS {
            let form =
                two_sources(&format!("{float}.{name}"), width, &format!("({condition}) as u32"));
            list.push(form.line("s.accumulator = r;").next());
        }
    }
    conversions(list);
    for instruction in &mut list[first..] {
        instruction.float = true;
        instruction.shared = soft(&instruction.mnemonic);
    }
}

/// What an instruction is made of in software: its family's body, around functions that take all of them.
fn soft(mnemonic: &str) -> Option<Shared> {
    let (kind, name) = mnemonic.split_once('.')?;
    let width: usize = kind[1..].parse().ok()?;
    let wide = |width: usize, name: &str| {
        if width == 32 {
            format!("soft::widen(s.read32({name}))")
        } else {
            format!("s.read64({name})")
        }
    };
    let first = |name: &str| format!("op - crate::isa::{}_{name}", kind.to_uppercase());
    let result = |at: usize, value: &str| match width {
        32 => format!("let r = soft::narrow({value}); s.write32({at}, r); s.advance({})", at + 1),
        _ => format!("let r = {value}; s.write64({at}, r); s.advance({})", at + 1),
    };
    let (a, b) = (wide(width, "1"), wide(width, "2"));
    let (family, body) = match name {
        "add" | "sub" | "mul" | "div" | "min" | "max" => {
            ("binary", result(3, &format!("soft::binary({}, {a}, {b})", first("ADD"))))
        }
        "ceil" | "floor" | "trunc" | "nearest" | "sqrt" => {
            ("unary", result(2, &format!("soft::unary({}, {a})", first("CEIL"))))
        }
        "eq" | "ne" | "lt" | "ge" => {
            let truth = format!("soft::compare({}, {a}, {b})", first("EQ"));
            ("compare", format!("s.accumulator = {truth} as u32; s.advance(3)"))
        }
        "demote_f64" => {
            return shared(
                mnemonic,
                "let r = soft::narrow(s.read64(1)); s.write32(2, r); s.advance(3)",
            );
        }
        "promote_f32" => {
            return shared(
                mnemonic,
                "let r = soft::widen(s.read32(1)); s.write64(2, r); s.advance(3)",
            );
        }
        _ if name.starts_with("convert") => return soft_conversion(mnemonic, width, name),
        _ if kind.starts_with('i') => return soft_truncation(mnemonic, width, name),
        _ => return None,
    };
    shared(&format!("{kind}_{family}"), &body)
}

fn shared(name: &str, body: &str) -> Option<Shared> {
    let name = format!("op_shared_{}", name.replace('.', "_"));
    Some(Shared { name, body: body.into() })
}

fn soft_conversion(mnemonic: &str, width: usize, name: &str) -> Option<Shared> {
    let signed = name.ends_with("_s");
    let from = match (name.contains("i32"), signed) {
        (true, true) => "s.read32(1) as i32 as u64",
        (true, false) => "s.read32(1) as u64",
        (false, _) => "s.read64(1)",
    };
    let (convert, width) = if width == 32 { ("convert_narrow", 32) } else { ("convert", 64) };
    // The two of one shape are neighbours.
    let base = mnemonic.trim_end_matches(['s', 'u']);
    let constant = format!("{base}s").replace('.', "_").to_uppercase();
    let from = if name.contains("i32") {
        "if signed { s.read32(1) as i32 as u64 } else { s.read32(1) as u64 }"
    } else {
        from
    };
    shared(
        base,
        &format!(
            "let signed = op == crate::isa::{constant}; let a = {from}; \
             let r = soft::{convert}(a, signed); s.write{width}(2, r); s.advance(3)"
        ),
    )
}

/// The four of one shape are neighbours: signed, signed and saturating, unsigned, unsigned and saturating.
fn soft_truncation(_: &str, width: usize, name: &str) -> Option<Shared> {
    let from = if name.contains("f32") { 32 } else { 64 };
    let a = if from == 32 { "soft::widen(s.read32(1))" } else { "s.read64(1)" };
    let first = format!("I{width}_TRUNC_F{from}_S");
    let wide = width == 64;
    shared(
        &format!("i{width}_trunc_f{from}"),
        &format!(
            "let nth = op - crate::isa::{first}; \
             let to = soft::Integer {{ wide: {wide}, signed: nth < 2, saturating: nth & 1 != 0 }}; \
             match soft::truncate({a}, to) {{ \
                 Ok(r) => {{ s.write{width}(2, r as u{width}); s.advance(3) }} \
                 Err(flow) => flow, \
             }}"
        ),
    )
}

fn two_sources(name: &str, width: usize, expression: &str) -> Form {
    Form::new(name)
        .source("a", 's', width)
        .source("b", 's', width)
        .line(&format!("let (a, b) = (f{width}::from_bits(a), f{width}::from_bits(b));"))
        .line(&format!("let r = {expression};"))
}

fn conversions(list: &mut Vec<Instruction>) {
    for to in [32, 64] {
        for from in [32, 64] {
            for (sign, integer) in [("s", 'i'), ("u", 'u')] {
                let checked = format!(
                    "match float::trunc_{integer}{to}(f{from}::from_bits(a) as f64) {{ Ok(r) => r as u{to}, Err(trap) => return trap }}"
                );
                list.push(unary(&format!("i{to}.trunc_f{from}_{sign}"), from, &checked, to));
                let saturating = format!("f{from}::from_bits(a) as {integer}{to} as u{to}");
                list.push(unary(&format!("i{to}.trunc_sat_f{from}_{sign}"), from, &saturating, to));
            }
        }
    }
    for to in [32, 64] {
        for from in [32, 64] {
            for (sign, integer) in [("s", 'i'), ("u", 'u')] {
                let expression = format!("(a as {integer}{from} as f{to}).to_bits()");
                list.push(unary(&format!("f{to}.convert_i{from}_{sign}"), from, &expression, to));
            }
        }
    }
    list.push(unary("f32.demote_f64", 64, "float::f32::canonical(f64::from_bits(a) as f32)", 32));
    list.push(unary("f64.promote_f32", 32, "float::f64::canonical(f32::from_bits(a) as f64)", 64));
}
