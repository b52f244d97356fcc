//! The device's own firmware: an update arrives in parts, is handed to the loader, and once it runs it is
//! confirmed by its health, or the loader takes the one before.
//!
//! Healthy is a firmware that has mounted the store, runs the node, and has heard from somebody over the
//! network in a session. Until then the board doesn't feed its watchdog, which so ends the trial.

use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::time::Duration;

use tenure_boot::{ALIGNMENT, BootLog, LogError, State, Trial, Update, UpdateError, confirm};
use tenure_crypto::Sha256;
use tenure_hal::{Flash, Instant};
use tenure_kernel::MACHINE_FORMAT;
use tenure_package::Release;
use tenure_wire::VerifyingKey;
use tenure_wire::control::{
    Answer, CHUNK_BYTES_MAX, ControlError, FirmwareBegin, FirmwareStatus, InstallChunk,
    OtherFirmware,
};

use crate::claim::{Claim, Visit};
use crate::notice::Notice;
use crate::services::Services;

/// How long the device goes on after an update is complete, so that its owner hears of it.
const FAREWELL: Duration = Duration::from_millis(500);

const _: () = assert!(CHUNK_BYTES_MAX.is_multiple_of(ALIGNMENT));

/// The parts that a board that was started by a loader gives its node.
pub struct FirmwareParts<F> {
    /// The board's name, as it stands in the headers of its images.
    pub board: &'static str,
    /// The loader's log.
    pub log: F,
    /// The two slots.
    pub slots: [F; 2],
    /// How long a firmware on trial has: the watchdog's period.
    pub trial: Duration,
    /// The address that an image in each slot must be linked for, on chips that execute from the slot itself.
    pub linked_for: Option<[u32; 2]>,
    /// Whose firmware the device takes beside its owner's.
    pub maker: Option<VerifyingKey>,
}

/// The firmware's part of a node.
pub(crate) struct Firmware<F> {
    board: &'static str,
    log: BootLog<F>,
    slots: [F; 2],
    trial: Duration,
    linked_for: Option<[u32; 2]>,
    maker: Option<VerifyingKey>,
    arriving: Option<Arriving>,
    /// Which of the owner's commands brings it.
    claim: Claim,
    restart_at: Option<Instant>,
}

/// A firmware on its way here.
struct Arriving {
    update: Update,
    release: Release,
    hash: Sha256,
}

impl<F: Flash> Firmware<F> {
    fn open(parts: FirmwareParts<F>) -> Result<Self, LogError> {
        let FirmwareParts { board, log, slots, trial, linked_for, maker } = parts;
        let log = BootLog::open(log)?;
        let (arriving, claim, restart_at) = (None, Claim::default(), None);
        Ok(Self { board, log, slots, trial, linked_for, maker, arriving, claim, restart_at })
    }

    /// Whether what runs now is on trial.
    fn is_on_trial(&self) -> bool {
        self.log.state().is_some_and(|state| state.on_trial().is_some())
    }

    /// Whether the device had better not sleep.
    fn is_busy(&self) -> bool {
        self.is_on_trial() || self.arriving.is_some() || self.restart_at.is_some()
    }

    fn begin(
        &mut self,
        release: Release,
        has_machines: bool,
        visit: Visit,
    ) -> Result<(), ControlError> {
        if release.board != self.board {
            return Err(ControlError::Refused(alloc::format!(
                "the firmware is for `{}`, the device is a `{}`",
                release.board,
                self.board
            )));
        }
        if release.machine_format != MACHINE_FORMAT && has_machines {
            return Err(ControlError::Refused(alloc::format!(
                "the firmware runs machines of format {}, those on the device have {}: remove them \
                 first, and install them again after",
                release.machine_format,
                MACHINE_FORMAT
            )));
        }
        self.claim.begin(visit, self.arriving.is_some())?;
        self.arriving = None;
        let room = self.slots[0].geometry().bytes();
        let update = Update::begin(&mut self.log, release.number, release.bytes, room);
        let update = update.map_err(not_updated)?;
        self.arriving = Some(Arriving { update, release, hash: Sha256::new() });
        Ok(())
    }

    fn chunk(&mut self, offset: u32, bytes: &[u8], visit: Visit) -> Result<(), ControlError> {
        let arriving = self.arriving.as_mut().ok_or(ControlError::Transfer)?;
        if bytes.len() > CHUNK_BYTES_MAX || offset != arriving.update.written() {
            return Err(ControlError::Transfer);
        }
        self.claim.go_on(visit);
        let slot = &mut self.slots[arriving.update.slot().index()];
        let written = arriving.update.append(slot, bytes);
        arriving.hash.update(bytes);
        let (slot, header) = (arriving.update.slot(), arriving.update.header());
        if let Err(error) = written {
            self.arriving = None;
            return Err(not_updated(error));
        }
        let wanted = self.linked_for.map(|addresses| addresses[slot.index()]);
        if wanted.is_some_and(|wanted| header.is_some_and(|header| header.load_at != wanted)) {
            self.arriving = None;
            return Err(ControlError::Refused(alloc::format!(
                "the image is linked for the other slot: slot {} is free, bring the image for that one",
                slot.as_str()
            )));
        }
        Ok(())
    }

