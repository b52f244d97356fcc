//! Names of people: which ones there may be, and which of them a reader takes for the same.
//!
//! Invariants:
//! - A name is shown as it is: no character steers a terminal, is invisible, or turns around what stands beside it, and no
//!   word mixes scripts, as an `а` of Cyrillic among letters of Latin would, or has letters that languages of today don't
//!   commonly have.
//! - Wherever names are compared, two that read alike are one: composed or not, in whichever case, with letters of another
//!   script or width that look the same (UTS 39 §4).

use tenure_wire::printable::printable;
use unicode_normalization::UnicodeNormalization as _;
use unicode_security::{GeneralSecurityProfile as _, MixedScript as _, skeleton};

/// The longest name, in characters.
pub(crate) const NAME_CHARS_MAX: usize = 64;
/// What stands before the name of a token that acts, where people are named, too.
pub(crate) const TOKEN: &str = "token ";

/// The name of a person as it is kept, composed and without spaces around it; `None` if it isn't one.
pub(crate) fn name_of_person(text: &str) -> Option<String> {
    let name: String = text.trim().nfc().collect();
    let is_space = |character: char| character.is_whitespace() || character == '\u{2800}';
    let is_seen = |character: char| {
        character == ' '
            || !is_space(character) && skeleton(&character.to_string()).next().is_some()
    };
    // No ligatures, small capitals, letters of mathematics and of scripts that nobody writes: UTS 39 §3.1.
    let is_written = |character: char| !character.is_alphabetic() || character.identifier_allowed();
    let is_plain = printable(&name) == name && name.chars().all(|it| is_seen(it) && is_written(it));
    let is_long = !(1..=NAME_CHARS_MAX).contains(&name.chars().count());
    let mut words = name.split(|character: char| !character.is_alphabetic());
    let is_of_scripts = words.all(|word| word.is_single_script());
    // A browser takes a path of dots for another place.
    let is_dots = name.nfkc().all(|character| character == '.');
    let is_kept = is_plain && !is_long && is_of_scripts && !is_dots && !reads_like_a_token(&name);
    is_kept.then_some(name)
}

/// Whether a name could stand in the audit log for a token that acts.
fn reads_like_a_token(name: &str) -> bool {
    let reads =
        |part: &str| is_same(part.split_whitespace().next().unwrap_or(""), TOKEN.trim_end());
    name.split(',').any(|part| reads(part) && part.split_whitespace().count() > 1)
}

/// Whether a reader takes one name for the other.
pub(crate) fn is_same(one: &str, other: &str) -> bool {
    // An `I` looks like an `l` before its case is folded, and is an `i` afterwards.
    one == other
        || reading(&folded(one)) == reading(&folded(other))
        || reading(&folded(&reading(one))) == reading(&folded(&reading(other)))
}

/// A text as it looks: the skeleton of its compatible form, with one space between words.
fn reading(text: &str) -> String {
    let compatible: String = text.nfkc().collect();
    let words: Vec<&str> = compatible.split_whitespace().collect();
    skeleton(&words.join(" ")).collect()
}

/// A text without the differences of case; `ß` and `SS` are one, as in capitals.
fn folded(text: &str) -> String {
    let compatible: String = text.nfkc().collect();
    compatible.to_uppercase().to_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn name_is_one_that_its_reader_sees() {
        let longest = "a".repeat(NAME_CHARS_MAX);
        for name in [
            "Ada",
            "Ada Lovelace",
            "世界",
            "山田 はなこ",
            "Юля",
            "Юля (Sales)",
            "Nguyễn Thị",
            "Søren Þór",
            "Şükrü Ilgın",
            "ʻIolani",
            "नेहा",
            "محمد",
            "김민준",
            "Οδυσσεύς",
            "O'Neill",
            "Jean-Luc",
            "Dr. No",
            "<b>Ada</b> / \"Grüße\" & co?",
            "token",
            "Tokenson",
            "Lovelace, Ada",
            "-1",
            &*longest,
        ] {
            assert_eq!(name_of_person(name).as_deref(), Some(name));
        }
        assert_eq!(name_of_person(" A\u{308}da ").as_deref(), Some("Äda"));
        let long = "a".repeat(NAME_CHARS_MAX + 1);
        for name in [
            "",
            " ",
            "a\nb",
            "a\tb",
            "Ad\u{200B}a",
            "\u{202E}Ada",
            "a\u{1b}[2J",
            &*long,
            // paths of dots lead elsewhere.
            ".",
            "..",
            "...",
            "\u{FF0E}\u{FF0E}",
            "\u{2025}",
            // Letters of no width, spaces that look like others, and words of two scripts.
            "Ad\u{34F}a",
            "Ada\u{FE0F}",
            "Ada\u{A0}L",
            "Ada\u{3000}L",
            "\u{2800}",
            "\u{3164}",
            // Small capitals, ligatures, Roman numerals, letters of mathematics, of full width and of old Greek.
            "M\u{1D00}x",
            "\u{FB01}nn",
            "\u{2163}",
            "\u{1D4DC}ax",
            "\u{FF21}\u{FF44}\u{FF41}",
            "\u{1F48}δυσσεύς",
            "\u{410}da",
            "Ad\u{3B1}",
            // What the audit log calls a token.
            "token ci",
            "Token ci",
            "t\u{43E}ken ci",
            "Ada, token ci",
            "Ada,TOKEN ci",
        ] {
            assert_eq!(name_of_person(name), None, "{name:?}");
        }
    }

    #[test]
    fn names_that_read_alike_are_one() {
        for (one, other) in [
            ("Ada", "ada"),
            ("Ada", "ADA"),
            ("Ada", "\u{410}\u{501}\u{430}"),
            ("Äda", "A\u{308}da"),
            ("Ada", "\u{FF21}\u{FF44}\u{FF41}"),
            ("Ada", "Ad\u{200B}a"),
            ("Ivan", "lvan"),
            ("IVAN", "lvan"),
            ("Ivan", "ivan"),
            ("Straße", "STRASSE"),
            ("Ada Lovelace", "Ada\u{A0} Lovelace"),
            ("paypal", "p\u{430}yp\u{430}l"),
            ("Bob0", "BobO"),
        ] {
            assert!(is_same(one, other) && is_same(other, one), "{one} {other}");
        }
        for (one, other) in
            [("Ada", "Adam"), ("Ann Abell", "Anna Bell"), ("Юля", "Оля"), ("世界", "世间")]
        {
            assert!(!is_same(one, other), "{one} {other}");
        }
    }
}
