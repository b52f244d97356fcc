//! Rows as people read them: tables, facts, and the links that sort and turn them.

use maud::{Markup, html};

use crate::alarms;
use crate::api::resource::{Cell, Column, Kind, Request, Resource, Rows};
use crate::exchange::encoded;

/// One row as a list of facts, those that are unknown left out.
pub(super) fn facts(resource: &Resource, rows: &Rows) -> Markup {
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

/// The form that filters a list, and the ways to its files.
pub(super) fn search(resource: &Resource, request: &Request) -> Markup {
    let path = format!("/{}", resource.name);
    html! {
        form.search role="search" action=(path) {
            label for="q" { "Filter" }
            input id="q" name="q" type="search" value=(request.words);
            button { "Filter" }
            a href=(address(resource, request, ".csv", None)) { "CSV" }
            a href=(address(resource, request, ".json", None)) { "JSON" }
        }
    }
}

/// A table of rows on the page of something else.
pub(super) fn table_of(resource: &Resource, request: &Request, rows: &Rows) -> Markup {
    table(resource, request, rows, false, None)
}

/// A column of forms behind the others: its heading, and what stands there in a row.
pub(super) type Forms = (&'static str, fn(&[Cell]) -> Markup);

/// A table of rows, whose headings sort if it stands alone. Where it doesn't, a column that is the same in every row
/// is left out.
pub(super) fn table(
    resource: &Resource,
    request: &Request,
    rows: &Rows,
    sorts: bool,
    forms: Option<Forms>,
) -> Markup {
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
                        @if let Some((heading, _)) = forms { th scope="col" { (heading) } }
                    } }
                    tbody { @for row in &rows.rows { tr {
                        @for (index, column) in columns() { (data(&row[index], column.kind)) }
                        @if let Some((_, forms)) = forms { td { (forms(row)) } }
                    } } }
                }
            }
        }
    }
}

/// The button that ends a pass.
pub(super) fn revoke_button(row: &[Cell]) -> Markup {
    let id = row.first().map_or_else(String::new, |cell| cell.text(Kind::Number));
    html! { form method="post" action={ "/passes/" (id) "/revoke" } {
        button aria-label={ "Revoke pass " (id) } { "Revoke" }
    } }
}

/// States that an owner should look at.
const BAD: [&str; 9] = [
    "silent",
    "shut",
    "unwell",
    "banned",
    "failed",
    "rolled back",
    "rolling back",
    "backed off",
    "raised",
];

/// From how many letters on a key is cut to its first ones.
const KEY_LETTERS: usize = 24;

/// A sentence whose commands, between backticks, are shown as code.
pub(super) fn prose(text: &str) -> Markup {
    let parts = text.split('`').enumerate();
    html! { @for (index, part) in parts {
        @if index % 2 == 1 { code { (part) } } @else { (part) }
    } }
}

fn data(cell: &Cell, kind: Kind) -> Markup {
    let text = cell.text(kind);
    match kind {
        Kind::Number => html! { td.number { (shown(cell, kind)) } },
        Kind::Rollout => html! { td.number { a href={ "/rollouts/" (text) } { (text) } } },
        Kind::Device if text.is_empty() => html! { td { (alarms::on(&text)) } },
        Kind::Device => html! { td { a href={ "/devices/" (encoded(&text)) } { (text) } } },
        Kind::Key if text.len() > KEY_LETTERS => html! { td { code title=(text) { (text) } } },
        Kind::Key => html! { td { (text) } },
        Kind::Line => html! { td.line { (text) } },
        Kind::Text => html! { td.bad[BAD.contains(&text.as_str())] { (text) } },
        Kind::Time => html! { td { (shown(cell, kind)) } },
    }
}

/// A cell as people read it.
fn shown(cell: &Cell, kind: Kind) -> String {
    let text = cell.text(kind);
    match kind {
        Kind::Number => grouped(&text),
        Kind::Time => text.replace('T', " ").trim_end_matches('Z').to_string(),
        Kind::Text | Kind::Line | Kind::Key | Kind::Device | Kind::Rollout => text,
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

/// Links to the rows before and after.
pub(super) fn turn(resource: &Resource, request: &Request, rows: &Rows) -> Markup {
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
    if let Some(within_s) = request.within_s {
        pairs.push(("within_s", within_s.to_string()));
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
