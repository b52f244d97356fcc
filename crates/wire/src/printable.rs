//! Text of tenants, peers and hubs, made fit for a terminal.

use alloc::format;
use alloc::string::String;
use core::time::Duration;

/// Whether `character` could steer a terminal, is invisible, or turns around what stands beside it.
///
/// A tab stays: it moves the cursor forward alone.
pub fn misleads(character: char) -> bool {
    let invisible = matches!(character,
        '\u{AD}' | '\u{115F}' | '\u{1160}' | '\u{180E}' | '\u{200B}'..='\u{200D}' | '\u{2028}' | '\u{2029}'
        | '\u{2060}'..='\u{2064}' | '\u{206A}'..='\u{206F}' | '\u{3164}' | '\u{FEFF}' | '\u{FFA0}'
        | '\u{FFF9}'..='\u{FFFB}' | '\u{E0000}'..='\u{E007F}');
    let turns = matches!(character,
        '\u{61C}' | '\u{200E}' | '\u{200F}' | '\u{202A}'..='\u{202E}' | '\u{2066}'..='\u{2069}');
    character.is_control() && character != '\t' || invisible || turns
}

/// One line of text, with U+FFFD in the place of each character that [`misleads`]. A line's end, which the texts of panics
/// have, and what indents the next line are a space.
pub fn printable(text: &str) -> String {
    let mut line = String::with_capacity(text.len());
    let mut rest = text.chars().peekable();
    while let Some(character) = rest.next() {
        let is_end = character == '\n' || character == '\r' && rest.peek() == Some(&'\n');
        if is_end {
            while rest.next_if(|next| matches!(next, '\n' | ' ')).is_some() {}
        }
        line.push(match character {
            _ if is_end => ' ',
            character if misleads(character) => '\u{FFFD}',
            character => character,
        });
    }
    line
}

/// So many of a noun, which is given as it is of one: `1 fault`, `2 faults`.
pub fn counted(count: impl TryInto<u64>, noun: &str) -> String {
    // A number that is none of these isn't one.
    let count = count.try_into().unwrap_or(u64::MAX);
    format!("{count} {noun}{}", if count == 1 { "" } else { "s" })
}

/// A span of time as people read it, and as options take it but for the spaces: `7 days 3h 5m`, `1h 30m`, `20s`, `500ms`.
pub fn span(span: Duration) -> String {
    let (whole_s, ms) = (span.as_secs(), u64::from(span.subsec_millis()));
    let days = whole_s / 86_400;
    let mut text = String::new();
    let units = [
        (days, if days == 1 { " day" } else { " days" }),
        (whole_s / 3_600 % 24, "h"),
        (whole_s / 60 % 60, "m"),
        (whole_s % 60, "s"),
        (ms, "ms"),
    ];
    for (count, unit) in units.into_iter().filter(|(count, _)| *count > 0) {
        let space = if text.is_empty() { "" } else { " " };
        text += &format!("{space}{count}{unit}");
    }
    if text.is_empty() { "0s".into() } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_is_singular_and_all_other_numbers_plural() {
        assert_eq!(counted(1_u8, "fault"), "1 fault");
        assert_eq!(counted(0_i64, "fault"), "0 faults");
        assert_eq!(counted(2_usize, "fault"), "2 faults");
    }

    #[test]
    fn spans_are_written_in_words_and_letters_with_one_space_between_parts() {
        for (ms, text) in [
            (0, "0s"),
            (500, "500ms"),
            (20_000, "20s"),
            (5_400_000, "1h 30m"),
            (86_400_000, "1 day"),
            (7 * 86_400_000, "7 days"),
            (400 * 86_400_000 + 3_600_000 + 1_001, "400 days 1h 1s 1ms"),
        ] {
            assert_eq!(span(Duration::from_millis(ms)), text);
        }
    }

    #[test]
    fn text_that_steers_a_terminal_or_misleads_its_reader_is_replaced() {
        assert_eq!(
            printable("a\tb\x1b[2J\u{9B}1m\u{202E}c\r\u{200B}\u{61C}\u{E0041}\u{AD}"),
            "a\tb\u{FFFD}[2J\u{FFFD}1m\u{FFFD}c\u{FFFD}\u{FFFD}\u{FFFD}\u{FFFD}\u{FFFD}"
        );
        assert_eq!(printable("Grüße, 世界"), "Grüße, 世界");
        assert_eq!(printable("at src/lib.rs:46:75:\nindex"), "at src/lib.rs:46:75: index");
        assert_eq!(
            printable("failed\r\n  left: 1\n right: 2\rno"),
            "failed left: 1 right: 2\u{FFFD}no"
        );
    }
}
