//! Files in TOML that people write: a key that is none is an error, which names the nearest that is one.

use serde::de::DeserializeOwned;

/// The most changes of letters between a key and the one that was meant.
const DISTANCE_MAX: usize = 3;

/// Reads a file's text.
///
/// # Errors
/// It is no TOML, or not what the type says.
pub(crate) fn parse<T: DeserializeOwned>(text: &str) -> anyhow::Result<T> {
    toml::from_str(text).map_err(|error| match meant(error.message()) {
        Some(key) => anyhow::anyhow!("{}; did you mean `{key}`?", error.to_string().trim_end()),
        None => error.into(),
    })
}

/// The known key that is nearest to the unknown one, as an error of `deny_unknown_fields` or of an enumeration lists them:
/// the unknown one first, each in backquotes.
fn meant(message: &str) -> Option<&str> {
    if !message.starts_with("unknown field") && !message.starts_with("unknown variant") {
        return None;
    }
    let mut quoted = message.split('`').skip(1).step_by(2);
    let unknown = quoted.next()?;
    nearest(unknown, quoted)
}

/// The known word that is nearest to an unknown one, if it is near.
pub(crate) fn nearest<'a>(unknown: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let distances = known.map(|known| (distance(unknown, known), known));
    let (least, nearest) = distances.min()?;
    (least <= DISTANCE_MAX && least < unknown.chars().count()).then_some(nearest)
}

/// The number of letters that are added, left out or replaced between two words (Levenshtein).
fn distance(one: &str, other: &str) -> usize {
    let other: Vec<char> = other.chars().collect();
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (above, letter) in one.chars().enumerate() {
        let mut diagonal = above;
        row[0] = above + 1;
        for (left, known) in other.iter().enumerate() {
            let replaced = diagonal + usize::from(letter != *known);
            diagonal = row[left + 1];
            row[left + 1] = replaced.min(row[left] + 1).min(diagonal + 1);
        }
    }
    row[other.len()]
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    use super::*;

    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    #[expect(dead_code, reason = "its keys alone count")]
    struct Plan {
        machine: Option<String>,
        soak_s: Option<u32>,
    }

    #[test]
    fn key_that_nobody_knows_is_refused_and_the_nearest_known_one_named() {
        let error = |text| format!("{:#}", parse::<Plan>(text).unwrap_err());
        assert!(error("machin = 'a'").ends_with("did you mean `machine`?"));
        assert!(error("soaks = 1").ends_with("did you mean `soak_s`?"));
        let far = error("colour = 1");
        assert!(far.contains("unknown field `colour`") && !far.contains("did you mean"), "{far}");
        assert!(!error("machine = 1").contains("did you mean"));
        parse::<Plan>("soak_s = 1").unwrap();
    }

    #[test]
    fn distance_counts_letters() {
        for (one, other, expected) in [("", "abc", 3), ("abc", "abc", 0), ("kitten", "sitting", 3)]
        {
            assert_eq!(distance(one, other), expected);
            assert_eq!(distance(other, one), expected);
        }
    }
}
