//! Settings, papers and pauses of a publisher.

use alloc::format;
use alloc::string::{String, ToString as _};
use alloc::vec::Vec;
use core::net::Ipv4Addr;
use core::time::Duration;

use tenure_crypto::SecurityError;
use tenure_crypto::element::simulated::SimulatedChip;
use tenure_crypto::element::{ADDRESS, Chip, POINT_BYTES};
use tenure_hal::simulated::Random;

use super::back_off::BackOff;
use super::credentials::{Certificates, Credentials};
use super::desk::degrees;
use super::pem::Pem;
use super::{BrokerHost, ElementPlace, Papers, PublisherError, PublisherSettings, SLOT};
use crate::settings::SettingsError;

fn parse(text: &str) -> Result<PublisherSettings, SettingsError> {
    let mut sector = text.as_bytes().to_vec();
    sector.resize(4096, 0xFF);
    PublisherSettings::parse(&sector)
}

#[test]
fn settings_of_a_publisher_with_its_broker_alone_have_defaults() {
    let settings = parse("name=attic\nbroker=broker.test\n").ok().unwrap();
    assert_eq!(settings.host, BrokerHost::Name("broker.test".into()));
    assert_eq!((settings.port, settings.period), (8883, Duration::from_secs(10)));
    assert!(settings.date.is_none() && settings.broker_key.is_none() && settings.dns.is_none());
    assert_eq!(settings.element, ElementPlace::I2c);
}

#[test]
fn settings_of_a_publisher_with_every_line_are_read() {
    let text = "name=attic\nbroker=10.0.2.2:1\ndns=10.0.2.3\ndate=1795000000\nbroker-key=3059aF\nperiod=0.5\n\
                user=a b\npassword=c=d\nelement=line\n";
    let settings = parse(text).ok().unwrap();
    let address = Ipv4Addr::new(10, 0, 2, 2);
    assert_eq!((settings.host, settings.port), (BrokerHost::Address(address), 1));
    assert_eq!(settings.dns, Some(Ipv4Addr::new(10, 0, 2, 3)));
    assert_eq!(settings.date, Some(1_795_000_000));
    assert_eq!(settings.broker_key, Some([0x30, 0x59, 0xAF].to_vec()));
    assert_eq!(settings.period, Duration::from_millis(500));
    assert_eq!((settings.user, settings.password), (Some("a b".into()), Some("c=d".into())));
    assert_eq!(settings.element, ElementPlace::Line);
}

#[test]
fn a_line_of_a_publishers_settings_that_is_wrong_is_named() {
    let cases = [
        ("name", ""),
        ("broker", "broker.test:0"),
        ("broker", "broker.test:x"),
        ("broker", "mqtts://broker.test"),
        ("broker", ""),
        ("dns", "resolver.test"),
        ("date", "2026-11-27"),
        ("broker-key", "305"),
        ("broker-key", "30x9"),
        ("period", "0"),
        ("element", "spi"),
    ];
    for (key, value) in cases {
        let rest = [("name", "name=attic\n"), ("broker", "broker=broker.test\n")];
        let rest = rest.iter().filter(|(other, _)| *other != key).map(|(_, line)| *line);
        let text = rest.collect::<Vec<_>>().concat() + &format!("{key}={value}\n");
        assert_eq!(parse(&text).err(), Some(SettingsError::Wrong(key)), "{value}");
    }
    assert_eq!(parse("name=attic\n").err(), Some(SettingsError::Missing("broker")));
}

#[test]
fn pauses_double_up_to_a_minute_and_a_quarter_of_them_is_chance() {
    let mut back_off = BackOff::default();
    let pauses: Vec<u64> = (0..9).map(|_| back_off.next(0).as_secs()).collect();
    assert_eq!(pauses, [1, 2, 4, 8, 16, 32, 64, 64, 64]);
    let longest = back_off.next(u8::MAX);
    assert!(longest > Duration::from_secs(79) && longest < Duration::from_secs(80), "{longest:?}");
}

#[test]
fn certificates_end_where_the_flash_is_erased_or_they_are_cut_off() {
    let certificate = |fill: u8| [&[0x30, 0x82, 1, 0][..], &[fill; 256]].concat();
    let both = [certificate(1), certificate(2)];
    let mut flash = both.concat();
    flash.resize(2048, 0xFF);
    assert_eq!(Certificates(&flash).collect::<Vec<_>>(), both);
    assert_eq!(Certificates(&flash[..400]).collect::<Vec<_>>(), both[..1]);
    assert_eq!(Certificates(&[0xFF; 100]).count(), 0);
    assert_eq!(Certificates(b"-----BEGIN CERTIFICATE-----").count(), 0);
    assert_eq!(Certificates(&[]).count(), 0);
}

