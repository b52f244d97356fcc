//! Texts that are the same for everybody and as long as the hub runs: packed once, and not again for each client.

use std::io::Write as _;

use axum::response::{IntoResponse as _, Response};
use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;
use http::{HeaderMap, HeaderValue, StatusCode, header};
use tenure_crypto::sha256;

use crate::web::answers::is_known;

/// A text, as it is and packed.
#[derive(Clone, Debug)]
pub(super) struct Fixed {
    kind: &'static str,
    text: Bytes,
    packed: Bytes,
    tag: String,
}

impl Fixed {
    pub(super) fn new(kind: &'static str, text: impl Into<Bytes>) -> Self {
        let text = text.into();
        let mut packed = GzEncoder::new(Vec::new(), Compression::best());
        // Writing to memory can't fail.
        let _ = packed.write_all(&text);
        let packed = packed.finish().unwrap_or_default().into();
        let tag = format!("\"{}\"", sha256(&[&text]));
        Self { kind, text, packed, tag }
    }

    /// The answer to a client, which may have it already.
    pub(super) fn answer(&self, headers: &HeaderMap) -> Response {
        let mut answer = if is_known(headers, &self.tag) {
            StatusCode::NOT_MODIFIED.into_response()
        } else if takes_gzip(headers) {
            let fields = [(header::CONTENT_TYPE, self.kind), (header::CONTENT_ENCODING, "gzip")];
            (fields, self.packed.clone()).into_response()
        } else {
            ([(header::CONTENT_TYPE, self.kind)], self.text.clone()).into_response()
        };
        let own = answer.headers_mut();
        if let Ok(tag) = HeaderValue::from_str(&self.tag) {
            own.insert(header::ETAG, tag);
        }
        own.insert(header::VARY, HeaderValue::from_static("accept-encoding"));
        answer
    }
}

/// Whether a client takes gzip (RFC 9110 §12.5.3): it is named, or all are, and not with a weight of 0.
fn takes_gzip(headers: &HeaderMap) -> bool {
    let fields = headers.get_all(header::ACCEPT_ENCODING).iter();
    let fields = fields.filter_map(|field| field.to_str().ok());
    let mut is_taken = None;
    for one in fields.flat_map(|field| field.split(',')) {
        let mut parts = one.split(';').map(str::trim);
        let coding = parts.next().unwrap_or_default();
        let weight = parts.find_map(|part| part.strip_prefix("q=")?.parse::<f32>().ok());
        let is_wanted = weight.is_none_or(|weight| weight > 0.0);
        if coding.eq_ignore_ascii_case("gzip") {
            return is_wanted;
        }
        if coding == "*" {
            is_taken = Some(is_wanted);
        }
    }
    is_taken == Some(true)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(name: header::HeaderName, value: &str) -> HeaderMap {
        [(name, value.parse().unwrap())].into_iter().collect()
    }

    // D-3: the document of the API was packed anew for each of 2,000 requests.
    #[test]
    fn text_that_is_the_same_for_all_is_packed_once_and_sent_to_whom_it_fits() {
        let fixed = Fixed::new("text/css", "body{}".repeat(100));
        for (accepts, is_packed) in [
            ("gzip", true),
            ("br, GZIP;q=0.5", true),
            ("*", true),
            ("gzip;q=0, *", false),
            ("gzip; q=0.000", false),
            ("br, xgzip", false),
            ("", false),
        ] {
            let answer = fixed.answer(&headers(header::ACCEPT_ENCODING, accepts));
            let encoding = answer.headers().contains_key(header::CONTENT_ENCODING);
            assert_eq!(encoding, is_packed, "{accepts}");
            assert_eq!(answer.headers()[header::VARY], "accept-encoding");
        }
        assert_eq!(fixed.packed.as_ptr(), fixed.clone().packed.as_ptr());
        let known = headers(header::IF_NONE_MATCH, &format!("\"other\", W/{}", fixed.tag));
        assert_eq!(fixed.answer(&known).status(), StatusCode::NOT_MODIFIED);
    }
}
