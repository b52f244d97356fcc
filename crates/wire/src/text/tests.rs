use super::*;
use alloc::format;
use alloc::string::String;
use proptest::prelude::*;

struct Shown<'a>(&'a [u8]);

impl fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write(f, self.0)
    }
}

fn shown(bytes: &[u8]) -> String {
    format!("{}", Shown(bytes))
}

#[test]
fn twelve_bytes_take_four_groups_of_five() {
    assert_eq!(shown(&[0; 12]).len(), 23);
    assert_eq!(shown(&[0; 12]).matches('-').count(), 3);
    assert_eq!(shown(&[0; 32]).len(), 62);
}

#[test]
fn other_spellings_are_refused() {
    let text = shown(b"twelve bytes");
    assert_eq!(parse::<12>(&text).unwrap(), *b"twelve bytes");
    for spelling in [
        text.to_uppercase(),
        text.replace('-', ""),
        format!("{text}-"),
        format!(" {text}"),
        text[1..].into(),
        String::new(),
    ] {
        assert!(parse::<12>(&spelling).is_err(), "{spelling}");
    }
}

proptest! {
    #[test]
    fn text_parsed_again_is_the_same_bytes(id: [u8; 12], key: [u8; 32]) {
        prop_assert_eq!(parse::<12>(&shown(&id)), Ok(id));
        prop_assert_eq!(parse::<32>(&shown(&key)), Ok(key));
    }

    #[test]
    fn any_text_parsed_is_an_error_or_canonical(text in "[0-9a-z-]{0,30}") {
        if let Ok(id) = parse::<12>(&text) {
            prop_assert_eq!(shown(&id), text);
        }
    }
}

#[test]
fn most_mistyped_characters_are_found() {
    let text = shown(b"Tenure 12345");
    let mut found = 0;
    let mut tried = 0;
    for (at, original) in text.bytes().enumerate().filter(|(_, byte)| *byte != b'-') {
        for letter in ALPHABET.iter().filter(|letter| **letter != original) {
            let mut typo = text.clone().into_bytes();
            typo[at] = *letter;
            tried += 1;
            found += usize::from(parse::<12>(core::str::from_utf8(&typo).unwrap()).is_err());
        }
    }
    assert!(found * 100 >= tried * 90, "{found} of {tried}");
}
