//! Content formats: a machine takes and gives bytes or null, and visitors say what these are (RFC 7252 §12.3).

use ciborium::Value;

/// `text/plain; charset=utf-8`.
pub(crate) const TEXT: u16 = 0;
/// `application/link-format`.
pub(crate) const LINKS: u16 = 40;
/// `application/octet-stream`.
pub(crate) const OCTETS: u16 = 42;
/// `application/json`.
pub(crate) const JSON: u16 = 50;
/// `application/cbor`.
pub(crate) const CBOR: u16 = 60;

/// A payload that is no parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NoParameter {
    /// Its format isn't known.
    Unsupported,
    /// It isn't of its format.
    Malformed,
}

/// The parameter in a payload. Of CBOR a text or bytes are it, null is null, and all else is the text that JSON has for it
/// (RFC 8949 §6.1).
pub(crate) fn parameter(
    payload: Vec<u8>,
    format: Option<u16>,
) -> Result<Option<Vec<u8>>, NoParameter> {
    match format {
        // JSON is its text, which the machine reads.
        None | Some(TEXT | OCTETS | JSON) => Ok(Some(payload)),
        Some(CBOR) => from_cbor(&payload).ok_or(NoParameter::Malformed),
        Some(_) => Err(NoParameter::Unsupported),
    }
}

/// Whether a result might be had in that format.
pub(crate) fn is_spoken(accept: Option<u16>) -> bool {
    matches!(accept, None | Some(TEXT | OCTETS | JSON | CBOR))
}

/// A result in the format that is wanted, or in the one that it looks like; `None` if it can't be had so.
pub(crate) fn represent(
    result: Option<&[u8]>,
    accept: Option<u16>,
) -> Option<(Option<u16>, Vec<u8>)> {
    let text = result.map(std::str::from_utf8).transpose().ok();
    let bytes = match (accept, result) {
        (None, None) => return Some((None, Vec::new())),
        (None, Some(bytes)) => {
            let format = if text.is_some() { TEXT } else { OCTETS };
            return Some((Some(format), bytes.to_vec()));
        }
        (Some(TEXT), _) => text?.unwrap_or_default().into(),
        (Some(OCTETS), result) => result.unwrap_or_default().to_vec(),
        (Some(JSON), _) => to_json(text?),
        (Some(CBOR), result) => to_cbor(result)?,
        (Some(_), _) => return None,
    };
    Some((accept, bytes))
}

/// Text that is JSON stays as it is; other text is a string.
fn to_json(text: Option<&str>) -> Vec<u8> {
    match text {
        None => b"null".to_vec(),
        Some(text) if serde_json::from_str::<serde_json::Value>(text).is_ok() => text.into(),
        Some(text) => serde_json::Value::from(text).to_string().into(),
    }
}

fn to_cbor(result: Option<&[u8]>) -> Option<Vec<u8>> {
    let value = match result.map(|bytes| (bytes, std::str::from_utf8(bytes))) {
        None => Value::Null,
        Some((_, Ok(text))) => Value::Text(text.into()),
        Some((bytes, Err(_))) => Value::Bytes(bytes.into()),
    };
    let mut bytes = Vec::new();
    ciborium::into_writer(&value, &mut bytes).ok()?;
    Some(bytes)
}

