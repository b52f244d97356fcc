//! The power is cut at every operation on flash in a device's life of updates, writes torn: it always
//! starts a whole image, and no update is lost, tried twice or taken back.

use std::cell::RefCell;

use tenure_boot::always_on::{STATUS_FAULT, STATUS_RESET};
use tenure_boot::{
    BootLog, Choice, Failure, HEADER_BYTES, Header, Image, LoadError, NoImage, Slot,
};
use tenure_boot::{State, Trial, Update, UpdateError, choose, confirm, load, map};
use tenure_hal::simulated::RamFlash;
use tenure_hal::{Flash, FlashError, FlashGeometry, Partition, ResetCause};

const SECTOR_BYTES: u32 = 512;
const SLOT_SECTORS: u32 = 3;
const GEOMETRY: FlashGeometry = FlashGeometry {
    sector_bytes: SECTOR_BYTES,
    sector_count: 2 + 2 * SLOT_SECTORS,
    program_bytes: 4,
};

type Part<'a> = Partition<&'a RefCell<RamFlash>>;

fn log(flash: &RefCell<RamFlash>) -> BootLog<Part<'_>> {
    BootLog::open(Partition::new(flash, 0, 2).unwrap()).unwrap()
}

fn slots(flash: &RefCell<RamFlash>) -> [Part<'_>; 2] {
    [2, 2 + SLOT_SECTORS].map(|first| Partition::new(flash, first, SLOT_SECTORS).unwrap())
}

/// The image `number`, of a length and content of its own.
fn contents(number: u32) -> Vec<u8> {
    let length = HEADER_BYTES + 300 + 97 * (number as usize % 11);
    let mut bytes = Header::new("test", number, 1).to_bytes().to_vec();
    bytes.extend((HEADER_BYTES..length).map(|at| (at as u32).wrapping_mul(number * 31 + 7) as u8));
    bytes
}

/// A device that was flashed with image 1 by cable.
fn flashed() -> RefCell<RamFlash> {
    let flash = RefCell::new(RamFlash::new(GEOMETRY));
    let bytes = contents(1);
    let mut padded = bytes.clone();
    padded.resize(bytes.len().next_multiple_of(4), 0xFF);
    slots(&flash)[0].program(0, &padded).unwrap();
    log(&flash).append(State { good: Image::new(Slot::A, 1, &bytes), other: None }).unwrap();
    flash
}

fn start(flash: &RefCell<RamFlash>, cause: ResetCause) -> Choice {
    let choice = choose(&mut log(flash), &mut slots(flash), cause).unwrap();
    let mut stored = vec![0; choice.image.bytes as usize];
    slots(flash)[choice.image.slot.index()].read(0, &mut stored).unwrap();
    assert!(stored == contents(choice.image.number), "what starts is whole");
    choice
}

fn update(flash: &RefCell<RamFlash>, number: u32) -> Result<(), UpdateError> {
    let (mut log, mut slots) = (log(flash), slots(flash));
    let bytes = contents(number);
    let room = SLOT_SECTORS * SECTOR_BYTES;
    let mut update = Update::begin(&mut log, number, bytes.len() as u32, room)?;
    for part in bytes.chunks(208) {
        update.append(&mut slots[update.slot().index()], part)?;
    }
    update.finish(&mut log).map(drop)
}

/// The outcome of a life so far.
#[derive(Default)]
struct Life {
    /// The last number that was surely confirmed, and the one that may be.
    confirmed: u32,
    perhaps: u32,
    /// Of which number a trial was begun, and may not be again unless it is brought again.
    tried: Option<u32>,
}

/// Brings images 2 to `last`, of which each third is a failure, until the power goes.
fn live(flash: &RefCell<RamFlash>, life: &mut Life, last: u32) -> Result<(), UpdateError> {
    let running = boot(flash, life, ResetCause::PowerOn)?;
    if running.on_trial {
        settle(flash, life, running.image.number)?;
    }
    for number in running.image.number + 1..=last {
        life.tried = None;
        match update(flash, number) {
            Err(UpdateError::NotNewer { running }) => assert_eq!(running, number),
            result => result?,
        }
        let choice = boot(flash, life, ResetCause::Software)?;
        assert_eq!((choice.image.number, choice.on_trial), (number, true));
        settle(flash, life, number)?;
    }
    Ok(())
}

