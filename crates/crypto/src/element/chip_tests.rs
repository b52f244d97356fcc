//! The checksum and a frame against the data sheet's.

use super::*;

#[test]
fn an_awake_chips_answer_has_the_data_sheets_checksum() {
    assert_eq!(opened(&[4, 0x11, 0x33, 0x43]), Some(&[0x11][..]));
    assert_eq!(opened(&[4, 0x11, 0x33, 0x42]), None);
    assert_eq!(opened(&[5, 0x11, 0x33, 0x43]), None);
}

#[test]
fn the_command_for_the_revision_has_the_data_sheets_frame() {
    const INFO: u8 = 0x30;
    let mut frame = [0; 1 + FRAME_BYTES_MAX];
    let command = Command { code: INFO, mode: 0, parameter: 0 };
    let length = write_frame(command, &[], &mut frame).expect("room");
    assert_eq!(frame[..length], [3, 7, 0x30, 0, 0, 0, 3, 0x5d]);
}
