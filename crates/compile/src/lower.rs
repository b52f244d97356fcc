//! An instruction as C statements over a frame's variables, and which of them it touches.
//!
//! A slot of eight bytes is two variables of 32 bits, since instructions of 32 bits leave the upper half
//! alone; the accumulator is one more. Statements hold marks where execution may stop, which
//! [`crate::function`] replaces once it knows what must be kept there.

use crate::decode::Instruction;
use crate::lowered::{Access, Lowered, Next, Variable, name};

/// Stands for the statement that leaves for the access at hand, which lies beyond the memory.
pub(crate) const ACCESS: &str = "@ACCESS@";
/// Stands for the comparison of `address` with memory's end, where it needs one.
pub(crate) const COMPARE: &str = "@COMPARE@";
/// Stands, before the trap's name, for the statement that ends the call.
pub(crate) const TRAP: &str = "@TRAP@";

/// How memory's end is guarded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Bounds {
    /// Each access compares.
    #[default]
    Checked,
    /// The hardware's protection of memory does: for measuring what comparing costs.
    Unchecked,
}

/// Lowers one instruction.
struct Lowering<'i> {
    instruction: &'i Instruction,
    lowered: Lowered,
    /// The next operand.
    operand: usize,
    bounds: Bounds,
}

pub(crate) fn lower(instruction: &Instruction, bounds: Bounds) -> Lowered {
    let lowered = Lowered {
        text: String::new(),
        reads: Vec::new(),
        writes: Vec::new(),
        next: Next::Through,
        access: None,
        sum: None,
    };
    let mut lowering = Lowering { instruction, lowered, operand: 0, bounds };
    if lowering.any().is_none() {
        lowering.lowered.next = Next::Outside;
        lowering.lowered.text.clear();
        lowering.lowered.writes.clear();
        (lowering.lowered.access, lowering.lowered.sum) = (None, None);
    }
    lowering.lowered
}

