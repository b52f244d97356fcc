//! Calls for a visitor as long as the ticket is good: a stream of events asks its machine for long after it was opened.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use axum::response::Response;
use tenure_pages::{Entry, NoPage, Visits};
use tenure_wire::{NoResult, Target};

use super::place::Place;
use super::tickets::{Ticket, Tickets};
use crate::api::sign_in;
use crate::store::sql::OptionalExtension as _;
use crate::web::now;
use crate::web::state::HubState;

/// How long a look at the sign-in counts.
const COUNTS_FOR: Duration = Duration::from_secs(3);

/// Who visits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Visitor {
    /// The key that is signed in, if there is one.
    pub(super) who: Option<String>,
    /// Whether it owns the device.
    pub(super) is_owner: bool,
}

/// Who visits with this ticket now; `None` if it isn't good.
///
/// # Errors
/// The answer that says that the database failed.
pub(super) async fn visitor(
    hub: &HubState,
    tickets: &Tickets,
    place: &Place,
    ticket: &Ticket,
) -> Result<Option<Visitor>, Response> {
    let (device, session) = (place.device.to_string(), ticket.session);
    let looked = hub.run(move |hub, database| {
        let (connection, owners) = (&database.connection, hub.running().owners());
        let session = match session {
            Some(id) => sign_in::session_by_id(connection, id, &owners, now(hub))?,
            None => None,
        };
        let query = "SELECT owner FROM devices WHERE name = ?1";
        let query = connection.statement(query);
        let owner: Option<String> = query.query_row([device], |row| row.get(0)).optional()?;
        // A device whose owner isn't one here any more may be listed still.
        Ok((session, owner.filter(|owner| owners.admit(owner))))
    });
    let (session, owner) = looked.await?;
    if !tickets.is_good(ticket, session.as_ref(), &place.machine, now(hub)) {
        return Ok(None);
    }
    let who = session.map(|session| session.who);
    let is_owner = who.is_some() && who == owner;
    Ok(Some(Visitor { who, is_owner }))
}

/// The calls of a visitor whose ticket was good.
#[derive(Clone)]
pub(super) struct Allowed<V> {
    visits: V,
    hub: HubState,
    tickets: Tickets,
    place: Place,
    ticket: Ticket,
    visitor: Visitor,
    looked: Arc<Mutex<Instant>>,
}

impl<V> Allowed<V> {
    /// Calls by `visits` for `visitor`, who was just found to be the one with this ticket.
    pub(super) fn new(
        visits: V,
        (hub, tickets): (HubState, Tickets),
        (place, ticket): (Place, Ticket),
        visitor: Visitor,
    ) -> Self {
        let looked = Arc::new(Mutex::new(Instant::now()));
        Self { visits, hub, tickets, place, ticket, visitor, looked }
    }

    /// Whether the ticket is that visitor's still.
    async fn is_good(&self) -> bool {
        let looked = || self.looked.lock().unwrap_or_else(PoisonError::into_inner);
        if looked().elapsed() < COUNTS_FOR {
            return true;
        }
        let found = visitor(&self.hub, &self.tickets, &self.place, &self.ticket).await;
        *looked() = Instant::now();
        matches!(found, Ok(Some(found)) if found == self.visitor)
    }
}

impl<V: Visits> Visits for Allowed<V> {
    async fn call(
        &self,
        machine: Target,
        request: Vec<u8>,
        end: Instant,
    ) -> Result<Option<Vec<u8>>, NoPage> {
        if !self.is_good().await {
            return Err(NoPage::Failed(NoResult::Denied));
        }
        self.visits.call(machine, request, end).await
    }

    async fn entries(&self) -> Result<Vec<Entry>, NoPage> {
        self.visits.entries().await
    }
}
