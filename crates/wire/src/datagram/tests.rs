//! Datagrams read back as they were written; what is cut or stretched is refused, and nothing
//! panics.

use alloc::vec::Vec;

use proptest::prelude::*;

use super::*;

fn initiation() -> Vec<u8> {
    let mut bytes =
        Initiation::header(&MachineId([7; 12]), SessionIndex(0x0403_0201), &Epoch([8; 8])).to_vec();
    bytes.extend_from_slice(&[0; PROOF_BYTES]);
    bytes.extend_from_slice(&[9; 32 + 48 + TAG_BYTES]);
    bytes
}

#[test]
fn initiation_reads_back() {
    let mut bytes = initiation();
    Initiation::set_proof(&mut bytes, &[5; 16]);
    let Ok(Datagram::Initiation(read)) = Datagram::parse(&bytes) else { panic!("an initiation") };
    assert_eq!(read.destination, MachineId([7; 12]));
    assert_eq!(read.sender, SessionIndex(0x0403_0201));
    assert_eq!(read.epoch, Epoch([8; 8]));
    assert_eq!(read.proof, [5; 16]);
    assert_eq!(read.echo(), Echo([9; 16]));
    assert_eq!(read.header[..], bytes[..INITIATION_HEADER_BYTES]);
}

#[test]
fn initiation_too_short_for_its_challenge_is_refused() {
    let bytes = initiation();
    assert_eq!(bytes.len(), INITIATION_OVERHEAD);
    assert_eq!(Datagram::parse(&bytes[..bytes.len() - 1]), Err(DatagramError::Length));
}

#[test]
fn response_and_data_read_back() {
    let response = [&Response::header(SessionIndex(3))[..], &[1; 48]].concat();
    assert_eq!(
        Datagram::parse(&response),
        Ok(Datagram::Response(Response { receiver: SessionIndex(3), noise: &[1; 48] })),
    );
    let data = [&Data::header(SessionIndex(4), 1 << 40)[..], &[2; 16]].concat();
    let Ok(Datagram::Data(read)) = Datagram::parse(&data) else { panic!("data") };
    assert_eq!((read.receiver, read.counter), (SessionIndex(4), 1 << 40));
    assert_eq!(read.echo(), Echo([2; 16]));
}

#[test]
fn probe_challenge_refusal_and_deferral_read_back() {
    let probe = Probe { nonce: Echo([1; 16]) };
    assert_eq!(Datagram::parse(&probe.to_bytes()), Ok(Datagram::Probe(probe)));
    assert_eq!(Datagram::parse(&probe.to_bytes()[..72]), Err(DatagramError::Length));
    let challenge = Challenge {
        echo: Echo([1; 16]),
        epoch: Epoch([2; 8]),
        cookie: Cookie([3; 16]),
        key: PublicKey([4; 32]),
    };
    assert_eq!(Datagram::parse(&challenge.to_bytes()), Ok(Datagram::Challenge(challenge)));
    for reason in [RefusalReason::NoSuchMachine, RefusalReason::NoSuchSession] {
        let refusal = Refusal { reason, echo: Echo([6; 16]) };
        assert_eq!(Datagram::parse(&refusal.to_bytes()), Ok(Datagram::Refusal(refusal)));
    }
    let deferral = Deferral { echo: Echo([7; 16]), again_in_ms: 12_345 };
    assert_eq!(Datagram::parse(&deferral.to_bytes()), Ok(Datagram::Deferral(deferral)));
    assert_eq!(Datagram::parse(&deferral.to_bytes()[..20]), Err(DatagramError::Length));
}

#[test]
fn unknown_version_and_kind_are_refused() {
    assert_eq!(Datagram::parse(&[]), Err(DatagramError::Length));
    assert_eq!(Datagram::parse(&[0x21; 100]), Err(DatagramError::Version));
    assert_eq!(Datagram::parse(&[0x1f; 100]), Err(DatagramError::Kind));
}

proptest! {
    #[test]
    fn random_bytes_never_panic(kind in 0_u8..8, mut bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        if let Some(first) = bytes.first_mut() {
            *first = VERSION << 4 | kind;
        }
        if let Ok(Datagram::Initiation(read)) = Datagram::parse(&bytes) {
            prop_assert!(read.noise.len() >= 96);
        }
    }
}

#[test]
fn relayed_datagram_is_taken_out_of_what_is_around_it_and_is_no_datagram_of_a_session() {
    let probe = Probe { nonce: Echo([7; 16]) }.to_bytes();
    let bytes = Relayed { way: [3; 8], datagram: &probe }.to_bytes();
    assert_eq!(bytes.len(), RELAYED_OVERHEAD + probe.len());
    assert_eq!(Relayed::parse(&bytes), Some(Relayed { way: [3; 8], datagram: &probe }));
    assert_eq!(Datagram::parse(&bytes), Err(DatagramError::Kind));
    assert_eq!(Relayed::parse(&bytes[..RELAYED_OVERHEAD - 1]), None);
    assert_eq!(Relayed::parse(&probe), None);
}
