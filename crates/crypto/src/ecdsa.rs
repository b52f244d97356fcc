//! Signatures of ECDSA as X.509 and TLS have them: two numbers in DER.

use crate::SecurityError;

const SEQUENCE: u8 = 0x30;
const INTEGER: u8 = 0x02;

/// Reads the two numbers of an `ECDSA-Sig-Value` (RFC 3279 §2.2.3), each into one half of `numbers`. All
/// lengths take one byte: those of P-384 end at 104.
pub(crate) fn read_der(signature: &[u8], numbers: &mut [u8]) -> Result<(), SecurityError> {
    let [SEQUENCE, length @ 0..=0x7f, rest @ ..] = signature else {
        return Err(SecurityError::BadSignature);
    };
    if usize::from(*length) != rest.len() {
        return Err(SecurityError::BadSignature);
    }
    let half = numbers.len() / 2;
    let mut rest = rest;
    for number in numbers.chunks_exact_mut(half) {
        let [INTEGER, length @ 1..=0x7f, after @ ..] = rest else {
            return Err(SecurityError::BadSignature);
        };
        let split = after.split_at_checked(usize::from(*length));
        let (bytes, after) = split.ok_or(SecurityError::BadSignature)?;
        let bytes = match bytes {
            // Positive, and in the shortest form.
            [0x80..=0xff, ..] | [0, 0..=0x7f, ..] => return Err(SecurityError::BadSignature),
            [0, digits @ ..] => digits,
            digits => digits,
        };
        let start = half.checked_sub(bytes.len()).ok_or(SecurityError::BadSignature)?;
        number[..start].fill(0);
        number[start..].copy_from_slice(bytes);
        rest = after;
    }
    if rest.is_empty() { Ok(()) } else { Err(SecurityError::BadSignature) }
}

/// Writes an `ECDSA-Sig-Value` of two numbers to the front of `into`, and returns its length.
pub(crate) fn write_der(numbers: [&[u8]; 2], into: &mut [u8]) -> Result<usize, SecurityError> {
    let mut end = 2;
    for number in numbers {
        let zeros = number.iter().take_while(|byte| **byte == 0).count();
        let digits = &number[zeros..];
        // A zero keeps it positive.
        let sign = usize::from(digits.first().is_none_or(|first| *first >= 0x80));
        let length = sign + digits.len();
        let place = into.get_mut(end..end + 2 + length).ok_or(SecurityError::BufferTooSmall)?;
        place[..2].copy_from_slice(&[INTEGER, length as u8]);
        place[2..2 + sign].fill(0);
        place[2 + sign..].copy_from_slice(digits);
        end += 2 + length;
    }
    into[..2].copy_from_slice(&[SEQUENCE, (end - 2) as u8]);
    Ok(end)
}
