//! Pages of machines, below `/m/NAME@DEVICE/`: who visits, and as whom the hub calls for them.
//!
//! A page is a tenant's, and has the hub's host. So a browser gives it an origin that is nobody's (`tenure_pages` confines
//! it), and shows the hub's cookie with none of the requests that it makes. It shows a ticket instead, in its path: whoever
//! opens a page gets one, for that page alone.
//!
//! Invariants:
//! - Nothing that belongs to the hub's origin, its cookie and a program's token among it, reaches a machine.
//! - A request without a good ticket reaches no machine, and one that a page of the hub's own makes none but to show it.
//! - A ticket is as good as the sign-in that it was made for, also for a stream that is open.

mod allowed;
mod place;
mod tickets;

use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::response::{IntoResponse as _, Response};
use axum::routing::any;
use http::{HeaderMap, HeaderValue, Method, StatusCode, Uri, header, request};
use maud::html;
use tenure_crypto::Seed;
use tenure_http_listener::{Host, Site};
use tenure_pages::{Cookies, Machines, Origins, Visit, Visits};

use crate::api::sign_in;
use crate::web::pages::layout::{self, HTML, layout, redirect};
use crate::web::state::HubState;
use crate::web::{gate, now};
use allowed::{Allowed, Visitor, visitor};
use place::Place;
use tickets::{Proof, Ticket, Tickets};

/// Who calls machines for visitors: the hub, by two keys, so that a lease may tell one kind of visitor from the other.
#[derive(Clone, Debug)]
pub struct Visitors<V> {
    /// Calls for those who are signed in and own the device, or are an owner by the role that its owner gave them.
    pub owners: V,
    /// Calls for everybody else.
    pub guests: V,
    /// The hosts by which those come who aren't signed in, if they are let in, too; addresses and `localhost` are among them. A
    /// name that somebody else leads to the hub is none (DNS rebinding).
    pub strangers: Option<Origins>,
    /// The key of tickets to pages.
    pub ticket_key: Seed,
}

/// The pages of machines, whoever visits them.
#[derive(Clone)]
pub(super) struct MachinePages<V> {
    visitors: Visitors<V>,
    tickets: Tickets,
    /// The requests for owners, and those for everybody else: a crowd of guests takes no turn of an owner's.
    of_owners: Machines,
    of_guests: Machines,
}

/// The paths of pages.
pub(super) fn routes<V: Visits>(machines: MachinePages<V>) -> Router<HubState> {
    let visit = any(async move |State(hub): State<HubState>, request: Request| {
        machines.answer(hub, request).await
    });
    ["/m", "/m/", "/m/{*page}"]
        .into_iter()
        .fold(Router::new(), |router, path| router.route(path, visit.clone()))
}

impl<V: Visits> MachinePages<V> {
    pub(super) fn new(visitors: Visitors<V>) -> Self {
        let tickets = Tickets::new(visitors.ticket_key.clone());
        let machines = Machines::bounded_by_visitor;
        Self { visitors, tickets, of_owners: machines(), of_guests: machines() }
    }

    /// Answers a request to one of those paths.
    async fn answer(&self, hub: HubState, request: Request) -> Response {
        let (parts, body) = request.into_parts();
        let judged = match Place::of(parts.uri.path()) {
            None => Err(layout::missing()),
            Some(place) => match place.ticket.clone() {
                None => Err(self.enter(&hub, &place, &parts).await),
                Some(ticket) => self
                    .judge(&hub, &place, &ticket, &parts)
                    .await
                    .map(|visitor| (place, ticket, visitor)),
            },
        };
        let (place, ticket, visitor) = match judged {
            Ok(visit) => visit,
            Err(mut own) => {
                gate::protect(&mut own);
                return own;
            }
        };
        let (visits, machines) = match visitor.is_owner {
            true => (self.visitors.owners.clone(), &self.of_owners),
            false => (self.visitors.guests.clone(), &self.of_guests),
        };
        let visit = visit(&place, &ticket, &visitor, parts);
        let visits = Allowed::new(visits, (hub, self.tickets.clone()), (place, ticket), visitor);
        machines.answer(&visits, visit, body).await.map(Body::new)
    }

    /// Leads a visitor who opens a page to it, with a ticket.
    async fn enter(&self, hub: &HubState, place: &Place, parts: &request::Parts) -> Response {
        if !matches!(parts.method, Method::GET | Method::HEAD) {
            let text = "open the page itself first: it alone asks its machine for changes\n";
            return (StatusCode::FORBIDDEN, text).into_response();
        }
        let session = match gate::session(hub, &parts.headers).map(String::from) {
            None => None,
            Some(secret) => {
                let session = hub.run(move |hub, database| {
                    let owners = hub.running().owners();
                    Ok(sign_in::session_of(&database.connection, &secret, &owners, now(hub))?)
                });
                match session.await {
                    Ok(session) => session,
                    Err(unavailable) => return unavailable,
                }
            }
        };
        let proof = match &session {
            Some(session) => Proof::Session(session),
            None if self.lets_in(parts) => Proof::Stranger { unix_s: now(hub) },
            // A browser doesn't say who is signed in where another site, or a page of a machine, led here.
            None if Site::of(&parts.headers) == Site::Other => return asking_to_go_on(place),
            None => return redirect("/sign-in"),
        };
        let ticket = self.tickets.make(&proof, &place.machine);
        see_other(&format!("{}{}{}", place.below(Some(&ticket)), place.rest, query(parts)))
    }

