//! Places for requests with long bodies and for lists as files, so that neither many clients nor a slow one take all memory
//! and time.
//!
//! Invariants:
//! - The places of a key are its people's but for one, which is kept for the key itself.
//! - A person has some of these at most, and a pass of the key itself all but one of the key's: whoever is slow leaves a place
//!   to the others.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use tokio::sync::{AcquireError, OwnedSemaphorePermit, Semaphore};

use crate::api::sign_in::Taker;

/// The most requests at once whose bodies may be long.
const OF_BODIES: Bounds = Bounds { all: 16, of_key: 4, of_people: 3, of_person: 2 };
/// The most files that are sent at once: each has a thread and a connection to the database.
const OF_FILES: Bounds = Bounds { all: 8, of_key: 3, of_people: 2, of_person: 1 };

/// How many places there are at once.
#[derive(Clone, Copy, Debug)]
struct Bounds {
    all: usize,
    /// Of them of one key; its further requests wait for these.
    of_key: usize,
    /// Of a key's of its people in all, and of one pass of the key itself.
    of_people: usize,
    /// Of these of one person.
    of_person: usize,
}

/// The places that are free.
#[derive(Debug)]
pub(crate) struct Bodies {
    all: Arc<Semaphore>,
    bounds: Bounds,
    /// Of those who have a place or wait for one.
    shares: Mutex<BTreeMap<Share, Weak<Semaphore>>>,
}

/// Those who have a bound together.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Share {
    One(Taker),
    People(String),
    Key(String),
}

/// A place for a body, free again once it is dropped.
#[derive(Debug)]
pub(crate) struct Place {
    _held: Vec<OwnedSemaphorePermit>,
}

impl Bodies {
    pub(crate) fn new() -> Self {
        Self::bounded(OF_BODIES)
    }

    /// Places for files.
    pub(crate) fn of_files() -> Self {
        Self::bounded(OF_FILES)
    }

    fn bounded(bounds: Bounds) -> Self {
        Self { all: Arc::new(Semaphore::new(bounds.all)), bounds, shares: Mutex::default() }
    }

    /// A place for a request of the key `who` by `taker`, once there is one; each waits behind those that came before.
    ///
    /// # Errors
    /// The hub ends.
    pub(crate) async fn take(&self, who: &str, taker: Taker) -> Result<Place, AcquireError> {
        let Bounds { of_key, of_people, of_person, .. } = self.bounds;
        let mut shares = match taker {
            Taker::Person(_) => {
                let people = self.share(Share::People(who.into()), of_people);
                vec![self.share(Share::One(taker), of_person), people]
            }
            Taker::Pass(_) => vec![self.share(Share::One(taker), of_people)],
        };
        shares.push(self.share(Share::Key(who.into()), of_key));
        shares.push(Arc::clone(&self.all));
        // Those of one share wait for each other before they wait for others.
        let mut held = Vec::new();
        for share in shares {
            held.push(share.acquire_owned().await?);
        }
        Ok(Place { _held: held })
    }

    /// The places of one share.
    fn share(&self, share: Share, places: usize) -> Arc<Semaphore> {
        let mut shares = self.shares.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = shares.get(&share).and_then(Weak::upgrade) {
            return known;
        }
        shares.retain(|_, places| places.strong_count() > 0);
        let places = Arc::new(Semaphore::new(places));
        shares.insert(share, Arc::downgrade(&places));
        places
    }
}
