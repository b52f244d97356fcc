use alloc::vec;

use tenure_hal::simulated::Sequence;
use tenure_journal::{Mark, Record};
use tenure_testbed::frozen;

use super::*;

fn key(number: u8) -> SigningKey {
    SigningKey::from_bytes(&[number; 32])
}

fn page(number: u64) -> Vec<u8> {
    let mark = Mark { turns: number, total: 100 * number, ..Mark::default() };
    Page { number, start: None, records: vec![Record::Unix(7), Record::Mark(mark)] }
        .to_bytes()
        .unwrap()
}

/// A journal of those pages, chained and signed.
fn journal(device: &SigningKey, pages: Vec<Vec<u8>>) -> Journal {
    let machine = MachineId([4; 12]);
    let device_key = device.verifying_key();
    let mut journal =
        Journal { device: device_key, machine, previous: NO_PAGES, pages, head: Vec::new() };
    sign(&mut journal, device);
    journal
}

fn sign(journal: &mut Journal, device: &SigningKey) {
    let head = journal.heads().last().copied().unwrap_or(journal.previous);
    let pages = journal.pages.len() as u64;
    let signed = JournalHead { machine: journal.machine, pages, head }.sign(device);
    journal.head = signed.unwrap();
}

fn refused(journal: &Journal) -> JournalError {
    Journal::parse(&journal.to_bytes().unwrap()).unwrap_err()
}

#[test]
fn journal_of_version_1_is_written_and_read() {
    let written = journal(&key(3), vec![page(0), page(1)]);
    let mut bytes = frozen(env!("CARGO_MANIFEST_DIR"), "journal-1", &written.to_bytes().unwrap());
    assert_eq!(Journal::parse(&bytes), Ok(written.clone()));
    let _ = frozen(env!("CARGO_MANIFEST_DIR"), "journal-head-1", &written.head);
    bytes[7] += 1;
    assert_eq!(Journal::parse(&bytes), Err(JournalError::FormatVersion));
    bytes[0] += 1;
    assert_eq!(Journal::parse(&bytes), Err(JournalError::NotAJournal));
}

#[test]
fn journal_that_is_cut_reordered_altered_or_anothers_is_refused_by_name() {
    let whole = journal(&key(3), vec![page(0), page(1), page(2)]);
    let bytes = whole.to_bytes().unwrap();
    assert_eq!(Journal::parse(&bytes[..bytes.len() - 1]), Err(JournalError::Form));
    let mut cut = whole.clone();
    cut.pages.pop();
    assert_eq!(refused(&cut), JournalError::Cut { pages: 3 });
    let longest = journal(&key(3), (0..PAGES_MAX as u64).map(page).collect());
    assert!(Journal::parse(&longest.to_bytes().unwrap()).is_ok());
    let longer = journal(&key(3), (0..=PAGES_MAX as u64).map(page).collect());
    assert_eq!(refused(&longer), JournalError::TooLong);
    let mut reordered = whole.clone();
    reordered.pages.swap(1, 2);
    assert_eq!(refused(&reordered), JournalError::Order { expected: 1, found: 2 });
    let mut missing = whole.clone();
    missing.pages.remove(1);
    assert_eq!(refused(&missing), JournalError::Order { expected: 1, found: 2 });
    let mut altered = whole.clone();
    let mark = Mark { turns: 1, total: 99, ..Mark::default() };
    altered.pages[1] =
        Page { number: 1, start: None, records: vec![Record::Mark(mark)] }.to_bytes().unwrap();
    assert_eq!(refused(&altered), JournalError::Chain);
    let mut elsewhere = whole.clone();
    elsewhere.device = key(5).verifying_key();
    assert_eq!(refused(&elsewhere), JournalError::OtherDevice);
    let mut of_another = whole.clone();
    of_another.machine = MachineId([5; 12]);
    assert_eq!(refused(&of_another), JournalError::OtherMachine);
    let mut forged = whole.clone();
    sign(&mut forged, &key(5));
    assert_eq!(refused(&forged), JournalError::OtherDevice);
    let mut damaged = whole;
    damaged.pages[2].push(0);
    let place = 2;
    assert_eq!(refused(&damaged), JournalError::Page { place, error: PageError::Malformed });
}

#[test]
fn journal_whose_first_pages_were_fetched_before_goes_on_and_its_very_first_page_has_nothing_before_it()
 {
    let device = key(3);
    let later = |number: u64, previous: Digest| {
        let mut journal = journal(&device, vec![page(number), page(number + 1)]);
        journal.previous = previous;
        let head = journal.heads().last().copied().unwrap();
        let signed = JournalHead { machine: journal.machine, pages: number + 2, head };
        journal.head = signed.sign(&device).unwrap();
        journal
    };
    let goes_on = later(5, Digest([6; 32]));
    assert_eq!(Journal::parse(&goes_on.to_bytes().unwrap()), Ok(goes_on));
    assert_eq!(refused(&later(0, Digest([6; 32]))), JournalError::Chain);
    // What began anew behind pages that are gone is no journal's beginning either.
    assert_eq!(Journal::parse(&later(0, NO_PAGES).to_bytes().unwrap()).map(drop), Ok(()));
}

#[test]
fn each_byte_of_a_journal_counts() {
    let bytes = journal(&key(3), vec![page(0), page(1)]).to_bytes().unwrap();
    for at in 0..bytes.len() {
        let mut changed = bytes.clone();
        changed[at] ^= 1;
        assert!(Journal::parse(&changed).is_err(), "byte {at}");
    }
}

fn query(key: PublicKey) -> JournalQuery {
    let device = self::key(3).verifying_key();
    JournalQuery { device, machine: "meter".parse().unwrap(), key }
}

#[test]
fn journal_query_of_version_1_is_written_and_read() {
    let query = query(PublicKey([9; 32]));
    let signed = query.sign(&key(2)).unwrap();
    let bytes = frozen(env!("CARGO_MANIFEST_DIR"), "journal-query-1", &signed);
    assert_eq!(JournalQuery::verify(&bytes), Ok((query, key(2).verifying_key())));
    let from = JournalPlace { page: 300, offset: 7 };
    let request = JournalRequest { query: bytes, from };
    assert_eq!(JournalRequest::from_bytes(&request.to_bytes().unwrap()), Ok(request));
}

#[test]
fn piece_opens_for_the_question_that_it_answers_and_no_other() {
    let secret = StaticSecret::from_bytes(&[9; 32]);
    let (query, tenant) = (query(secret.public_key()), key(2).verifying_key());
    let piece = JournalPiece {
        machine: MachineId([4; 12]),
        page: 4,
        previous: Digest([6; 32]),
        page_bytes: 3,
        bytes: vec![1, 2, 3],
        head: Vec::new(),
        pages: 5,
    };
    let from = JournalPlace { page: 4, offset: 0 };
    let sealed = SealedPiece::seal(&mut Sequence(1), (&query, &tenant), from, &piece).unwrap();
    assert_eq!(sealed.open((&query, &tenant), from, &secret), Ok(piece));
    let next = JournalPlace { page: 5, offset: 0 };
    assert_eq!(sealed.open((&query, &tenant), next, &secret), Err(JournalError::Sealed));
    let stranger = StaticSecret::from_bytes(&[8; 32]);
    assert_eq!(sealed.open((&query, &tenant), from, &stranger), Err(JournalError::Sealed));
}
