//! Entries as this version writes them: a later build repeats a run from these bytes.

use tenure_testbed::frozen;

use super::*;

/// The bytes of a record that holds each kind of entry and input once.
fn record() -> Vec<u8> {
    let when = When { now_us: 1_000_000, unix_s: Some(1_800_000_000) };
    let socket = ([10, 0, 0, 2], 7272).into();
    let inputs = [
        Noted::Turn,
        Noted::Time,
        Noted::Datagram { from: Address::Udp(socket), bytes: b"datagram" },
        Noted::Frame { bytes: b"frame", signal_dbm: Some(-60) },
        Noted::Undelivered([6; 6]),
        Noted::Knock,
        Noted::Owner { function: "status", request: &[1] },
        Noted::Install { package: b"package", placement: b"placement" },
        Noted::Checkpoint,
        Noted::WillSleepUntil(2_000_000),
        Noted::FallAsleep,
        Noted::Neighbour(Address::Udp(socket)),
    ];
    let readings = || {
        let published = Reading::Published { part: "t".into(), bytes: vec![21] };
        vec![published, Reading::Polled { name: "t".into(), next_us: Some(3) }]
    };
    let takes = inputs.map(|input| Entry::Take {
        when,
        input,
        entropy: &[7; 4],
        readings: readings(),
        taken: 8,
    });
    let outlets = [
        NotedOutlet::Datagrams,
        NotedOutlet::Frames,
        NotedOutlet::Notices,
        NotedOutlet::Restart,
        NotedOutlet::Bedtime,
    ];
    let gives = outlets.map(|outlet| Entry::Give { outlet, digest: Some(9) });
    let begin = [
        Entry::Settings(b"settings"),
        Entry::Flash { part: 0, sector_bytes: 4096, sector_count: 8, program_bytes: 4 },
        Entry::Sector { part: 0, number: 1, bytes: b"sector" },
        Entry::Boot { when, entropy: &[1; 4] },
        Entry::Attach { now_us: 5, name: "thermometer" },
    ];
    let end = [Entry::End { flash: 10 }];
    let entries = begin.into_iter().chain(takes).chain(gives).chain(end);
    let mut bytes = MAGIC.to_vec();
    for entry in entries {
        let entry = postcard::to_allocvec(&entry).unwrap();
        bytes.extend((entry.len() as u32).to_le_bytes());
        bytes.extend(entry);
    }
    bytes
}

#[test]
fn record_of_version_1_is_written_and_each_entry_read() {
    let bytes = frozen(env!("CARGO_MANIFEST_DIR"), "record-1", &record());
    let mut rest = bytes.strip_prefix(&MAGIC).unwrap();
    let mut entries = 0;
    while let Some((length, behind)) = rest.split_first_chunk() {
        let (entry, behind) = behind.split_at(u32::from_le_bytes(*length) as usize);
        let read: Entry<'_> = postcard::from_bytes(entry).unwrap();
        assert_eq!(postcard::to_allocvec(&read).unwrap(), entry);
        entries += 1;
        rest = behind;
    }
    assert_eq!(entries, 5 + 12 + 5 + 1);
}
