use data_encoding::HEXLOWER;

use super::*;

/// The head of the vector `scrypt` of age's own tests (github.com/C2SP/CCTV, `age/testdata`), up to its code.
const HEAD: &str = "age-encryption.org/v1\n-> scrypt rF0/NwblUHHTpgQgRpe5CQ 10\n\
                    gUjEymFKMVXQEKdMMHL24oYexjE3TIC0O0zGSqJ2aUY\n---";
const CODE: &str = "IOXiQYStkoT1mvZW2tFOqZdhRVvj58egABx/sWfZQbc";
const REST: &str = "1b35c6e687dd00da3ac379ac9f742c21fd185a1b9e3ded739d14ac6a9a50124db866d8";
const PASSPHRASE: &str = "password";

fn published() -> Vec<u8> {
    let rest = HEXLOWER.decode(REST.as_bytes()).unwrap();
    [format!("{HEAD} {CODE}\n").as_bytes(), &rest[..]].concat()
}

fn refused(bytes: &[u8]) -> Refused {
    decrypt(bytes, PASSPHRASE, 10).map(drop).unwrap_err()
}

#[test]
fn published_file_is_read_and_written_to_the_byte() {
    assert_eq!(**decrypt(&published(), PASSPHRASE, 10).unwrap(), *b"age");
    let salt = BASE64_NOPAD.decode(b"rF0/NwblUHHTpgQgRpe5CQ").unwrap();
    let text_salt = HEXLOWER.decode(&REST.as_bytes()[..32]).unwrap();
    let drawn = Drawn {
        file_key: Zeroizing::new(*b"YELLOW SUBMARINE"),
        salt: salt.try_into().unwrap(),
        text_salt: text_salt.try_into().unwrap(),
    };
    assert!(encrypt_with(&drawn, b"age", PASSPHRASE, 10).unwrap() == published());
}

#[test]
fn each_file_has_other_keys_and_opens_with_its_passphrase_alone() {
    let [one, other] = [(); 2].map(|()| encrypt(b"text", PASSPHRASE, 1).unwrap());
    assert_ne!(one, other);
    for file in [&one, &other] {
        assert_eq!(**decrypt(file, PASSPHRASE, 1).unwrap(), *b"text");
        assert_eq!(decrypt(file, "Password", 1).map(drop), Err(Refused::Passphrase));
    }
    let empty = encrypt(b"", PASSPHRASE, 1).unwrap();
    assert!(decrypt(&empty, PASSPHRASE, 1).unwrap().is_empty());
}

#[test]
fn file_that_was_cut_anywhere_or_changed_anywhere_is_refused() {
    let file = encrypt(b"text", PASSPHRASE, 1).unwrap();
    for length in 0..file.len() {
        assert_eq!(refused(&file[..length]), Refused::Changed, "{length}");
    }
    for at in 0..file.len() {
        let mut changed = file.clone();
        changed[at] ^= 1;
        assert!(decrypt(&changed, PASSPHRASE, 10).is_err(), "{at}");
    }
    assert_eq!(refused(&[&file[..], b"more"].concat()), Refused::Changed);
}

/// Files that age's own tests refuse, and why.
#[test]
fn head_in_another_spelling_or_for_others_is_refused_before_any_work() {
    let changed = |from: &str, to: &str| {
        let text = format!("{HEAD} {CODE}\n");
        assert!(text.contains(from), "{from}");
        refused(&[text.replacen(from, to, 1).as_bytes(), &[0; 35][..]].concat())
    };
    for (from, to) in [
        (" 10\n", " 010\n"),
        (" 10\n", " +10\n"),
        (" 10\n", " -10\n"),
        (" 10\n", " 0\n"),
        (" 10\n", " 0xa\n"),
        (" 10\n", " 10 \n"),
        (" 10\n", " 1234567890\n"),
        (" 10\n", "\n"),
        (" 10\n", " 10 10\n"),
        (" 10\n", " 10\r\n"),
        ("e5CQ ", "e5CR "),
        ("e5CQ ", "e5C "),
        ("e5CQ ", "e5CQ== "),
        ("aUY\n", "aUZ\n"),
        ("aUY\n", "aUYAAAA\n"),
        ("---", "-> scrypt rF0/NwblUHHTpgQgRpe5CQ 10\n---"),
        ("--- ", "---"),
        ("ZQbc", "ZQbd"),
    ] {
        assert_eq!(changed(from, to), Refused::Changed, "{to:?}");
    }
    assert_eq!(changed("-> scrypt", "-> X25519"), Refused::NoPassphrase);
    assert_eq!(changed(" 10\n", " 11\n"), Refused::Work(11));
    assert_eq!(changed(" 10\n", " 255\n"), Refused::Work(255));
    assert_eq!(changed("org/v1", "org/v2"), Refused::NotAge);
    assert_eq!(refused(b"-----BEGIN PGP MESSAGE-----\n\n"), Refused::NotAge);
}
