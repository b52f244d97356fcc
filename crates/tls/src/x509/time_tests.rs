//! Dates as certificates write them.

use super::*;

fn read(tag: u8, text: &str) -> Result<UnixTime, CertificateError> {
    let der = [&[tag, text.len() as u8], text.as_bytes()].concat();
    UnixTime::read(&mut Der::new(&der))
}

#[test]
fn dates_of_both_kinds_are_seconds_since_1970() {
    for (tag, text, seconds) in [
        (UTC_TIME, "700101000000Z", 0),
        (UTC_TIME, "500101000000Z", -631_152_000),
        (UTC_TIME, "000229000000Z", 951_782_400),
        (UTC_TIME, "491231235959Z", 2_524_607_999),
        (GENERALIZED_TIME, "20500101000000Z", 2_524_608_000),
        (GENERALIZED_TIME, "99991231235959Z", 253_402_300_799),
    ] {
        assert_eq!(read(tag, text), Ok(UnixTime(seconds)), "{text}");
    }
}

#[test]
fn dates_that_do_not_exist_are_refused() {
    for (tag, text) in [
        (UTC_TIME, "000230000000Z"),
        (UTC_TIME, "010229000000Z"),
        (UTC_TIME, "001301000000Z"),
        (UTC_TIME, "000100000000Z"),
        (UTC_TIME, "000101240000Z"),
        (UTC_TIME, "000101006000Z"),
        (UTC_TIME, "0001010000Z"),
        (UTC_TIME, "000101000000+"),
        (UTC_TIME, "0001010000+0Z"),
        (GENERALIZED_TIME, "20500101000000.5Z"),
        (GENERALIZED_TIME, "2050010100000Z"),
    ] {
        assert_eq!(read(tag, text), Err(CertificateError::Malformed), "{text}");
    }
}
