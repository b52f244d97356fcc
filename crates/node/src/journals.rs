//! Journals of machines as the node keeps them: for each a ring of pages, chained, in the sealed tree.
//!
//! The kernel writes pages; here each is bound to the one before, written to flash on its machine's bill, and dropped once
//! the ring has no room for it. What is dropped goes from one state of the machine to the next, so that what stays can be
//! replayed. A tenant fetches pages by signed questions, and the answers are sealed to the tenant.
//!
//! Invariants:
//! - Pages in flash have numbers without a gap, and the first of them begins with the machine's state.
//! - A page that doesn't find room, in the store or in the machine's budget of flash, isn't kept in part: the journal ends
//!   there, and begins anew at the next checkpoint.

use alloc::boxed::Box;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use litemap::LiteMap;

use serde::{Deserialize, Serialize};
use tenure_crypto::sha256;
use tenure_hal::{Flash, Instant};
use tenure_kernel::{JournalPage, MachineJournals};
use tenure_package::{
    Commitment, JournalError, JournalHead, JournalPiece, JournalQuery, JournalRequest, NO_PAGES,
    SealedPiece, head_after,
};
use tenure_store::{SEAL_BYTES, ValueKind};
use tenure_wire::control::{Answer, ControlError, JournalKeep};
use tenure_wire::limits::PARAMETER_BYTES_MAX;
use tenure_wire::{CodeKind, Digest, LogLevel, MachineId, Name, PublicKey, VerifyingKey};

use crate::moment::Moment;
use crate::secrets::Secrets;
use crate::services::Services;
use crate::trees::SEALED_TREE;

const JOURNALS_PATH: &str = "journals";
/// The version of the book of a journal. One of another version isn't guessed at: its journal begins anew.
const BOOK_VERSION: u8 = 1;
/// The largest ring of a journal, in bytes.
const RING_BYTES_MAX: u32 = 4 * 1024 * 1024;
/// Room that a ring has beside two states of its machine, in bytes.
const RING_BYTES_BESIDE: u32 = 4096;
/// How much longer the head of a journal's first page is than the machine's state, in bytes, at most.
const START_BYTES_BESIDE: u64 = 384;
/// The most pages in a ring, so that its book is one value of the store.
const PAGES_MAX: usize = 512;
/// How much of a page is one value of the store, in bytes.
const PART_BYTES: usize = 2048;
/// How long the record of a page that was written is, in bytes.
const CHARGE_BYTES: usize = 16;
/// The most bytes of a page in one answer.
const PIECE_BYTES_MAX: usize = PARAMETER_BYTES_MAX - 1024;

/// The journals of all machines that keep one.
#[derive(Debug, Default)]
pub(crate) struct Journals {
    books: LiteMap<MachineId, Box<Book>>,
    /// The last query whose signature was verified: its digest, itself, and the tenant who signed it. It comes with
    /// each piece.
    asked: Option<Box<(Digest, JournalQuery, VerifyingKey)>>,
}

/// The facts about a journal beside its pages.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Book {
    /// How long its pages may be together, in bytes.
    bytes_max: u32,
    /// The number of the next page.
    next: u64,
    /// The head after the last page.
    head: Digest,
    /// The digest of the machine's state when the period under way began.
    began: Option<Digest>,
    /// The pages in flash, the oldest first.
    pages: Vec<Kept>,
    /// Whether it waits for the next checkpoint to begin anew.
    #[serde(skip)]
    is_paused: bool,
    /// Why no page was kept the last time, if none was.
    #[serde(skip)]
    hindrance: Option<String>,
}

/// A page in flash.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Kept {
    /// How long it is, in bytes.
    bytes: u32,
    /// Whether it begins with the machine's state.
    is_start: bool,
}

impl Book {
    fn new(bytes_max: u32) -> Self {
        Self {
            bytes_max,
            next: 0,
            head: NO_PAGES,
            began: None,
            pages: Vec::new(),
            is_paused: false,
            hindrance: None,
        }
    }

    fn to_bytes(&self) -> Option<Vec<u8>> {
        postcard::to_extend(self, alloc::vec![BOOK_VERSION]).ok()
    }

    fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let (version, book) = bytes.split_first()?;
        let (book, rest) = postcard::take_from_bytes(book).ok()?;
        (*version == BOOK_VERSION && rest.is_empty()).then_some(book)
    }

    /// The number of the oldest page in flash.
    fn oldest(&self) -> u64 {
        self.next.saturating_sub(self.pages.len() as u64)
    }

    fn bytes(&self) -> u64 {
        self.pages.iter().map(|page| u64::from(page.bytes)).sum()
    }

    /// How many pages go if the oldest state of the machine does; `None` if there is no later one.
    fn oldest_stretch(&self) -> Option<usize> {
        let later = self.pages.iter().skip(1).position(|page| page.is_start)?;
        Some(later + 1)
    }

    /// How long the pages are from the last state of the machine on, in bytes.
    fn last_stretch_bytes(&self) -> u64 {
        let start = self.pages.iter().rposition(|page| page.is_start).unwrap_or(0);
        self.pages[start..].iter().map(|page| u64::from(page.bytes)).sum()
    }
}

/// Takes up the journals that machines of this device keep.
pub(crate) fn take_up<F: Flash>(services: &mut Services<F>) {
    let machines = services.kernel.machines().map(|info| info.id);
    for id in machines.collect::<Vec<_>>() {
        let stored = services.kernel.store().get(SEALED_TREE, &book_path(&id)).ok().flatten();
        if let Some(mut book) = stored.and_then(|value| Book::from_bytes(&value.bytes)) {
            drop_broken(services, &id, &mut book);
            services.journals.books.insert(id, Box::new(book));
        }
    }
}

/// Drops the oldest pages of a journal if the power was cut while the ring dropped them: the first one goes first.
fn drop_broken<F: Flash>(services: &mut Services<F>, id: &MachineId, book: &mut Book) {
    while let Some(oldest) = book.pages.first().copied() {
        let kept = page(services, id, book.oldest());
        if kept.is_some_and(|(_, bytes)| bytes.len() == oldest.bytes as usize) {
            break;
        }
        let count = book.oldest_stretch().unwrap_or(book.pages.len());
        drop_oldest(services, id, book, count);
    }
}

/// Keeps the pages that the kernel has ended, and has machines keep journals that should and don't: new versions of
/// machines, and all of them after a restart of the device.
pub(crate) fn attend<F: Flash>(services: &mut Services<F>, now: Instant) {
    while let Some(page) = MachineJournals::of(&mut services.kernel).take_page() {
        keep(services, now, &page);
    }
    let Services { journals, kernel, .. } = services;
    let mut kept = MachineJournals::of(kernel);
    for (id, book) in journals.books.iter_mut() {
        if !book.is_paused && !kept.keeps(*id) {
            // One that runs no wasm any more isn't asked again before the next checkpoint.
            book.is_paused = !kept.keep(*id, book.next);
        }
    }
}

/// Ends the pages under way and keeps them, and lets journals go on that waited for that.
pub(crate) fn checkpoint<F: Flash>(services: &mut Services<F>, now: Instant) {
    if services.journals.books.is_empty() {
        return;
    }
    let ids: Vec<MachineId> = services.journals.books.keys().copied().collect();
    for id in ids {
        // A page that says no more than that the one before was written isn't worth being written.
        if MachineJournals::of(&mut services.kernel).page_bytes(id) > CHARGE_BYTES {
            MachineJournals::of(&mut services.kernel).end_page(id, None, None);
        }
    }
    attend(services, now);
    for (_, book) in services.journals.books.iter_mut() {
        book.is_paused = false;
    }
}

