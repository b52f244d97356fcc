//! The list of resources (RFC 6690).

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use tenure_wire::Topic;

use crate::entry::Entry;
use crate::place::{EVENTS, MACHINES};

/// The resource types.
const FUNCTION: &str = "tenure.function";
const EVENT: &str = "tenure.event";
/// The bytes that a part of a path doesn't have as they are (RFC 3986 §2.3).
const ESCAPED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

struct Link {
    href: String,
    kind: &'static str,
    is_observable: bool,
}

/// The links to what a visitor may ask for, as far as they match `query` (RFC 6690 §4.1).
pub(crate) fn list<'a>(
    entries: &[Entry],
    topics: impl Iterator<Item = &'a Topic>,
    query: Option<&str>,
) -> String {
    let functions = entries.iter().filter(|entry| entry.is_open).flat_map(|entry| {
        entry.functions.iter().map(|function| Link {
            href: format!("/{MACHINES}/{}/{}", entry.name, utf8_percent_encode(function, ESCAPED)),
            kind: FUNCTION,
            is_observable: entry.publishes,
        })
    });
    let events = topics.map(|topic| Link {
        href: format!("/{EVENTS}/{topic}"),
        kind: EVENT,
        is_observable: true,
    });
    let wanted = functions.chain(events).filter(|link| query.is_none_or(|query| link.is(query)));
    wanted.map(|link| link.text()).collect::<Vec<_>>().join(",")
}

impl Link {
    fn text(&self) -> String {
        // RFC 7641 §6: the attribute has no value.
        let observable = if self.is_observable { ";obs" } else { "" };
        format!("<{}>;rt=\"{}\"{observable}", self.href, self.kind)
    }

    /// Whether an attribute is as `query` says; `*` at its end stands for anything. Attributes that no link has match none.
    fn is(&self, query: &str) -> bool {
        let (name, wanted) = query.split_once('=').unwrap_or((query, "*"));
        let value = match name {
            "href" => self.href.as_str(),
            "rt" => self.kind,
            "obs" if self.is_observable => "",
            _ => return false,
        };
        match wanted.strip_suffix('*') {
            Some(beginning) => value.starts_with(beginning),
            None => value == wanted,
        }
    }
}

#[cfg(test)]
mod tests {
    use coap_lite::link_format::LinkFormatParser;

    use super::*;

    #[test]
    fn list_names_what_a_visitor_may_ask_for_and_is_filtered_by_an_attribute() {
        let entry = |name: &str, functions: &[&str], is_open, publishes| Entry {
            name: name.parse().unwrap(),
            functions: functions.iter().map(|it| it.to_string()).collect(),
            is_open,
            publishes,
        };
        let entries = [
            entry("lamp", &["on", "a/b>,\"ü"], true, true),
            entry("safe", &["open"], false, true),
            entry("meter", &["read"], true, false),
        ];
        let topic: Topic = "door.front".parse().unwrap();
        let list = |query| list(&entries, std::iter::once(&topic), query);
        let all = list(None);
        assert_eq!(
            all,
            "</m/lamp/on>;rt=\"tenure.function\";obs,</m/lamp/a%2Fb%3E%2C%22%C3%BC>;rt=\"tenure.function\";obs,\
             </m/meter/read>;rt=\"tenure.function\",</e/door.front>;rt=\"tenure.event\";obs"
        );
        assert_eq!(LinkFormatParser::new(&all).filter(Result::is_ok).count(), 4);
        for (query, count) in [
            ("rt=tenure.event", 1),
            ("rt=tenure.*", 4),
            ("rt=tenure", 0),
            ("href=/m/lamp/*", 2),
            ("href=/m/meter/read", 1),
            ("obs", 3),
            ("obs=*", 3),
            ("if=*", 0),
            ("", 0),
        ] {
            let list = list(Some(query));
            assert_eq!(LinkFormatParser::new(&list).count(), count, "{query}: {list}");
        }
    }
}