/// Ends the trial of an image.
fn settle(flash: &RefCell<RamFlash>, life: &mut Life, number: u32) -> Result<(), UpdateError> {
    if !number.is_multiple_of(3) {
        life.perhaps = number;
        confirm(&mut log(flash))?;
        life.confirmed = number;
        return Ok(());
    }
    let choice = boot(flash, life, ResetCause::Watchdog)?;
    assert!(!choice.on_trial && choice.image.number == life.confirmed);
    let (failed, trial) = log(flash).state().unwrap().other.unwrap();
    let why = Failure::Reset(ResetCause::Watchdog);
    assert_eq!((failed.number, trial), (number, Trial::Failed(why)));
    Ok(())
}

/// The power goes and comes again: what cuts left reads otherwise.
fn power_cycle(flash: &RefCell<RamFlash>) {
    flash.borrow_mut().cut_power();
    flash.borrow_mut().restore_power();
}

/// Starts again and again, and expects that the log says the same each time, once no trial has to end.
fn check_stays(flash: &RefCell<RamFlash>, life: &mut Life) {
    let mut found = None;
    for _ in 0..4 {
        power_cycle(flash);
        let choice = boot(flash, life, ResetCause::PowerOn).unwrap();
        if !choice.on_trial {
            let state = log(flash).state();
            assert_eq!(*found.get_or_insert(state), state, "another start, another state");
        }
    }
}

fn boot(
    flash: &RefCell<RamFlash>,
    life: &mut Life,
    cause: ResetCause,
) -> Result<Choice, UpdateError> {
    let mut log = log(flash);
    let choice = choose(&mut log, &mut slots(flash), cause);
    if flash.borrow().is_off() {
        return Err(UpdateError::Flash(FlashError::Hardware));
    }
    let choice = choice.unwrap();
    let number = choice.image.number;
    if choice.on_trial {
        assert_ne!(life.tried, Some(number), "no image is tried twice");
        life.tried = Some(number);
    } else {
        assert!(number == life.confirmed || number == life.perhaps, "{number} was never confirmed");
        life.confirmed = number;
    }
    Ok(choice)
}

#[test]
fn power_cut_at_any_operation_leaves_a_whole_image_and_the_update_can_go_on() {
    const LAST: u32 = 11;
    let whole = flashed();
    whole.borrow_mut().reset_counters();
    let mut life = Life { confirmed: 1, perhaps: 1, tried: None };
    live(&whole, &mut life, LAST).unwrap();
    let counters = whole.borrow().counters();
    let operations = counters.programs + counters.erases;
    assert!(operations > 100, "a life of {operations} operations");
    for cut in 0..operations {
        for seed in 0..6 {
            let flash = flashed();
            let mut life = Life { confirmed: 1, perhaps: 1, tried: None };
            flash.borrow_mut().cut_power_after(cut, seed << 32 | cut);
            live(&flash, &mut life, LAST).unwrap_err();
            // Again while it recovers, at an operation that differs from round to round.
            flash.borrow_mut().restore_power();
            flash.borrow_mut().cut_power_after((cut * 7 + seed) % 23, seed);
            let _ = live(&flash, &mut life, LAST);
            check_stays(&flash, &mut life);
            power_cycle(&flash);
            live(&flash, &mut life, LAST).unwrap();
            assert_eq!(life.confirmed, LAST, "cut at {cut}, seed {seed}");
            assert_eq!(start(&flash, ResetCause::PowerOn).image.number, LAST);
        }
    }
}

