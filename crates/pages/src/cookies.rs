//! Which cookies pass between a browser and a machine: a browser keeps them by host, whatever the port (RFC 6265 §8.5), so
//! that a page is shown those of others at its host, and sets them.

use http::{HeaderMap, HeaderValue, header};

/// The name of the cookie by which a browser is signed in at a hub, with or without a prefix (RFC 6265bis §4.1.3). No machine
/// is told one, and none sets one: a hub may have the same host, at another port.
pub const HUB_SESSION: &str = "tenure_session";

/// The prefix of cookies that a host's own secure pages alone can have set.
const OF_THE_HOST_ALONE: &[u8] = b"__Host-";

/// Takes the hub's session from the cookies of a request, and where `others_set` those that pages at other hosts may have set.
pub(crate) fn withhold(headers: &mut HeaderMap, others_set: bool) {
    let passes = |pair: &[u8]| {
        !names_session(pair) && (!others_set || pair.trim_ascii().starts_with(OF_THE_HOST_ALONE))
    };
    let told = headers.get_all(header::COOKIE).iter().filter_map(|field| {
        let pairs = field.as_bytes().split(|byte| *byte == b';').filter(|pair| passes(pair));
        let pairs: Vec<&[u8]> = pairs.collect();
        HeaderValue::from_bytes(pairs.join(&b';').trim_ascii()).ok()
    });
    let told: Vec<HeaderValue> = told.filter(|field| !field.is_empty()).collect();
    headers.remove(header::COOKIE);
    for field in told {
        headers.append(header::COOKIE, field);
    }
}

/// Whether a machine may set a cookie.
pub(crate) fn may_be_set(cookie: &HeaderValue) -> bool {
    // One with a domain is sent to the pages of others below it (RFC 6265 §5.2.3).
    !has_domain(cookie) && !names_session(cookie.as_bytes())
}

/// Whether the session's name stands anywhere in this. Readers differ in where a name begins and ends: at commas, quotes and
/// spaces, in which case of letters; and a cookie without a name is sent as its value alone.
fn names_session(text: &[u8]) -> bool {
    let name = HUB_SESSION.as_bytes();
    text.windows(name.len()).any(|part| part.eq_ignore_ascii_case(name))
}

fn has_domain(cookie: &HeaderValue) -> bool {
    cookie.as_bytes().split(|byte| *byte == b';').skip(1).any(|attribute| {
        let name = attribute.split(|byte| *byte == b'=').next().unwrap_or_default();
        name.trim_ascii().eq_ignore_ascii_case(b"domain")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(fields: &[&str], others_set: bool) -> Vec<String> {
        let fields = fields.iter().map(|field| (header::COOKIE, field.parse().unwrap()));
        let mut headers: HeaderMap = fields.collect();
        withhold(&mut headers, others_set);
        let told = headers.get_all(header::COOKIE).iter();
        told.map(|field| field.to_str().unwrap().to_string()).collect()
    }

    // the hub's cookie, in each form in which somebody could read it.
    #[test]
    fn session_of_the_hub_reaches_no_machine_in_whatever_form_it_comes() {
        for fields in [
            &["tenure_session=1"][..],
            &["__Host-tenure_session=1"],
            &["__Secure-tenure_session=1", "tenure_session=2"],
            &["TENURE_Session=1;Tenure_session=2"],
            &["tenure_session=1; tenure_session=2;;  tenure_session = 3"],
            &["\"tenure_session\"=1; $Version=1, tenure_session=1"],
            &["tenure_session"],
            &["__Http-tenure_session=1;\t__Host-Http-tenure_session=1"],
        ] {
            let told = told(fields, false).concat();
            assert!(!told.to_ascii_lowercase().contains(HUB_SESSION), "{fields:?}: {told}");
        }
        let around = ["a=1; tenure_session=x; b=\"2\"", "tenure_session=y", "c=3"];
        assert_eq!(told(&around, false), ["a=1; b=\"2\"", "c=3"]);
        assert_eq!(told(&["a=\"; tenure_session=x; b=\""], false), ["a=\"; b=\""]);
        assert_eq!(told(&["tenure_session=x; a=1"], false), ["a=1"]);
    }

    // A-4, the other way: nobody is signed in at the hub, or out, by a machine's answer.
    #[test]
    fn session_of_the_hub_is_set_by_no_machine() {
        for cookie in [
            "tenure_session=1; Path=/",
            "__Host-tenure_session=1; Secure; Path=/",
            "__secure-TENURE_SESSION=; Max-Age=0",
            "=tenure_session=1",
            " tenure_session =1",
            "a=b, tenure_session=1",
            "a=1; domain =localhost",
        ] {
            assert!(!may_be_set(&cookie.parse().unwrap()), "{cookie}");
        }
        for cookie in ["a=1; Path=/", "a=domain", "session=1; HttpOnly", "__Host-a=1"] {
            assert!(may_be_set(&cookie.parse().unwrap()), "{cookie}");
        }
    }

    // C4-6: a script sets a cookie for the domain above its page, and with it for the pages of others.
    #[test]
    fn cookie_that_another_page_below_the_domain_may_have_set_is_not_told() {
        let fields = ["session=1; __Host-session=2; __host-x=3", "a=__Host-b"];
        assert_eq!(told(&fields, true), ["__Host-session=2"]);
    }
}
