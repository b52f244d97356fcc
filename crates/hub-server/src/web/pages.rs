//! The pages: server-rendered, without a build step, readable with or without script.

use axum_core::response::{IntoResponse as _, Response};
use http::{HeaderMap, StatusCode, header};
use maud::{DOCTYPE, Markup, html};
use tenure_wire::hub::Scope;

use crate::receipts::time;
use crate::resource::{Cell, Column, Kind, RESOURCES, Request, Resource, Rows, resource};
use crate::sign_in;
use crate::web::api::{self, Parameters, conditional, csv};
use crate::web::charts;
use crate::web::gate::{self, COOKIE};
use crate::web::installing;
use crate::web::log_pages;
use crate::web::{State, now};

const HTML: &str = "text/html; charset=utf-8";

/// `GET /`: the fleet.
pub(crate) async fn home(state: State, headers: HeaderMap, parameters: Parameters) -> Response {
    list(state, "devices".into(), headers, parameters).await
}

/// `GET /style.css`.
pub(crate) fn style() -> Response {
    ([(header::CONTENT_TYPE, "text/css")], include_str!("../../assets/style.css")).into_response()
}

/// `GET /icon.svg`.
pub(crate) fn icon() -> Response {
    let icon = include_str!("../../assets/icon.svg");
    ([(header::CONTENT_TYPE, "image/svg+xml")], icon).into_response()
}

/// `GET /live.js`.
pub(crate) fn script() -> Response {
    let script = include_str!("../../assets/live.js");
    ([(header::CONTENT_TYPE, "text/javascript")], script).into_response()
}

/// `GET /sign-in?code=…`, as `tenure login` prints it. A link from another site is asked about first, so
/// that nobody is signed in as somebody else without noticing.
pub(crate) async fn sign_in(state: State, headers: HeaderMap, code: String) -> Response {
    let is_own = headers.get("sec-fetch-site").is_none_or(|site| site == "none");
    if code.is_empty() || !is_own {
        return sign_in_page(&code, StatusCode::OK, None);
    }
    open(&state, code).await
}

/// `POST /sign-in` by the form of that page.
pub(crate) async fn sign_in_by_form(state: State, code: String) -> Response {
    open(&state, code).await
}

async fn open(state: &State, code: String) -> Response {
    let opened = state.run(move |_, database| {
        database.transact(|connection| sign_in::open_page(connection, code.trim(), now()))
    });
    match opened.await {
        Ok(Some(secret)) => {
            let cookie = format!(
                "{COOKIE}={secret}; {}; Max-Age={}",
                state.cookie_attributes(),
                sign_in::PAGE_S
            );
            ([(header::SET_COOKIE, cookie)], redirect("/")).into_response()
        }
        Ok(None) => {
            let error = "This code isn't good, or isn't any more: it opens the pages once, within two minutes.";
            sign_in_page("", StatusCode::FORBIDDEN, Some(error))
        }
        Err(answer) => answer,
    }
}

fn sign_in_page(code: &str, status: StatusCode, error: Option<&str>) -> Response {
    let body = html! {
        @if let Some(error) = error { p.error role="alert" { (error) } }
        p { "Type " code { "tenure login" } " on a computer that has your key. It prints an address that opens \
             these pages." }
        form method="post" action="/sign-in" {
            label for="code" { "Code" }
            input id="code" name="code" value=(code) autocomplete="off" required;
            button { "Sign in" }
        }
    };
    let page = layout("Sign in", None, &body);
    (status, [(header::CONTENT_TYPE, HTML)], page.into_string()).into_response()
}

/// `POST /sign-out`.
pub(crate) async fn sign_out(state: State, headers: HeaderMap) -> Response {
    let Some(secret) = gate::session(&headers).map(String::from) else {
        return redirect("/sign-in");
    };
    let ended = state.run(move |_, database| {
        database.transact(|connection| sign_in::sign_out(connection, &secret))
    });
    if let Err(answer) = ended.await {
        return answer;
    }
    let cookie = format!("{COOKIE}=; {}; Max-Age=0", state.cookie_attributes());
    ([(header::SET_COOKIE, cookie)], redirect("/sign-in")).into_response()
}

