//! The state that requests are answered from: the hub's settings, and connections to its database.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use axum::response::{IntoResponse as _, Response};
use http::{StatusCode, header};
use opentelemetry::Context;
use opentelemetry::trace::SpanKind;
use tenure_package::Tariff;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::running::Running;
use crate::running::live_logs::LiveLogs;
use crate::store::sql::{self, Connection};
use crate::store::{Database, DatabaseError};
use crate::traces::Traced;
use crate::web::Pages;
use crate::web::bodies::Bodies;
use crate::web::figures::Figures;
use crate::web::gate::{COOKIE, COOKIE_OF_TLS};

/// The database connections that are kept for the next requests.
const IDLE_MAX: usize = 4;

/// The state that the pages are served from. Clones are the same state.
#[derive(Clone)]
pub(crate) struct HubState(Arc<Shared>);

struct Shared {
    pages: Pages,
    idle: Mutex<Vec<Database>>,
    bodies: Bodies,
    files: Bodies,
    figures: Figures,
    /// The one turn to note that a pass is used.
    noting: Arc<Semaphore>,
}

impl HubState {
    pub(super) fn new(pages: Pages) -> Self {
        let (idle, bodies) = (Mutex::new(Vec::new()), Bodies::new());
        let (files, figures) = (Bodies::of_files(), Figures::new());
        let noting = Arc::new(Semaphore::new(1));
        Self(Arc::new(Shared { pages, idle, bodies, files, figures, noting }))
    }

    /// The places for requests with long bodies.
    pub(super) fn bodies(&self) -> &Bodies {
        &self.0.bodies
    }

    /// The places for lists as files.
    pub(super) fn files(&self) -> &Bodies {
        &self.0.files
    }

    /// The turn to note that a pass is used, unless another one has it.
    pub(super) fn turn_to_note(&self) -> Option<OwnedSemaphorePermit> {
        Arc::clone(&self.0.noting).try_acquire_owned().ok()
    }

    /// The figures of what was answered so far.
    pub(super) fn figures(&self) -> &Figures {
        &self.0.figures
    }

    /// The cookie of a browser that is signed in, with its attributes (RFC 6265 §4.1).
    pub(crate) fn cookie(&self, secret: &str, age_s: u64) -> String {
        let secure = if self.is_by_tls() { "Secure; " } else { "" };
        let name = self.cookie_name();
        format!("{name}={secret}; {secure}HttpOnly; SameSite=Strict; Path=/; Max-Age={age_s}")
    }

    /// Its name.
    pub(super) fn cookie_name(&self) -> &'static str {
        if self.is_by_tls() { COOKIE_OF_TLS } else { COOKIE }
    }

    /// Whether browsers reach the pages over TLS.
    pub(super) fn is_by_tls(&self) -> bool {
        self.0.pages.is_by_tls
    }

    /// Whether requests come by a proxy.
    pub(super) fn is_by_proxy(&self) -> bool {
        self.0.pages.is_by_proxy
    }

    /// The prices, if the hub has any.
    pub(crate) fn tariff(&self) -> Option<&Tariff> {
        self.0.pages.tariff.as_ref()
    }

    /// The hub that runs.
    pub(crate) fn running(&self) -> &Running {
        &self.0.pages.running
    }

    /// The logs that are watched.
    pub(crate) fn logs(&self) -> &LiveLogs {
        self.running().logs()
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
        let asked = Instant::now();
        let request = Context::current();
        let done = tokio::task::spawn_blocking(move || {
            let traced = Traced::begin("database", SpanKind::Internal, [], &request);
            let done = state.on_a_connection(action);
            traced.end(done.is_ok());
            done
        });
        let done = done.await;
        self.figures().database(asked.elapsed(), matches!(done, Ok(Ok(_))));
        match done {
            Ok(Ok(value)) => Ok(value),
            Ok(Err(error)) => Err(unavailable(&error.to_string())),
            Err(_) => Err(unavailable("the request failed inside")),
        }
    }

    /// Reads on a thread that may wait for a client. It counts in no figure of the database, as the client's time is in it.
    pub(super) async fn read_long(&self, mut reading: impl Reading) {
        let state = self.clone();
        let read = move || {
            let done = state.database().and_then(|mut database| {
                database.look(|connection| reading.run(connection))?;
                Ok(database)
            });
            match done {
                Ok(database) => state.keep(database),
                Err(error) => {
                    tracing::error!(reason = %error, "can't send a list to its end");
                    reading.fail(&error.to_string());
                }
            }
        };
        // One that panics has dropped its way to the client, who misses the end.
        let _ = tokio::task::spawn_blocking(read).await;
    }

    fn on_a_connection<T>(
        &self,
        action: impl FnOnce(&Self, &mut Database) -> Result<T, DatabaseError>,
    ) -> Result<T, DatabaseError> {
        let mut database = self.database()?;
        let done = action(self, &mut database)?;
        // One that failed isn't used again.
        self.keep(database);
        Ok(done)
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

/// A reading of the database that goes on while a client takes what was read.
pub(super) trait Reading: Send + 'static {
    /// Reads, in one transaction. It blocks.
    ///
    /// # Errors
    /// The database fails.
    fn run(&mut self, connection: &Connection) -> Result<(), sql::Error>;

    /// Says why there is no more, to a client that has taken all so far; any other finds no end.
    fn fail(&self, reason: &str);
}

/// The answer that says that the hub can't answer now, and why.
pub(super) fn unavailable(reason: &str) -> Response {
    tracing::error!(reason, "can't answer");
    let text = format!("the hub can't answer now: {reason}\n");
    (StatusCode::SERVICE_UNAVAILABLE, [(header::RETRY_AFTER, "5")], text).into_response()
}