fn from_cbor(mut payload: &[u8]) -> Option<Option<Vec<u8>>> {
    let value: Value = ciborium::from_reader(&mut payload).ok()?;
    if !payload.is_empty() {
        return None;
    }
    match value {
        Value::Null => Some(None),
        Value::Text(text) => Some(Some(text.into())),
        Value::Bytes(bytes) => Some(Some(bytes)),
        value => {
            let value: serde_json::Value = value.deserialized().ok()?;
            Some(Some(value.to_string().into()))
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn parameter_is_the_payload_or_what_cbor_means() {
        for format in [None, Some(TEXT), Some(OCTETS), Some(JSON)] {
            assert_eq!(parameter(b"21.5".to_vec(), format), Ok(Some(b"21.5".to_vec())));
        }
        for (payload, expected) in [
            (&b"\x6421.5"[..], Some(&b"21.5"[..])),
            (b"\x42\x00\xFF", Some(b"\x00\xFF")),
            (b"\xF6", None),
            (b"\xF9\x4D\x60", Some(b"21.5")),
            (b"\x18\x2A", Some(b"42")),
            (b"\x20", Some(b"-1")),
            (b"\xF5", Some(b"true")),
            (b"\x60", Some(b"")),
            (b"\x82\x01\x61a", Some(b"[1,\"a\"]")),
            (b"\xA1\x61a\xF6", Some(b"{\"a\":null}")),
        ] {
            let expected = expected.map(<[u8]>::to_vec);
            assert_eq!(parameter(payload.to_vec(), Some(CBOR)), Ok(expected), "{payload:02x?}");
        }
        for payload in
            [&b""[..], b"\xC0\x61a", b"\x64abc", b"\xF6\xF6", b"\xFF", b"\x81\x41\x00", b"\x9F\x01"]
        {
            let parameter = parameter(payload.to_vec(), Some(CBOR));
            assert_eq!(parameter, Err(NoParameter::Malformed), "{payload:02x?}");
        }
        assert_eq!(parameter(Vec::new(), Some(41)), Err(NoParameter::Unsupported));
    }

    #[test]
    fn result_is_had_in_the_formats_that_it_fits() {
        let had = |result: Option<&[u8]>, accept| {
            represent(result, accept)
                .map(|(format, bytes)| (format, bytes.escape_ascii().to_string()))
        };
        let is = |format, text: &str| Some((format, text.to_string()));
        let (text, bytes) = (Some(&b"a\"b"[..]), Some(&b"\xFF"[..]));
        assert_eq!(had(text, None), is(Some(TEXT), "a\\\"b"));
        assert_eq!(had(bytes, None), is(Some(OCTETS), "\\xff"));
        assert_eq!(had(None, None), is(None, ""));
        assert_eq!(had(text, Some(JSON)), is(Some(JSON), "\\\"a\\\\\\\"b\\\""));
        assert_eq!(had(Some(b"{\"a\":1}"), Some(JSON)), is(Some(JSON), "{\\\"a\\\":1}"));
        assert_eq!(had(Some(b"21.5"), Some(JSON)), is(Some(JSON), "21.5"));
        assert_eq!(had(None, Some(JSON)), is(Some(JSON), "null"));
        assert_eq!(had(text, Some(CBOR)), is(Some(CBOR), "ca\\\"b"));
        assert_eq!(had(bytes, Some(CBOR)), is(Some(CBOR), "A\\xff"));
        assert_eq!(had(None, Some(CBOR)), is(Some(CBOR), "\\xf6"));
        assert_eq!(had(bytes, Some(OCTETS)), is(Some(OCTETS), "\\xff"));
        for accept in [TEXT, JSON] {
            assert_eq!(had(bytes, Some(accept)), None, "{accept}");
        }
        assert_eq!(had(text, Some(41)), None);
        assert!(is_spoken(None) && is_spoken(Some(CBOR)) && !is_spoken(Some(LINKS)));
    }

    proptest! {
        #[test]
        fn result_in_cbor_is_the_same_parameter(result in proptest::option::of(proptest::collection::vec(any::<u8>(), 0..64))) {
            let (_, bytes) = represent(result.as_deref(), Some(CBOR)).unwrap();
            prop_assert_eq!(parameter(bytes, Some(CBOR)), Ok(result));
        }

        #[test]
        fn cbor_at_random_is_a_parameter_or_malformed(payload in proptest::collection::vec(any::<u8>(), 0..64)) {
            let _ = parameter(payload, Some(CBOR));
        }
    }
}
