//! Expressions over a machine's variables: what is printed, watched, and asked at a breakpoint.
//!
//! ```text
//! or      := and { "||" and }            value   := "*" value | "&" value | "-" value | "!" value | part
//! and     := compare { "&&" compare }    part    := first { "." name | "->" name | "[" or "]" }
//! compare := value [ op value ]          first   := number | name | "$" number | "$g" number | "(" or ")"
//! ```

use crate::make::variables::{Number, Place, Program, Value, Variables};

use super::view::{Call, OfCall, View};
use crate::make::symbols::Symbols;

/// The longest expression, in bytes; how deep its parentheses nest; and how many operators it has.
const BYTES_MAX: usize = 4096;
const DEPTH_MAX: usize = 32;
const OPERATORS_MAX: usize = 128;

/// An expression.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Expression {
    Number(Number),
    Name(String),
    Follow(Box<Expression>),
    Address(Box<Expression>),
    Negative(Box<Expression>),
    Not(Box<Expression>),
    Member(Box<Expression>, String),
    Element(Box<Expression>, Box<Expression>),
    Compare(Box<Expression>, Comparison, Box<Expression>),
    And(Box<Expression>, Box<Expression>),
    Or(Box<Expression>, Box<Expression>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Comparison {
    Equal,
    Differs,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

/// Why an expression is none, or has no value here.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum ExpressionError {
    /// It can't be read.
    #[error("{0:?} is no expression: {1} at character {2}")]
    Syntax(String, &'static str, usize),
    /// There is no such variable in this call, and no global one.
    #[error("there is no variable {0} here")]
    Unknown(String),
    /// The value has no member of this name.
    #[error("there is no member {0}")]
    NoMember(String),
    /// It isn't what the expression takes it for.
    #[error("{0}")]
    Kind(&'static str),
}

/// The worth of an expression.
#[derive(Clone, Debug)]
pub(super) enum Worth {
    Number(Number),
    Value(Value),
}

/// Reads an expression.
///
/// # Errors
/// The text is none.
pub(super) fn parse(text: &str) -> Result<Expression, ExpressionError> {
    let mut parser = Parser { text, at: 0, depth: 0, operators: 0 };
    if text.len() > BYTES_MAX {
        parser.text = "…";
        return Err(parser.fault("it is too long"));
    }
    let expression = parser.or()?;
    parser.skip();
    if parser.at < text.len() {
        return Err(parser.fault("something follows"));
    }
    Ok(expression)
}

struct Parser<'a> {
    text: &'a str,
    at: usize,
    depth: usize,
    operators: usize,
}

impl<'a> Parser<'a> {
    fn fault(&self, what: &'static str) -> ExpressionError {
        let characters = self.text.get(..self.at).unwrap_or_default().chars().count();
        ExpressionError::Syntax(self.text.to_owned(), what, characters + 1)
    }

    fn rest(&self) -> &'a str {
        self.text.get(self.at..).unwrap_or_default()
    }

    fn skip(&mut self) {
        self.at += self.rest().len() - self.rest().trim_start().len();
    }

    fn take(&mut self, word: &str) -> bool {
        self.skip();
        let is_there = self.rest().starts_with(word);
        self.at += if is_there { word.len() } else { 0 };
        is_there
    }

    /// An operator was read. Each is one in the other, at worst.
    fn count(&mut self) -> Result<(), ExpressionError> {
        self.operators += 1;
        match self.operators > OPERATORS_MAX {
            true => Err(self.fault("it has too many operators")),
            false => Ok(()),
        }
    }

    fn or(&mut self) -> Result<Expression, ExpressionError> {
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            return Err(self.fault("it nests too deep"));
        }
        let mut left = self.and()?;
        while self.take("||") {
            self.count()?;
            left = Expression::Or(Box::new(left), Box::new(self.and()?));
        }
        self.depth -= 1;
        Ok(left)
    }

    fn and(&mut self) -> Result<Expression, ExpressionError> {
        let mut left = self.compare()?;
        while self.take("&&") {
            self.count()?;
            left = Expression::And(Box::new(left), Box::new(self.compare()?));
        }
        Ok(left)
    }

    fn compare(&mut self) -> Result<Expression, ExpressionError> {
        const COMPARISONS: [(&str, Comparison); 6] = [
            ("==", Comparison::Equal),
            ("!=", Comparison::Differs),
            ("<=", Comparison::LessOrEqual),
            (">=", Comparison::GreaterOrEqual),
            ("<", Comparison::Less),
            (">", Comparison::Greater),
        ];
        let left = self.value()?;
        match COMPARISONS.iter().find(|(word, _)| self.take(word)) {
            Some((_, how)) => {
                let right = self.value()?;
                Ok(Expression::Compare(Box::new(left), *how, Box::new(right)))
            }
            None => Ok(left),
        }
    }

    fn value(&mut self) -> Result<Expression, ExpressionError> {
        type Wrap = fn(Box<Expression>) -> Expression;
        const PREFIXES: [(&str, Wrap); 4] = [
            ("*", Expression::Follow),
            ("&", Expression::Address),
            ("-", Expression::Negative),
            ("!", Expression::Not),
        ];
        let mut wraps: Vec<Wrap> = Vec::new();
        while let Some((_, wrap)) = PREFIXES.iter().find(|(word, _)| self.take(word)) {
            wraps.push(*wrap);
            self.count()?;
        }
        let part = self.part()?;
        Ok(wraps.into_iter().rev().fold(part, |part, wrap| wrap(Box::new(part))))
    }

    fn part(&mut self) -> Result<Expression, ExpressionError> {
        let mut part = self.first()?;
        loop {
            part = if self.take("[") {
                let index = self.or()?;
                if !self.take("]") {
                    return Err(self.fault("a ] is missing"));
                }
                self.count()?;
                Expression::Element(Box::new(part), Box::new(index))
            } else if self.take("->") || self.take(".") {
                self.skip();
                let name = self.word();
                if name.is_empty() {
                    return Err(self.fault("a member's name is missing"));
                }
                self.count()?;
                Expression::Member(Box::new(part), name.to_owned())
            } else {
                return Ok(part);
            };
        }
    }

    fn first(&mut self) -> Result<Expression, ExpressionError> {
        if self.take("(") {
            let inner = self.or()?;
            return match self.take(")") {
                true => Ok(inner),
                false => Err(self.fault("a ) is missing")),
            };
        }
        self.skip();
        let begin = self.at;
        match self.rest().chars().next() {
            Some(first) if first.is_ascii_digit() => {
                let word = self.word();
                // A part behind a point is the number's, not a member.
                let fraction = self.rest().strip_prefix('.').filter(|_| !word.starts_with("0x"));
                let digits = fraction.map_or(0, |rest| {
                    rest.len() - rest.trim_start_matches(|one: char| one.is_ascii_digit()).len()
                });
                if digits > 0 {
                    self.at += 1 + digits;
                    let number = self.text[begin..self.at].parse().map(Number::Float);
                    return number.map(Expression::Number).map_err(|_| self.fault("no number"));
                }
                let number = match word.strip_prefix("0x") {
                    Some(digits) => i128::from_str_radix(digits, 16),
                    None => word.parse(),
                };
                match number {
                    Ok(number) => Ok(Expression::Number(Number::Whole(number))),
                    Err(_) => {
                        self.at = begin;
                        Err(self.fault("this is no number"))
                    }
                }
            }
            Some('$') => {
                self.at += 1;
                self.word();
                Ok(Expression::Name(self.text[begin..self.at].to_owned()))
            }
            Some(first) if first.is_alphabetic() || first == '_' => {
                self.word();
                // The path of a name in Rust or C++.
                while self.rest().starts_with("::") {
                    self.at += 2;
                    self.word();
                }
                Ok(match &self.text[begin..self.at] {
                    "true" => Expression::Number(Number::Whole(1)),
                    "false" => Expression::Number(Number::Whole(0)),
                    name => Expression::Name(name.to_owned()),
                })
            }
            _ => Err(self.fault("a name or a number is missing")),
        }
    }

    /// Letters, digits and underscores.
    fn word(&mut self) -> &'a str {
        let rest = self.rest();
        let end = rest.find(|one: char| !one.is_alphanumeric() && one != '_');
        let word = &rest[..end.unwrap_or(rest.len())];
        self.at += word.len();
        word
    }
}

