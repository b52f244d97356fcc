//! Which patterns are which names.

use super::*;

#[test]
fn a_name_and_a_wildcard_of_its_first_label_match() {
    for (pattern, name) in [
        ("example.com", "example.com"),
        ("EXAMPLE.com", "example.COM"),
        ("*.example.com", "a.example.com"),
        ("_srv.example.com", "_srv.example.com"),
        ("localhost", "localhost"),
    ] {
        assert!(dns_matches(pattern.as_bytes(), name.as_bytes()), "{pattern} {name}");
    }
}

#[test]
fn wildcards_elsewhere_or_of_more_do_not_match() {
    for (pattern, name) in [
        ("*.example.com", "example.com"),
        ("*.example.com", "a.b.example.com"),
        ("*.example.com", ".example.com"),
        ("*.com", "example.com"),
        ("*", "localhost"),
        ("a*.example.com", "ab.example.com"),
        ("a.*.com", "a.example.com"),
        ("*.*.com", "a.b.com"),
        ("example.com.", "example.com"),
        ("", ""),
        ("example.com\0", "example.com"),
        ("1.2.3.4", "1.2.3.4"),
    ] {
        assert!(!dns_matches(pattern.as_bytes(), name.as_bytes()), "{pattern} {name}");
    }
}

#[test]
fn the_dot_at_the_end_of_a_name_is_not_sent() {
    assert_eq!(ServerName::Dns("example.com.").indication(), Some("example.com"));
    assert!(!ServerName::Dns("exa mple.com").is_valid());
    assert!(!ServerName::Dns("").is_valid());
    assert!(!ServerName::Dns("192.0.2.1").is_valid());
    assert!(ServerName::Ipv4([192, 0, 2, 1]).is_valid());
}