#[test]
fn numbers_only_grow_and_nothing_is_updated_on_trial() {
    let flash = flashed();
    let running = |number| Err(UpdateError::NotNewer { running: number });
    assert_eq!(update(&flash, 1), running(1));
    update(&flash, 5).unwrap();
    assert!(start(&flash, ResetCause::Software).on_trial);
    assert_eq!(update(&flash, 6), Err(UpdateError::OnTrial));
    confirm(&mut log(&flash)).unwrap();
    assert_eq!(confirm(&mut log(&flash)), Err(UpdateError::NoLoader), "once is enough");
    assert_eq!(update(&flash, 5), running(5));
    assert_eq!(update(&flash, 4), running(5));
}

#[test]
fn what_is_no_image_or_comes_in_the_wrong_form_is_refused() {
    let flash = flashed();
    let (mut log, mut slots) = (log(&flash), slots(&flash));
    let mut begin = |bytes| Update::begin(&mut log, 2, bytes, SLOT_SECTORS * SECTOR_BYTES);
    assert_eq!(begin(1537).err(), Some(UpdateError::Length { room: 1536 }));
    assert_eq!(begin(63).err(), Some(UpdateError::Length { room: 1536 }));
    let slot = &mut slots[1];
    let noise = [7; 64];
    assert_eq!(begin(128).unwrap().append(slot, &noise), Err(UpdateError::NoImage));
    let image = contents(2);
    let mut update = begin(128).unwrap();
    assert_eq!(update.append(slot, &image[..65]), Err(UpdateError::Sequence), "an odd part");
    assert_eq!(update.append(slot, &image[..129]), Err(UpdateError::Sequence), "too much");
    update.append(slot, &image[..64]).unwrap();
    assert_eq!(update.finish(&mut log), Err(UpdateError::Sequence), "too little");
}

#[test]
fn rotten_images_give_way_to_what_is_whole() {
    let rot = |flash: &RefCell<RamFlash>, slot: u32| {
        let at = ((2 + slot * SLOT_SECTORS) * SECTOR_BYTES + 100) as usize;
        flash.borrow_mut().bytes_mut()[at] ^= 4;
    };
    // An image that is ready to be tried rots before it is.
    let flash = flashed();
    update(&flash, 2).unwrap();
    rot(&flash, 1);
    assert_eq!(start(&flash, ResetCause::Software).image.number, 1);
    let (_, trial) = log(&flash).state().unwrap().other.unwrap();
    assert_eq!(trial, Trial::Failed(Failure::Damaged));
    // The good one rots, and the one before it is still there; then that one too.
    let flash = flashed();
    update(&flash, 2).unwrap();
    start(&flash, ResetCause::Software);
    confirm(&mut log(&flash)).unwrap();
    rot(&flash, 1);
    assert_eq!(start(&flash, ResetCause::PowerOn).image.number, 1);
    assert_eq!(start(&flash, ResetCause::PowerOn).image.number, 1);
    rot(&flash, 0);
    let none = choose(&mut log(&flash), &mut slots(&flash), ResetCause::PowerOn);
    assert_eq!(none, Err(NoImage::Damaged));
}

#[test]
fn a_device_that_was_never_flashed_says_so() {
    let flash = RefCell::new(RamFlash::new(GEOMETRY));
    let none = choose(&mut log(&flash), &mut slots(&flash), ResetCause::PowerOn);
    assert_eq!(none, Err(NoImage::Blank));
    assert_eq!(update(&flash, 2), Err(UpdateError::NoLoader));
}

