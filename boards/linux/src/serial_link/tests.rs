//! Two links over a pair of pseudo-terminals.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt as _;
use std::os::unix::fs::symlink;

use rustix::fs::{OFlags, fcntl_setfl};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};

use tenure_mesh::frame_for_serial;
use tenure_testbed::patience;

use super::*;
use crate::wait::wait_any;

/// A device at one end of a line, and the other end.
fn pair() -> (SerialLink, SerialLink) {
    let (path, other) = plug();
    (SerialLink::open(&path, 115_200).unwrap(), other)
}

/// A terminal device, and the other end of its line.
fn plug() -> (PathBuf, SerialLink) {
    let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    grantpt(&master).unwrap();
    unlockpt(&master).unwrap();
    let name = ptsname(&master, Vec::new()).unwrap();
    fcntl_setfl(&master, OFlags::NONBLOCK).unwrap();
    let path = PathBuf::from(OsString::from_vec(name.into_bytes()));
    (path, SerialLink::over(master, "the other end".to_owned()))
}

#[track_caller]
fn next(link: &mut SerialLink) -> Vec<u8> {
    let mut into = [0; SERIAL_FRAME_BYTES_MAX];
    loop {
        if let Some((length, ())) = link.receive(&mut into).unwrap() {
            return into[..length].to_vec();
        }
        assert_eq!(wait_any(&[link.socket().unwrap()], patience()), Ok(crate::Woken::ByDatagram));
    }
}

#[test]
fn frames_of_any_bytes_pass_both_ways() {
    let (mut device, mut other) = pair();
    // Bytes that a terminal which isn't raw would take for something.
    let frame: Vec<u8> = (0..=255).chain([3, 4, 10, 13, 17, 19, 26, 0, 0]).collect();
    device.send(&(), &frame).unwrap();
    device.send(&(), b"").unwrap();
    assert_eq!(next(&mut other), frame);
    assert_eq!(next(&mut other), b"");
    other.send(&(), &frame).unwrap();
    assert_eq!(next(&mut device), frame);
}

#[test]
fn noise_spoils_the_frame_that_it_hits_and_no_other() {
    let (mut device, mut other) = pair();
    let mut line = Vec::new();
    line.extend_from_slice(b"boot message of a bootloader\r\n");
    frame_for_serial(b"lost with the noise before it", &mut line);
    frame_for_serial(b"whole", &mut line);
    let at = line.len();
    frame_for_serial(b"damaged", &mut line);
    line[at + 2] ^= 0x20;
    frame_for_serial(b"whole again", &mut line);
    assert_eq!(rustix::io::write(other.socket().unwrap(), &line), Ok(line.len()));
    assert_eq!(next(&mut device), b"whole");
    assert_eq!(next(&mut device), b"whole again");
    assert_eq!(device.damaged(), 2);
    device.send(&(), b"thanks").unwrap();
    assert_eq!(next(&mut other), b"thanks");
}

#[test]
fn a_line_that_takes_nothing_is_busy_and_not_endless_memory() {
    let (mut device, _other) = pair();
    let frame = [7; SERIAL_FRAME_BYTES_MAX];
    let refused = (0..1_000).map(|_| device.send(&(), &frame)).find(Result::is_err);
    assert_eq!(refused, Some(Err(LinkError::Busy)));
    assert_eq!(device.send(&(), &[0; SERIAL_FRAME_BYTES_MAX + 1]), Err(LinkError::TooLong));
}

