//! Topic names and topic filters (§4.7).

use core::fmt;

/// The start of the filter of a shared subscription (§4.8.2).
const SHARE: &str = "$share/";
/// The longest string of the protocol, in bytes (§1.5.4).
const BYTES_MAX: usize = 65_535;

/// Why a text is no topic name or no topic filter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TopicError {
    /// It is empty.
    Empty,
    /// It is longer than the protocol has strings.
    TooLong,
    /// It has the character U+0000.
    Null,
    /// A wildcard stands where none may.
    Wildcard,
    /// The name of a group of a shared subscription is none.
    Group,
}

impl fmt::Display for TopicError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Empty => "it is empty",
            Self::TooLong => "it has more than 65,535 bytes",
            Self::Null => "it has the character U+0000",
            Self::Wildcard => "a wildcard, + or #, isn't a whole level, or # isn't the last",
            Self::Group => "$share/ is followed by a group's name without + and #, and a filter",
        })
    }
}

impl core::error::Error for TopicError {}

/// Checks a topic name, which has no wildcards (§4.7.1, §4.7.3).
///
/// # Errors
/// As [`TopicError`] says.
pub fn check_topic(name: &str) -> Result<(), TopicError> {
    check_text(name)?;
    if name.contains(['+', '#']) { Err(TopicError::Wildcard) } else { Ok(()) }
}

/// Checks a topic filter, a shared subscription's too (§4.7.1, §4.8.2).
///
/// # Errors
/// As [`TopicError`] says.
pub fn check_filter(filter: &str) -> Result<(), TopicError> {
    check_text(filter)?;
    let filter = match filter.strip_prefix(SHARE) {
        None => filter,
        Some(rest) => {
            let (group, filter) = rest.split_once('/').ok_or(TopicError::Group)?;
            if group.is_empty() || group.contains(['+', '#']) || filter.is_empty() {
                return Err(TopicError::Group);
            }
            filter
        }
    };
    let mut levels = filter.split('/').peekable();
    while let Some(level) = levels.next() {
        let is_right = match level {
            "+" => true,
            "#" => levels.peek().is_none(),
            _ => !level.contains(['+', '#']),
        };
        if !is_right {
            return Err(TopicError::Wildcard);
        }
    }
    Ok(())
}

fn check_text(text: &str) -> Result<(), TopicError> {
    match text.len() {
        0 => Err(TopicError::Empty),
        length if length > BYTES_MAX => Err(TopicError::TooLong),
        _ if text.contains('\0') => Err(TopicError::Null),
        _ => Ok(()),
    }
}

/// Whether a filter is that of a shared subscription.
pub(crate) fn is_shared(filter: &str) -> bool {
    filter.starts_with(SHARE)
}

/// Whether a filter has wildcards.
pub(crate) fn has_wildcards(filter: &str) -> bool {
    filter.contains(['+', '#'])
}

/// Whether `filter`, which isn't a shared subscription's, means the topic `name` (§4.7.1 to §4.7.3).
pub fn matches(filter: &str, name: &str) -> bool {
    // §4.7.2: a wildcard at the start doesn't mean what begins with $.
    if name.starts_with('$') && filter.starts_with(['+', '#']) {
        return false;
    }
    let mut names = name.split('/');
    for level in filter.split('/') {
        match (level, names.next()) {
            // Also the parent level (§4.7.1.2).
            ("#", _) => return true,
            ("+", Some(_)) => {}
            (level, Some(name)) if level == name => {}
            _ => return false,
        }
    }
    names.next().is_none()
}
