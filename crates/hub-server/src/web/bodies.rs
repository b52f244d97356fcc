//! Places for requests with long bodies and for lists as files, so that neither many clients nor a slow one take all memory
//! and time.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use tokio::sync::{AcquireError, OwnedSemaphorePermit, Semaphore};

/// The most requests at once whose bodies may be long.
const BODIES_MAX: usize = 16;
/// The most of them that are of one key; its further ones wait for these.
const BODIES_OF_KEY_MAX: usize = 4;
/// The most files that are sent at once: each has a thread and a connection to the database.
const FILES_MAX: usize = 8;
/// The most of them that are of one key.
const FILES_OF_KEY_MAX: usize = 2;

/// The places that are free.
#[derive(Debug)]
pub(crate) struct Bodies {
    all: Arc<Semaphore>,
    of_key_max: usize,
    /// Of the keys that have a place or wait for one.
    of_keys: Mutex<BTreeMap<String, Weak<Semaphore>>>,
}

/// A place for a body, free again once it is dropped.
#[derive(Debug)]
pub(crate) struct Place {
    _of_key: OwnedSemaphorePermit,
    _of_all: OwnedSemaphorePermit,
}

impl Bodies {
    pub(crate) fn new() -> Self {
        Self::bounded(BODIES_MAX, BODIES_OF_KEY_MAX)
    }

    /// Places for files.
    pub(crate) fn of_files() -> Self {
        Self::bounded(FILES_MAX, FILES_OF_KEY_MAX)
    }

    fn bounded(max: usize, of_key_max: usize) -> Self {
        Self { all: Arc::new(Semaphore::new(max)), of_key_max, of_keys: Mutex::default() }
    }

    /// A place for a body from the key `who`, once there is one; each waits behind those that came before.
    ///
    /// # Errors
    /// The hub ends.
    pub(crate) async fn take(&self, who: &str) -> Result<Place, AcquireError> {
        // Those of one key wait for each other before they wait for other keys'.
        let of_key = self.of_key(who).acquire_owned().await?;
        let of_all = Arc::clone(&self.all).acquire_owned().await?;
        Ok(Place { _of_key: of_key, _of_all: of_all })
    }

    /// The places of one key.
    fn of_key(&self, who: &str) -> Arc<Semaphore> {
        let mut keys = self.of_keys.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(places) = keys.get(who).and_then(Weak::upgrade) {
            return places;
        }
        keys.retain(|_, places| places.strong_count() > 0);
        let places = Arc::new(Semaphore::new(self.of_key_max));
        keys.insert(who.into(), Arc::downgrade(&places));
        places
    }
}
