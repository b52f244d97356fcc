//! The key schedule of RFC 8448 §3, "Simple 1-RTT Handshake", from the agreed secret and the digests of
//! its transcript to every secret, key and initialisation vector.

use hex_literal::hex;

use super::*;

const SHA256: HashAlgorithm = HashAlgorithm::Sha256;
const AGREED: [u8; 32] = hex!("8bd4054fb55b9d63fdfbacf9f04b9f0d35e6d63f537563efd46272900f89492d");
/// The digest of `ClientHello` and `ServerHello`.
const HELLOS: [u8; 32] = hex!("860c06edc07858ee8e78f0e7428c58edd6b43f2ca3e6e95f02ed063cf0e1cad8");
/// The digest up to the server's `Finished`.
const SERVER_FINISHED: [u8; 32] =
    hex!("9608102a0f1ccc6db6250b7b7e417b1a000eaada3daae4777a7686c9ff83df13");
/// The digest up to the client's `Finished`.
const CLIENT_FINISHED: [u8; 32] =
    hex!("209145a96ee8e2a122ff810047cc952684658d6049e86429426db87c54ad143d");

#[test]
fn the_handshake_secrets_are_those_of_rfc_8448() {
    let early = Schedule::early(SHA256, None);
    assert_eq!(
        *early.secret,
        hex!("33ad0a1c607ec03b09e6cd9893680ce210adf300aa1f2660e1b22e10f170f92a")
    );
    let handshake = early.handshake(Some(&AgreedSecret::new(&[&AGREED])));
    assert_eq!(
        *handshake.secret,
        hex!("1dc826e93606aa6fdc0aadc12f741b01046aa6b99f691ed221a9f0ca043fbeac")
    );
    assert_eq!(
        *handshake.derive(b"c hs traffic", &HELLOS),
        hex!("b3eddb126e067f35a780b3abf45e2d8f3b1a950738f52e9600746a0e27a55a21")
    );
    assert_eq!(
        *handshake.derive(b"s hs traffic", &HELLOS),
        hex!("b67b7d690cc16c4e75e54213cb2d37b4e9c912bcded9105d42befd59d391ad38")
    );
}

#[test]
fn the_application_secrets_are_those_of_rfc_8448() {
    let agreed = AgreedSecret::new(&[&AGREED]);
    let master = Schedule::early(SHA256, None).handshake(Some(&agreed)).master();
    assert_eq!(
        *master.secret,
        hex!("18df06843d13a08bf2a449844c5f8a478001bc4d4c627984d5a41da8d0402919")
    );
    assert_eq!(
        *master.derive(b"c ap traffic", &SERVER_FINISHED),
        hex!("9e40646ce79a7f9dc05af8889bce6552875afa0b06df0087f792ebb7c17504a5")
    );
    assert_eq!(
        *master.derive(b"s ap traffic", &SERVER_FINISHED),
        hex!("a11af9f05531f856ad47116b45a950328204b4f44bfb6b3a4b4f1f3fcb631643")
    );
    assert_eq!(
        *master.derive(b"exp master", &SERVER_FINISHED),
        hex!("fe22f881176eda18eb8f44529e6792c50c9a3f89452f68d8ae311b4309d3cf50")
    );
    assert_eq!(
        *master.derive(b"res master", &CLIENT_FINISHED),
        hex!("7df235f2031d2a051287d02b0241b0bfdaf86cc856231f2d5aba46c434ec196c")
    );
}

#[test]
fn the_clients_handshake_key_and_vector_are_those_of_rfc_8448() {
    let secret = hex!("b3eddb126e067f35a780b3abf45e2d8f3b1a950738f52e9600746a0e27a55a21");
    let (mut key, mut iv) = ([0; 16], [0; 12]);
    expand_label(SHA256, &secret, b"key", &[], &mut key);
    expand_label(SHA256, &secret, b"iv", &[], &mut iv);
    assert_eq!(key, hex!("dbfaa693d1762c5b666af5d950258d01"));
    assert_eq!(iv, hex!("5bd3c71b836e0b76bb73265f"));
}
