//! The small changes that can be made of a source, each to be switched on while the tests run.
//!
//! A comparison that is turned round or off by its boundary, `&&` for `||`, `+` for `-`, a condition or a `bool` that is negated,
//! a statement that is left out. All stand in the changed source at once, behind a switch each, so that a crate is compiled
//! once. No operand is written twice: so they may lie in one another.

use proc_macro2::Span;
use syn::spanned::Spanned as _;
use syn::visit::{self, Visit};
use syn::{BinOp, Expr, Stmt, UnOp};

/// A change of a source.
pub(super) struct Change {
    /// The number of its switch.
    pub(super) number: u32,
    pub(super) line: usize,
    /// The change, as a person reads it: `< to <=: number < self.last`.
    pub(super) text: String,
    /// The bytes of the source that it is about, and what stands before and behind them.
    start: usize,
    end: usize,
    before: String,
    behind: String,
    /// The bytes between its operands, and what stands there instead.
    between: Option<(usize, usize, String)>,
}

/// The function that says whether a switch is on; a change names it by the crate.
pub(super) const SWITCH: &str = "crate::__is_on";
/// A text that stands for the question whether the change is made.
const ON: &str = "{ON}";
/// The longest text of a change that is shown, in characters.
const TEXT_CHARS_MAX: usize = 100;

/// The changes of `source`, whose switches have numbers from `first` on.
///
/// # Errors
/// It isn't Rust.
pub(super) fn changes(source: &str, first: u32) -> syn::Result<Vec<Change>> {
    let file = syn::parse_file(source)?;
    let mut finder = Finder { source, next: first, found: Vec::new() };
    if !file.attrs.iter().any(is_left_out) {
        finder.visit_file(&file);
    }
    Ok(finder.found)
}

/// The source with the changes of those numbers that `chosen` says, and where each is in the result.
pub(super) fn switched(
    source: &str,
    changes: &[Change],
    chosen: impl Fn(u32) -> bool,
) -> (String, Vec<(u32, std::ops::Range<usize>)>) {
    let mut edits = Vec::new();
    let chosen: Vec<&Change> = changes.iter().filter(|change| chosen(change.number)).collect();
    for (at, change) in chosen.iter().enumerate() {
        let (length, order) = ((change.end - change.start) as i64, at as i64);
        // At one place: ends before beginnings, and of those the inner before the outer, or the other way round.
        edits.push(((change.start, 2, -length, order), at, change.start, &change.before));
        edits.push(((change.end, 0, length, -order), at, change.end, &change.behind));
        if let Some((from, to, text)) = &change.between {
            edits.push(((*from, 1, 0, order), at, *to, text));
        }
    }
    edits.sort_by_key(|(order, ..)| *order);
    let (mut result, mut at) = (String::new(), 0);
    let mut places = vec![0..0; chosen.len()];
    for ((from, kind, ..), change, to, text) in edits {
        result.push_str(&source[at.min(from)..from]);
        if kind == 2 {
            places[change].start = result.len();
        }
        result.push_str(text);
        if kind == 0 {
            places[change].end = result.len();
        }
        at = at.max(to);
    }
    result.push_str(&source[at..]);
    let numbers = chosen.iter().map(|change| change.number);
    (result, numbers.zip(places).collect())
}

struct Finder<'a> {
    source: &'a str,
    next: u32,
    found: Vec<Change>,
}

impl Finder<'_> {
    fn add(
        &mut self,
        span: Span,
        name: &str,
        around: [&str; 2],
        between: Option<(Span, Span, &str)>,
    ) {
        let number = self.next;
        self.next += 1;
        let filled = |text: &str| text.replace(ON, &format!("{SWITCH}({number})"));
        let range = span.byte_range();
        let words: Vec<&str> = self.source[range.clone()].split_whitespace().collect();
        let text = format!("{name}: {}", words.join(" "));
        let between = between.map(|(left, right, text)| {
            (left.byte_range().end, right.byte_range().start, filled(text))
        });
        self.found.push(Change {
            number,
            line: span.start().line,
            text: text.chars().take(TEXT_CHARS_MAX).collect(),
            start: range.start,
            end: range.end,
            before: filled(around[0]),
            behind: filled(around[1]),
            between,
        });
    }

    /// A condition that nothing else changes.
    fn condition(&mut self, condition: &Expr) {
        let is_changed = matches!(condition, Expr::Binary(_) | Expr::Unary(_) | Expr::Lit(_))
            || binds(condition);
        if !is_changed {
            self.add(condition.span(), "negated", ["(", " != {ON})"], None);
        }
    }
}