    fn commit(&mut self, now: Instant) -> Result<(), ControlError> {
        let arriving = self.arriving.take().ok_or(ControlError::Transfer)?;
        let Arriving { update, release, hash } = arriving;
        if update.written() != release.bytes {
            return Err(ControlError::Transfer);
        }
        let header = update.header();
        let fits = header.is_some_and(|header| {
            header.board() == self.board && header.machine_format == release.machine_format
        });
        if hash.finish() != release.digest || !fits {
            let why = "the firmware that came isn't the one that was signed";
            return Err(ControlError::Refused(why.to_string()));
        }
        update.finish(&mut self.log).map_err(not_updated)?;
        self.restart_at = Some(now + FAREWELL);
        Ok(())
    }
}

/// The firmware's part of a node: none on boards that no loader starts.
pub(crate) struct Updates<F>(pub(crate) Option<Firmware<F>>);

impl<F: Flash> Updates<F> {
    /// Takes the board's slots and its loader's log into use.
    ///
    /// # Errors
    /// The loader's log can't be read.
    pub(crate) fn open(&mut self, parts: FirmwareParts<F>) -> Result<(), LogError> {
        self.0 = Some(Firmware::open(parts)?);
        Ok(())
    }

    /// Whether what runs now is on trial.
    pub(crate) fn is_on_trial(&self) -> bool {
        self.0.as_ref().is_some_and(Firmware::is_on_trial)
    }

    /// Whether the device had better not sleep.
    pub(crate) fn is_busy(&self) -> bool {
        self.0.as_ref().is_some_and(Firmware::is_busy)
    }

    /// The time of the restart into a firmware that has come.
    pub(crate) fn restart_at(&self) -> Option<Instant> {
        self.0.as_ref().and_then(|firmware| firmware.restart_at)
    }

    /// Takes note that the owner, the hub or a device of the owner's was heard in a session: a firmware on
    /// trial has shown that it is well.
    pub(crate) fn confirm(&mut self, services: &mut Services<F>) {
        let Some(firmware) = self.0.as_mut().filter(|firmware| firmware.is_on_trial()) else {
            return;
        };
        // A log that can't be written is no sign of health: the trial goes on.
        if let Ok(image) = confirm(&mut firmware.log) {
            services.notices.push(Notice::FirmwareConfirmed { number: image.number });
        }
    }

    pub(crate) fn status(&self, services: &Services<F>, now: Instant) -> Answer<FirmwareStatus> {
        let firmware = self.0.as_ref().ok_or_else(no_loader)?;
        let State { good, other } = firmware.log.state().ok_or_else(no_loader)?;
        let on_trial = other.filter(|(_, trial)| *trial == Trial::Started).map(|(image, _)| image);
        let other = match (on_trial, other) {
            (Some(_), _) => Some(OtherFirmware {
                number: good.number,
                is_next: true,
                fate: String::from("the one before; taken up again unless this one is well"),
            }),
            (None, Some((image, trial))) => Some(OtherFirmware {
                number: image.number,
                is_next: trial == Trial::Ready,
                fate: describe(trial),
            }),
            (None, None) => None,
        };
        let running = on_trial.unwrap_or(good);
        Ok(FirmwareStatus {
            board: firmware.board.to_string(),
            number: running.number,
            slot: running.slot.as_str().to_string(),
            on_trial: on_trial.is_some(),
            other,
            slot_bytes: firmware.slots[0].geometry().bytes(),
            trial_ms: firmware.trial.as_millis() as u32,
            started_by: services.config.reset_cause.to_string(),
            uptime_ms: now.as_millis(),
        })
    }

    pub(crate) fn begin(
        &mut self,
        services: &Services<F>,
        visit: Visit,
        begin: &FirmwareBegin,
    ) -> Answer<()> {
        let firmware = self.0.as_mut().ok_or_else(no_loader)?;
        let signer = Release::signer(&begin.release)
            .map_err(|error| ControlError::Refused(error.to_string()))?;
        if firmware.maker != Some(signer) {
            services.ownership.check_former(&services.config.owner, "the firmware", &signer)?;
        }
        let signers: Vec<VerifyingKey> =
            [services.config.owner.verifying_key].into_iter().chain(firmware.maker).collect();
        let release = Release::verify(&begin.release, &signers)
            .map_err(|error| ControlError::Refused(error.to_string()))?;
        firmware.begin(release, services.kernel.machines().next().is_some(), visit)
    }

    pub(crate) fn chunk(&mut self, visit: Visit, chunk: &InstallChunk<'_>) -> Answer<()> {
        self.0.as_mut().ok_or_else(no_loader)?.chunk(chunk.offset, chunk.bytes, visit)
    }

    pub(crate) fn commit(&mut self, now: Instant) -> Answer<()> {
        self.0.as_mut().ok_or_else(no_loader)?.commit(now)
    }
}

fn describe(trial: Trial) -> String {
    match trial {
        Trial::Ready => String::from("to be tried at the next start"),
        Trial::Started => String::from("on trial"),
        Trial::Failed(failure) => failure.to_string(),
        Trial::Former => String::from("the one before"),
    }
}

fn no_loader() -> ControlError {
    ControlError::Refused(UpdateError::NoLoader.to_string())
}

fn not_updated(error: UpdateError) -> ControlError {
    match error {
        UpdateError::Sequence => ControlError::Transfer,
        UpdateError::Length { .. } => ControlError::Full(error.to_string()),
        UpdateError::Flash(_) | UpdateError::Log(_) => ControlError::Device(error.to_string()),
        UpdateError::NoLoader
        | UpdateError::OnTrial
        | UpdateError::NotNewer { .. }
        | UpdateError::NoImage => ControlError::Refused(error.to_string()),
    }
}