#[test]
fn an_unplugged_line_is_silent_and_comes_back_by_its_name() {
    let folder = tempfile::tempdir().unwrap();
    let name = folder.path().join("pico");
    let (terminal, mut other) = plug();
    symlink(&terminal, &name).unwrap();
    let mut device = SerialLink::open(&name, 115_200).unwrap();
    device.send(&(), b"before").unwrap();
    assert_eq!(next(&mut other), b"before");
    let mut cut_off = Vec::new();
    frame_for_serial(b"cut off", &mut cut_off);
    let half = &cut_off[..cut_off.len() / 2];
    assert_eq!(rustix::io::write(other.socket().unwrap(), half), Ok(half.len()));

    std::fs::remove_file(&name).unwrap();
    drop(other);
    let mut into = [0; SERIAL_FRAME_BYTES_MAX];
    while device.is_plugged_in() {
        assert_eq!(device.receive(&mut into), Ok(None));
    }
    for _ in 0..1_000 {
        assert_eq!(device.send(&(), &[7; SERIAL_FRAME_BYTES_MAX]), Ok(()), "it is dropped");
        assert_eq!(device.receive(&mut into), Ok(None));
    }

    let (terminal, mut other) = plug();
    symlink(&terminal, &name).unwrap();
    while !device.is_plugged_in() {
        assert_eq!(device.receive(&mut into), Ok(None));
        wait_any(&[], REOPEN_EVERY).unwrap();
    }
    other.send(&(), b"after").unwrap();
    assert_eq!(next(&mut device), b"after");
    device.send(&(), b"nothing old came").unwrap();
    assert_eq!(next(&mut other), b"nothing old came");
}

#[test]
fn a_line_that_was_absent_from_the_start_is_used_once_it_is_plugged_in() {
    let folder = tempfile::tempdir().unwrap();
    let name = folder.path().join("pico");
    let mut device = SerialLink::open_or_await(&name, 115_200).unwrap();
    assert!(!device.is_plugged_in());
    let mut into = [0; SERIAL_FRAME_BYTES_MAX];
    assert_eq!(device.receive(&mut into), Ok(None));
    device.send(&(), b"to nobody").unwrap();

    let (terminal, mut other) = plug();
    symlink(&terminal, &name).unwrap();
    while !device.is_plugged_in() {
        assert_eq!(device.receive(&mut into), Ok(None));
        wait_any(&[], REOPEN_EVERY).unwrap();
    }
    device.send(&(), b"to somebody").unwrap();
    assert_eq!(next(&mut other), b"to somebody");
    other.send(&(), b"heard").unwrap();
    assert_eq!(next(&mut device), b"heard");
}

#[test]
fn a_line_that_is_there_and_no_terminal_is_not_waited_for() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let plain = SerialLink::open_or_await(file.path(), 9_600).unwrap_err().to_string();
    assert!(plain.contains("no terminal device"), "{plain}");
}

#[test]
fn another_kind_of_file_in_the_place_of_an_unplugged_line_is_not_opened() {
    let folder = tempfile::tempdir().unwrap();
    let name = folder.path().join("pico");
    let (terminal, other) = plug();
    symlink(&terminal, &name).unwrap();
    let mut device = SerialLink::open(&name, 115_200).unwrap();
    std::fs::remove_file(&name).unwrap();
    std::fs::write(&name, b"frames of nobody").unwrap();
    drop(other);
    let mut into = [0; SERIAL_FRAME_BYTES_MAX];
    for _ in 0..4 {
        assert_eq!(device.receive(&mut into), Ok(None));
        device.send(&(), b"to nobody").unwrap();
        wait_any(&[], REOPEN_EVERY).unwrap();
    }
    assert!(!device.is_plugged_in());
    assert_eq!(std::fs::read(&name).unwrap(), b"frames of nobody");
}

#[test]
fn what_is_no_line_is_named() {
    let missing = SerialLink::open(Path::new("/dev/no-such-line"), 9_600).unwrap_err().to_string();
    assert!(missing.contains("/dev/no-such-line") && missing.contains("/dev/tty"), "{missing}");
    let file = tempfile::NamedTempFile::new().unwrap();
    let plain = SerialLink::open(file.path(), 9_600).unwrap_err().to_string();
    assert!(plain.contains("no terminal device"), "{plain}");
}
