//! The text of statements and values, as PostgreSQL reads them.

use std::borrow::Cow;

/// The sign that stands for a NUL, which no text of PostgreSQL can hold.
const NUL_SIGN: &str = "\u{2400}";

/// A statement of ours as PostgreSQL reads it: parameters are `$1`, `$2`, …; and SQLite's `CROSS JOIN … ON`, which is a
/// join in the order in which it is written, is a plain one.
pub(super) fn of_postgres(text: &str) -> String {
    let mut translated = String::with_capacity(text.len());
    let mut is_quoted = false;
    for part in text.split_inclusive('\'') {
        match is_quoted {
            true => translated.push_str(part),
            false => translated.push_str(&part.replace('?', "$").replace("CROSS JOIN", "JOIN")),
        }
        is_quoted ^= part.ends_with('\'');
    }
    translated
}

/// A text as it is stored: without the one character that PostgreSQL can't hold.
pub(super) fn storable(text: &str) -> Cow<'_, str> {
    if text.contains('\0') { Cow::Owned(text.replace('\0', NUL_SIGN)) } else { Cow::Borrowed(text) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_and_joins_are_translated_and_quoted_texts_are_not() {
        for (ours, theirs) in [
            ("SELECT ?1, ?12 WHERE a = '?1'", "SELECT $1, $12 WHERE a = '?1'"),
            (
                "a CROSS JOIN b ON c = ?2 AND d = 'it''s ?' AND e = ?3",
                "a JOIN b ON c = $2 AND d = 'it''s ?' AND e = $3",
            ),
            ("SELECT 'CROSS JOIN'", "SELECT 'CROSS JOIN'"),
        ] {
            assert_eq!(of_postgres(ours), theirs);
        }
    }

    #[test]
    fn nul_is_stored_as_its_sign() {
        assert_eq!(storable("a\0b"), "a\u{2400}b");
        assert_eq!(storable("plain"), "plain");
    }
}
