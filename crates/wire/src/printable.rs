//! Text of tenants, peers and hubs, made fit for a terminal.

use alloc::string::String;

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

/// One line of text, with U+FFFD in the place of each character that [`misleads`].
pub fn printable(text: &str) -> String {
    text.chars().map(|character| if misleads(character) { '\u{FFFD}' } else { character }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_that_steers_a_terminal_or_misleads_its_reader_is_replaced() {
        assert_eq!(
            printable("a\tb\x1b[2J\u{9B}1m\u{202E}c\r\u{200B}\u{61C}\u{E0041}\u{AD}"),
            "a\tb\u{FFFD}[2J\u{FFFD}1m\u{FFFD}c\u{FFFD}\u{FFFD}\u{FFFD}\u{FFFD}\u{FFFD}"
        );
        assert_eq!(printable("Grüße, 世界"), "Grüße, 世界");
    }
}