impl<'ast> Visit<'ast> for Finder<'_> {
    fn visit_item_mod(&mut self, item: &'ast syn::ItemMod) {
        if !item.attrs.iter().any(is_left_out) {
            visit::visit_item_mod(self, item);
        }
    }

    fn visit_item_impl(&mut self, item: &'ast syn::ItemImpl) {
        // Nobody reads that but developers.
        let of = item.trait_.as_ref().and_then(|(_, path, _)| path.segments.last());
        if of.is_none_or(|of| of.ident != "Debug") && !item.attrs.iter().any(is_left_out) {
            visit::visit_item_impl(self, item);
        }
    }

    fn visit_item_fn(&mut self, item: &'ast syn::ItemFn) {
        if item.sig.constness.is_none() && !item.attrs.iter().any(is_left_out) {
            self.visit_block(&item.block);
        }
    }

    fn visit_impl_item_fn(&mut self, item: &'ast syn::ImplItemFn) {
        if item.sig.constness.is_none() && !item.attrs.iter().any(is_left_out) {
            self.visit_block(&item.block);
        }
    }

    fn visit_trait_item_fn(&mut self, item: &'ast syn::TraitItemFn) {
        if let Some(block) = item.default.as_ref().filter(|_| item.sig.constness.is_none()) {
            self.visit_block(block);
        }
    }

    // A switch isn't constant.
    fn visit_item_const(&mut self, _: &'ast syn::ItemConst) {}
    fn visit_impl_item_const(&mut self, _: &'ast syn::ImplItemConst) {}
    fn visit_trait_item_const(&mut self, _: &'ast syn::TraitItemConst) {}
    fn visit_item_static(&mut self, _: &'ast syn::ItemStatic) {}
    fn visit_item_struct(&mut self, _: &'ast syn::ItemStruct) {}
    fn visit_item_enum(&mut self, _: &'ast syn::ItemEnum) {}
    fn visit_type(&mut self, _: &'ast syn::Type) {}
    fn visit_pat(&mut self, _: &'ast syn::Pat) {}
    fn visit_attribute(&mut self, _: &'ast syn::Attribute) {}
    fn visit_expr_const(&mut self, _: &'ast syn::ExprConst) {}
    fn visit_generic_argument(&mut self, _: &'ast syn::GenericArgument) {}
    fn visit_expr_repeat(&mut self, repeat: &'ast syn::ExprRepeat) {
        self.visit_expr(&repeat.expr);
    }

    fn visit_expr_if(&mut self, branch: &'ast syn::ExprIf) {
        self.condition(&branch.cond);
        visit::visit_expr_if(self, branch);
    }

    fn visit_expr_while(&mut self, repeat: &'ast syn::ExprWhile) {
        self.condition(&repeat.cond);
        visit::visit_expr_while(self, repeat);
    }

    fn visit_arm(&mut self, arm: &'ast syn::Arm) {
        if let Some((_, guard)) = &arm.guard {
            self.condition(guard);
        }
        visit::visit_arm(self, arm);
    }

    fn visit_expr_unary(&mut self, unary: &'ast syn::ExprUnary) {
        if let UnOp::Not(not) = &unary.op {
            let behind = ");if {ON} {__l} else {!__l}})";
            let (operator, operand) = (not.span(), unary.expr.span());
            let between = Some((operator, operand, ""));
            self.add_without(unary.span(), operator, ["({let __l=(", behind], between);
        }
        visit::visit_expr_unary(self, unary);
    }

    fn visit_expr_lit(&mut self, literal: &'ast syn::ExprLit) {
        if let syn::Lit::Bool(_) = literal.lit {
            self.add(literal.span(), "negated", ["(", " != {ON})"], None);
        }
    }

    fn visit_expr_binary(&mut self, binary: &'ast syn::ExprBinary) {
        if let Some((old, new)) = other_operator(&binary.op) {
            self.operator(binary, old, new);
        }
        visit::visit_expr_binary(self, binary);
    }

    fn visit_stmt(&mut self, statement: &'ast Stmt) {
        if let Stmt::Expr(expression, Some(_)) = statement
            && can_be_left_out(expression)
        {
            self.add(statement.span(), "left out", ["if !{ON} { ", " }"], None);
        }
        visit::visit_stmt(self, statement);
    }
}

impl Finder<'_> {
    /// A change that takes the operator at the beginning away.
    fn add_without(
        &mut self,
        span: Span,
        operator: Span,
        around: [&str; 2],
        between: Option<(Span, Span, &str)>,
    ) {
        self.add(span, "without !", around, between);
        if let Some(Change { between: Some((from, ..)), .. }) = self.found.last_mut() {
            *from = operator.byte_range().start;
        }
    }

    fn operator(&mut self, binary: &syn::ExprBinary, old: &str, new: &str) {
        let between = |text| Some((binary.left.span(), binary.right.span(), text));
        let name = format!("{old} to {new}");
        match old {
            "&&" | "||" => {
                // A name that is bound on the left is used on the right.
                if binds(&binary.left) || binds(&binary.right) {
                    return;
                }
                let other = if old == "&&" { ";if __l != {ON} {" } else { ";if __l == {ON} {" };
                let around = ["({let __l:bool=", "} else {__l}})"];
                self.add(binary.span(), &name, around, between(other));
            }
            "+" | "-" => {
                let behind = format!(");if {ON} {{__l {new} __r}} else {{__l {old} __r}}}})");
                self.add(binary.span(), &name, ["({let (__l,__r)=(", &behind], between(","));
            }
            _ => {
                let behind = format!("));if {ON} {{__l {new} __r}} else {{__l {old} __r}}}})");
                self.add(binary.span(), &name, ["({let (__l,__r)=(&(", &behind], between("),&("));
            }
        }
    }
}

fn other_operator(operator: &BinOp) -> Option<(&'static str, &'static str)> {
    Some(match operator {
        BinOp::Lt(_) => ("<", "<="),
        BinOp::Le(_) => ("<=", "<"),
        BinOp::Gt(_) => (">", ">="),
        BinOp::Ge(_) => (">=", ">"),
        BinOp::Eq(_) => ("==", "!="),
        BinOp::Ne(_) => ("!=", "=="),
        BinOp::And(_) => ("&&", "||"),
        BinOp::Or(_) => ("||", "&&"),
        BinOp::Add(_) => ("+", "-"),
        BinOp::Sub(_) => ("-", "+"),
        _ => return None,
    })
}

/// Whether a condition binds names, as `if let` does.
fn binds(condition: &Expr) -> bool {
    match condition {
        Expr::Let(_) => true,
        Expr::Binary(binary) => binds(&binary.left) || binds(&binary.right),
        Expr::Paren(inner) => binds(&inner.expr),
        _ => false,
    }
}

/// Whether something is done for what it does.
fn can_be_left_out(expression: &Expr) -> bool {
    let done = if let Expr::Try(attempt) = expression { &*attempt.expr } else { expression };
    match done {
        Expr::MethodCall(_) | Expr::Call(_) | Expr::Assign(_) => true,
        Expr::Binary(binary) => is_assignment(&binary.op),
        _ => false,
    }
}

fn is_assignment(operator: &BinOp) -> bool {
    matches!(
        operator,
        BinOp::AddAssign(_)
            | BinOp::SubAssign(_)
            | BinOp::MulAssign(_)
            | BinOp::DivAssign(_)
            | BinOp::RemAssign(_)
            | BinOp::BitXorAssign(_)
            | BinOp::BitAndAssign(_)
            | BinOp::BitOrAssign(_)
            | BinOp::ShlAssign(_)
            | BinOp::ShrAssign(_)
    )
}

/// Whether an item is a test, or a mistake that tests plant.
fn is_left_out(attribute: &syn::Attribute) -> bool {
    match &attribute.meta {
        syn::Meta::Path(path) => path.is_ident("test"),
        syn::Meta::List(list) if list.path.is_ident("cfg") => {
            let condition = list.tokens.to_string();
            ["test", "planted", "forgetful"].iter().any(|it| condition == *it)
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_change_stands_behind_its_switch_and_the_rest_stays() {
        let source = "fn f(a: u8, b: u8) -> bool {\n    // why\n    g(a);\n    !(a + 1 < b && a != 3)\n}\n\
                      #[cfg(test)]\nmod tests { fn t() { assert!(1 < 2); h(); } }\n\
                      const fn c() -> bool { 1 < 2 }\n";
        let found = changes(source, 7).unwrap();
        let texts: Vec<(usize, &str)> =
            found.iter().map(|change| (change.line, change.text.as_str())).collect();
        assert_eq!(
            texts,
            [
                (3, "left out: g(a);"),
                (4, "without !: !(a + 1 < b && a != 3)"),
                (4, "&& to ||: a + 1 < b && a != 3"),
                (4, "< to <=: a + 1 < b"),
                (4, "+ to -: a + 1"),
                (4, "!= to ==: a != 3"),
            ]
        );
        assert_eq!(switched(source, &found, |_| false).0, source);
        let (all, places) = switched(source, &found, |_| true);
        assert!(syn::parse_file(&all).is_ok(), "{all}");
        assert!(all.contains("if !crate::__is_on(7) { g(a); }"), "{all}");
        assert!(all.ends_with(source.split_once("}\n").unwrap().1), "{all}");
        for (number, place) in places {
            let switch = format!("{SWITCH}({number})");
            assert_eq!(all[place].matches(&switch).count(), 1, "{switch}");
        }
        let (one, _) = switched(source, &found, |number| number == 10);
        let line = "    !(({let (__l,__r)=(&(a + 1),&(b));if crate::__is_on(10) {__l <= __r} else {__l < __r}}) && a != 3)\n";
        assert!(one.contains(line), "{one}");
    }
}
