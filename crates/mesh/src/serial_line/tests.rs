use alloc::collections::VecDeque;
use alloc::rc::Rc;
use alloc::vec;
use alloc::vec::Vec;
use core::cell::RefCell;

use tenure_hal::{Link as _, LinkError};

use super::{PART_BYTES, Port, SerialLine};
use crate::serial::frame_for_serial;

/// A port whose line takes so many bytes at a time.
#[derive(Clone, Default)]
struct Wire {
    arriving: Rc<RefCell<VecDeque<u8>>>,
    leaving: Rc<RefCell<VecDeque<u8>>>,
    takes: Rc<RefCell<usize>>,
}

impl Port for Wire {
    fn read(&mut self, into: &mut [u8]) -> Result<usize, LinkError> {
        let mut arriving = self.arriving.borrow_mut();
        let length = into.len().min(arriving.len());
        into.iter_mut().zip(arriving.drain(..length)).for_each(|(room, byte)| *room = byte);
        Ok(length)
    }

    fn write(&mut self, bytes: &[u8]) -> Result<usize, LinkError> {
        let length = bytes.len().min(self.takes.replace(0));
        self.leaving.borrow_mut().extend(&bytes[..length]);
        Ok(length)
    }
}

/// Two lines that are the ends of one wire, whose first end takes few bytes at a time.
fn ends() -> (SerialLine<Wire>, SerialLine<Wire>, Wire) {
    let one = Wire::default();
    let other =
        Wire { arriving: one.leaving.clone(), leaving: one.arriving.clone(), ..Wire::default() };
    (SerialLine::new(one.clone(), 64, 2), SerialLine::new(other, 64, 2), one)
}

fn all(line: &mut SerialLine<Wire>) -> Vec<Vec<u8>> {
    let mut into = [0; 64];
    let mut frames = Vec::new();
    while let Some((length, ())) = line.receive(&mut into).unwrap() {
        frames.push(into[..length].to_vec());
    }
    frames
}

#[test]
fn frames_cross_a_line_that_takes_a_few_bytes_at_a_time() {
    let (mut one, mut other, wire) = ends();
    one.send(&(), &[1, 0, 2]).unwrap();
    one.send(&(), &[0; 64]).unwrap();
    let mut arrived = Vec::new();
    while one.is_sending() {
        *wire.takes.borrow_mut() = 3;
        one.flush().unwrap();
        arrived.extend(all(&mut other));
    }
    assert_eq!(arrived, [vec![1, 0, 2], vec![0; 64]]);
}

#[test]
fn what_a_line_has_no_room_for_is_refused_and_what_is_damaged_isnt_handed_out() {
    let (mut one, mut other, wire) = ends();
    assert_eq!(one.send(&(), &[7; 65]), Err(LinkError::TooLong));
    one.send(&(), &[7; 64]).unwrap();
    one.send(&(), &[8; 64]).unwrap();
    assert_eq!(one.send(&(), &[9; 64]), Err(LinkError::Busy));
    *wire.takes.borrow_mut() = usize::MAX;
    one.flush().unwrap();
    *wire.takes.borrow_mut() = usize::MAX;
    one.flush().unwrap();
    wire.leaving.borrow_mut()[5] ^= 0x10;
    assert_eq!(all(&mut other), [vec![8; 64]]);
    assert_eq!(other.damaged(), 1);
}

#[test]
fn no_more_is_taken_from_a_port_than_the_frame_that_is_handed_out_and_a_part() {
    let (_, mut other, wire) = ends();
    let mut line = Vec::new();
    for number in 1..=40 {
        frame_for_serial(&[number; 64], &mut line);
    }
    wire.leaving.borrow_mut().extend(&line);
    let mut into = [0; 64];
    for number in 1..=40 {
        assert_eq!(other.receive(&mut into), Ok(Some((64, ()))));
        assert_eq!(into, [number; 64]);
        let taken = line.len() - wire.leaving.borrow().len();
        let handed_out = line.len() / 40 * usize::from(number);
        assert!(taken < handed_out + PART_BYTES, "{taken} bytes are taken for {handed_out}");
    }
    assert_eq!(other.receive(&mut into), Ok(None));
}
