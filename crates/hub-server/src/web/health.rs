//! Whether the hub lives, and whether it can serve: for whoever starts it again, or sends requests to it.

use axum::Router;
use axum::extract::State;
use axum::response::{IntoResponse as _, Response};
use axum::routing::get;
use http::{StatusCode, header};

use crate::store::figures;
use crate::web::answers::problem;
use crate::web::now;
use crate::web::state::HubState;

pub(super) fn routes() -> Router<HubState> {
    Router::new().route("/health", get(health)).route("/ready", get(ready))
}

/// `GET /health`: the process answers. Nothing else is asked, so that a hub whose disk is slow isn't ended for it.
async fn health() -> &'static str {
    "alive\n"
}

/// `GET /ready`: the directory's thread turns, and the database answers.
async fn ready(State(hub): State<HubState>) -> Response {
    if let Some(silent_s) = hub.running().is_deaf(now(&hub)) {
        let text = match silent_s {
            Some(seconds) => format!("the directory has heard no device for {seconds} seconds"),
            None => "the directory doesn't listen yet".into(),
        };
        return unready(&text);
    }
    match hub.run(|_, database| Ok(figures::devices(&database.connection)?)).await {
        Ok(_) => "ready\n".into_response(),
        Err(_) => unready("the hub's database can't be read"),
    }
}

fn unready(text: &str) -> Response {
    let again = [(header::RETRY_AFTER, "5")];
    (again, problem(StatusCode::SERVICE_UNAVAILABLE, text)).into_response()
}