/// The owner's word on a journal: how large it may be; 0 ends it and deletes it.
pub(crate) fn set<F: Flash>(
    services: &mut Services<F>,
    now: Instant,
    keep: &JournalKeep,
) -> Answer<()> {
    let name = &keep.machine;
    let found = services.kernel.machines().find(|info| info.record.name == *name);
    let id = found.ok_or_else(|| ControlError::NoSuchMachine(name.clone()))?.id;
    if keep.bytes == 0 {
        attend(services, now);
        MachineJournals::of(&mut services.kernel).drop(id);
        forget(services, &id);
        // Its last page belongs to no journal any more.
        attend(services, now);
        return Ok(());
    }
    if services.config.kernel.swap_bytes_max > 0 {
        return Err(ControlError::Refused(
            "this device moves machines out of its memory to make room for others, and keeps no journals"
                .to_string(),
        ));
    }
    if keep.bytes > RING_BYTES_MAX {
        return Err(ControlError::Full(alloc::format!(
            "a journal has at most {RING_BYTES_MAX} bytes here"
        )));
    }
    if services
        .kernel
        .machines()
        .any(|info| info.id == id && info.record.code != CodeKind::WebAssembly)
    {
        return Err(no_wasm());
    }
    check_room(services, &id, keep.bytes)?;
    let book = match services.journals.books.get(&id) {
        Some(book) => Box::new(Book { bytes_max: keep.bytes, ..Book::clone(book) }),
        None => Box::new(Book::new(keep.bytes)),
    };
    if !MachineJournals::of(&mut services.kernel).keep(id, book.next) {
        return Err(no_wasm());
    }
    keep_book(services, &id, &book)?;
    services.journals.books.insert(id, book);
    attend(services, now);
    Ok(())
}

fn no_wasm() -> ControlError {
    ControlError::Refused("only a machine that is run from its wasm keeps a journal".to_string())
}

/// Whether a ring of so many bytes can hold the machine's journal as the machine and the store are now.
fn check_room<F: Flash>(services: &mut Services<F>, id: &MachineId, bytes: u32) -> Answer<()> {
    let mut journals = MachineJournals::of(&mut services.kernel);
    let (state, memory) = (journals.state_bytes(*id), journals.memory_bytes(*id));
    let at_once = journals.flash_bytes_at_once(*id);
    // One that the vm doesn't hold yet may fill the memory with which it begins.
    let needed = ring_bytes_for(state.unwrap_or(memory) + START_BYTES_BESIDE);
    if needed > u64::from(RING_BYTES_MAX) {
        return Err(ControlError::Full(alloc::format!(
            "its journal needs at least {needed} bytes, and a journal has at most {RING_BYTES_MAX} here"
        )));
    }
    if needed > u64::from(bytes) {
        return Err(ControlError::Refused(alloc::format!(
            "its journal needs at least {needed} bytes: twice the machine's memory and tree, and the records"
        )));
    }
    if let Some(state) = state.filter(|state| *state > at_once) {
        return Err(ControlError::Refused(alloc::format!(
            "its journal begins with {state} bytes, and its budget of flash lets {at_once} be written at once"
        )));
    }
    let books = &services.journals.books;
    let held = books.get(id).map_or(0, |book| book.bytes());
    // The rings of others are promised whole, and not yet full.
    let others = books.iter().filter(|(other, _)| *other != id);
    let promised = others.map(|(_, book)| u64::from(book.bytes_max).saturating_sub(book.bytes()));
    let store = services.kernel.store().occupancy();
    let taken = store.charged_bytes + promised.sum::<u64>();
    let free = store.charge_bytes_max.saturating_sub(taken);
    if u64::from(bytes).saturating_sub(held) > free {
        return Err(ControlError::Full(alloc::format!(
            "the store has room for {} bytes of its journal",
            free + held
        )));
    }
    Ok(())
}

/// The smallest ring for a machine whose journal begins with that many bytes.
fn ring_bytes_for(start_bytes: u64) -> u64 {
    start_bytes * 2 + u64::from(RING_BYTES_BESIDE)
}

/// Ends the journal's page with the period of a receipt; returns what the receipt commits to, if the machine keeps a
/// journal.
pub(crate) fn commit<F: Flash>(
    services: &mut Services<F>,
    now: Instant,
    id: MachineId,
    receipt: u64,
) -> Option<Commitment> {
    services.journals.books.get(&id)?;
    if !MachineJournals::of(&mut services.kernel).keeps(id) {
        return None;
    }
    let state = MachineJournals::of(&mut services.kernel).state(id).map(|state| sha256(&[&state]));
    MachineJournals::of(&mut services.kernel).end_page(id, state, Some(receipt));
    attend(services, now);
    let book = services.journals.books.get(&id)?;
    Some(Commitment { head: book.head, pages: book.next, began: book.began, ended: state })
}