/// The second key of RFC 6979 A.2.5, as OpenSSL writes it.
#[test]
fn public_keys_are_shown_as_openssl_writes_them() {
    let coordinates = [
        "60FED4BA255A9D31C961EB74C6356D68C049B8923B61FA6CE669622E60F29FB6",
        "7903FE1008B8BC99A41AE9E95628BC64F2F1B20C2D7E9F5177A3C294D4462299",
    ]
    .concat();
    let (pairs, _) = coordinates.as_bytes().as_chunks::<2>();
    let digit = |byte: u8| char::from(byte).to_digit(16).unwrap() as u8;
    let point: Vec<u8> = pairs.iter().map(|[high, low]| digit(*high) << 4 | digit(*low)).collect();
    let expected = "-----BEGIN PUBLIC KEY-----\n\
        MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEYP7UuiVanTHJYet0xjVtaMBJuJI7\n\
        Yfps5mliLmDyn7Z5A/4QCLi8maQa6elWKLxk8vGyDC1+n1F3o8KU1EYimQ==\n\
        -----END PUBLIC KEY-----";
    assert_eq!(Pem(&point.try_into().unwrap()).to_string(), expected);
}

#[test]
fn degrees_have_their_sign_and_three_digits_behind_the_point() {
    let shown = [21_500, 7, -3_500, -20, 0].map(degrees);
    assert_eq!(shown, ["21.500", "0.007", "-3.500", "-0.020", "0.000"]);
}

fn chip() -> Chip<SimulatedChip<Random>> {
    Chip::new(SimulatedChip::new(Random::new(1)), ADDRESS)
}

/// A certificate for the key with these coordinates, which nobody signed.
fn certificate(point: &[u8; POINT_BYTES]) -> &'static [u8] {
    fn der(tag: u8, parts: &[&[u8]]) -> Vec<u8> {
        let content = parts.concat();
        let length = content.len();
        let length = match length {
            0..128 => [length as u8].to_vec(),
            128..256 => [0x81, length as u8].to_vec(),
            _ => [0x82, (length >> 8) as u8, length as u8].to_vec(),
        };
        [&[tag][..], &length, &content].concat()
    }
    let oid = |bytes: &[u8]| der(6, &[bytes]);
    let algorithm = der(0x30, &[&oid(&[0x2a, 0x86, 0x48, 0xce, 0x3d, 4, 3, 2])]);
    let text = der(0x0c, &[&[b'a'; 40]]);
    let name = der(0x30, &[&der(0x31, &[&der(0x30, &[&oid(&[0x55, 4, 3]), &text])])]);
    let date = |text: &[u8]| der(0x17, &[text]);
    let validity = der(0x30, &[&date(b"260101000000Z"), &date(b"270101000000Z")]);
    let curve = oid(&[0x2a, 0x86, 0x48, 0xce, 0x3d, 3, 1, 7]);
    let kind = der(0x30, &[&oid(&[0x2a, 0x86, 0x48, 0xce, 0x3d, 2, 1]), &curve]);
    let key = der(0x30, &[&kind, &der(3, &[&[0, 4], point])]);
    let version = der(0xa0, &[&der(2, &[&[2]])]);
    let signed =
        der(0x30, &[&version, &der(2, &[&[1]]), &algorithm, &name, &validity, &name, &key]);
    der(0x30, &[&signed, &algorithm, &der(3, &[&[0; 20]])]).leak()
}

fn papers(chain: &'static [u8], authorities: &'static [u8]) -> Papers {
    Papers { settings: &[], authorities, chain }
}

fn read(
    chip: &mut Chip<SimulatedChip<Random>>,
    papers: &Papers,
    settings: &str,
) -> (Option<PublisherError>, String) {
    let settings = parse(&format!("name=attic\nbroker=broker.test\n{settings}")).ok().unwrap();
    let mut shown = String::new();
    (Credentials::read(papers, &settings, chip, &mut shown).err(), shown)
}

#[test]
fn key_without_a_certificate_is_made_once_and_shown_each_time() {
    let mut chip = chip();
    let blank = papers(&[0xFF; 9], &[]);
    let first = read(&mut chip, &blank, "");
    assert_eq!(first.0, Some(PublisherError::NoCertificate));
    assert!(first.1.starts_with("-----BEGIN PUBLIC KEY-----\n"), "{}", first.1);
    assert_eq!(read(&mut chip, &blank, ""), first);
}

#[test]
fn key_with_a_certificate_is_never_made_anew() {
    let mut first = chip();
    let certified = first.make_key(SLOT).unwrap();
    let own = papers(certificate(&certified), &[]);
    assert_eq!(read(&mut first, &own, "broker-key=3059\n"), (None, String::new()));
    // Another element, which has none.
    let mut second = chip();
    let lacking = Some(PublisherError::NoKey(SecurityError::Hardware));
    assert_eq!(read(&mut second, &own, "broker-key=3059\n"), (lacking, String::new()));
    assert!(second.public_key(SLOT).is_err());
    // Another key in the same one.
    let replaced = first.make_key(SLOT).unwrap();
    let (error, shown) = read(&mut first, &own, "broker-key=3059\n");
    assert_eq!((error, shown), (Some(PublisherError::OtherKey), format!("{}\n", Pem(&replaced))));
}

#[test]
fn broker_is_trusted_by_an_authority_with_a_date_or_by_its_key_and_else_not() {
    let mut chip = chip();
    let own = certificate(&chip.make_key(SLOT).unwrap());
    let cases = [
        (own, "date=1795000000\n", None),
        (own, "", Some(PublisherError::NoTrust)),
        (&[], "date=1795000000\n", Some(PublisherError::NoTrust)),
        (&[], "broker-key=3059\n", None),
    ];
    for (authorities, settings, expected) in cases {
        assert_eq!(read(&mut chip, &papers(own, authorities), settings).0, expected, "{settings}");
    }
}
