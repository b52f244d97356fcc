//! A TLS server for one connection over the second UART: it answers a request with a page.

use semihosting::process::exit;
use tenure_crypto::{Group, PrivateKey, Software};
use tenure_tls::{Event, Identity, Server, ServerConfig, Suite};

use crate::uart::Uart;
use crate::{BUFFER, Meter, NOW, Predictable, receive_record};

static LEAF: &[u8] = include_bytes!(env!("TENURE_LEAF"));
static MIDDLE: &[u8] = include_bytes!(env!("TENURE_MIDDLE"));
/// A scalar of P-256; nothing, if the image is only looked at.
static KEY: &[u8] = include_bytes!(env!("TENURE_KEY"));
const PAGE: &[u8] = b"HTTP/1.0 200 OK\r\nContent-Length: 23\r\n\r\n<p>This is the device.\n";

#[inline(never)]
pub(crate) fn serve(meter: &mut Meter) {
    let mut uart = Uart::enable(1);
    let mut security = Software::new(Predictable(2));
    let Ok(key) = KEY.try_into() else { exit(10) };
    let chain = [LEAF, MIDDLE];
    let identities = [Identity { chain: &chain, key: PrivateKey::P256(key) }];
    let config = ServerConfig {
        identities: &identities,
        suites: &[Suite::ChaCha20Poly1305Sha256],
        groups: &[Group::X25519],
        application_protocols: &[],
        client_trust: None,
        client_must_prove: false,
        pre_shared_keys: &[],
        ticket_key: None,
        early_data_bytes_max: 0,
        handshake_ms_max: 10_000,
    };
    let buffer = &raw mut BUFFER;
    // SAFETY: the only reference while this function runs.
    let buffer = unsafe { &mut *buffer };
    let Ok(mut server) = Server::new(buffer, &config, None, &NOW) else { exit(11) };
    loop {
        let event = meter.run(|| server.poll(&mut security, &NOW));
        uart.write(server.output());
        server.sent(usize::MAX);
        match event {
            Ok(Event::Data) => {
                let is_whole = server.data().ends_with(b"\r\n\r\n");
                server.consume(usize::MAX);
                if !is_whole {
                    continue;
                }
                let taken = meter.run(|| server.send(&mut security, PAGE));
                if taken != Ok(PAGE.len()) {
                    exit(12);
                }
                meter.run(|| server.close(&mut security));
                uart.write(server.output());
                server.sent(usize::MAX);
            }
            Ok(Event::Idle) => {
                let length = receive_record(&mut uart, server.space());
                server.received(length);
            }
            Ok(Event::PeerClosed) => return,
            Ok(_) => {}
            Err(_) => exit(13),
        }
    }
}
