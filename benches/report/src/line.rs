//! Lines of text and numbers, without the formatting machinery.

/// Hands `write` the words one after the other, then each number after a space, and ends the line.
pub fn line(write: impl Fn(&[u8]), words: &[&str], numbers: &[u32]) {
    for word in words {
        write(word.as_bytes());
    }
    for number in numbers {
        write(b" ");
        decimal(&write, *number);
    }
    write(b"\n");
}

fn decimal(write: impl Fn(&[u8]), number: u32) {
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
    write(&digits[start..]);
}

#[cfg(all(test, feature = "std"))]
mod tests {
    use std::{cell::RefCell, string::String};

    #[test]
    fn words_are_joined_and_numbers_parted() {
        let text = RefCell::new(String::new());
        let write = |bytes: &[u8]| text.borrow_mut().push_str(str::from_utf8(bytes).unwrap());
        super::line(write, &["count ", "x"], &[0, 10, u32::MAX]);
        assert_eq!(text.into_inner(), "count x 0 10 4294967295\n");
    }
}
