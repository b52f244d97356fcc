use super::*;

fn bytes<const N: usize>(hex: &str) -> [u8; N] {
    core::array::from_fn(|at| u8::from_str_radix(&hex[2 * at..2 * at + 2], 16).unwrap())
}

const INFO: &[u8] = b"Ode on a Grecian Urn";
const MESSAGE: &[u8; 29] = b"Beauty is truth, truth beauty";

/// RFC 9180 appendix A.2.1: base mode, the first encryption.
#[test]
fn the_rfcs_vector_is_met() {
    let ephemeral = StaticSecret::from_bytes(&bytes(
        "f4ec9b33b792c372c1d2c2063507b684ef925b8c75a42dbcbf57d63ccd381600",
    ));
    let recipient = StaticSecret::from_bytes(&bytes(
        "8057991eef8f1f1af18f4a9491d16a1ce333f695d4db8e38da75975c4478e0fb",
    ));
    let mut message = *MESSAGE;
    let sealed =
        seal_with(&ephemeral, &recipient.public_key(), INFO, b"Count-0", &mut message).unwrap();
    let key = "1afa08d3dec047a643885163f1180476fa7ddb54c6a8029ea33f95796bf2ac4a";
    assert_eq!(sealed.key.0, bytes(key));
    let text = "1c5250d8034ec2b784ba2cfd69dbdb8af406cfe3ff938e131f0def8c8b";
    assert_eq!(message, bytes(text));
    assert_eq!(sealed.tag, bytes("60b4db21993c62ce81883d2dd1b51a28"));
    open_sealed(&recipient, &sealed, INFO, b"Count-0", &mut message).unwrap();
    assert_eq!(&message, MESSAGE);
}

#[test]
fn nothing_else_opens() {
    let ephemeral = StaticSecret::from_bytes(&[1; 32]);
    let recipient = StaticSecret::from_bytes(&[2; 32]);
    let mut sealed = *MESSAGE;
    let with = seal_with(&ephemeral, &recipient.public_key(), INFO, b"", &mut sealed).unwrap();
    let other = StaticSecret::from_bytes(&[3; 32]);
    let opens = |recipient: &StaticSecret, with: &Encapsulated, info: &[u8], associated: &[u8]| {
        let mut message = sealed;
        open_sealed(recipient, with, info, associated, &mut message).is_ok()
    };
    assert!(opens(&recipient, &with, INFO, b""));
    assert!(!opens(&other, &with, INFO, b""));
    assert!(!opens(&recipient, &with, b"another purpose", b""));
    assert!(!opens(&recipient, &with, INFO, b"another place"));
    assert!(!opens(&recipient, &Encapsulated { key: PublicKey([0; 32]), ..with }, INFO, b""));
    assert!(!opens(&recipient, &Encapsulated { key: other.public_key(), ..with }, INFO, b""));
    assert!(!opens(&recipient, &Encapsulated { tag: [0; 16], ..with }, INFO, b""));
}