impl Lowering<'_> {
    fn any(&mut self) -> Option<()> {
        let mnemonic = self.instruction.mnemonic;
        if let Some(rest) = mnemonic.strip_prefix("br.") {
            let condition = self.comparison(rest)?;
            self.lowered.text = condition;
            self.lowered.next = Next::Branch;
            return Some(());
        }
        let mut parts = mnemonic.split('.');
        let parts = [
            parts.next()?,
            parts.next().unwrap_or(""),
            parts.next().unwrap_or(""),
            parts.next().unwrap_or(""),
        ];
        if let Some(load) = load_of(parts[0]) {
            return self.load(load, parts);
        }
        if let Some(bytes) = store_bytes(parts[0]) {
            return self.store(bytes, parts[1]);
        }
        match parts {
            ["i32" | "i64", _, "ss" | "as" | "si" | "ai" | "sa", "a" | "s"] => self.binary(parts),
            ["i32", "extend8_s" | "extend16_s", source, result] => {
                let a = self.source(source.chars().next()?, 32);
                let of = if parts[1] == "extend8_s" { "signed char" } else { "short" };
                self.result32(&format!("(u32)(i32)({of}){a}"), result);
                Some(())
            }
            ["i32" | "i64", _, "ss" | "as" | "si" | "ai" | "sz" | "az", ""] => {
                let condition = self.comparison(mnemonic)?;
                self.accumulate(&condition);
                Some(())
            }
            ["global", ..] => self.global(parts),
            ["i32" | "i64" | "f32" | "f64", ..] => self.unary_or_float(mnemonic),
            _ => self.copy(parts).or_else(|| self.control(mnemonic)),
        }
    }

    fn next_operand(&mut self) -> u32 {
        self.operand += 1;
        self.instruction.operand(self.operand - 1)
    }

    fn line(&mut self, text: &str) {
        self.lowered.text += text;
    }

    fn read(&mut self, half: u32) -> String {
        self.lowered.reads.push(Variable::Half(half));
        name(half)
    }

    /// The next source as an expression, which is read once.
    fn source(&mut self, form: char, width: u32) -> String {
        match form {
            's' => {
                let slot = self.next_operand() / 8;
                self.slot(slot, width)
            }
            'a' => {
                self.lowered.reads.push(Variable::Accumulator);
                "a".into()
            }
            'i' => {
                self.operand += 1;
                let value = self.instruction.operands.get(self.operand - 1).copied().unwrap_or(0);
                if width == 32 {
                    format!("{}u", value as u32)
                } else {
                    format!("{}ull", value as u64)
                }
            }
            _ => "0u".into(),
        }
    }

    fn slot(&mut self, slot: u32, width: u32) -> String {
        let low = self.read(slot * 2);
        if width == 32 {
            return low;
        }
        let high = self.read(slot * 2 + 1);
        format!("JOIN({low}, {high})")
    }

    fn write32(&mut self, half: u32, value: &str) {
        self.lowered.writes.push(Variable::Half(half));
        self.line(&format!("{} = {value};", name(half)));
    }

    fn accumulate(&mut self, value: &str) {
        self.lowered.writes.push(Variable::Accumulator);
        self.line(&format!("a = {value};"));
    }

    /// A result of 32 bits in the accumulator, and in the slot of the next operand if `form` says so.
    fn result32(&mut self, value: &str, form: &str) {
        self.accumulate(value);
        if form == "s" {
            let slot = self.next_operand() / 8;
            self.write32(slot * 2, "a");
        }
    }

    /// A result in the slot of the next operand alone.
    fn set_slot(&mut self, value: &str, width: u32) {
        let slot = self.next_operand() / 8;
        if width == 32 {
            self.write32(slot * 2, value);
        } else {
            self.line(&format!("{{ u64 r = {value};"));
            self.write32(slot * 2, "(u32)r");
            self.write32(slot * 2 + 1, "(u32)(r >> 32)");
            self.line("}");
        }
    }

    fn comparison(&mut self, mnemonic: &str) -> Option<String> {
        let mut parts = mnemonic.split('.');
        let (kind, operation, forms) = (parts.next()?, parts.next()?, parts.next()?);
        let width = if kind == "i64" { 64 } else { 32 };
        let mut forms = forms.chars();
        let a = self.source(forms.next()?, width);
        let b = self.source(forms.next()?, width);
        let (name, sign) = operation.split_once('_').unwrap_or((operation, "u"));
        let operator = match name {
            "eq" => "==",
            "ne" => "!=",
            "lt" => "<",
            "ge" => ">=",
            "gt" => ">",
            "le" => "<=",
            _ => return None,
        };
        let integer = format!("{}{width}", if sign == "s" { 'i' } else { 'u' });
        Some(format!("(({integer}){a} {operator} ({integer}){b})"))
    }

    fn binary(&mut self, [kind, operation, forms, result]: [&str; 4]) -> Option<()> {
        let width = if kind == "i64" { 64 } else { 32 };
        let is_constant = forms.ends_with('i');
        let mut forms = forms.chars();
        let a = self.source(forms.next()?, width);
        let b = self.source(forms.next()?, width);
        let bits = width - 1;
        let least = if width == 32 { "0x80000000u" } else { "0x8000000000000000ull" };
        let value = match operation {
            "add" => {
                if width == 32 && is_constant {
                    let constant = self.instruction.operand(self.operand - 1);
                    self.lowered.sum =
                        self.lowered.reads.first().map(|read| (Some(*read), constant));
                }
                format!("{a} + {b}")
            }
            "sub" => format!("{a} - {b}"),
            "mul" => format!("{a} * {b}"),
            "and" => format!("{a} & {b}"),
            "or" => format!("{a} | {b}"),
            "xor" => format!("{a} ^ {b}"),
            "shl" => format!("{a} << ({b} & {bits})"),
            "shr_s" => format!("(u{width})((i{width}){a} >> ({b} & {bits}))"),
            "shr_u" => format!("{a} >> ({b} & {bits})"),
            "rotl" | "rotr" => format!("{operation}{width}({a}, {b})"),
            _ => {
                self.line(&format!("if (UNLIKELY({b} == 0)) {TRAP}DivideByZero;"));
                let is_overflow = format!("{a} == {least} && {b} == (u{width})-1");
                match operation {
                    "div_s" => {
                        self.line(&format!("if (UNLIKELY({is_overflow})) {TRAP}IntegerOverflow;"));
                        format!("(u{width})((i{width}){a} / (i{width}){b})")
                    }
                    "rem_s" => {
                        format!("{is_overflow} ? 0 : (u{width})((i{width}){a} % (i{width}){b})")
                    }
                    "div_u" => format!("{a} / {b}"),
                    "rem_u" => format!("{a} % {b}"),
                    _ => return None,
                }
            }
        };
        match width {
            32 => self.result32(&value, result),
            _ => self.set_slot(&value, 64),
        }
        Some(())
    }

    fn unary_or_float(&mut self, mnemonic: &str) -> Option<()> {
        let (kind, operation) = mnemonic.split_once('.')?;
        let to: u32 = kind[1..].parse().ok()?;
        let unary = |from: u32, value: &str| Some((from, value.to_owned()));
        let found = match (kind, operation) {
            // Zero has no bits to count from (C leaves it open).
            ("i32", "clz") => unary(32, "(A ? (u32)__builtin_clz(A) : 32u)"),
            ("i32", "ctz") => unary(32, "(A ? (u32)__builtin_ctz(A) : 32u)"),
            ("i32", "popcnt") => unary(32, "(u32)__builtin_popcount(A)"),
            ("i64", "clz") => unary(64, "(A ? (u64)__builtin_clzll(A) : 64u)"),
            ("i64", "ctz") => unary(64, "(A ? (u64)__builtin_ctzll(A) : 64u)"),
            ("i64", "popcnt") => unary(64, "(u64)__builtin_popcountll(A)"),
            ("i64", "extend8_s") => unary(64, "(u64)(i64)(signed char)A"),
            ("i64", "extend16_s") => unary(64, "(u64)(i64)(short)A"),
            ("i64", "extend32_s") => unary(64, "(u64)(i64)(i32)A"),
            ("i64", "extend_i32_s") => unary(32, "(u64)(i64)(i32)A"),
            ("i64", "extend_i32_u") => unary(32, "(u64)A"),
            ("f32", "abs") => unary(32, "A & 0x7FFFFFFFu"),
            ("f32", "neg") => unary(32, "A ^ 0x80000000u"),
            ("f64", "abs") => unary(64, "A & 0x7FFFFFFFFFFFFFFFull"),
            ("f64", "neg") => unary(64, "A ^ 0x8000000000000000ull"),
            ("f32", "demote_f64") => unary(64, "bits32((float)f64of(A))"),
            ("f64", "promote_f32") => unary(32, "bits64((double)f32of(A))"),
            ("f32", "convert_i32_s") => unary(32, "bits32((float)(i32)A)"),
            ("f32", "convert_i32_u") => unary(32, "bits32((float)A)"),
            ("f32", "convert_i64_s") => unary(64, "bits32((float)(i64)A)"),
            ("f32", "convert_i64_u") => unary(64, "bits32((float)A)"),
            ("f64", "convert_i32_s") => unary(32, "bits64((double)(i32)A)"),
            ("f64", "convert_i32_u") => unary(32, "bits64((double)A)"),
            ("f64", "convert_i64_s") => unary(64, "bits64((double)(i64)A)"),
            ("f64", "convert_i64_u") => unary(64, "bits64((double)A)"),
            ("f32" | "f64", "ceil" | "floor" | "nearest" | "sqrt" | "trunc") => {
                unary(to, &format!("{operation}{to}(A)"))
            }
            ("f32" | "f64", _) => return self.float(operation, to),
            _ => return self.truncation(operation, to),
        };
        let (from, value) = found?;
        let a = self.source('s', from);
        self.line(&format!("{{ u{from} A = {a};"));
        self.set_slot(&value, to);
        self.line("}");
        Some(())
    }

    /// Conversions of floats to integers: those that trap, and those that saturate.
    fn truncation(&mut self, operation: &str, to: u32) -> Option<()> {
        let saturates = operation.starts_with("trunc_sat_");
        let rest = operation.strip_prefix(if saturates { "trunc_sat_" } else { "trunc_" })?;
        let (from, sign) = rest.split_once('_')?;
        let from: u32 = from[1..].parse().ok()?;
        // Both exclusive. The next float below -2^63 is far away.
        let (low, high, least, most) = match (to, sign) {
            (32, "s") => ("-2147483649.0", "2147483648.0", "0x80000000u", "0x7FFFFFFFu"),
            (32, _) => ("-1.0", "4294967296.0", "0u", "0xFFFFFFFFu"),
            (_, "s") => (
                "-9223372036854777856.0",
                "9223372036854775808.0",
                "0x8000000000000000ull",
                "0x7FFFFFFFFFFFFFFFull",
            ),
            _ => ("-1.0", "18446744073709551616.0", "0ull", "0xFFFFFFFFFFFFFFFFull"),
        };
        let a = self.source('s', from);
        self.line(&format!("{{ double A = (double)f{from}of({a});"));
        let is_within = format!("A > {low} && A < {high}");
        let value = format!("(u{to})({}{to})A", if sign == "s" { 'i' } else { 'u' });
        if saturates {
            self.set_slot(
                &format!("A != A ? 0 : {is_within} ? {value} : A < 0 ? {least} : {most}"),
                to,
            );
        } else {
            self.line(&format!("if (UNLIKELY(A != A)) {TRAP}InvalidConversion;"));
            self.line(&format!("if (UNLIKELY(!({is_within}))) {TRAP}IntegerOverflow;"));
            self.set_slot(&value, to);
        }
        self.line("}");
        Some(())
    }

    /// Arithmetic of two floats, and comparisons.
    fn float(&mut self, operation: &str, width: u32) -> Option<()> {
        let operator = match operation {
            "add" => "+",
            "sub" => "-",
            "mul" => "*",
            "div" => "/",
            "eq" => "==",
            "ne" => "!=",
            "lt" => "<",
            "ge" => ">=",
            "min" | "max" | "copysign" => {
                let (a, b) = (self.source('s', width), self.source('s', width));
                self.set_slot(&format!("{operation}{width}({a}, {b})"), width);
                return Some(());
            }
            _ => return None,
        };
        let (a, b) = (self.source('s', width), self.source('s', width));
        let value = format!("f{width}of({a}) {operator} f{width}of({b})");
        match operation {
            "add" | "sub" | "mul" | "div" => self.set_slot(&format!("bits{width}({value})"), width),
            _ => self.accumulate(&value),
        }
        Some(())
    }

    fn copy(&mut self, [kind, first, second, _]: [&str; 4]) -> Option<()> {
        match (kind, first) {
            ("copy32", _) => {
                let a = self.source('s', 32);
                self.set_slot(&a, 32);
                self.lowered.sum = self.lowered.reads.first().map(|read| (Some(*read), 0));
            }
            ("copy64", _) => {
                let a = self.source('s', 64);
                self.set_slot(&a, 64);
            }
            ("copy32_pair", _) => {
                // The second may read what the first has written.
                let (from, to) = (self.next_operand() / 8, self.next_operand() / 8);
                let value = self.read(from * 2);
                self.write32(to * 2, &value);
                let (again, onward) = (self.next_operand() / 8, self.next_operand() / 8);
                let value = name(again * 2);
                if again != to {
                    self.read(again * 2);
                }
                self.write32(onward * 2, &value);
            }
            ("copy_a", _) => {
                let a = self.source('a', 32);
                self.set_slot(&a, 32);
                self.lowered.sum = Some((Some(Variable::Accumulator), 0));
            }
            ("const16" | "const32", "a") => {
                self.lowered.sum = Some((None, self.instruction.operand(0)));
                let value = self.source('i', 32);
                self.accumulate(&value);
            }
            ("const16" | "const32", _) => {
                self.lowered.sum = Some((None, self.instruction.operand(0)));
                let value = self.source('i', 32);
                self.set_slot(&value, 32);
            }
            ("const64" | "const64_16", _) => {
                let value = self.source('i', 64);
                self.set_slot(&value, 64);
            }
            ("select32" | "select64", condition) => {
                let width = if kind == "select32" { 32 } else { 64 };
                let (a, b) = (self.source('s', width), self.source('s', width));
                let condition = self.source(condition.chars().next()?, 32);
                let value = format!("{condition} ? {a} : {b}");
                match width {
                    32 => self.result32(&value, second),
                    _ => self.set_slot(&value, 64),
                }
            }
            _ => return None,
        }
        Some(())
    }

    fn global(&mut self, [_, operation, form, _]: [&str; 4]) -> Option<()> {
        match operation {
            "get32" => {
                let at = self.next_operand();
                self.result32(&format!("*(slot *)(c->globals + {at})"), form);
            }
            "get64" => {
                let at = self.next_operand();
                let value =
                    format!("JOIN(*(slot *)(c->globals + {at}), *(slot *)(c->globals + {at} + 4))");
                self.set_slot(&value, 64);
            }
            "set32" => {
                let value = self.source(form.chars().next()?, 32);
                let at = self.next_operand();
                self.line(&format!("*(slot *)(c->globals + {at}) = {value};"));
            }
            "set64" => {
                let value = self.source('s', 64);
                let at = self.next_operand();
                self.line(&format!(
                    "{{ u64 r = {value}; *(slot *)(c->globals + {at}) = (u32)r; \
                     *(slot *)(c->globals + {at} + 4) = (u32)(r >> 32); }}"
                ));
            }
            _ => return None,
        }
        Some(())
    }

    /// Opens a block in which `p` is the address of `bytes` bytes of memory, the last of them `reach` away
    /// from the variable that was read last, or from a constant.
    fn locate(&mut self, address: &str, constant: Option<u32>, reach: u32, bytes: u32) {
        self.line(&format!("{{ u32 address = {address};"));
        if self.bounds == Bounds::Checked {
            let variable = self.lowered.reads.last().copied().filter(|_| constant.is_none());
            let address = (variable, constant.unwrap_or(0));
            self.lowered.access = Some(Access { address, reach });
            self.line(COMPARE);
        }
        let offset = reach + 1 - bytes;
        self.line(&format!("u8 *p = (u8 *)((uptr)memory + address + {offset}u);"));
    }

    fn load(&mut self, load: Load, [_, form, result, _]: [&str; 4]) -> Option<()> {
        let Load { bytes, width, conversion } = load;
        let value = format!("{conversion}LOAD{}(p)", bytes * 8);
        if form == "i" {
            let address = self.next_operand();
            self.locate(&format!("{address}u"), Some(address), bytes - 1, bytes);
            self.result32(&value, result);
        } else {
            let form = form.chars().next().unwrap_or('s');
            let address = self.source(form, 32);
            let reach = self.next_operand();
            self.locate(&address, None, reach, bytes);
            match width {
                32 => self.result32(&value, result),
                _ => self.set_slot(&format!("(u64){value}"), 64),
            }
        }
        self.line("}");
        Some(())
    }

    fn store(&mut self, bytes: u32, forms: &str) -> Option<()> {
        let (address_form, value_form) = (forms.chars().next()?, forms.chars().nth(1)?);
        let address = self.source(address_form, 32);
        let read = self.lowered.reads.len();
        let width = if bytes == 8 { 64 } else { 32 };
        let value = self.source(value_form, width);
        let reach = self.next_operand();
        // The address is what was read last.
        let values = self.lowered.reads.split_off(read);
        self.locate(&address, None, reach, bytes);
        self.lowered.reads.extend(values);
        self.line(&format!("u{width} value = {value}; STORE{}(p, value); }}", bytes * 8));
        Some(())
    }

    fn control(&mut self, mnemonic: &str) -> Option<()> {
        let next = match mnemonic {
            "unreachable" => {
                self.line(&format!("{TRAP}Unreachable;"));
                Next::Trap
            }
            "br" | "br_far" => Next::Jump,
            "br_table.s" | "br_table_far.s" => {
                self.lowered.text = self.source('s', 32);
                Next::Table
            }
            "br_table.a" => {
                self.lowered.text = self.source('a', 32);
                Next::Table
            }
            "check" => Next::Check,
            "memory.copy" | "memory.fill" => {
                let [to, from, count] = [(); 3].map(|()| self.source('s', 32));
                self.lowered.text = format!("u32 to = {to}, from = {from}, count = {count};");
                Next::Bulk
            }
            "call" => Next::Call,
            "call_indirect" => {
                self.operand = 1;
                self.lowered.text = self.source('s', 32);
                Next::CallIndirect
            }
            "return" => Next::Return,
            "return32.s" => {
                self.lowered.text = self.source('s', 32);
                Next::Return
            }
            "return32.a" => {
                self.lowered.text = self.source('a', 32);
                Next::Return
            }
            "return64.s" => {
                self.lowered.text = self.source('s', 64);
                Next::Return
            }
            "address.s.a" => {
                let a = self.source('s', 32);
                let offset = self.next_operand();
                self.line(&format!(
                    "{{ u32 sum = {a} + {offset}u; if (UNLIKELY(sum < {offset}u)) {ACCESS};"
                ));
                self.accumulate("sum");
                self.lowered.sum = self.lowered.reads.first().map(|read| (Some(*read), offset));
                self.line("}");
                Next::Through
            }
            _ => return None,
        };
        self.lowered.next = next;
        Some(())
    }
}

