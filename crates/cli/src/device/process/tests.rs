//! One turn of a device's loop takes in a bounded number of datagrams and frames, however many wait.

use std::net::UdpSocket;

use super::*;

/// A device that nobody owns yet, with its files.
fn device(folder: &Path) -> Running {
    let keys = OwnerKeys::of(&Home::at(folder.join("home"))).unwrap();
    let config = Config::new("attic".parse().unwrap(), keys.owner());
    let parts = open_flash(folder, Durability::ProcessKill).unwrap();
    let link = UdpLink::bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let home = Home::at(folder.join("home"));
    Running::start(config, parts, link, &home, folder, None).unwrap()
}

#[test]
fn one_turn_takes_no_more_datagrams_than_its_share_however_many_wait() {
    let folder = tempfile::tempdir().unwrap();
    let mut device = device(folder.path());
    let output = Output::silent();
    let stranger = UdpSocket::bind("127.0.0.1:0").unwrap();
    let left = |device: &mut Running| {
        let mut datagram = [0; 2_000];
        std::iter::from_fn(|| device.link.receive(&mut datagram).unwrap()).count()
    };
    // Data of a session that isn't there, a probe, and what is no datagram at all.
    for datagram in [&[0x13; 60][..], &[0x14; 73], &[0xFF; 9]] {
        for _ in 0..DATAGRAMS_PER_TURN + 50 {
            stranger.send_to(datagram, device.address()).unwrap();
        }
        device.turn(&output).unwrap();
        assert_eq!(left(&mut device), 50, "after one turn");
    }
}