/// Where an expression's names are looked up: at a call.
pub(super) struct Scope<'a> {
    view: View<'a>,
    call: Option<&'a Call>,
}

impl<'a> Scope<'a> {
    /// The names that `call` sees, if one is under way.
    pub(super) fn new(view: View<'a>, call: Option<&'a Call>) -> Self {
        Self { view, call }
    }

    fn program(&self) -> OfCall<'a> {
        self.call.map_or_else(|| self.view.of_no_call(), |call| self.view.of_call(call))
    }

    fn variables(&self) -> Result<&'a Variables, ExpressionError> {
        let variables = self.view.symbols.and_then(Symbols::variables);
        variables.ok_or(ExpressionError::Kind(
            "nothing is known of its variables; name its package by --package, with \
             NAME.debug.wasm beside it",
        ))
    }

    /// The worth of an expression.
    ///
    /// # Errors
    /// A name means nothing here, or a value isn't what it is taken for.
    pub(super) fn worth(&self, expression: &Expression) -> Result<Worth, ExpressionError> {
        let program = self.program();
        Ok(match expression {
            Expression::Number(number) => Worth::Number(*number),
            Expression::Name(name) => self.named(name)?,
            Expression::Follow(of) => {
                let pointer = self.value(of, "there is nothing to follow")?;
                let pointed = self.variables()?.pointed(&pointer, &program);
                Worth::Value(pointed.ok_or(ExpressionError::Kind("it is no pointer to a type"))?)
            }
            Expression::Address(of) => match self.value(of, "a number has no address")?.place {
                Place::Memory(address) => Worth::Number(Number::Whole(address.into())),
                _ => return Err(ExpressionError::Kind("it isn't in memory")),
            },
            Expression::Negative(of) => Worth::Number(match self.number(of)? {
                Number::Whole(number) => Number::Whole(number.wrapping_neg()),
                Number::Float(number) => Number::Float(-number),
            }),
            Expression::Not(of) => of_bool(!self.is_true(of)?),
            Expression::Member(of, name) => self.member(of, name, &program)?,
            Expression::Element(of, index) => {
                let list = self.value(of, "a number has no elements")?;
                let Number::Whole(index) = self.number(index)? else {
                    return Err(ExpressionError::Kind("an index is a whole number"));
                };
                let index = u64::try_from(index).ok();
                let element =
                    index.and_then(|index| self.variables().ok()?.element(&list, index, &program));
                Worth::Value(element.ok_or(ExpressionError::Kind("there is no such element"))?)
            }
            Expression::Compare(left, how, right) => {
                of_bool(compare(self.number(left)?, *how, self.number(right)?))
            }
            Expression::And(left, right) => of_bool(self.is_true(left)? && self.is_true(right)?),
            Expression::Or(left, right) => of_bool(self.is_true(left)? || self.is_true(right)?),
        })
    }

    /// Whether an expression is worth a number other than zero.
    ///
    /// # Errors
    /// As [`Self::worth`]; or it is no number.
    pub(super) fn is_true(&self, expression: &Expression) -> Result<bool, ExpressionError> {
        Ok(self.number(expression)?.as_f64() != 0.0)
    }

    fn number(&self, expression: &Expression) -> Result<Number, ExpressionError> {
        match self.worth(expression)? {
            Worth::Number(number) => Ok(number),
            Worth::Value(value) => {
                let number = self.variables()?.as_number(&value, &self.program());
                number.ok_or(ExpressionError::Kind("it isn't a number, or not there any more"))
            }
        }
    }

    fn value(&self, of: &Expression, otherwise: &'static str) -> Result<Value, ExpressionError> {
        match self.worth(of)? {
            Worth::Value(value) => Ok(value),
            Worth::Number(_) => Err(ExpressionError::Kind(otherwise)),
        }
    }

    fn named(&self, name: &str) -> Result<Worth, ExpressionError> {
        let unknown = || ExpressionError::Unknown(name.to_owned());
        if name.starts_with('$') {
            let raw = match name.starts_with("$g") {
                true => self.view.globals(),
                false => self.call.map(|call| self.view.locals(call)).unwrap_or_default(),
            };
            let raw = raw.into_iter().find(|raw| raw.name == name).ok_or_else(unknown)?;
            return Ok(Worth::Number(Number::Whole(raw.bits.into())));
        }
        let of_call = self.call.map(|call| self.view.variables_outwards(call));
        for variables in of_call.unwrap_or_default() {
            if let Some(found) = variables.into_iter().rfind(|variable| variable.name == name) {
                return Ok(Worth::Value(found.value));
            }
        }
        let last = name.rsplit("::").next().unwrap_or(name);
        let global = self.variables()?.global(last, &self.program());
        Ok(Worth::Value(global.ok_or_else(unknown)?.value))
    }

    fn member(
        &self,
        of: &Expression,
        name: &str,
        program: &dyn Program,
    ) -> Result<Worth, ExpressionError> {
        let variables = self.variables()?;
        let record = self.value(of, "a number has no members")?;
        let record = variables.pointed(&record, program).unwrap_or(record);
        let mut parts = variables.parts(&record, program).into_iter();
        let part = parts.find(|part| part.name == name);
        Ok(Worth::Value(part.ok_or_else(|| ExpressionError::NoMember(name.to_owned()))?.value))
    }

    /// The expression's worth as text.
    ///
    /// # Errors
    /// As [`Self::worth`].
    pub(super) fn show(&self, expression: &Expression) -> Result<String, ExpressionError> {
        Ok(match self.worth(expression)? {
            Worth::Number(Number::Whole(number)) => number.to_string(),
            Worth::Number(Number::Float(number)) => number.to_string(),
            Worth::Value(value) => self.variables()?.show(&value, &self.program()),
        })
    }

    /// The range of memory in which the expression's value lies.
    ///
    /// # Errors
    /// As [`Self::worth`]; or the value isn't in memory.
    pub(super) fn range(
        &self,
        expression: &Expression,
    ) -> Result<std::ops::Range<u32>, ExpressionError> {
        let value = self.value(expression, "a number isn't in memory")?;
        let bytes = self.variables()?.size(&value).and_then(|bytes| u32::try_from(bytes).ok());
        let range = match (value.place, bytes) {
            (Place::Memory(address), Some(bytes)) if bytes > 0 => {
                address.checked_add(bytes).map(|end| address..end)
            }
            _ => None,
        };
        range.ok_or(ExpressionError::Kind("it isn't in memory, so nothing can be watched"))
    }
}