/// `POST /passes/ID/revoke`.
pub(crate) async fn revoke(state: State, id: i64, headers: HeaderMap) -> Response {
    let who = match gate::who(&state, &headers, Scope::Passes).await {
        Ok(who) => who,
        Err(answer) => return answer,
    };
    let revoked = state.run(move |_, database| {
        database.transact(|connection| sign_in::revoke(connection, &who, id, now()))
    });
    match revoked.await {
        Ok(true) => redirect("/passes"),
        Ok(false) => missing(),
        Err(answer) => answer,
    }
}

/// `GET /RESOURCE`, or `/RESOURCE.csv`.
pub(crate) async fn list(
    state: State,
    name: String,
    headers: HeaderMap,
    parameters: Parameters,
) -> Response {
    let (name, as_csv) =
        name.strip_suffix(".csv").map_or((name.as_str(), false), |name| (name, true));
    let Some(resource) = resource(name) else { return missing() };
    let rows = match as_csv {
        true => api::all_rows(&state, resource, &headers, &parameters).await,
        false => api::rows(&state, resource, &headers, &parameters).await,
    };
    let (request, rows) = match rows {
        Ok(rows) => rows,
        Err(answer) => return or_sign_in(answer),
    };
    if as_csv {
        let headings: Vec<&str> = resource.columns.iter().map(|column| column.name).collect();
        let text = |(cell, column): (&Cell, &Column)| plain(cell, column.kind);
        let rows: Vec<Vec<String>> = rows
            .rows
            .iter()
            .map(|row| row.iter().zip(resource.columns).map(text).collect())
            .collect();
        return conditional(&headers, "text/csv; charset=utf-8", csv(&headings, &rows));
    }
    let body = html! {
        p { (resource.about) }
        (search(resource, &request))
        (table(resource, &request, &rows, true))
        (turn(resource, &request, &rows))
    };
    page(&headers, resource.title, resource.name, &body)
}

/// `GET /devices/NAME`: one device with what belongs to it.
pub(crate) async fn device(state: State, device: String, headers: HeaderMap) -> Response {
    let mut parts = Vec::new();
    for name in OF_DEVICE {
        let Some(resource) = resource(name) else { continue };
        let parameters = [("device".to_string(), device.clone())];
        match api::rows(&state, resource, &headers, &parameters).await {
            Ok((request, rows)) => parts.push((resource, request, rows)),
            Err(answer) => return or_sign_in(answer),
        }
    }
    if parts.iter().all(|(_, _, rows)| rows.rows.is_empty()) {
        return missing();
    }
    let charts = match charts::of_device(&state, &headers, &device).await {
        Ok(charts) => charts,
        Err(answer) => return or_sign_in(answer),
    };
    let commands = match installing::on_device(&state, &headers, &device).await {
        Ok(commands) => commands,
        Err(answer) => return or_sign_in(answer),
    };
    let log = log_pages::on_device(&state, &device, &machines_of(&parts));
    let body = html! {
        @for (resource, request, rows) in &parts {
            @if !rows.rows.is_empty() {
                h2 { (resource.title) }
                @if resource.name == "device-reports" { (facts(resource, rows)) }
                @else { (table(resource, request, rows, false)) }
            }
            @if resource.name == "machines" { (charts) }
        }
        (log)
        (commands)
    };
    page(&headers, &device, "devices", &body)
}

