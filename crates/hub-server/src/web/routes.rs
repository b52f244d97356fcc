//! Routes: the page or the part of the API that a request means.

use std::time::Duration;

use axum_core::response::{IntoResponse as _, Response};
use http::{Method, Request, StatusCode, header};
use http_body_util::{BodyExt as _, Limited};
use hyper::body::{Body as _, Incoming};
use rusqlite::Connection;

use crate::api::{self, BODY_BYTES_MAX, Part};
use crate::exchange::{Exchange, pairs, segments_of};
use crate::web::pages::{self, bills, layout, logs, rollouts, sign_in};
use crate::web::state::State;
use crate::web::{assets, gate, lists, metrics, now, openapi, receipts};

/// How long a request may take, its body included.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(30);

/// Answers a request, within its time and with the headers that every answer has.
pub(super) async fn answer(state: State, request: Request<Incoming>) -> Response {
    let refusal = gate::refusal(request.method(), request.uri().path(), request.headers());
    let mut response = match refusal {
        Some(refusal) => refusal,
        None => tokio::time::timeout(REQUEST_TIMEOUT, route(state, request))
            .await
            .unwrap_or_else(|_| StatusCode::REQUEST_TIMEOUT.into_response()),
    };
    gate::protect(&mut response);
    response
}

/// Finds the page or the part of the API that a request means.
async fn route(state: State, request: Request<Incoming>) -> Response {
    if let Some(part) = api::part(request.method(), request.uri().path()) {
        return exchange(state, part, request).await;
    }
    let (parts, body) = request.into_parts();
    let Ok(body) = Limited::new(body, BODY_BYTES_MAX).collect().await else {
        return StatusCode::PAYLOAD_TOO_LARGE.into_response();
    };
    let body = body.to_bytes().to_vec();
    let (headers, parameters) = (parts.headers, pairs(parts.uri.query().unwrap_or("").as_bytes()));
    let segments = segments_of(parts.uri.path());
    let segments: Vec<&str> = segments.iter().map(String::as_str).collect();
    let code = |pairs: &[(String, String)]| {
        pairs
            .iter()
            .find(|(name, _)| name == "code")
            .map_or_else(String::new, |(_, code)| code.clone())
    };
    match parts.method {
        Method::GET | Method::HEAD => match segments[..] {
            [""] => pages::home(state, headers, parameters).await,
            ["sign-in"] => sign_in::show(state, headers, code(&parameters)).await,
            ["style.css"] => assets::style(),
            ["live.js"] => assets::live_script(),
            ["log.js"] => assets::log_script(),
            ["icon.svg"] => assets::icon(),
            ["metrics"] => metrics::show(state, headers).await,
            ["bills"] => bills::show(state, headers, parameters).await,
            ["bills.csv"] => bills::csv(state, headers, parameters).await,
            ["devices", device] => pages::device(state, device.into(), headers).await,
            ["rollouts", id] => match id.parse() {
                Ok(id) => rollouts::show(state, id, headers).await,
                Err(_) => layout::missing(),
            },
            ["v1", "openapi.json"] => openapi::document(),
            ["v1", "devices", device, "log"] => {
                logs::stream(state, device.into(), headers, parameters).await
            }
            ["v1", "bills"] => bills::json(state, headers, parameters).await,
            ["v1", name] => lists::show(state, name.into(), headers, parameters).await,
            [name] => pages::list(state, name.into(), headers, parameters).await,
            _ => layout::missing(),
        },
        Method::POST => match segments[..] {
            ["sign-in"] => sign_in::by_form(state, code(&pairs(&body))).await,
            ["sign-out"] => sign_in::sign_out(state, headers).await,
            ["passes", id, "revoke"] => match id.parse() {
                Ok(id) => sign_in::revoke(state, id, headers).await,
                Err(_) => layout::missing(),
            },
            ["rollouts", id, verb] => match id.parse() {
                Ok(id) => rollouts::steer(state, id, verb.into(), headers).await,
                Err(_) => layout::missing(),
            },
            ["v1", "receipts"] => receipts::take(state, headers, body).await,
            _ => layout::missing(),
        },
        _ => {
            let allowed = [(header::ALLOW, "GET, HEAD, POST")];
            (StatusCode::METHOD_NOT_ALLOWED, allowed).into_response()
        }
    }
}

/// Answers a request that the API for sessions answers, too. Who has no pass is refused before the body
/// is read.
async fn exchange(state: State, part: Part, request: Request<Incoming>) -> Response {
    let (parts, body) = request.into_parts();
    let holder = match gate::holder(&state, &parts.headers).await {
        Ok(holder) => holder,
        Err(answer) => return gate::asking_for_a_password(answer),
    };
    let _place = match body.is_end_stream() {
        true => None,
        false => match state.bodies().take(&holder.who).await {
            Ok(place) => Some(place),
            Err(_) => return StatusCode::SERVICE_UNAVAILABLE.into_response(),
        },
    };
    let Ok(body) = Limited::new(body, part.body_bytes_max()).collect().await else {
        return StatusCode::PAYLOAD_TOO_LARGE.into_response();
    };
    let asked = Exchange {
        method: parts.method,
        segments: segments_of(parts.uri.path()),
        parameters: pairs(parts.uri.query().unwrap_or("").as_bytes()),
        headers: parts.headers,
        body: body.to_bytes().to_vec(),
        who: holder.who.clone(),
        unix_s: now(),
        hub_hears_since_unix_s: state.hears_since_unix_s(),
    };
    let reply = state.run(move |_, database| {
        let answer = |connection: &Connection| api::exchange(connection, &holder, &asked);
        match part {
            Part::Packages if asked.is_read() => database.look(answer),
            // A rollout takes the steps that are due before it is shown.
            Part::Packages | Part::Rollouts => database.transact(answer),
        }
    });
    match reply.await {
        Ok(reply) => (reply.status, reply.header_map(), reply.body).into_response(),
        Err(answer) => answer,
    }
}
