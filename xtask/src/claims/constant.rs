//! The value of a constant, or of a field as it is set, read from a source of Rust.

/// The most constants that one is made of by way of others; a field that is set to itself ends there.
const DEPTH_MAX: u8 = 8;

/// The value of the constant `name` in `source`, or of the first field of that name that is set to a number. Other
/// constants of the same source may be part of it; a `Duration` counts in the unit that it is made from.
pub(super) fn value(source: &str, name: &str) -> Option<f64> {
    value_within(source, name, DEPTH_MAX)
}

fn value_within(source: &str, name: &str, depth: u8) -> Option<f64> {
    let depth = depth.checked_sub(1)?;
    definitions(source, name).find_map(|text| {
        let mut reader = Reader { source, rest: text, depth };
        let value = reader.sum()?;
        reader.rest.trim_start().starts_with([';', ',', ')', '}']).then_some(value)
    })
}

/// The text after `NAME: TYPE =`, or `NAME:` where a field is set.
fn definitions<'a>(source: &'a str, name: &str) -> impl Iterator<Item = &'a str> {
    let places = source.match_indices(name);
    places.filter_map(move |(at, _)| {
        let before = source[..at].chars().next_back();
        let rest = source[at + name.len()..].strip_prefix(':')?;
        if before.is_some_and(|sign| sign.is_alphanumeric() || sign == '_') {
            return None;
        }
        let is_constant = ["const ", "static "].iter().any(|word| source[..at].ends_with(word));
        if is_constant { rest.split_once('=').map(|(_, text)| text) } else { Some(rest) }
    })
}

/// Reads an expression from its start.
struct Reader<'a> {
    source: &'a str,
    rest: &'a str,
    depth: u8,
}

impl<'a> Reader<'a> {
    fn sum(&mut self) -> Option<f64> {
        let mut sum = self.product()?;
        loop {
            if self.takes("<<") {
                sum *= self.product()?.exp2();
            } else if self.takes("+") {
                sum += self.product()?;
            } else if self.takes("-") {
                sum -= self.product()?;
            } else {
                return Some(sum);
            }
        }
    }

    fn product(&mut self) -> Option<f64> {
        let mut product = self.single()?;
        loop {
            if self.takes("*") {
                product *= self.single()?;
            } else if self.takes("/") {
                product /= self.single()?;
            } else if self.takes("as ") {
                self.word();
            } else {
                return Some(product);
            }
        }
    }

    fn single(&mut self) -> Option<f64> {
        if self.takes("(") {
            let value = self.sum()?;
            return self.takes(")").then_some(value);
        }
        let word = self.word();
        let digits = word.replace('_', "");
        if word.starts_with(|sign: char| sign.is_ascii_digit()) {
            let end = digits.find(|sign: char| sign.is_ascii_alphabetic()).unwrap_or(digits.len());
            return match digits.strip_prefix("0x") {
                Some(hex) => u64::from_str_radix(hex, 16).ok().map(|value| value as f64),
                None => digits[..end].parse().ok(),
            };
        }
        // `Duration::from_secs(60)`, `Some(8)` and their like are what they hold.
        if self.rest.starts_with('(') {
            return self.single();
        }
        let name = word.rsplit("::").next().filter(|name| !name.is_empty())?;
        value_within(self.source, name, self.depth)
    }

    /// The name, path or number that comes next.
    fn word(&mut self) -> &'a str {
        let text = self.rest.trim_start();
        let end = text.find(|sign: char| !(sign.is_alphanumeric() || "_:.".contains(sign)));
        let (word, rest) = text.split_at(end.unwrap_or(text.len()));
        self.rest = rest;
        word
    }

    fn takes(&mut self, sign: &str) -> bool {
        let text = self.rest.trim_start();
        let is_next = text.starts_with(sign);
        if is_next {
            self.rest = &text[sign.len()..];
        }
        is_next
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOURCE: &str = "
        pub const PAGE_BYTES: usize = 4 * 1024;
        const PAGES: u64 = (1 << 4) + 0x10;
        pub(crate) const ALL: u64 = PAGES * PAGE_BYTES as u64;
        const TOPMOST_PAGES: u8 = 1;
        struct Config { retries: u8, wait: Duration, most: Option<usize> }
        fn new(depth: usize) -> Config { Config { retries: 3, wait: Duration::from_secs(DAY_S / 2), most: Some(8_000) } }
        const DAY_S: u64 = 24 * 60 * 60;
        const NAME: &str = \"4\";
        fn of(own: u8) -> Own { Own { own: own } }
    ";

    #[test]
    fn constants_and_fields_are_read_with_what_they_are_made_of() {
        for (name, expected) in [
            ("PAGE_BYTES", 4_096.0),
            ("PAGES", 32.0),
            ("ALL", 131_072.0),
            ("retries", 3.0),
            ("wait", 43_200.0),
            ("most", 8_000.0),
        ] {
            assert_eq!(value(SOURCE, name), Some(expected), "{name}");
        }
    }

    #[test]
    fn neither_a_type_nor_a_text_nor_another_name_is_a_number() {
        for name in ["depth", "NAME", "PAGE", "AGES", "own"] {
            assert_eq!(value(SOURCE, name), None, "{name}");
        }
    }
}