/// The names in the list of machines.
fn machines_of(parts: &[(&'static Resource, Request, Rows)]) -> Vec<String> {
    let machines = parts.iter().filter(|(resource, ..)| resource.name == "machines");
    let rows = machines.flat_map(|(_, _, rows)| &rows.rows);
    rows.filter_map(|row| Some(plain(row.first()?, Kind::Text))).collect()
}

/// The lists on the page of a device, in that order.
const OF_DEVICE: [&str; 7] =
    ["devices", "alarms", "device-reports", "machines", "machine-metrics", "faults", "receipts"];

/// One row as a list of facts, those that are unknown left out.
fn facts(resource: &Resource, rows: &Rows) -> Markup {
    let row = rows.rows.first().map_or(&[][..], Vec::as_slice);
    let is_fact =
        |(cell, column): &(&Cell, &Column)| **cell != Cell::None && column.kind != Kind::Device;
    let facts = row.iter().zip(resource.columns).filter(is_fact);
    html! {
        dl { @for (cell, column) in facts {
            div { dt { (heading(column)) } dd { (shown(cell, column.kind)) } }
        } }
    }
}

/// The answer where there is nothing.
pub(crate) fn missing() -> Response {
    let body = html! { p { "There is nothing here. " a href="/" { "To the fleet" } } };
    let page = layout("Not found", None, &body).into_string();
    (StatusCode::NOT_FOUND, [(header::CONTENT_TYPE, HTML)], page).into_response()
}

/// Sends a browser elsewhere.
fn redirect(to: &'static str) -> Response {
    (StatusCode::SEE_OTHER, [(header::LOCATION, to)]).into_response()
}

/// Sends a browser without a pass to where it gets one.
pub(crate) fn or_sign_in(answer: Response) -> Response {
    match answer.status() {
        StatusCode::UNAUTHORIZED => redirect("/sign-in"),
        _ => answer,
    }
}

/// A page for somebody who is signed in.
pub(crate) fn page(headers: &HeaderMap, title: &str, place: &str, body: &Markup) -> Response {
    conditional(headers, HTML, layout(title, Some(place), body).into_string())
}

fn layout(title: &str, place: Option<&str>, body: &Markup) -> Markup {
    // A list that belongs to another one's page has no place of its own.
    let listed = RESOURCES.iter().filter(|resource| !resource.name.contains('-'));
    let places = listed.map(|resource| (resource.name, resource.title));
    html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                title { (title) " – Tenure" }
                link rel="stylesheet" href="/style.css";
                link rel="icon" href="/icon.svg" type="image/svg+xml";
                @if place.is_some() { script src="/live.js" defer {} }
            }
            body {
                a.skip href="#main" { "To the content" }
                header {
                    strong { "Tenure" }
                    @if let Some(place) = place {
                        nav aria-label="Pages" {
                            @for (name, title) in places.chain([("bills", "Bills")]) {
                                a href={ "/" (name) } aria-current=[(name == place).then_some("page")] { (title) }
                            }
                        }
                        form method="post" action="/sign-out" { button { "Sign out" } }
                    }
                }
                main id="main" { h1 { (title) } (body) }
            }
        }
    }
}

fn search(resource: &Resource, request: &Request) -> Markup {
    let path = format!("/{}", resource.name);
    html! {
        form.search role="search" action=(path) {
            label for="q" { "Filter" }
            input id="q" name="q" type="search" value=(request.words);
            button { "Filter" }
            a href=(address(resource, request, ".csv", None)) { "CSV" }
        }
    }
}

/// A table of rows on the page of something else.
pub(crate) fn table_of(resource: &Resource, request: &Request, rows: &Rows) -> Markup {
    table(resource, request, rows, false)
}

/// A table of rows, whose headings sort if it stands alone. Where it doesn't, a column that is the same in every row
/// is left out.
fn table(resource: &Resource, request: &Request, rows: &Rows, sorts: bool) -> Markup {
    let direction = |index: usize| match request.sort {
        Some((sorted, descending)) if sorted == index => {
            Some(if descending { "descending" } else { "ascending" })
        }
        _ => None,
    };
    let is_shown = |index: usize| sorts || request.filters.iter().all(|(one, _)| *one != index);
    let columns = || resource.columns.iter().enumerate().filter(|(index, _)| is_shown(*index));
    html! {
        @if rows.rows.is_empty() { p { "None." } } @else {
            div.table tabindex="0" role="region" aria-label=(resource.title) {
                table {
                    thead { tr {
                        @for (index, column) in columns() {
                            th scope="col" aria-sort=[direction(index)] {
                                @if sorts { a href=(address(resource, request, "", Some(index))) { (heading(column)) } }
                                @else { (heading(column)) }
                            }
                        }
                        @if resource.name == "passes" { th scope="col" { "End" } }
                    } }
                    tbody { @for row in &rows.rows { tr {
                        @for (index, column) in columns() { (data(&row[index], column.kind)) }
                        @if resource.name == "passes" { (revoke_button(row)) }
                    } } }
                }
            }
        }
    }
}

fn revoke_button(row: &[Cell]) -> Markup {
    let id = row.first().map_or_else(String::new, |cell| plain(cell, Kind::Number));
    html! { td { form method="post" action={ "/passes/" (id) "/revoke" } {
        button aria-label={ "Revoke pass " (id) } { "Revoke" }
    } } }
}

/// States that an owner should look at.
const BAD: [&str; 6] = ["silent", "banned", "failed", "rolled back", "rolling back", "backed off"];

