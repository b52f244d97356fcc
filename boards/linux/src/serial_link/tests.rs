//! Two links over a pair of pseudo-terminals.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt as _;
use std::time::Duration;

use rustix::fs::{OFlags, fcntl_setfl};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};

use tenure_mesh::frame_for_serial;

use super::*;
use crate::wait::wait_any;

const LONG: Duration = Duration::from_secs(20);

/// A device at one end of a line, and the other end.
fn pair() -> (SerialLink, SerialLink) {
    let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    grantpt(&master).unwrap();
    unlockpt(&master).unwrap();
    let name = ptsname(&master, Vec::new()).unwrap();
    fcntl_setfl(&master, OFlags::NONBLOCK).unwrap();
    let path = PathBuf::from(OsString::from_vec(name.into_bytes()));
    let device = SerialLink::open(&path, 115_200).unwrap();
    (device, SerialLink::over(master, "the other end".to_owned()))
}

#[track_caller]
fn next(link: &mut SerialLink) -> Vec<u8> {
    let mut into = [0; SERIAL_FRAME_BYTES_MAX];
    loop {
        if let Some((length, ())) = link.receive(&mut into).unwrap() {
            return into[..length].to_vec();
        }
        assert_eq!(wait_any(&[link], LONG), Ok(crate::Woken::ByDatagram));
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
    assert_eq!(rustix::io::write(other.as_fd(), &line), Ok(line.len()));
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
fn what_is_no_line_is_named() {
    let missing = SerialLink::open(Path::new("/dev/no-such-line"), 9_600).unwrap_err().to_string();
    assert!(missing.contains("/dev/no-such-line") && missing.contains("/dev/tty"), "{missing}");
    let file = tempfile::NamedTempFile::new().unwrap();
    let plain = SerialLink::open(file.path(), 9_600).unwrap_err().to_string();
    assert!(plain.contains("no terminal device"), "{plain}");
}