/// A load: bytes of memory, bits of the result, and what makes it of them.
struct Load {
    bytes: u32,
    width: u32,
    conversion: &'static str,
}

fn load_of(mnemonic: &str) -> Option<Load> {
    let (bytes, width, conversion) = match mnemonic {
        "load32" => (4, 32, ""),
        "load8_s" => (1, 32, "(u32)(i32)(signed char)"),
        "load8_u" => (1, 32, "(u32)"),
        "load16_s" => (2, 32, "(u32)(i32)(short)"),
        "load16_u" => (2, 32, "(u32)"),
        "load64" => (8, 64, ""),
        "load64_8_s" => (1, 64, "(i64)(signed char)"),
        "load64_8_u" => (1, 64, ""),
        "load64_16_s" => (2, 64, "(i64)(short)"),
        "load64_16_u" => (2, 64, ""),
        "load64_32_s" => (4, 64, "(i64)(i32)"),
        "load64_32_u" => (4, 64, ""),
        _ => return None,
    };
    Some(Load { bytes, width, conversion })
}

fn store_bytes(mnemonic: &str) -> Option<u32> {
    Some(match mnemonic {
        "store8" => 1,
        "store16" => 2,
        "store32" => 4,
        "store64" => 8,
        _ => return None,
    })
}
