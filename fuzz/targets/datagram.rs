//! Datagrams from anybody.
#![no_main]
#![forbid(unsafe_code)]

use libfuzzer_sys::fuzz_target;
use tenure_wire::datagram::Datagram;

fuzz_target!(|bytes: &[u8]| {
    match Datagram::parse(bytes) {
        Ok(Datagram::Initiation(initiation)) => {
            let _ = initiation.echo();
        }
        Ok(Datagram::Data(data)) => {
            let _ = data.echo();
        }
        Ok(Datagram::Challenge(challenge)) => assert_eq!(challenge.to_bytes(), bytes),
        // The answer to a probe is no longer than the probe: nobody is flooded with our help.
        Ok(Datagram::Probe(probe)) => assert!(probe.to_bytes().len() <= bytes.len()),
        Ok(Datagram::Refusal(refusal)) => assert_eq!(refusal.to_bytes(), bytes),
        Ok(Datagram::Deferral(deferral)) => assert_eq!(deferral.to_bytes(), bytes),
        Ok(Datagram::Response(_)) | Err(_) => {}
    }
});
