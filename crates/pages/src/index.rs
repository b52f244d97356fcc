//! The list of machines with pages.

use http::{HeaderName, StatusCode, header};
use maud::{DOCTYPE, html};

use crate::answer::Answer;
use crate::origin::host_of;
use crate::visits::Entry;

const STYLE: &str = "body{font:1rem/1.5 system-ui,sans-serif;max-width:40rem;margin:2rem auto;padding:0 1rem;\
                     color-scheme:light dark}li{margin:.5rem 0}";

/// The list, with links below the host that a visitor came by.
pub(crate) fn page(entries: &[Entry], root: &str) -> Answer {
    let text = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width";
                title { "Machines with pages" }
                style { (maud::PreEscaped(STYLE)) }
            }
            body {
                h1 { "Machines with pages" }
                @if entries.is_empty() {
                    p { "No machine here exports " code { "http" } " yet." }
                }
                ul {
                    @for Entry { device, machine } in entries {
                        li {
                            a href=(format!("//{}/", host_of(machine, device, root))) { (machine) }
                            " on " (device)
                        }
                    }
                }
            }
        }
    };
    answer(StatusCode::OK, text.into_string(), "text/html; charset=utf-8")
}

/// A line of text for a visitor who gets no page.
pub(crate) fn line(status: StatusCode, text: &str) -> Answer {
    answer(status, format!("{text}\n"), "text/plain; charset=utf-8")
}

fn answer(status: StatusCode, text: String, kind: &'static str) -> Answer {
    let fields: [(HeaderName, &str); 2] = [
        (header::CONTENT_TYPE, kind),
        (
            header::CONTENT_SECURITY_POLICY,
            "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'",
        ),
    ];
    let headers =
        fields.into_iter().map(|(name, value)| (name, http::HeaderValue::from_static(value)));
    Answer { status, headers: headers.collect(), body: text.into_bytes() }
}