    /// Who visits with this ticket.
    ///
    /// # Errors
    /// The answer to a request that goes no further.
    async fn judge(
        &self,
        hub: &HubState,
        place: &Place,
        ticket: &Ticket,
        parts: &request::Parts,
    ) -> Result<Visitor, Response> {
        if is_part_of_the_hubs_own_page(&parts.headers) {
            let text = "a page of the hub's has no part of a machine's\n";
            return Err((StatusCode::FORBIDDEN, text).into_response());
        }
        if parts.method == Method::OPTIONS
            && parts.headers.contains_key(header::ACCESS_CONTROL_REQUEST_METHOD)
        {
            return Err(preflight());
        }
        let found = visitor(hub, &self.tickets, place, ticket).await?;
        let let_in = found.filter(|visitor| visitor.who.is_some() || self.lets_in(parts));
        let_in.ok_or_else(|| ticket_is_over(place, parts))
    }

    /// Whether somebody who isn't signed in is let in by the host that a request names.
    fn lets_in(&self, parts: &request::Parts) -> bool {
        self.visitors.strangers.as_ref().is_some_and(|hosts| hosts.have(parts))
    }
}

/// The request as the machine gets it.
fn visit(place: &Place, ticket: &Ticket, visitor: &Visitor, mut parts: request::Parts) -> Visit {
    let target = format!("{}{}", place.rest, query(&parts));
    // RFC 9112 §3.2.2: a target's host stands in place of the field's.
    if let Some(host) = parts.uri.authority().and_then(|host| host.as_str().parse().ok()) {
        parts.headers.insert(header::HOST, host);
    }
    // Its path and query were parts of one that was read.
    parts.uri = Uri::try_from(target).unwrap_or_else(|_| Uri::from_static("/"));
    let host = parts.extensions.get::<Host>().map(|Host(host)| host.to_string());
    Visit {
        machine: place.machine.clone(),
        visitor: visitor.who.clone().or(host),
        cookies: Cookies::default(),
        below: Some(place.below(Some(ticket))),
        parts,
    }
}

/// The query of a request, with its mark; nothing if there is none.
fn query(parts: &request::Parts) -> String {
    parts.uri.query().map(|query| format!("?{query}")).unwrap_or_default()
}

/// Whether a browser fetches something of a machine's for a page of the hub's own, as a script for example. These link to
/// pages of machines and use nothing of them (Fetch Metadata §2.1).
fn is_part_of_the_hubs_own_page(headers: &HeaderMap) -> bool {
    let destination = headers.get("sec-fetch-dest");
    Site::of(headers) == Site::Own && destination.is_some_and(|it| it != "document")
}

/// The answer to a browser that asks whether a page may ask for more than a form could (Fetch §4.8). Its requests show the
/// ticket and nothing else, so it may.
fn preflight() -> Response {
    let fields = [
        (header::ACCESS_CONTROL_ALLOW_ORIGIN, "*"),
        (header::ACCESS_CONTROL_ALLOW_METHODS, "GET, HEAD, POST, PUT, PATCH, DELETE"),
        (header::ACCESS_CONTROL_ALLOW_HEADERS, "*"),
        (header::ACCESS_CONTROL_MAX_AGE, "600"),
    ];
    (StatusCode::NO_CONTENT, fields).into_response()
}

/// The answer where a ticket isn't good, or not any more: a browser that shows pages is led to a new one.
fn ticket_is_over(place: &Place, parts: &request::Parts) -> Response {
    let mode = parts.headers.get("sec-fetch-mode");
    let shows = mode.is_none_or(|mode| mode == "navigate");
    if shows && matches!(parts.method, Method::GET | Method::HEAD) {
        return see_other(&format!("{}{}{}", place.below(None), place.rest, query(parts)));
    }
    let text = "the page was open for too long, or you signed out: open it anew\n";
    (StatusCode::FORBIDDEN, [(header::ACCESS_CONTROL_ALLOW_ORIGIN, "*")], text).into_response()
}

/// The page for a visitor whom another page led here.
fn asking_to_go_on(place: &Place) -> Response {
    let address = format!("{}{}", place.below(None), place.rest);
    let body = html! {
        p { "Another page led here. " a href=(address) { "Open the page of " (place.machine) } }
    };
    let page = layout("A machine's page", None, &body).into_string();
    ([(header::CONTENT_TYPE, HTML)], page).into_response()
}

fn see_other(location: &str) -> Response {
    match HeaderValue::from_str(location) {
        Ok(location) => (StatusCode::SEE_OTHER, [(header::LOCATION, location)]).into_response(),
        Err(_) => StatusCode::BAD_REQUEST.into_response(),
    }
}