/// A period begins in which the machine had that state: the receipt of the one before was kept.
pub(crate) fn begin_period<F: Flash>(
    services: &mut Services<F>,
    id: &MachineId,
    state: Option<Digest>,
) {
    let Some(book) = services.journals.books.get_mut(id) else { return };
    book.began = state;
    let book = book.clone();
    // If the store has no room for it now, the next page writes it.
    let _ = keep_book(services, id, &book);
}

/// Deletes the journal of a machine.
pub(crate) fn forget<F: Flash>(services: &mut Services<F>, id: &MachineId) {
    if services.journals.books.remove(id).is_some() {
        let _ = services.kernel.store().delete(SEALED_TREE, &book_path(id));
    }
}

/// Answers a tenant's question for a piece of a journal.
pub(crate) fn piece<F: Flash>(
    services: &mut Services<F>,
    secrets: &mut Secrets,
    moment: &mut Moment<'_>,
    (caller, request): (&PublicKey, &[u8]),
) -> Answer<Vec<u8>> {
    let JournalRequest { query, from } = JournalRequest::from_bytes(request).map_err(refused)?;
    let (query, tenant) = verified(services, secrets, moment.now, (caller, &query))?;
    let id = machine_of(services, &query.machine, &tenant)?;
    let no_journal = || ControlError::Refused(alloc::format!("{} keeps no journal", query.machine));
    let book = services.journals.books.get(&id).ok_or_else(no_journal)?;
    let is_first = from.offset == 0 && from.page <= book.oldest();
    // A page that says no more than that the one before was written isn't worth being written.
    let has_more = book.pages.is_empty()
        || MachineJournals::of(&mut services.kernel).page_bytes(id) > CHARGE_BYTES;
    if is_first && has_more {
        // What is fetched goes up to now.
        let state =
            MachineJournals::of(&mut services.kernel).state(id).map(|state| sha256(&[&state]));
        MachineJournals::of(&mut services.kernel).end_page(id, state, None);
        attend(services, moment.now);
    }
    let book = services.journals.books.get(&id).ok_or_else(no_journal)?.clone();
    let number = from.page.max(book.oldest());
    let none_yet = || {
        ControlError::Refused(match &book.hindrance {
            Some(hindrance) => alloc::format!("the journal has no page {number}: {hindrance}"),
            None => alloc::format!("the journal has no page {number} yet"),
        })
    };
    if number >= book.next {
        return Err(none_yet());
    }
    let (previous, page) = page(services, &id, number).ok_or_else(|| {
        ControlError::Device(alloc::format!("page {number} of the journal can't be read"))
    })?;
    let rest = page.get(from.offset as usize..).ok_or_else(none_yet)?;
    let is_end = number + 1 == book.next && rest.len() <= PIECE_BYTES_MAX;
    let head = JournalHead { machine: id, pages: book.next, head: book.head };
    let head = match is_end {
        true => head.sign(services.identity.signing_key()).map_err(refused)?,
        false => Vec::new(),
    };
    let piece = JournalPiece {
        machine: id,
        page: number,
        previous,
        page_bytes: page.len() as u32,
        bytes: rest[..rest.len().min(PIECE_BYTES_MAX)].to_vec(),
        head,
        pages: book.next,
    };
    let sealed = SealedPiece::seal(moment.entropy, (&query, &tenant), from, &piece);
    let sealed = sealed.map_err(refused)?;
    postcard::to_allocvec(&sealed).map_err(|error| ControlError::Device(error.to_string()))
}

