//! The stores that are compared, each behind the same few calls and on the same simulated flash.

use std::cell::RefCell;
use std::rc::Rc;

use embassy_sync::blocking_mutex::raw::NoopRawMutex;
use embedded_storage_async::nor_flash as nor;
use pollster::block_on;
use sequential_storage::cache::Cache;
use sequential_storage::cache::key_pointers::HeapKeyPointers;
use sequential_storage::cache::page_pointers::HeapPagePointers;
use sequential_storage::cache::page_states::HeapPageStates;
use sequential_storage::map::{MapConfig, MapStorage};
use tenure_hal::simulated::{FlashCounters, RamFlash};
use tenure_hal::{Flash, FlashError, FlashGeometry};
use tenure_store::{Store, TreeId, ValueKind};

pub const KEY_BYTES: usize = 23;
pub const VALUE_BYTES: usize = 32;
pub type Key = [u8; KEY_BYTES];

pub trait Subject {
    /// Sets values that aren't there yet, in ascending order; it may do so in one transaction.
    fn fill(&mut self, all: &[(Key, [u8; VALUE_BYTES])]);
    /// Sets a value, durable when it returns.
    fn set(&mut self, key: &Key, value: &[u8; VALUE_BYTES]);
    fn get(&mut self, key: &Key) -> [u8; VALUE_BYTES];
    fn counters(&self) -> FlashCounters;
    fn reset_counters(&mut self);
}

/// The flash that a subject and the counting share.
#[derive(Clone)]
pub struct Device(Rc<RefCell<RamFlash>>);

impl Device {
    fn new(geometry: FlashGeometry) -> Self {
        Self(Rc::new(RefCell::new(RamFlash::new(geometry))))
    }

    fn read(&self, offset: u32, into: &mut [u8]) -> Result<(), FlashError> {
        self.0.borrow_mut().read(offset, into)
    }

    fn program(&self, offset: u32, bytes: &[u8]) -> Result<(), FlashError> {
        self.0.borrow_mut().program(offset, bytes)
    }

    fn erase(&self, sector: u32) -> Result<(), FlashError> {
        self.0.borrow_mut().erase(sector)
    }

    fn geometry(&self) -> FlashGeometry {
        self.0.borrow().geometry()
    }
}

pub struct Tenure(Store<RamFlash>);

impl Tenure {
    pub fn new(geometry: FlashGeometry) -> Self {
        Self(Store::format(RamFlash::new(geometry)).unwrap())
    }
}

impl Subject for Tenure {
    fn fill(&mut self, all: &[(Key, [u8; VALUE_BYTES])]) {
        all.iter().for_each(|(key, value)| self.set(key, value));
    }

    fn set(&mut self, key: &Key, value: &[u8; VALUE_BYTES]) {
        let path = str::from_utf8(key).unwrap();
        self.0.set(TreeId(1), path, ValueKind::Bytes, value).unwrap();
    }

    fn get(&mut self, key: &Key) -> [u8; VALUE_BYTES] {
        let path = str::from_utf8(key).unwrap();
        self.0.get(TreeId(1), path).unwrap().unwrap().bytes.try_into().unwrap()
    }

    fn counters(&self) -> FlashCounters {
        self.0.flash().counters()
    }

    fn reset_counters(&mut self) {
        self.0.flash_mut().reset_counters();
    }
}

pub struct Ekv {
    database: ekv::Database<Device, NoopRawMutex>,
    device: Device,
}

impl ekv::flash::Flash for Device {
    type Error = FlashError;

    fn page_count(&self) -> usize {
        self.geometry().sector_count as usize
    }

    async fn erase(&mut self, page: ekv::flash::PageID) -> Result<(), FlashError> {
        Device::erase(self, page.index() as u32)
    }

    async fn read(
        &mut self,
        page: ekv::flash::PageID,
        offset: usize,
        data: &mut [u8],
    ) -> Result<(), FlashError> {
        Device::read(self, (page.index() * 4096 + offset) as u32, data)
    }

    async fn write(
        &mut self,
        page: ekv::flash::PageID,
        offset: usize,
        data: &[u8],
    ) -> Result<(), FlashError> {
        self.program((page.index() * 4096 + offset) as u32, data)
    }
}

