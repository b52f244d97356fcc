//! Machines that are pretended, and who called them.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Instant;

use tenure_pages::{Entry, NoPage, Visits};
use tenure_wire::{NoResult, Target};

type Answer = Arc<dyn Fn(&str) -> Result<Vec<u8>, NoResult> + Send + Sync>;

/// A machine that answers `owner` and not `guest`, or both.
#[derive(Clone)]
struct Machine {
    lets_guests_in: bool,
    answer: Answer,
}

/// The machines that a hub's pages call.
#[derive(Clone, Default)]
pub(crate) struct House {
    machines: Arc<Mutex<BTreeMap<String, Machine>>>,
    asked: Arc<Mutex<Vec<(Caller, String)>>>,
}

/// By which of its keys the hub called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Caller {
    Owner,
    Guest,
}

impl House {
    /// Puts up a machine with its answer to a request.
    pub(crate) fn put(
        &self,
        name: &str,
        lets_guests_in: bool,
        answer: impl Fn(&str) -> Result<Vec<u8>, NoResult> + Send + Sync + 'static,
    ) {
        let machine = Machine { lets_guests_in, answer: Arc::new(answer) };
        self.machines.lock().unwrap().insert(name.into(), machine);
    }

    /// The requests so far, with who called.
    pub(crate) fn asked(&self) -> Vec<(Caller, String)> {
        self.asked.lock().unwrap().clone()
    }

    pub(crate) fn called_by(&self, caller: Caller) -> Line {
        Line { house: self.clone(), caller }
    }
}

/// The calls of one key.
#[derive(Clone)]
pub(crate) struct Line {
    house: House,
    caller: Caller,
}

impl Visits for Line {
    async fn call(
        &self,
        machine: Target,
        request: Vec<u8>,
        _: Instant,
    ) -> Result<Option<Vec<u8>>, NoPage> {
        let request = String::from_utf8(request).unwrap();
        let known = self.house.machines.lock().unwrap().get(&machine.to_string()).cloned();
        let known = known.ok_or(NoPage::Unknown)?;
        if self.caller == Caller::Guest && !known.lets_guests_in {
            return Err(NoPage::Failed(NoResult::Denied));
        }
        self.house.asked.lock().unwrap().push((self.caller, request.clone()));
        if request.starts_with("GET /never ") {
            std::future::pending::<()>().await;
        }
        (known.answer)(&request).map(Some).map_err(NoPage::Failed)
    }

    async fn entries(&self) -> Result<Vec<Entry>, NoPage> {
        Ok(Vec::new())
    }
}
