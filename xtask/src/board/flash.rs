//! The flash of an emulated device as a file: what a programmer's cable does to it.

use std::fs::OpenOptions;
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use tenure_boot::{ALIGNMENT, BootLog, Image, Slot, State, map, uf2};
use tenure_hal::simulated::RamFlash;
use tenure_hal::{Flash as _, FlashGeometry, Partition};

/// Where in the flash the settings lie, and how much of it this looks at, in sectors.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place {
    settings: map::Run,
    sectors: u32,
}

impl Place {
    /// Of a device with a loader and slots.
    pub(super) const NODE: Self = Self { settings: map::SETTINGS, sectors: map::REST };
    /// Of a leaf: what is kept begins with them.
    pub(super) const LEAF: Self = Self { settings: map::Run { first: 0, count: 1 }, sectors: 1 };
}

/// The device's flash, as far as it isn't the node's.
pub(super) struct Flash {
    path: PathBuf,
    place: Place,
    contents: RamFlash,
}

impl Flash {
    /// Opens the flash in `folder`; makes a blank one of `bytes` bytes if there is none.
    pub(super) fn open(folder: &Path, bytes: usize, place: Place) -> Result<Self> {
        std::fs::create_dir_all(folder)
            .with_context(|| format!("can't make the folder {}", folder.display()))?;
        let path = folder.join("flash.img");
        let what = || format!("the flash of the device, {}", path.display());
        if !path.exists() {
            // Whole or not at all: a file of another size is no flash.
            let blank = folder.join("flash.new");
            std::fs::write(&blank, vec![0xFF; bytes]).with_context(what)?;
            std::fs::rename(&blank, &path).with_context(what)?;
        }
        let geometry = FlashGeometry {
            sector_bytes: map::SECTOR_BYTES,
            sector_count: place.sectors,
            program_bytes: 4,
        };
        let mut stored = vec![0; geometry.bytes() as usize];
        let mut file = OpenOptions::new().read(true).open(&path).with_context(what)?;
        file.read_exact(&mut stored).with_context(what)?;
        Ok(Self { contents: RamFlash::with_bytes(geometry, stored), place, path })
    }

    /// Where it is.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Whether the device was told who it is.
    pub(super) fn has_settings(&self) -> bool {
        self.contents.bytes()[self.place.settings.offset() as usize] != 0xFF
    }

    /// Tells the device who it is.
    pub(super) fn write_settings(&mut self, text: &str) -> Result<()> {
        let mut sector = text.as_bytes().to_vec();
        sector.resize(self.place.settings.bytes() as usize, 0xFF);
        self.write(self.place.settings, &sector)
    }

    /// The state of the newest record in the loader's log.
    pub(super) fn firmware(&mut self) -> Result<Option<State>> {
        let map::Run { first, count } = map::LOG;
        let log = BootLog::open(Partition::new(&mut self.contents, first, count)?)?;
        Ok(log.state())
    }

    /// Writes the loader, on a chip that begins to execute there.
    pub(super) fn flash_loader(&mut self, loader: &[u8]) -> Result<()> {
        let mut padded = loader.to_vec();
        padded.resize(map::LOADER.bytes() as usize, 0xFF);
        self.write(map::LOADER, &padded)
    }

    /// Writes `image` into the first slot, as the good one that has `number`.
    pub(super) fn flash_firmware(&mut self, image: &[u8], number: u32) -> Result<()> {
        let [slot, _] = map::SLOTS;
        if image.len() > slot.bytes() as usize {
            bail!("the firmware is longer than a slot of {} bytes", slot.bytes());
        }
        let mut padded = image.to_vec();
        padded.resize(image.len().next_multiple_of(ALIGNMENT), 0xFF);
        self.write(slot, &padded)?;
        let map::Run { first, count } = map::LOG;
        let mut log = BootLog::open(Partition::new(&mut self.contents, first, count)?)?;
        log.append(State { good: Image::new(Slot::A, number, image), other: None })?;
        self.save(map::LOG)
    }

    /// Loader, log and firmware as a file for a board that takes UF2; the settings are left to `tenure flash`.
    pub(super) fn uf2(&self, firmware_bytes: usize) -> Vec<u8> {
        let bytes = self.contents.bytes();
        let slot = map::SLOTS[0].offset() as usize;
        let sector = map::SECTOR_BYTES as usize;
        // A sector is written whole, as the boot ROM erases it.
        let slot = slot..slot + firmware_bytes.next_multiple_of(sector);
        let before = 0..(map::LOG.offset() + map::LOG.bytes()) as usize;
        let pages: Vec<_> = [before, slot]
            .into_iter()
            .flat_map(|run| run.step_by(uf2::PAGE_BYTES))
            .filter_map(|at| {
                let page = bytes[at..].first_chunk::<{ uf2::PAGE_BYTES }>()?;
                Some((uf2::RP2040_FLASH + at as u32, *page))
            })
            .collect();
        uf2::blocks(&pages).flatten().collect()
    }

    /// Writes what a file of UF2 has for the flash, as the boot ROM does.
    pub(super) fn flash_uf2(&mut self, file: &[u8]) -> Result<()> {
        for block in file.as_chunks::<{ uf2::BLOCK_BYTES }>().0 {
            let block = uf2::Block::from_bytes(block)?;
            let at = block.address.checked_sub(uf2::RP2040_FLASH).context("not in the flash")?;
            if at.is_multiple_of(map::SECTOR_BYTES) {
                self.contents.erase(at / map::SECTOR_BYTES)?;
            }
            self.contents.program(at, &block.page)?;
        }
        self.save(map::Run { first: 0, count: self.place.sectors })
    }

    fn write(&mut self, run: map::Run, bytes: &[u8]) -> Result<()> {
        for sector in run.first..run.end() {
            self.contents.erase(sector)?;
        }
        self.contents.program(run.offset(), bytes)?;
        self.save(run)
    }

    fn save(&self, run: map::Run) -> Result<()> {
        let what = || format!("the flash of the device, {}", self.path.display());
        let mut file = OpenOptions::new().write(true).open(&self.path).with_context(what)?;
        file.seek(SeekFrom::Start(u64::from(run.offset()))).with_context(what)?;
        let range = run.offset() as usize..(run.offset() + run.bytes()) as usize;
        file.write_all(&self.contents.bytes()[range]).with_context(what)
    }
}
