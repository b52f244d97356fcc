//! Whether the hub lives, and whether it can serve: for whoever starts it again, or sends requests to it.

use axum::Router;
use axum::extract::State;
use axum::response::{IntoResponse as _, Response};
use axum::routing::get;
use http::{StatusCode, header};
use tenure_wire::printable::counted;

use crate::running::hearing::Overload;
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

/// `GET /ready`: the directory's thread turns and isn't too slow, what it hears is kept, and the database answers and has room.
/// Devices that are away are no fault of the hub: that many are is told, and it is ready. So is one that lists all that it may:
/// how many that are is for those who sign in.
async fn ready(State(hub): State<HubState>) -> Response {
    if let Some(silent_s) = hub.running().is_deaf(now(&hub)) {
        let text = match silent_s {
            Some(seconds) => {
                format!("the directory has heard no device for {}", counted(seconds, "second"))
            }
            None => "the directory doesn't listen yet".into(),
        };
        return unready(&text);
    }
    let overload = hub.running().overload();
    if let Some(drops @ Overload::Drops { .. }) = overload {
        return unready(&drops.to_string());
    }
    match hub.run(|_, database| database.has_room()).await {
        Ok(false) => unready("the disk is full, or the database as large as --disk-max lets it be"),
        Ok(true) => {
            let jump = hub.running().jump(now(&hub)).map(|jump| jump.words());
            let told = [jump, overload.map(|overdue| overdue.to_string())];
            let lines = ["ready".to_string()].into_iter().chain(told.into_iter().flatten());
            lines.map(|line| line + "\n").collect::<String>().into_response()
        }
        Err(_) => unready("the hub's database can't be read"),
    }
}

fn unready(text: &str) -> Response {
    let again = [(header::RETRY_AFTER, "5")];
    (again, problem(StatusCode::SERVICE_UNAVAILABLE, text)).into_response()
}