fn of_bool(is_true: bool) -> Worth {
    Worth::Number(Number::Whole(is_true.into()))
}

fn compare(left: Number, how: Comparison, right: Number) -> bool {
    let order = match (left, right) {
        (Number::Whole(left), Number::Whole(right)) => Some(left.cmp(&right)),
        (left, right) => left.as_f64().partial_cmp(&right.as_f64()),
    };
    match how {
        Comparison::Equal => order.is_some_and(|order| order.is_eq()),
        Comparison::Differs => order.is_none_or(|order| order.is_ne()),
        Comparison::Less => order.is_some_and(|order| order.is_lt()),
        Comparison::LessOrEqual => order.is_some_and(|order| order.is_le()),
        Comparison::Greater => order.is_some_and(|order| order.is_gt()),
        Comparison::GreaterOrEqual => order.is_some_and(|order| order.is_ge()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(text: &str) -> Box<Expression> {
        Box::new(Expression::Name(text.to_owned()))
    }

    fn whole(number: i128) -> Box<Expression> {
        Box::new(Expression::Number(Number::Whole(number)))
    }

    #[test]
    fn parts_bind_closest_then_signs_comparisons_and_or() {
        let member = Expression::Member(
            Box::new(Expression::Element(name("list"), name("i"))),
            "next".into(),
        );
        let left = Expression::Compare(
            Box::new(Expression::Follow(Box::new(member))),
            Comparison::GreaterOrEqual,
            Box::new(Expression::Negative(whole(0x10))),
        );
        let right = Expression::And(
            Box::new(Expression::Not(name("done"))),
            Box::new(Expression::Compare(name("$0"), Comparison::Equal, whole(7))),
        );
        let expected = Expression::Or(Box::new(left), Box::new(right));
        assert_eq!(parse("*list[i]->next >= -0x10 || !done && $0==7"), Ok(expected));
        assert_eq!(parse(" a::b::c "), Ok(*name("a::b::c")));
        let half = Expression::Number(Number::Float(2.5));
        let compared = Expression::Compare(name("x"), Comparison::Less, Box::new(half));
        assert_eq!(parse("x < 2.5"), Ok(compared));
    }

    #[test]
    fn what_is_no_expression_says_where() {
        for (text, at) in
            [("", 1), ("a b", 3), ("a.", 3), ("a[1", 4), ("(a", 3), ("1x", 1), ("a ==", 5)]
        {
            let Err(ExpressionError::Syntax(_, _, found)) = parse(text) else { panic!("{text}") };
            assert_eq!(found, at, "{text}");
        }
        for text in ["(".repeat(2000), "*".repeat(2000), "a".repeat(5000), "a[".repeat(1000)] {
            assert!(matches!(parse(&text), Err(ExpressionError::Syntax(..))));
        }
        for more in [".b", "||a", "&&a"] {
            assert!(parse(&("a".to_owned() + &more.repeat(500))).is_err(), "{more}");
            assert!(parse(&("a".to_owned() + &more.repeat(100))).is_ok(), "{more}");
        }
    }

    #[test]
    fn numbers_compare_across_their_kinds() {
        let (one, half) = (Number::Whole(1), Number::Float(0.5));
        assert!(compare(one, Comparison::Greater, half));
        assert!(compare(half, Comparison::LessOrEqual, one));
        assert!(compare(one, Comparison::Differs, Number::Float(f64::NAN)));
        assert!(!compare(one, Comparison::Equal, Number::Float(f64::NAN)));
    }
}