impl Ekv {
    pub fn new(geometry: FlashGeometry) -> Self {
        let device = Device::new(geometry);
        let database = ekv::Database::new(device.clone(), ekv::Config::default());
        block_on(database.format()).unwrap();
        Self { database, device }
    }
}

impl Subject for Ekv {
    fn fill(&mut self, all: &[(Key, [u8; VALUE_BYTES])]) {
        block_on(async {
            let mut transaction = self.database.write_transaction().await;
            for (key, value) in all {
                transaction.write(key, value).await.unwrap();
            }
            transaction.commit().await.unwrap();
        });
    }

    fn set(&mut self, key: &Key, value: &[u8; VALUE_BYTES]) {
        block_on(async {
            let mut transaction = self.database.write_transaction().await;
            transaction.write(key, value).await.unwrap();
            transaction.commit().await.unwrap();
        });
    }

    fn get(&mut self, key: &Key) -> [u8; VALUE_BYTES] {
        let mut value = [0; VALUE_BYTES];
        block_on(async {
            let transaction = self.database.read_transaction().await;
            transaction.read(key, &mut value).await.unwrap();
        });
        value
    }

    fn counters(&self) -> FlashCounters {
        self.device.0.borrow().counters()
    }

    fn reset_counters(&mut self) {
        self.device.0.borrow_mut().reset_counters();
    }
}

type AllCaches = Cache<HeapPageStates, HeapPagePointers, HeapKeyPointers<Key>, Key>;

/// With all its caches, as large as they can be of use.
pub struct SequentialStorage {
    map: MapStorage<Key, Device, AllCaches>,
    device: Device,
}

#[derive(Debug)]
pub struct NorError;

impl nor::NorFlashError for NorError {
    fn kind(&self) -> nor::NorFlashErrorKind {
        nor::NorFlashErrorKind::Other
    }
}

impl nor::ErrorType for Device {
    type Error = NorError;
}

impl nor::ReadNorFlash for Device {
    const READ_SIZE: usize = 1;

    async fn read(&mut self, offset: u32, bytes: &mut [u8]) -> Result<(), NorError> {
        Device::read(self, offset, bytes).map_err(|_| NorError)
    }

    fn capacity(&self) -> usize {
        self.geometry().bytes() as usize
    }
}

impl nor::NorFlash for Device {
    const WRITE_SIZE: usize = 4;
    const ERASE_SIZE: usize = 4096;

    async fn erase(&mut self, from: u32, to: u32) -> Result<(), NorError> {
        (from / 4096..to / 4096)
            .try_for_each(|sector| Device::erase(self, sector))
            .map_err(|_| NorError)
    }

    async fn write(&mut self, offset: u32, bytes: &[u8]) -> Result<(), NorError> {
        self.program(offset, bytes).map_err(|_| NorError)
    }
}

impl SequentialStorage {
    pub fn new(geometry: FlashGeometry, keys: usize) -> Self {
        let device = Device::new(geometry);
        let pages = geometry.sector_count as usize;
        let cache = Cache::new(
            HeapPageStates::new(pages),
            HeapPagePointers::new(pages),
            HeapKeyPointers::new(keys),
        );
        let map = MapStorage::new(device.clone(), MapConfig::new(0..geometry.bytes()), cache);
        Self { map, device }
    }
}

impl Subject for SequentialStorage {
    fn fill(&mut self, all: &[(Key, [u8; VALUE_BYTES])]) {
        all.iter().for_each(|(key, value)| self.set(key, value));
    }

    fn set(&mut self, key: &Key, value: &[u8; VALUE_BYTES]) {
        let mut buffer = [0; 128];
        block_on(self.map.store_item(&mut buffer, key, value)).unwrap();
    }

    fn get(&mut self, key: &Key) -> [u8; VALUE_BYTES] {
        let mut buffer = [0; 128];
        block_on(self.map.fetch_item(&mut buffer, key)).unwrap().unwrap()
    }

    fn counters(&self) -> FlashCounters {
        self.device.0.borrow().counters()
    }

    fn reset_counters(&mut self) {
        self.device.0.borrow_mut().reset_counters();
    }
}
