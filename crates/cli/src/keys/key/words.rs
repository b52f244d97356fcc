//! A backup as words: each key as 24 words of BIP 39, the last of which holds a checksum.

use anyhow::{anyhow, bail, ensure};
use bip39::{Error, Language, Mnemonic};
use tenure_crypto::SigningKey;
use zeroize::Zeroizing;

use super::pair::Pair;

/// The words of a key.
pub(super) const COUNT: usize = 24;
/// The words in a line.
const COLUMNS: usize = 4;
/// The longest text in which words are looked for, in bytes.
pub(super) const TEXT_BYTES_MAX: usize = 16 * 1024;
/// The lists, as a line before each names them.
pub(super) const NAMES: [&str; 2] = ["owner", "tenant"];

/// The words of a key.
pub(super) fn words_of(key: &SigningKey) -> anyhow::Result<Vec<&'static str>> {
    let mnemonic =
        Mnemonic::from_entropy(&key.to_bytes()[..]).map_err(|error| anyhow!("{error}"))?;
    Ok(mnemonic.words().collect())
}

/// Both lists, numbered, each below its name.
pub(super) fn written(pair: &Pair) -> anyhow::Result<Zeroizing<String>> {
    // As long as it gets, or a shorter one would be left behind unwiped.
    let mut text = Zeroizing::new(String::with_capacity(4 * 1024));
    for (name, key) in NAMES.iter().zip([&pair.owner, &pair.tenant]) {
        text.push_str(name);
        text.push_str(":\n");
        for (at, word) in words_of(key)?.iter().enumerate() {
            text.push_str(&format!(" {:>2}. ", at + 1));
            text.push_str(word);
            match (at + 1) % COLUMNS {
                0 => text.push('\n'),
                // No word is longer than eight letters.
                _ => text.extend(std::iter::repeat_n(' ', 8_usize.saturating_sub(word.len()))),
            }
        }
    }
    Ok(text)
}

/// The keys of both lists in a text: first the owner's, or each below its name as [`written`] has it. Where words are
/// numbered, the numbers must be in order.
pub(super) fn read(text: &str) -> anyhow::Result<Pair> {
    let text = Zeroizing::new(text.to_ascii_lowercase());
    let mut lists: [Vec<&str>; 2] = [Vec::with_capacity(COUNT), Vec::with_capacity(COUNT)];
    let (mut at, mut is_named) = (0, false);
    for word in text.split_whitespace() {
        // Behind both lists stand the public keys.
        if lists.iter().all(|list| list.len() == COUNT) {
            break;
        }
        if let Some(name) = word.strip_suffix(':') {
            let named = NAMES.iter().position(|one| *one == name);
            at = named
                .ok_or_else(|| anyhow!("`{word}` is no list of words; write owner: or tenant:"))?;
            is_named = true;
            continue;
        }
        if !is_named && at == 0 && lists[0].len() == COUNT {
            at = 1;
        }
        match word.strip_suffix('.').unwrap_or(word).parse::<usize>() {
            Ok(number) => check_number(NAMES[at], number, lists[at].len() + 1)?,
            Err(_) => lists[at].push(word),
        }
    }
    let [owner, tenant] = &lists;
    Ok(Pair { owner: key_of(NAMES[0], owner)?, tenant: key_of(NAMES[1], tenant)? })
}

fn check_number(list: &str, number: usize, due: usize) -> anyhow::Result<()> {
    ensure!(
        number == due,
        "the {list}'s list has word {number} where word {due} belongs; write the words in the order of their numbers"
    );
    Ok(())
}

/// Refuses words of the list that is called `list` of which one is none of BIP 39.
pub(super) fn check(list: &str, words: &[&str]) -> anyhow::Result<()> {
    let wrong = words.iter().position(|word| Language::English.find_word(word).is_none());
    match wrong {
        Some(at) => bail!(unknown(list, at + 1, words[at])),
        None => Ok(()),
    }
}

/// The key whose words these are, in the list that is called `list`.
pub(super) fn key_of(list: &str, words: &[&str]) -> anyhow::Result<SigningKey> {
    check(list, words)?;
    ensure!(words.len() == COUNT, "the {list}'s list has {} words, and not {COUNT}", words.len());
    let mut text = Zeroizing::new(String::with_capacity(words.len() * 9));
    for word in words {
        text.push_str(word);
        text.push(' ');
    }
    let mnemonic = Mnemonic::parse_in_normalized(Language::English, &text).map_err(|error| {
        match error {
            Error::InvalidChecksum => anyhow!(
                "the words of the {list}'s list don't belong together: their checksum is wrong; two have changed places, \
                 or one is another word of BIP 39 than was written down"
            ),
            other => anyhow!("the {list}'s list: {other}"),
        }
    })?;
    let (entropy, _) = mnemonic.to_entropy_array();
    let entropy = Zeroizing::new(entropy);
    let mut secret = Zeroizing::new([0_u8; 32]);
    secret.copy_from_slice(&entropy[..32]);
    Ok(SigningKey::from_bytes(&secret))
}

