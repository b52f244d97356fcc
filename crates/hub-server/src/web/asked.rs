//! Requests over HTTP that sessions ask, too: rollouts, revocations, people and the registry; and those of the pages' forms.
//!
//! Invariants:
//! - Who has no pass, or one that doesn't go so far, is refused before the body is read or takes a place.
//! - The bodies that are read at once are bounded in all, for each key and for each person of it (`bodies`).
//! - A pass that was ended while the body came does nothing.

use axum::body::Body;
use axum::extract::{FromRequest, Request};
use axum::response::{IntoResponse as _, Response};
use http::{HeaderMap, Method, StatusCode};
use http_body_util::BodyExt as _;
use hyper::body::Body as _;
use serde_json::Value;

use crate::api;
use crate::api::sign_in::Holder;
use crate::exchange::{Exchange, Reply, pairs, segments_of};
use crate::store::sql::{self, Connection};
use crate::store::{Database, DatabaseError};
use crate::web::answers::problem;
use crate::web::bodies::Place;
use crate::web::pages::layout::or_sign_in;
use crate::web::state::HubState;
use crate::web::{gate, now, path_of};

/// A request whose pass was checked, and whose body is there.
#[derive(Debug)]
pub(crate) struct Asked {
    holder: Holder,
    exchange: Exchange,
    _place: Option<Place>,
}

impl FromRequest<HubState> for Asked {
    type Rejection = Response;

    async fn from_request(request: Request, hub: &HubState) -> Result<Self, Response> {
        let (parts, body) = request.into_parts();
        let holder = gate::holder(hub, &parts.headers).await;
        let holder = holder.map_err(gate::asking_for_a_password)?;
        let segments = segments_of(path_of(&parts));
        if let Some(refusal) = api::refusal(&holder, &parts.method, &segments) {
            return Err(response(refusal));
        }
        let place = match body.is_end_stream() {
            true => None,
            false => Some(place(hub, &holder).await?),
        };
        let unix_s = now(hub);
        let mut exchange = Exchange {
            segments,
            parameters: pairs(parts.uri.query().unwrap_or("").as_bytes()),
            method: parts.method,
            headers: parts.headers,
            body: read(body).await?,
            who: holder.who.clone(),
            by: holder.by(),
            person: holder.person().to_string(),
            unix_s,
            hub_hears_since_unix_s: hub.running().hears_since_unix_s(unix_s),
            is_noted: true,
        };
        match api::count(hub.running(), &holder, &mut exchange) {
            Some(refusal) => Err(response(refusal)),
            None => Ok(Self { holder, exchange, _place: place }),
        }
    }
}

async fn place(hub: &HubState, holder: &Holder) -> Result<Place, Response> {
    let place = hub.bodies().take(&holder.who, holder.taker()).await;
    place.map_err(|_| StatusCode::SERVICE_UNAVAILABLE.into_response())
}

/// A body, which is bounded by a layer.
async fn read(body: Body) -> Result<Vec<u8>, Response> {
    match body.collect().await {
        Ok(body) => Ok(body.to_bytes().to_vec()),
        Err(_) => Err(StatusCode::PAYLOAD_TOO_LARGE.into_response()),
    }
}

impl Asked {
    /// Answers it in a transaction.
    pub(crate) async fn transact(self, hub: &HubState) -> Response {
        self.answer(hub, Database::transact).await
    }

    /// Answers it on the database as it is, if it only reads, and otherwise in a transaction.
    pub(crate) async fn look_or_transact(self, hub: &HubState) -> Response {
        match self.exchange.is_read() {
            true => self.answer(hub, Database::look).await,
            false => self.transact(hub).await,
        }
    }

    async fn answer(
        self,
        hub: &HubState,
        on: impl FnOnce(&mut Database, Action) -> Result<Reply, DatabaseError> + Send + 'static,
    ) -> Response {
        let Self { holder, exchange, _place } = self;
        let action: Action =
            Box::new(move |connection| api::exchange(connection, &holder, &exchange));
        match hub.run(move |_, database| on(database, action)).await {
            Ok(reply) => response(reply),
            Err(answer) => answer,
        }
    }
}

/// The answering of a request.
type Action = Box<dyn FnMut(&Connection) -> Result<Reply, sql::Error> + Send>;

/// An answer as HTTP has it.
pub(crate) fn response(reply: Reply) -> Response {
    (reply.status, reply.header_map(), reply.body).into_response()
}

/// Does `action` in a transaction, if the pass is one then.
///
/// # Errors
/// The answer to a pass that was ended meanwhile, or where the database fails.
pub(crate) async fn transact_as<T: Send + 'static>(
    hub: &HubState,
    holder: Holder,
    mut action: impl FnMut(&Connection, &Holder) -> Result<T, sql::Error> + Send + 'static,
) -> Result<T, Response> {
    let done = hub.run(move |hub, database| {
        let unix_s = now(hub);
        database.transact(|connection| match holder.is_good(connection, unix_s)? {
            true => action(connection, &holder).map(Some),
            false => Ok(None),
        })
    });
    let over = || problem(StatusCode::UNAUTHORIZED, api::PASS_IS_OVER);
    done.await?.ok_or_else(over)
}

/// Does what a form of a page asks for: the `POST` of the API with these segments and this body.
///
/// # Errors
/// The answer to a browser that isn't signed in, or where the database fails.
pub(crate) async fn act(
    hub: &HubState,
    headers: &HeaderMap,
    segments: &[&str],
    body: &Value,
) -> Result<Reply, Response> {
    let holder = gate::holder(hub, headers).await.map_err(or_sign_in)?;
    let unix_s = now(hub);
    let mut exchange = Exchange {
        method: Method::POST,
        segments: segments.iter().map(|segment| (*segment).to_string()).collect(),
        parameters: Vec::new(),
        headers: HeaderMap::new(),
        body: body.to_string().into_bytes(),
        who: holder.who.clone(),
        by: holder.by(),
        person: holder.person().to_string(),
        unix_s,
        hub_hears_since_unix_s: hub.running().hears_since_unix_s(unix_s),
        is_noted: true,
    };
    if let Some(refusal) = api::count(hub.running(), &holder, &mut exchange) {
        return Ok(refusal);
    }
    let done = hub.run(move |_, database| {
        database.transact(|connection| api::exchange(connection, &holder, &exchange))
    });
    done.await
}
