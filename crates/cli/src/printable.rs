//! Text of strangers, made fit for a terminal.

/// Machines' text without what could steer a terminal, or hide and turn around what it shows.
pub fn printable(text: &str) -> String {
    let misleads = |character: char| {
        let invisible = matches!(character, '\u{200B}'..='\u{200F}' | '\u{FEFF}');
        let turns = matches!(character, '\u{202A}'..='\u{202E}' | '\u{2066}'..='\u{2069}');
        character.is_control() && character != '\t' || invisible || turns
    };
    text.chars().map(|character| if misleads(character) { '\u{FFFD}' } else { character }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_steers_a_terminal_or_misleads_its_reader_is_replaced() {
        assert_eq!(
            printable("a\tb\x1b[2J\u{9B}1m\u{202E}c\r\u{200B}"),
            "a\tb\u{FFFD}[2J\u{FFFD}1m\u{FFFD}c\u{FFFD}\u{FFFD}"
        );
        assert_eq!(printable("Grüße, 世界"), "Grüße, 世界");
    }
}
