//! Snapshots: a machine's tree as it is at one moment, frozen in staging flash while its owner
//! fetches it; and a tree put back.
//!
//! It is frozen between two turns of the machines, so no change stands in it by halves. What stands
//! in staging flash is encrypted under a key that is in RAM alone.

use alloc::string::{String, ToString};
use alloc::vec::Vec;

use tenure_crypto::{AeadKey, Nonce, TAG_BYTES};
use tenure_hal::{Flash, Instant};
use tenure_kernel::{Draft, Extent, Kernel, LookError};
use tenure_package::{Entry, Snapshot, SnapshotWriter, ValueKind};
use tenure_wire::control::{
    Answer, CHUNK_BYTES_MAX, ControlError, Restore, SnapshotBegin, SnapshotInfo, SnapshotRead,
};

use crate::claim::Visit;
use crate::install;
use crate::moment::Moment;
use crate::transfer::{Frozen, Transfer};

/// How much of a snapshot is sealed at a time, in bytes.
const PIECE_BYTES: usize = CHUNK_BYTES_MAX - TAG_BYTES;

/// A snapshot on its way into staging flash.
struct Freezer {
    key: AeadKey,
    draft: Draft,
    piece: Vec<u8>,
    pieces: u64,
    bytes: u32,
    failure: Option<ControlError>,
}

impl Freezer {
    fn write<F: Flash>(&mut self, transfer: &mut Transfer<F>, mut bytes: &[u8]) {
        while !bytes.is_empty() && self.failure.is_none() {
            let (now, later) = bytes.split_at(bytes.len().min(PIECE_BYTES - self.piece.len()));
            self.piece.extend_from_slice(now);
            bytes = later;
            if self.piece.len() == PIECE_BYTES {
                self.seal_piece(transfer);
            }
        }
    }

    fn seal_piece<F: Flash>(&mut self, transfer: &mut Transfer<F>) {
        let mut piece = core::mem::take(&mut self.piece);
        self.bytes += piece.len() as u32;
        let tag = self.key.seal(&Nonce::from_counter(self.pieces), &[], &mut piece);
        self.pieces += 1;
        piece.extend(tag);
        self.failure = self.draft.append(transfer.flash(), &piece).err().map(|error| match error {
            tenure_kernel::CodeError::Full => {
                ControlError::Full("the device takes no snapshot of that size".to_string())
            }
            error => ControlError::Device(error.to_string()),
        });
    }
}

/// Writes a machine's tree to staging flash, to be fetched from there.
pub(crate) fn begin<F: Flash>(
    transfer: &mut Transfer<F>,
    kernel: &mut Kernel<F>,
    moment: &mut Moment<'_>,
    visit: Visit,
    begin: &SnapshotBegin,
) -> Answer<SnapshotInfo> {
    let name = &begin.machine;
    let no_machine = || ControlError::NoSuchMachine(name.clone());
    let found = kernel.machines().find(|info| info.record.name == *name);
    let package = found.ok_or_else(no_machine)?.record.package;
    transfer.claim(visit)?;
    let mut key = [0; 32];
    moment.entropy.fill(&mut key).map_err(|error| ControlError::Device(error.to_string()))?;
    let room = transfer.flash().geometry().bytes();
    transfer.forget();
    let mut freezer = Freezer {
        key: AeadKey::from_bytes(&key),
        draft: Draft::new(Extent { offset: 0, bytes: room }),
        piece: Vec::new(),
        pieces: 0,
        bytes: 0,
        failure: None,
    };
    let (mut writer, first) = SnapshotWriter::begin(name, &package);
    freezer.write(transfer, &first);
    let mut keys = 0;
    let walked = kernel.each_value(name, |path, kind, value| {
        let kind = match kind {
            tenure_store::ValueKind::Bytes => ValueKind::Bytes,
            tenure_store::ValueKind::Text => ValueKind::Text,
        };
        freezer.write(transfer, &writer.value(&Entry { path, kind, value }));
        keys += 1;
    });
    walked.map_err(|error| match error {
        LookError::NoSuchMachine => no_machine(),
        LookError::Store(error) => ControlError::Refused(error.to_string()),
    })?;
    freezer.write(transfer, &writer.finish());
    freezer.seal_piece(transfer);
    let Freezer { key, draft, bytes, failure, .. } = freezer;
    failure.map_or(Ok(()), Err)?;
    draft.finish(transfer.flash()).map_err(|error| ControlError::Device(error.to_string()))?;
    transfer.freeze(Frozen { key, bytes });
    Ok(SnapshotInfo { bytes, keys })
}

/// A part of the snapshot in staging flash; the last part frees the flash.
pub(crate) fn read<F: Flash>(
    transfer: &mut Transfer<F>,
    visit: Visit,
    read: &SnapshotRead,
) -> Answer<Vec<u8>> {
    let (frozen, flash) = transfer.frozen(visit).ok_or(ControlError::Transfer)?;
    let left = frozen.bytes.checked_sub(read.offset).ok_or(ControlError::Transfer)?;
    if !read.offset.is_multiple_of(PIECE_BYTES as u32) || left == 0 {
        return Err(ControlError::Transfer);
    }
    let number = read.offset / PIECE_BYTES as u32;
    let length = PIECE_BYTES.min(left as usize);
    let mut piece = alloc::vec![0; length + TAG_BYTES];
    flash
        .read(number * CHUNK_BYTES_MAX as u32, &mut piece)
        .map_err(|error| ControlError::Device(error.to_string()))?;
    let nonce = Nonce::from_counter(number.into());
    let opened = frozen.key.open(&nonce, &[], &mut piece).map(|opened| opened.to_vec());
    let opened =
        opened.map_err(|_| ControlError::Device("the staging flash is damaged".to_string()))?;
    if length == left as usize {
        transfer.forget();
    }
    Ok(opened)
}

/// Puts back the tree that was transferred, and starts the machine afresh.
pub(crate) fn restore<F: Flash>(
    transfer: &mut Transfer<F>,
    kernel: &mut Kernel<F>,
    now: Instant,
    restore: &Restore,
) -> Answer<()> {
    let bytes = transfer.complete()?;
    let refused = |error: &dyn core::fmt::Display| ControlError::Refused(error.to_string());
    let snapshot = Snapshot::parse(bytes).map_err(|error| refused(&error))?;
    let values = snapshot.entries().map(|entry| {
        let kind = install::kind_in_store(entry.kind);
        (String::from(entry.path), kind, entry.value.to_vec())
    });
    let values: Vec<_> = values.collect();
    let restored = kernel.tenancy(now).restore(&restore.machine, &values);
    restored.map_err(|error| match error {
        tenure_kernel::InstallError::NotFound => {
            ControlError::NoSuchMachine(restore.machine.clone())
        }
        error => install::not_installed(error),
    })
}
