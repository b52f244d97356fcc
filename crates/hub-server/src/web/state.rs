//! The state that requests are answered from: the hub's settings, and connections to its database.

use std::sync::{Arc, Mutex, PoisonError};

use axum_core::response::{IntoResponse as _, Response};
use http::StatusCode;
use tenure_package::Tariff;

use crate::running::live_logs::LiveLogs;
use crate::store::{Database, DatabaseError};
use crate::web::Pages;
use crate::web::bodies::Bodies;

/// The database connections that are kept for the next requests.
const IDLE_MAX: usize = 4;

/// The state that the pages are served from.
#[derive(Clone)]
pub(crate) struct State(Arc<Shared>);

struct Shared {
    pages: Pages,
    idle: Mutex<Vec<Database>>,
    bodies: Bodies,
}

impl State {
    pub(super) fn new(pages: Pages) -> Self {
        let (idle, bodies) = (Mutex::new(Vec::new()), Bodies::new());
        Self(Arc::new(Shared { pages, idle, bodies }))
    }

    /// Whether a proxy with TLS stands before the pages.
    fn is_by_tls(&self) -> bool {
        self.0.pages.by_tls
    }

    /// The places for requests with long bodies.
    pub(super) fn bodies(&self) -> &Bodies {
        &self.0.bodies
    }

    /// The attributes after `name=value` in the cookie of a browser that is signed in (RFC 6265 4.1).
    pub(crate) fn cookie_attributes(&self) -> &'static str {
        if self.is_by_tls() {
            "Secure; HttpOnly; SameSite=Strict; Path=/"
        } else {
            "HttpOnly; SameSite=Strict; Path=/"
        }
    }

    /// The prices, if the hub has any.
    pub(crate) fn tariff(&self) -> Option<&Tariff> {
        self.0.pages.tariff.as_ref()
    }

    /// The logs that are watched.
    pub(crate) fn logs(&self) -> &LiveLogs {
        self.0.pages.running.logs()
    }

    /// Since when the hub has heard without a gap, in seconds since 1970 UTC.
    pub(crate) fn hears_since_unix_s(&self) -> u64 {
        self.0.pages.running.hears_since_unix_s()
    }

    /// Runs `action` on a connection to the database, on a thread that may wait for the disk.
    ///
    /// # Errors
    /// The answer that says that the database failed.
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        action: impl FnOnce(&Self, &mut Database) -> Result<T, DatabaseError> + Send + 'static,
    ) -> Result<T, Response> {
        let state = self.clone();
        let done = tokio::task::spawn_blocking(move || {
            let mut database = state.database()?;
            let done = action(&state, &mut database)?;
            // One that failed isn't used again.
            state.keep(database);
            Ok::<T, DatabaseError>(done)
        });
        match done.await {
            Ok(Ok(value)) => Ok(value),
            Ok(Err(error)) => Err(unavailable(&error.to_string())),
            Err(_) => Err(unavailable("the request failed inside")),
        }
    }

    fn database(&self) -> Result<Database, DatabaseError> {
        let idle = self.0.idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let Pages { database, running, .. } = &self.0.pages;
        idle.map_or_else(|| Database::beside(database, running), Ok)
    }

    fn keep(&self, database: Database) {
        let mut idle = self.0.idle.lock().unwrap_or_else(PoisonError::into_inner);
        if idle.len() < IDLE_MAX {
            idle.push(database);
        }
    }
}

fn unavailable(reason: &str) -> Response {
    let text = format!("the hub can't answer now: {reason}\n");
    (StatusCode::SERVICE_UNAVAILABLE, [("retry-after", "5")], text).into_response()
}
