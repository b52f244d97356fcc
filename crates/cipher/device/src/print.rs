//! Lines of text and numbers, without the formatting machinery.

use crate::machine;

/// Prints the words one after the other, then each number after a space.
pub fn line(words: &[&str], numbers: &[u32]) {
    for word in words {
        machine::write(word.as_bytes());
    }
    for number in numbers {
        machine::write(b" ");
        decimal(*number);
    }
    machine::write(b"\n");
}

fn decimal(number: u32) {
    let mut digits = [0; 10];
    let mut rest = number;
    let mut start = digits.len();
    loop {
        start -= 1;
        digits[start] = b'0' + (rest % 10) as u8;
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    machine::write(&digits[start..]);
}
