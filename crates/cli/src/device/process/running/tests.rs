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
fn first_messages_that_waited_while_the_process_was_stopped_are_not_taken() {
    let folder = tempfile::tempdir().unwrap();
    let mut device = device(folder.path());
    let output = Output::silent();
    let caller = UdpSocket::bind("127.0.0.1:0").unwrap();
    caller.set_nonblocking(true).unwrap();
    // An initiation to a machine that isn't there: whoever takes it refuses it.
    let mut initiation = vec![0; 200];
    initiation[0] = 0x11;
    let mut relayed = vec![0x18; 9];
    relayed.extend(&initiation);
    assert!(is_first_message(&initiation) && is_first_message(&relayed));
    assert!(!is_first_message(&[0x14; 73]) && !is_first_message(&[]));
    let is_answered = |device: &mut Running| {
        caller.send_to(&initiation, device.address()).unwrap();
        device.turn(&output).unwrap();
        caller.recv(&mut [0; 200]).is_ok()
    };
    assert!(is_answered(&mut device));
    device.has_waited = true;
    assert!(!is_answered(&mut device));
    assert!(is_answered(&mut device), "sent again");
}

#[test]
fn limits_page_says_how_many_machines_a_device_on_linux_takes() {
    let page = include_str!("../../../../../../docs/generated/limits.md").replace('\n', " ");
    let said = format!("`tenure device` on Linux takes {} machines", roomy_kernel().machines_max);
    assert!(page.contains(&said), "{said}");
}