/// Why the `number`th word of a list is none, with the words that begin alike: the first four letters decide.
fn unknown(list: &str, number: usize, word: &str) -> String {
    let alike = |letters: usize| -> Vec<&'static str> {
        let begin = word.get(..letters);
        begin
            .map(|begin| Language::English.words_by_prefix_iter(begin).take(4).collect())
            .unwrap_or_default()
    };
    let alike = (2..=4).rev().map(alike).find(|words| !words.is_empty()).unwrap_or_default();
    let proposed = match alike.is_empty() {
        true => String::new(),
        false => format!("; is it {}?", alike.join(" or ")),
    };
    format!("word {number} of the {list}'s list, `{word}`, is no word of BIP 39{proposed}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(bytes: [u8; 32]) -> SigningKey {
        SigningKey::from_bytes(&bytes)
    }

    fn pair() -> Pair {
        Pair { owner: key([0x7f; 32]), tenant: key([0x80; 32]) }
    }

    fn refused(text: &str) -> String {
        read(text).err().unwrap().to_string()
    }

    /// The vectors of 256 bits that BIP 39 names (github.com/trezor/python-mnemonic, vectors.json).
    #[test]
    fn words_are_those_of_the_published_vectors() {
        let bytes = |digits: &str| {
            let pairs = (0..64).step_by(2).map(|at| u8::from_str_radix(&digits[at..at + 2], 16));
            let bytes: Vec<u8> = pairs.map(Result::unwrap).collect();
            <[u8; 32]>::try_from(bytes).unwrap()
        };
        let vectors = [
            ([0; 32], "abandon ".repeat(23) + "art"),
            (
                [0x7f; 32],
                "legal winner thank year wave sausage worth useful legal winner thank year wave sausage worth useful \
                 legal winner thank year wave sausage worth title"
                    .to_owned(),
            ),
            (
                [0x80; 32],
                "letter advice cage absurd amount doctor acoustic avoid letter advice cage absurd amount doctor acoustic \
                 avoid letter advice cage absurd amount doctor acoustic bless"
                    .to_owned(),
            ),
            ([0xff; 32], "zoo ".repeat(23) + "vote"),
            (
                bytes("68a79eaca2324873eacc50cb9c6eca8cc68ea5d936f98787c60c7ebc74e6ce7c"),
                "hamster diagram private dutch cause delay private meat slide toddler razor book happy fancy gospel \
                 tennis maple dilemma loan word shrug inflict delay length"
                    .to_owned(),
            ),
        ];
        for (bytes, words) in vectors {
            let words: Vec<&str> = words.split(' ').collect();
            assert_eq!(words_of(&key(bytes)).unwrap(), words);
            assert_eq!(*key_of("owner", &words).unwrap().to_bytes(), bytes);
        }
    }

    #[test]
    fn lists_are_read_as_they_are_written_and_as_a_person_types_them() {
        let written = written(&pair()).unwrap();
        assert!(
            written
                .starts_with("owner:\n  1. legal     2. winner    3. thank     4. year\n  5. wave")
        );
        assert!(written.capacity() == 4 * 1024, "it didn't grow");
        let words = |key: &SigningKey| words_of(key).unwrap().join(" ");
        let (owner, tenant) = (words(&pair().owner), words(&pair().tenant));
        for text in [
            written.to_string(),
            format!("{owner} {tenant}"),
            format!("{}\n{}\n", *written, pair().shown()),
            format!("tenant:\n{tenant}\nowner:\n{}", owner.to_uppercase()),
        ] {
            assert!(read(&text).unwrap().is(&pair()), "{text}");
        }
    }

    #[test]
    fn wrong_word_is_named_by_its_place_and_what_was_meant() {
        let written = written(&pair()).unwrap();
        let error = refused(&written.replacen("sausage", "sausge", 1));
        assert_eq!(
            error,
            "word 6 of the owner's list, `sausge`, is no word of BIP 39; is it sausage?"
        );
        let error = refused(&written.replacen("bless", "xxürgh", 1));
        assert_eq!(error, "word 24 of the tenant's list, `xxürgh`, is no word of BIP 39");
        assert!(refused("owners: abandon").contains("`owners:` is no list"));
    }

    #[test]
    fn words_in_another_order_and_lists_of_another_length_are_refused() {
        let written = written(&pair()).unwrap();
        // With their numbers, and without.
        let error =
            refused(&written.replacen(" 2. winner    3. thank", " 3. thank    2. winner", 1));
        assert!(error.contains("the owner's list has word 3 where word 2 belongs"), "{error}");
        let error = refused(&written.replacen("2. winner    3. thank", "thank winner", 1));
        assert!(
            error.contains("the owner's list") && error.contains("checksum is wrong"),
            "{error}"
        );
        let error = refused(&written.replacen("title", "useful", 1));
        assert!(error.contains("checksum is wrong"), "{error}");
        let error = refused(&written.replacen("24. title", "", 1));
        assert_eq!(error, "the owner's list has 23 words, and not 24");
        let error = refused(written.split("tenant:").next().unwrap());
        assert_eq!(error, "the tenant's list has 0 words, and not 24");
    }
}
