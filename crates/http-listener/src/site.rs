//! Which site a browser's request comes from.

use http::{HeaderMap, header};

/// The site that a request comes from, as the browser that sends it says (Fetch Metadata; RFC 6454 §7).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Site {
    /// The pages of the host that is asked.
    Own,
    /// None: its user typed the address, or opened a bookmark.
    User,
    /// Another one, or one that isn't named well.
    Other,
    /// Nothing is said: it is sent by a program that is no browser, or by an old one.
    Unsaid,
}

impl Site {
    /// The site that these header fields name. An origin counts where the browser says no more, and must be of the host
    /// that is asked.
    pub fn of(headers: &HeaderMap) -> Self {
        let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
        if headers.contains_key("sec-fetch-site") {
            return match text("sec-fetch-site") {
                Some("same-origin") => Self::Own,
                Some("none") => Self::User,
                _ => Self::Other,
            };
        }
        if !headers.contains_key(header::ORIGIN) {
            return Self::Unsaid;
        }
        let origin = text("origin").and_then(|origin| origin.split_once("://"));
        // The letters of a host have no case (RFC 9110 §4.2.3).
        let is_own = |host: &str| text("host").is_some_and(|own| own.eq_ignore_ascii_case(host));
        match origin {
            Some((_, host)) if is_own(host) => Self::Own,
            _ => Self::Other,
        }
    }
}

#[cfg(test)]
mod tests {
    use http::HeaderName;

    use super::*;

    #[test]
    fn site_is_as_the_browser_says() {
        for (fields, site) in [
            (&[][..], Site::Unsaid),
            (&[("host", "a")], Site::Unsaid),
            (&[("sec-fetch-site", "same-origin"), ("origin", "null")], Site::Own),
            (&[("sec-fetch-site", "none")], Site::User),
            (&[("sec-fetch-site", "same-site")], Site::Other),
            (
                &[("sec-fetch-site", "cross-site"), ("host", "a"), ("origin", "http://a")],
                Site::Other,
            ),
            (&[("host", "A:80"), ("origin", "http://a:80")], Site::Own),
            (&[("host", "a"), ("origin", "http://b")], Site::Other),
            (&[("host", "a"), ("origin", "null")], Site::Other),
            (&[("origin", "http://a")], Site::Other),
        ] {
            let fields = fields
                .iter()
                .map(|(name, value)| (HeaderName::from_static(name), value.parse().unwrap()));
            assert_eq!(Site::of(&fields.collect()), site);
        }
    }
}
