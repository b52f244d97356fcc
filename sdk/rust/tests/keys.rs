//! The text form of keys, against the form that the rest of the system uses (`tenure_wire`).

use tenure::PublicKey;

/// A key and its text, as `tenure_wire::PublicKey` prints it.
const TEXT: &str = "0440y-5gx4g-nk4ea-08x75-aq33d-9rqgz-w6hpa-9q8n9-p2vvx-hectf-da";

fn key() -> PublicKey {
    PublicKey(core::array::from_fn(|at| (at * 7 + 1) as u8))
}

#[test]
fn key_has_one_text() {
    assert_eq!(key().to_string(), TEXT);
    assert_eq!(TEXT.parse(), Ok(key()));
    assert_eq!(key().target(), format!("#{TEXT}"));
}

#[test]
fn mistyped_key_is_refused() {
    for text in [
        "",
        "-",
        "0440y",
        &TEXT[..61],
        &format!("{TEXT}0"),
        &format!("{TEXT}-"),
        &TEXT.replace('-', "_"),
        &TEXT.replace("0440y", "0440i"),
        &TEXT.replace("da", "db"),
    ] {
        assert!(text.parse::<PublicKey>().is_err(), "{text}");
    }
}