#[test]
fn an_image_for_another_board_or_place_is_not_started() {
    let geometry = FlashGeometry {
        sector_bytes: map::SECTOR_BYTES,
        sector_count: map::REST,
        program_bytes: 4,
    };
    let flash = RefCell::new(RamFlash::new(geometry));
    let part = |run: map::Run| Partition::new(&flash, run.first, run.count).unwrap();
    let bytes = contents(1);
    let mut padded = bytes.clone();
    padded.resize(bytes.len().next_multiple_of(4), 0xFF);
    part(map::SLOTS[0]).program(0, &padded).unwrap();
    let good = Image::new(Slot::A, 1, &bytes);
    BootLog::open(part(map::LOG)).unwrap().append(State { good, other: None }).unwrap();
    let choice = load(|| &flash, ResetCause::PowerOn, "test", [1, 1]).unwrap();
    assert_eq!(choice.to_string(), "firmware 1 in slot A");
    for (board, window) in [("another", 1), ("test", 2)] {
        let error = load(|| &flash, ResetCause::PowerOn, board, [window; 2]).unwrap_err();
        assert_eq!(error.to_string(), "the image in slot A isn't for this board");
        assert_eq!(error.status(), STATUS_FAULT);
    }
    // On a chip that executes from the slot itself, each slot has an address of its own.
    assert!(load(|| &flash, ResetCause::PowerOn, "test", [1, 2]).is_ok());
    assert!(load(|| &flash, ResetCause::PowerOn, "test", [2, 1]).is_err());
    let on_trial = Choice { on_trial: true, ..choice };
    assert_eq!(on_trial.to_string(), "firmware 1 in slot A, on trial");
    assert_eq!(LoadError::Foreign(on_trial).status(), STATUS_RESET, "it is given up");
}

/// A flash that says so many times that it couldn't program, though it did the first time.
struct Denying<'a> {
    part: Part<'a>,
    denials: u32,
    programs: u32,
}

impl Flash for Denying<'_> {
    fn geometry(&self) -> FlashGeometry {
        self.part.geometry()
    }

    fn read(&mut self, offset: u32, into: &mut [u8]) -> Result<(), FlashError> {
        self.part.read(offset, into)
    }

    fn program(&mut self, offset: u32, bytes: &[u8]) -> Result<(), FlashError> {
        let is_denied = self.programs < self.denials;
        if self.programs == 0 || !is_denied {
            self.part.program(offset, bytes)?;
        }
        self.programs += 1;
        if is_denied { Err(FlashError::Hardware) } else { Ok(()) }
    }

    fn erase(&mut self, sector: u32) -> Result<(), FlashError> {
        self.part.erase(sector)
    }

    fn mapped(&self) -> Option<&[u8]> {
        None
    }
}

fn state(number: u32) -> State {
    State { good: Image::new(Slot::A, number, &contents(number)), other: None }
}

#[test]
fn state_that_was_refused_counts_at_no_start_although_it_stands_in_flash() {
    for denials in [1, 2] {
        let flash = flashed();
        let part = Partition::new(&flash, 0, 2).unwrap();
        let mut denying = BootLog::open(Denying { part, denials, programs: 0 }).unwrap();
        assert!(denying.append(state(2)).is_err());
        assert_eq!(denying.state(), Some(state(1)));
        if denials == 1 {
            assert_eq!(log(&flash).state(), Some(state(1)), "it was overwritten");
        }
        denying.append(state(3)).unwrap();
        assert_eq!(log(&flash).state(), Some(state(3)), "{denials} denials");
    }
}

/// A place behind a refused state is cut in its first unit, so that it may read as erased; and the next start knows
/// nothing of the refusal.
#[test]
fn place_that_was_cut_behind_a_refused_state_takes_a_record_that_stays() {
    for seed in 0..300 {
        let flash = flashed();
        log(&flash).append(state(2)).unwrap();
        let part = Partition::new(&flash, 0, 2).unwrap();
        let mut denying = BootLog::open(Denying { part, denials: 1, programs: 0 }).unwrap();
        assert!(denying.append(state(3)).is_err());
        flash.borrow_mut().cut_power_after(0, seed);
        assert!(denying.append(state(4)).is_err());
        flash.borrow_mut().restore_power();

        let mut next = log(&flash);
        next.settle().unwrap();
        next.append(state(5)).unwrap();
        for _ in 0..4 {
            power_cycle(&flash);
            assert_eq!(log(&flash).state(), Some(state(5)), "seed {seed}");
        }
    }
}
