//! The grammar of paths in a tree (`a.b.c`): what each door to a tree asks, and what each refuses.
//!
//! A path is at most [`PATH_BYTES_MAX`] bytes of names with a dot between each two. A name isn't empty and has no
//! control character: lists of names end each of them with a zero byte, and logs and terminals show them in lines.

use alloc::string::String;
use core::fmt;

use crate::limits::PATH_BYTES_MAX;

/// Why a path is none. The caller's mistake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PathError {
    /// It has no name, where a value's place is needed.
    Empty,
    /// Two dots stand side by side, or a dot stands first or last.
    EmptySegment,
    /// Longer than [`PATH_BYTES_MAX`].
    TooLong,
    /// A name in it has a control character.
    ControlCharacter,
}

impl fmt::Display for PathError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty => f.write_str("the path is empty"),
            Self::EmptySegment => f.write_str("the path has an empty name"),
            Self::TooLong => write!(f, "the path is longer than {PATH_BYTES_MAX} bytes"),
            Self::ControlCharacter => f.write_str("the path has a control character"),
        }
    }
}

impl core::error::Error for PathError {}

/// Checks the path of a value.
///
/// # Errors
/// [`PathError`] names the rule that it breaks.
pub fn check_value(path: &str) -> Result<(), PathError> {
    if path.is_empty() {
        return Err(PathError::Empty);
    }
    check_node(path)
}

/// Checks the path of a node; the empty path is the tree itself.
///
/// # Errors
/// [`PathError`] names the rule that it breaks.
pub fn check_node(path: &str) -> Result<(), PathError> {
    if path.len() > PATH_BYTES_MAX {
        return Err(PathError::TooLong);
    }
    if !path.is_empty() && path.split('.').any(str::is_empty) {
        return Err(PathError::EmptySegment);
    }
    // A store asks for this last: see `tenure_store`.
    if path.contains(char::is_control) {
        return Err(PathError::ControlCharacter);
    }
    Ok(())
}

/// Names a path that is none and the rule that it breaks, in one line without what steers a terminal.
pub fn refusal(path: &str, error: PathError) -> String {
    alloc::format!("`{}`: {error}", path.escape_debug())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_of_names_are_taken_and_all_others_refused_by_the_rule_that_they_break() {
        let long = "p".repeat(PATH_BYTES_MAX);
        for path in ["a", "a.b-c.d e", "Grüße.世界", "\u{200B}", &long] {
            assert_eq!(check_value(path), Ok(()), "{path:?}");
        }
        let longer = "p".repeat(PATH_BYTES_MAX + 1);
        let refused = [
            (".", PathError::EmptySegment),
            ("a.", PathError::EmptySegment),
            (".a", PathError::EmptySegment),
            ("a..b", PathError::EmptySegment),
            (&longer, PathError::TooLong),
            ("a\0b", PathError::ControlCharacter),
            ("a.b\n", PathError::ControlCharacter),
            ("\u{7f}", PathError::ControlCharacter),
            ("a.\u{85}", PathError::ControlCharacter),
        ];
        for (path, error) in refused {
            assert_eq!((check_value(path), check_node(path)), (Err(error), Err(error)), "{path:?}");
        }
        assert_eq!((check_value(""), check_node("")), (Err(PathError::Empty), Ok(())));
    }

    #[test]
    fn refusal_names_path_and_rule_in_one_line() {
        assert_eq!(
            refusal("a\n\x1b[2J", PathError::ControlCharacter),
            r"`a\n\u{1b}[2J`: the path has a control character"
        );
    }
}