/// The query in `bytes`, and the tenant who signed it. That is verified once for all pieces.
fn verified<F: Flash>(
    services: &mut Services<F>,
    secrets: &mut Secrets,
    now: Instant,
    (caller, bytes): (&PublicKey, &[u8]),
) -> Answer<(JournalQuery, VerifyingKey)> {
    let digest = sha256(&[bytes]);
    if let Some(asked) = services.journals.asked.as_ref().filter(|asked| asked.0 == digest) {
        return Ok((asked.1.clone(), asked.2));
    }
    let signer = JournalQuery::signer(bytes).map_err(refused)?;
    if !services.kernel.machines().any(|info| info.record.tenant == signer) {
        return Err(ControlError::Refused("the tenant has no machine on this device".to_string()));
    }
    secrets.pay_verifications(services, now, (caller, 1))?;
    let (query, tenant) = JournalQuery::verify(bytes).map_err(refused)?;
    if query.device != services.identity.verifying_key() {
        return Err(ControlError::Refused("the question is for another device".to_string()));
    }
    services.journals.asked = Some(Box::new((digest, query.clone(), tenant)));
    Ok((query, tenant))
}

/// The tenant's machine of that name.
fn machine_of<F: Flash>(
    services: &Services<F>,
    name: &Name,
    tenant: &VerifyingKey,
) -> Answer<MachineId> {
    let found = services.kernel.machines().find(|info| info.record.name == *name);
    match found.map(|info| (info.id, info.record.tenant)) {
        Some((id, of)) if of == *tenant => Ok(id),
        _ => Err(ControlError::NoSuchMachine(name.clone())),
    }
}

/// Binds a page to the one before and writes it to flash.
fn keep<F: Flash>(services: &mut Services<F>, now: Instant, page: &JournalPage) {
    let (id, device) = (page.machine, services.identity.verifying_key());
    let Some(book) = services.journals.books.get(&id) else { return };
    // One that comes after a page that wasn't kept.
    if book.is_paused || page.number != book.next || (book.pages.is_empty() && !page.is_start) {
        return;
    }
    let (mut book, previous) = (book.clone(), book.head);
    book.head = head_after(&device, &id, &previous, &page.bytes);
    book.next += 1;
    book.pages.push(Kept { bytes: page.bytes.len() as u32, is_start: page.is_start });
    // The room beside two states is for what the machine has in hand since the owner's word was taken.
    let start_bytes = page.bytes.len().saturating_sub(page.record_bytes) as u64;
    if page.is_start && start_bytes * 2 > u64::from(book.bytes_max) {
        let wanted = ring_bytes_for(start_bytes);
        let message = alloc::format!("its journal needs at least {wanted} bytes, and isn't kept");
        pause(services, now, &id, message);
        return;
    }
    let stored = [&previous.0[..], &page.bytes[..]].concat();
    if !services.kernel.spend_flash(now, id, stored.len()) {
        pause(services, now, &id, "its budget of flash has no room for its journal".to_string());
        return;
    }
    if !write_page(services, &id, page.number, &stored) {
        let _ = services.kernel.store().delete(SEALED_TREE, &page_path(&id, page.number));
        pause(services, now, &id, "the store has no room for its journal".to_string());
        return;
    }
    while book.bytes() > u64::from(book.bytes_max) || book.pages.len() > PAGES_MAX {
        let Some(count) = book.oldest_stretch() else { break };
        drop_oldest(services, &id, &mut book, count);
    }
    if book.last_stretch_bytes() > u64::from(book.bytes_max) / 2
        || book.pages.len() > PAGES_MAX / 2
            && book.pages.iter().rposition(|page| page.is_start).unwrap_or(0) == 0
    {
        MachineJournals::of(&mut services.kernel).renew(id);
    }
    book.hindrance = None;
    // If the store has no room for it now, the next page writes it.
    let _ = keep_book(services, &id, &book);
    services.journals.books.insert(id, book);
}

/// Drops that many of a journal's oldest pages, the first one first.
fn drop_oldest<F: Flash>(
    services: &mut Services<F>,
    id: &MachineId,
    book: &mut Book,
    count: usize,
) {
    for number in (book.oldest()..).take(count) {
        let _ = services.kernel.store().delete(SEALED_TREE, &page_path(id, number));
    }
    book.pages.drain(..count);
}

