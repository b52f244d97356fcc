//! Datagrams and the first message of the owner's protocol, as this version writes them: a later build reads
//! these bytes, and refuses those of a version that it doesn't know.

use tenure_testbed::frozen;
use tenure_wire::control::Hello;
use tenure_wire::datagram::{
    Challenge, Cookie, Data, Datagram, DatagramError, Echo, Epoch, Initiation, PROOF_BYTES, Probe,
    Refusal, RefusalReason, Response, SessionIndex,
};
use tenure_wire::{MachineId, PublicKey, message};

fn kept(name: &str, written: &[u8]) -> Vec<u8> {
    frozen(env!("CARGO_MANIFEST_DIR"), name, written)
}

#[test]
fn datagrams_of_version_1_are_written_and_read() {
    let initiation =
        Initiation::header(&MachineId([7; 12]), SessionIndex(0x0403_0201), &Epoch([8; 8]));
    let (proof, noise) = ([5; PROOF_BYTES], [9; 32 + 48 + 16]);
    let initiation = [&initiation[..], &proof, &noise].concat();
    let response = [&Response::header(SessionIndex(3))[..], &[1; 48]].concat();
    let data = [&Data::header(SessionIndex(4), 1 << 40)[..], &[2; 16]].concat();
    let probe = Probe { nonce: Echo([1; 16]) }.to_bytes();
    let challenge = Challenge {
        echo: Echo([1; 16]),
        epoch: Epoch([2; 8]),
        cookie: Cookie([3; 16]),
        key: PublicKey([4; 32]),
    };
    let challenge = challenge.to_bytes();
    let refusals = [RefusalReason::NoSuchSession, RefusalReason::NoSuchMachine];
    let [gone, nobody] = refusals.map(|reason| Refusal { reason, echo: Echo([6; 16]) }.to_bytes());
    let parts = [&initiation[..], &response, &data, &probe, &challenge, &gone, &nobody];
    let mut rest = &kept("datagram-1", &parts.concat())[..];
    for part in parts {
        let (datagram, behind) = rest.split_at(part.len());
        rest = behind;
        assert!(Datagram::parse(datagram).is_ok(), "{datagram:?}");
        let mut later = datagram.to_vec();
        later[0] += 0x10;
        assert_eq!(Datagram::parse(&later), Err(DatagramError::Version));
    }
}

#[test]
fn hello_of_version_1_is_written_and_read_in_all_versions() {
    let hello = Hello { oldest: 1, newest: 1, software: "0.1.0".into() };
    let bytes = kept("hello-1", &message::encode(&hello));
    let appended = [&bytes[..], b"of a later version"].concat();
    assert_eq!(message::decode::<Hello>(&appended).as_ref(), Ok(&hello));
    let later = Hello { oldest: 2, newest: 3, ..hello.clone() };
    assert_eq!(hello.common(&later), None);
}
