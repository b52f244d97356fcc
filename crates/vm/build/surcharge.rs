//! The fuel of instructions beside their length.
//!
//! A unit of fuel buys about as many instructions of a small core whatever a program does: at most four
//! times as many of one kind as of another, on RV32 and ARMv7-M, however the engine is built.
//! `cargo xtask bench fuel` counts them, and `tests/emulated.rs` holds the bound.

/// Units of fuel of an instruction beyond its length.
pub(crate) fn surcharge(mnemonic: &str) -> u16 {
    let (kind, name) = mnemonic.split_once('.').unwrap_or((mnemonic, ""));
    let (operation, form) = name.split_once('.').unwrap_or((name, ""));
    match (kind, operation) {
        ("i32" | "i64", _) => of_integers(kind == "i64", operation, form),
        ("f32" | "f64", _) => of_floats(kind == "f64", operation),
        // The instructions below leave the interpreter, and some work in steps that are charged one by one.
        ("memory", "size") | ("data" | "elem", "drop") => 44,
        ("table", "size") => 47,
        ("table", "get" | "set") => 52,
        ("memory" | "table", "grow") => 67,
        ("memory", "fill") => 79,
        ("memory", "copy") => 92,
        ("memory", "init") => 104,
        ("table", "fill") => 80,
        ("table", "copy") => 92,
        ("table", "init") => 111,
        ("call_indirect", "table") => 56,
        ("return_call" | "return_call_indirect", _) => 69,
        _ => 0,
    }
}

fn of_integers(wide: bool, operation: &str, form: &str) -> u16 {
    let truncates = operation.starts_with("trunc_f");
    let divides = matches!(operation, "div_s" | "div_u" | "rem_s" | "rem_u");
    match operation {
        _ if truncates => 26,
        _ if operation.starts_with("trunc_sat") => 16,
        _ if divides => {
            if wide {
                53
            } else {
                6
            }
        }
        "clz" if wide => 14,
        "clz" | "ctz" | "popcnt" => 10,
        "extend8_s" | "extend16_s" | "extend32_s" if wide => 3,
        "rotr" if wide => 4,
        "shl" | "shr_s" | "shr_u" if wide => 2,
        // They share code where flash is short.
        "eq" | "ne" | "lt_s" | "lt_u" | "ge_s" | "ge_u" if wide && form != "sz" => 2,
        _ => 0,
    }
}

/// Floats are software on small cores.
fn of_floats(wide: bool, operation: &str) -> u16 {
    let by_width = |narrow: u16, of_wide: u16| if wide { of_wide } else { narrow };
    match operation {
        "add" | "sub" => by_width(18, 27),
        "mul" => by_width(16, 29),
        "div" => by_width(21, 54),
        "sqrt" => by_width(43, 119),
        "min" | "max" => by_width(8, 12),
        "nearest" => by_width(22, 32),
        "ceil" | "floor" | "trunc" => by_width(7, 11),
        "abs" | "neg" => 4,
        "copysign" => 3,
        "eq" | "ne" | "lt" | "ge" => by_width(3, 4),
        "convert_i64_s" | "convert_i64_u" => 11,
        "convert_i32_s" | "convert_i32_u" => 9,
        "demote_f64" => 7,
        "promote_f32" => 10,
        _ => 0,
    }
}