fn data(cell: &Cell, kind: Kind) -> Markup {
    let text = plain(cell, kind);
    match kind {
        Kind::Number => html! { td.number { (shown(cell, kind)) } },
        Kind::Rollout => html! { td.number { a href={ "/rollouts/" (text) } { (text) } } },
        Kind::Device => html! { td { a href={ "/devices/" (encoded(&text)) } { (text) } } },
        Kind::Text if text.len() > 24 => html! { td { code title=(text) { (text) } } },
        Kind::Line => html! { td.line { (text) } },
        Kind::Text => html! { td.bad[BAD.contains(&text.as_str())] { (text) } },
        Kind::Time => html! { td { (shown(cell, kind)) } },
    }
}

/// A cell as people read it.
fn shown(cell: &Cell, kind: Kind) -> String {
    let text = plain(cell, kind);
    match kind {
        Kind::Number => grouped(&text),
        Kind::Time => text.replace('T', " ").trim_end_matches('Z').to_string(),
        Kind::Text | Kind::Line | Kind::Device | Kind::Rollout => text,
    }
}

/// A column's heading; times are in UTC.
fn heading(column: &Column) -> String {
    match column.kind {
        Kind::Time => format!("{} (UTC)", column.title),
        _ => column.title.to_string(),
    }
}

/// A number whose digits stand in threes, from five of them on (SI brochure §5.4.4).
fn grouped(number: &str) -> String {
    let (sign, digits) = match number.strip_prefix('-') {
        Some(digits) => ("-", digits),
        None => ("", number),
    };
    if digits.len() < 5 {
        return number.to_string();
    }
    let first = digits.len() % 3;
    let threes = digits.as_bytes()[first..].chunks(3).map(String::from_utf8_lossy);
    let head = (first > 0).then(|| digits[..first].into());
    let groups: Vec<std::borrow::Cow<'_, str>> = head.into_iter().chain(threes).collect();
    format!("{sign}{}", groups.join("\u{202f}"))
}

/// A cell as text; a moment as RFC 3339 has it.
fn plain(cell: &Cell, kind: Kind) -> String {
    match (cell, kind) {
        (Cell::None, _) => String::new(),
        (Cell::Text(text), _) => text.clone(),
        (Cell::Number(seconds), Kind::Time) => time(u64::try_from(*seconds).unwrap_or(0)),
        (Cell::Number(number), _) => number.to_string(),
    }
}

/// Links to the rows before and after.
fn turn(resource: &Resource, request: &Request, rows: &Rows) -> Markup {
    let at = |skip: u64| {
        let request = Request { skip, ..request.clone() };
        address(resource, &request, "", None)
    };
    html! {
        nav aria-label="More rows" {
            @if request.skip > 0 { a rel="prev" href=(at(request.skip.saturating_sub(request.limit))) { "Before" } }
            " "
            @if let Some(next) = rows.next { a rel="next" href=(at(next)) { "More" } }
        }
    }
}

/// The address of a list as it is asked for, or sorted by a column instead: the other way round, if it is
/// sorted by that one already.
fn address(resource: &Resource, request: &Request, suffix: &str, sort: Option<usize>) -> String {
    let sort = match (sort, request.sort) {
        (Some(index), Some((sorted, descending))) if index == sorted => Some((index, !descending)),
        (Some(index), _) => Some((index, false)),
        (None, sort) => sort,
    };
    let mut pairs = Vec::new();
    if !request.words.is_empty() {
        pairs.push(("q", request.words.clone()));
    }
    for (index, value) in &request.filters {
        pairs.push((resource.columns[*index].name, value.clone()));
    }
    if let Some((index, descending)) = sort {
        let sign = if descending { "-" } else { "" };
        pairs.push(("sort", format!("{sign}{}", resource.columns[index].name)));
    }
    if suffix.is_empty() && request.skip > 0 {
        pairs.push(("skip", request.skip.to_string()));
    }
    let pairs: Vec<String> =
        pairs.iter().map(|(name, value)| format!("{name}={}", encoded(value))).collect();
    let mark = if pairs.is_empty() { "" } else { "?" };
    format!("/{}{suffix}{mark}{}", resource.name, pairs.join("&"))
}

/// Text in an address (RFC 3986 §2.1).
fn encoded(text: &str) -> String {
    let byte = |byte: u8| match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => {
            char::from(byte).to_string()
        }
        byte => format!("%{byte:02X}"),
    };
    text.bytes().map(byte).collect()
}
