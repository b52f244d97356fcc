//! The floating-point instructions.
//!
//! Every result that is a NaN is the positive quiet NaN without payload (the deterministic profile of
//! wasm 3.0), so that all CPUs and the software implementation agree on every bit.

use super::{Form, Instruction, Usage, unary};

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
                two_sources(&format!("{float}.{name}"), width)
                    .compute(&expression)
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
            let form = two_sources(&format!("{float}.{name}"), width);
            let form = form.compute(&format!("({condition}) as u32"));
            list.push(form.line("s.accumulator = r;").next());
        }
    }
    conversions(list);
    for instruction in &mut list[first..] {
        instruction.float = true;
        instruction.usage = usage(&instruction.mnemonic);
    }
}

/// Additions, comparisons and conversions don't share: of two of them in one handler the optimiser computes both and takes one, as
/// it takes them for instructions of the processor, which calls are made of later.
fn usage(mnemonic: &str) -> Usage {
    match mnemonic.split_once('.').map_or("", |(_, operation)| operation) {
        // A handler of their own would make them cheaper than what a unit of fuel is to buy.
        "abs" | "neg" if mnemonic.starts_with("f32") => Usage::Cold,
        "abs" | "neg" | "min" | "max" | "ceil" | "floor" | "trunc" => Usage::Cool,
        _ => Usage::Hot,
    }
}

fn two_sources(name: &str, width: usize) -> Form {
    Form::new(name)
        .source("a", 's', width)
        .source("b", 's', width)
        .line(&format!("let (a, b) = (f{width}::from_bits(a), f{width}::from_bits(b));"))
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