/// Ends a journal until the next checkpoint, and says so in the machine's log, once for each reason.
fn pause<F: Flash>(services: &mut Services<F>, now: Instant, id: &MachineId, why: String) {
    let mut journals = MachineJournals::of(&mut services.kernel);
    journals.drop(*id);
    let Some(book) = services.journals.books.get_mut(id) else { return };
    book.is_paused = true;
    if book.hindrance.as_ref() != Some(&why) {
        journals.remark(now, *id, LogLevel::Warning, &alloc::format!("no journal: {why}"));
        book.hindrance = Some(why);
    }
}

fn write_page<F: Flash>(
    services: &mut Services<F>,
    id: &MachineId,
    number: u64,
    stored: &[u8],
) -> bool {
    let parent = page_path(id, number);
    let store = services.kernel.store();
    // A page of that number was begun before the device restarted.
    let _ = store.delete(SEALED_TREE, &parent);
    let part_bytes = PART_BYTES.min(store.value_bytes_max().saturating_sub(SEAL_BYTES)).max(1);
    stored.chunks(part_bytes).enumerate().all(|(part, bytes)| {
        let path = alloc::format!("{parent}.{part:04}");
        store.set(SEALED_TREE, &path, ValueKind::Bytes, bytes).is_ok()
    })
}

/// The head before a page, and the page.
fn page<F: Flash>(
    services: &mut Services<F>,
    id: &MachineId,
    number: u64,
) -> Option<(Digest, Vec<u8>)> {
    let parent = page_path(id, number);
    let store = services.kernel.store();
    let mut stored = Vec::new();
    for part in store.children(SEALED_TREE, &parent).ok()? {
        let path = alloc::format!("{parent}.{part}");
        stored.extend(store.get(SEALED_TREE, &path).ok()??.bytes);
    }
    let (previous, page) = stored.split_first_chunk()?;
    Some((Digest(*previous), page.to_vec()))
}

fn keep_book<F: Flash>(services: &mut Services<F>, id: &MachineId, book: &Book) -> Answer<()> {
    let no_form = || ControlError::Device("the journal's book can't be encoded".to_string());
    let bytes = book.to_bytes().ok_or_else(no_form)?;
    let set = services.kernel.store().set(SEALED_TREE, &book_path(id), ValueKind::Bytes, &bytes);
    set.map_err(|error| ControlError::Device(error.to_string()))
}

fn book_path(id: &MachineId) -> String {
    alloc::format!("{JOURNALS_PATH}.{id}")
}

/// Where a page's parts stand; twenty digits, so that the order of paths is that of numbers.
fn page_path(id: &MachineId, number: u64) -> String {
    alloc::format!("{JOURNALS_PATH}.{id}.{number:020}")
}

fn refused(error: JournalError) -> ControlError {
    ControlError::Refused(error.to_string())
}

#[cfg(test)]
mod tests {
    use tenure_testbed::frozen;

    use super::*;

    #[test]
    fn book_of_version_1_is_written_and_read() {
        let mut book = Book::new(65_536);
        book.next = 300;
        book.head = Digest([1; 32]);
        book.began = Some(Digest([2; 32]));
        book.pages = alloc::vec![
            Kept { bytes: 4_000, is_start: true },
            Kept { bytes: 1_000, is_start: false },
        ];
        let mut bytes =
            frozen(env!("CARGO_MANIFEST_DIR"), "journal-book-1", &book.to_bytes().unwrap());
        assert_eq!(Book::from_bytes(&bytes), Some(book));
        bytes[0] += 1;
        assert_eq!(Book::from_bytes(&bytes), None, "another version isn't guessed at");
    }

    #[test]
    fn ring_drops_all_up_to_the_second_state() {
        let mut book = Book::new(65_536);
        book.next = 14;
        let page = |bytes, is_start| Kept { bytes, is_start };
        book.pages = alloc::vec![page(10, true), page(1, false), page(20, true), page(2, false)];
        assert_eq!((book.oldest(), book.bytes()), (10, 33));
        assert_eq!((book.oldest_stretch(), book.last_stretch_bytes()), (Some(2), 22));
        book.pages.drain(..2);
        assert_eq!((book.oldest(), book.oldest_stretch()), (12, None));
    }
}
