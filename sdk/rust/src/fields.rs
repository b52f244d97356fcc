//! Header fields of HTTP, as lines of text (RFC 9112 §5).

use alloc::string::String;

/// The value of the field of that name; its letters have no case.
pub(crate) fn value_of<'a>(fields: &'a str, name: &str) -> Option<&'a str> {
    fields.lines().find_map(|line| {
        let (field, value) = line.split_once(':')?;
        field.eq_ignore_ascii_case(name).then(|| value.trim())
    })
}

/// Adds a field. Line ends in `value` become spaces: no value makes a field of its own.
pub(crate) fn add(fields: &mut String, name: &str, value: &str) {
    let ends = |letter: char| letter == '\r' || letter == '\n' || letter == '\0';
    fields.push_str(name);
    fields.push_str(": ");
    fields.push_str(&value.replace(ends, " "));
    fields.push_str("\r\n");
}
