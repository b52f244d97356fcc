//! Times on this machine. All subjects of a table take turns in one run; what is printed is the
//! median time of each, and the median over the turns of the ratio to ours.

use std::hint::black_box;
use std::time::Instant;

use aws_lc_rs::aead as aws;
use chacha20::cipher::{KeyIvInit, StreamCipher};
use chacha20poly1305::aead::{AeadInOut, KeyInit};
use dryoc::classic::crypto_aead_chacha20poly1305_ietf as dryoc_aead;
use ring::aead as ring_aead;
use tenure_bench_report::{Row, Rows};
use tenure_cipher::backend::available;
use tenure_cipher::{Form, Ietf};

use crate::foreign::{OpenSsl, OurLibrary, Sodium};

const TURNS: usize = 301;
const TURN_NS: u128 = 60_000;
const KEY: [u8; 32] = [7; 32];
const NONCE: [u8; 12] = [9; 12];

/// One contestant: encrypts a buffer once.
type Subject<'a> = (String, Box<dyn FnMut(&mut [u8]) + 'a>);

/// Every table of the host.
pub(crate) fn measure(rows: &mut Rows) {
    for len in [64, 1024, 16384] {
        rows.extend(table("chacha20", len, stream_subjects()));
    }
    for len in [64, 1024, 16384] {
        rows.extend(table("aead", len, aead_subjects()));
    }
}

fn stream_subjects<'a>() -> Vec<Subject<'a>> {
    let mut subjects: Vec<Subject<'a>> = vec![(
        "tenure".into(),
        Box::new(|data| {
            let mut stream = tenure_cipher::ChaCha20::with_key(black_box(&KEY), &NONCE);
            stream.xor(data).unwrap();
        }),
    )];
    for backend in available() {
        subjects.push((
            format!("tenure/{}", backend.name()),
            Box::new(move |data| {
                let state = Ietf::state::<10>(black_box(&KEY), &NONCE);
                backend.xor(&state, 10, data.as_chunks_mut().0);
            }),
        ));
    }
    if let Some(library) = OurLibrary::load() {
        subjects.push((
            "tenure/c".into(),
            Box::new(move |data| library.stream(black_box(&KEY), &NONCE, data)),
        ));
    }
    subjects.push((
        "chacha20".into(),
        Box::new(|data| {
            chacha20::ChaCha20::new(black_box(&KEY.into()), &NONCE.into()).apply_keystream(data);
        }),
    ));
    if let Some(mut openssl) = OpenSsl::load("EVP_chacha20") {
        subjects.push((
            "openssl".into(),
            Box::new(move |data| openssl.stream(black_box(&KEY), &[9; 16], data)),
        ));
    }
    if let Some(sodium) = Sodium::load() {
        subjects.push((
            "libsodium".into(),
            Box::new(move |data| sodium.stream(black_box(&KEY), &NONCE, data)),
        ));
    }
    subjects
}

fn aead_subjects<'a>() -> Vec<Subject<'a>> {
    let ours = tenure_cipher::ChaCha20Poly1305::with_key(&KEY);
    let mut subjects: Vec<Subject<'a>> = vec![(
        "tenure".into(),
        Box::new(move |data| {
            let _ = black_box(ours.seal(black_box(&NONCE), &[], data));
        }),
    )];
    for backend in available() {
        subjects.push((
            format!("tenure/{}", backend.name()),
            Box::new(move |data| {
                let state = Ietf::state::<10>(black_box(&KEY), &NONCE);
                black_box(backend.seal(&state, &[], data));
            }),
        ));
    }
    if let Some(library) = OurLibrary::load() {
        subjects.push((
            "tenure/c".into(),
            Box::new(move |data| {
                black_box(library.aead(&KEY, black_box(&NONCE), data));
            }),
        ));
    }
    let theirs = chacha20poly1305::ChaCha20Poly1305::new(&KEY.into());
    subjects.push((
        "chacha20poly1305".into(),
        Box::new(move |data| {
            let tag = theirs.encrypt_inout_detached(black_box(&NONCE.into()), &[], data.into());
            let _ = black_box(tag);
        }),
    ));
    let key = ring_aead::UnboundKey::new(&ring_aead::CHACHA20_POLY1305, &KEY).unwrap();
    let key = ring_aead::LessSafeKey::new(key);
    subjects.push((
        "ring".into(),
        Box::new(move |data| {
            let nonce = ring_aead::Nonce::assume_unique_for_key(black_box(NONCE));
            let tag = key.seal_in_place_separate_tag(nonce, ring_aead::Aad::empty(), data);
            let _ = black_box(tag);
        }),
    ));
    let key = aws::UnboundKey::new(&aws::CHACHA20_POLY1305, &KEY).unwrap();
    let key = aws::LessSafeKey::new(key);
    subjects.push((
        "aws-lc-rs".into(),
        Box::new(move |data| {
            let nonce = aws::Nonce::assume_unique_for_key(black_box(NONCE));
            let _ = black_box(key.seal_in_place_separate_tag(nonce, aws::Aad::empty(), data));
        }),
    ));
    subjects.push((
        "dryoc".into(),
        Box::new(|data| {
            let mut tag = [0; 16];
            let sealed = dryoc_aead::crypto_aead_chacha20poly1305_ietf_encrypt_detached_inplace(
                data,
                &mut tag,
                None,
                black_box(&NONCE),
                &KEY,
            );
            let _ = black_box((sealed, tag));
        }),
    ));
    if let Some(mut openssl) = OpenSsl::load("EVP_chacha20_poly1305") {
        subjects.push((
            "openssl".into(),
            Box::new(move |data| {
                black_box(openssl.aead(&KEY, black_box(&NONCE), data));
            }),
        ));
    }
    if let Some(sodium) = Sodium::load() {
        subjects.push((
            "libsodium".into(),
            Box::new(move |data| {
                black_box(sodium.aead(&KEY, black_box(&NONCE), data));
            }),
        ));
    }
    subjects
}

fn table(what: &str, len: usize, mut subjects: Vec<Subject<'_>>) -> Vec<Row> {
    let mut data = vec![0u8; len];
    // How often one fits a turn, from its second run on.
    let repeats: Vec<u32> = subjects
        .iter_mut()
        .map(|(_, work)| {
            work(&mut data);
            let start = Instant::now();
            (0..10).for_each(|_| work(&mut data));
            let one = (start.elapsed().as_nanos() / 10).max(1);
            (TURN_NS / one).clamp(1, 100_000) as u32
        })
        .collect();
    let mut times = vec![Vec::with_capacity(TURNS); subjects.len()];
    for _ in 0..TURNS {
        for (((_, work), repeats), times) in subjects.iter_mut().zip(&repeats).zip(&mut times) {
            let start = Instant::now();
            (0..*repeats).for_each(|_| work(black_box(&mut data)));
            times.push(start.elapsed().as_nanos() as f64 / f64::from(*repeats));
        }
    }
    let row = |subject: &str, metric: &str, unit, value| Row {
        bench: format!("cipher/{what}/{len}"),
        target: "host".into(),
        subject: subject.into(),
        metric: metric.into(),
        unit,
        value,
    };
    let mut rows = Vec::new();
    for ((name, _), theirs) in subjects.iter().zip(&times) {
        rows.push(row(name, "time", "ns/byte", median(theirs.iter().copied()) / len as f64));
        let ratio = median(times[0].iter().zip(theirs).map(|(ours, theirs)| ours / theirs));
        rows.push(row(name, "tenure's time over its own", "ratio", ratio));
    }
    rows
}

fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}
