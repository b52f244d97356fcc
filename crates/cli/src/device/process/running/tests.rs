//! One turn of a device's loop takes in a bounded number of datagrams and frames, however many wait.

use std::net::UdpSocket;

use tenure_board_linux::Durability;

use super::*;
use crate::device::process::{open_flash, roomy_kernel};

/// A device that nobody owns yet, with its files.
fn device(folder: &Path) -> Running {
    let keys = OwnerKeys::of(&Home::at(folder.join("home"))).unwrap();
    let config = Config::new("attic".parse().unwrap(), keys.owner());
    let parts = open_flash(folder, Durability::ProcessKill).unwrap();
    let link = UdpLink::bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let home = Home::at(folder.join("home"));
    Running::start(config, parts, link, &home, folder, None, true).unwrap()
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

#[test]
fn process_that_comes_round_seconds_late_without_having_worked_stood_still() {
    let at = |seconds: u64| Instant::from_millis(seconds * 1000);
    let span = Duration::from_secs;
    let pace = Pace { due: at(20), worked: span(3) };
    assert!(!pace.stood_still(at(10), span(3)), "woken before it was due");
    assert!(!pace.stood_still(at(24), span(3)), "a busy computer");
    assert!(!pace.stood_still(at(60), span(43)), "it worked for so long");
    assert!(pace.stood_still(at(60), span(3)));
    assert!(
        !Pace::default().stood_still(at(60), span(0)),
        "nobody expected it before its first turn"
    );
}

#[test]
fn device_that_stood_still_throws_away_what_came_meanwhile() {
    let folder = tempfile::tempdir().unwrap();
    let mut device = device(folder.path());
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    for _ in 0..3 {
        socket.send_to(&[0; 40], device.address()).unwrap();
    }
    device.throw_away(&Output::silent()).unwrap();
    let mut datagram = vec![0; 100];
    assert!(device.link.receive(&mut datagram).unwrap().is_none());
}

#[test]
fn limits_page_says_how_many_machines_a_device_on_linux_takes() {
    let page = include_str!("../../../../../../docs/generated/limits.md").replace('\n', " ");
    let said = format!("`tenure device` on Linux takes {} machines", roomy_kernel().machines_max);
    assert!(page.contains(&said), "{said}");
}
