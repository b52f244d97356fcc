use alloc::string::ToString;
use alloc::vec;

use super::*;
use crate::PublicKey;

fn topic(text: &str) -> TopicPattern {
    text.parse().unwrap()
}

fn peers(text: &str) -> PeerPattern {
    text.parse().unwrap()
}

#[test]
fn machines_match_by_name_device_and_key() {
    let (store, attic, cellar) =
        ("store".parse().unwrap(), "attic".parse().unwrap(), "cellar".parse().unwrap());
    let key = PublicKey([7; 32]);
    let here = Peer { machine: Some(&store), device: Some(&attic), is_here: true, key: Some(&key) };
    let unnamed_here = Peer { device: None, ..here };
    let there =
        Peer { machine: Some(&store), device: Some(&cellar), is_here: false, key: Some(&key) };
    let stranger = Peer { key: Some(&key), ..Peer::default() };
    let all = [here, unnamed_here, there, stranger];
    for (pattern, expected) in [
        ("*", [true, true, true, true]),
        ("store", [true, true, false, false]),
        ("store@attic", [true, false, false, false]),
        ("store@cellar", [false, false, true, false]),
        ("store@*", [true, true, true, false]),
        ("*@cellar", [false, false, true, false]),
        ("*@*", [true, true, true, false]),
        ("other@*", [false; 4]),
        (&alloc::format!("#{key}"), [true; 4]),
    ] {
        assert_eq!(peers(pattern).to_string(), pattern);
        assert_eq!(all.map(|peer| peers(pattern).matches(&peer)), expected, "{pattern}");
    }
    for text in ["", "@", "a@", "@b", "A", "a b", "#x", "**", "a@b@c"] {
        assert!(text.parse::<PeerPattern>().is_err(), "{text:?}");
    }
}

#[test]
fn a_lease_grants_no_more_than_the_package_asks_for() {
    let asked = Capabilities {
        publish: vec![topic("room.*")],
        calls: vec![peers("store@*")],
        callers: vec![peers("*")],
        secrets: vec!["wifi".parse().unwrap()],
        reach: vec![reach("https://a.example/*")],
        ..Capabilities::default()
    };
    let granted = Capabilities {
        publish: vec![topic("room.door"), topic("house.door")],
        subscribe: vec![topic("room.door")],
        calls: vec![peers("store"), peers("store@attic"), peers("*@attic"), peers("*")],
        callers: vec![peers("*@*")],
        peripherals: vec!["button".parse().unwrap()],
        secrets: vec!["wifi".parse().unwrap(), "bank".parse().unwrap()],
        reach: vec![reach("https://a.example/v1/*"), reach("https://b.example/*")],
    };
    let held = granted.within(&asked);
    assert_eq!(held.publish, [topic("room.door")]);
    assert_eq!(held.calls, [peers("store"), peers("store@attic")]);
    assert_eq!(held.callers, [peers("*@*")]);
    assert_eq!(held.secrets, asked.secrets);
    assert_eq!(held.reach, [reach("https://a.example/v1/*")]);
    assert!(held.subscribe.is_empty() && held.peripherals.is_empty());
    assert_eq!(asked.within(&asked), asked);
    assert!(asked.within(&Capabilities::default()).is_empty());
}

#[test]
fn what_is_not_named_is_denied_and_every_answer_is_counted() {
    let capabilities = Capabilities {
        publish: vec![topic("room.*")],
        secrets: vec!["wifi".parse().unwrap()],
        ..Capabilities::default()
    };
    let mut grants = Grants::new(&capabilities);
    assert_eq!(grants.publish(&"room.door".parse().unwrap()), Ok(()));
    assert_eq!(grants.read_secret("wifi"), Ok(()));
    assert_eq!(grants.read_secret("wifi"), Ok(()));
    let refused = [
        grants.subscribe(&topic("room.door")).unwrap_err().to_string(),
        grants.use_peripheral("button").unwrap_err().to_string(),
        grants.call(&Peer::default()).unwrap_err().to_string(),
        grants.read_secret("bank").unwrap_err().to_string(),
        grants
            .admit(&Peer { key: Some(&PublicKey([0; 32])), ..Peer::default() })
            .unwrap_err()
            .to_string(),
    ];
    assert_eq!(refused[0], "not granted: subscribe to room.door");
    assert_eq!(refused[1], "not granted: use peripheral button");
    assert_eq!(refused[3], "not granted: read secret bank");
    assert_eq!(grants.denied(), 5);
    let used: alloc::vec::Vec<u64> = grants.uses().iter().map(|one| one.used).collect();
    assert_eq!(used, [1, 2]);
    assert_eq!(grants.published(), 1);
    assert!(Grants::new(&Capabilities::default()).uses().is_empty());
}

#[test]
fn a_callers_name_is_asked_for_only_where_it_decides() {
    let key = PublicKey([3; 32]);
    let depends = |patterns: &[&str]| {
        let callers = patterns.iter().map(|text| peers(text)).collect();
        Grants::new(&Capabilities { callers, ..Capabilities::default() }).depends_on_name(&key)
    };
    assert!(depends(&["store@*"]));
    assert!(depends(&["store", "*@attic"]));
    assert!(!depends(&[]));
    assert!(!depends(&["store"]));
    assert!(!depends(&["*", "store@*"]));
    assert!(!depends(&[&alloc::format!("#{key}"), "store@*"]));
}

#[test]
fn lists_are_short_and_name_nothing_twice() {
    let name = |number: usize| alloc::format!("n{number}").parse().unwrap();
    let secrets = (0..CAPABILITIES_MAX).map(name).collect();
    let mut capabilities = Capabilities { secrets, ..Capabilities::default() };
    assert_eq!(capabilities.check(), Ok(()));
    let bytes = postcard::to_allocvec(&capabilities).unwrap();
    assert_eq!(postcard::from_bytes::<Capabilities>(&bytes).unwrap(), capabilities);
    capabilities.secrets.push(name(99));
    assert_eq!(capabilities.check(), Err(Right::Secret));
    capabilities.secrets.clear();
    capabilities.calls = vec![peers("a"), peers("a")];
    assert_eq!(capabilities.check(), Err(Right::Call));
    // An alleged length of 2^28 reserves nothing.
    assert!(postcard::from_bytes::<Capabilities>(&[0xff, 0xff, 0xff, 0xff, 0x01]).is_err());
}

fn reach(text: &str) -> ReachPattern {
    text.parse().unwrap_or_else(|error| panic!("{text}: {error}"))
}

#[test]
fn right_to_a_server_is_written_in_one_form() {
    for (text, canonical) in [
        ("https://API.example.com:443/v1/*", "https://api.example.com/v1/*"),
        ("GET HTTP://192.0.2.1/x", "GET http://192.0.2.1/x"),
        ("https://[2001:DB8::1]:8443/*", "https://[2001:db8::1]:8443/*"),
    ] {
        assert_eq!(reach(text).to_string(), canonical);
        assert_eq!(reach(canonical), reach(text));
    }
    for refused in [
        "https://api.example.com",
        "https://*.example.com/*",
        "https://*/*",
        "*",
        "https://api.example.com/a*b",
        "https://api.example.com/**",
        "https://api.example.com/x?y=*",
        "https://api.example.com/../*",
        "https://api.example.com/%2e%2e/*",
        "https://api.example.com/a//b",
        "https://api.example.com/..;/*",
        "https://api.example.com/%252e/*",
        "https://user@api.example.com/*",
        "get https://api.example.com/*",
        "CONNECT https://api.example.com/*",
        "GET,POST https://api.example.com/*",
        "GET  https://api.example.com/*",
        "ftp://api.example.com/*",
        "api.example.com/*",
    ] {
        assert!(refused.parse::<ReachPattern>().is_err(), "{refused}");
    }
}

#[test]
fn right_to_a_server_covers_no_request_that_another_does_not_match() {
    let patterns = [
        "https://a.example/*",
        "https://a.example/v1/*",
        "https://a.example/v1",
        "https://a.example/v1/x",
        "GET https://a.example/*",
        "GET https://a.example/v1/x",
        "POST https://a.example/v1/*",
        "http://a.example/*",
        "https://a.example:8443/*",
        "https://b.example/*",
    ];
    let urls = [
        "https://a.example/",
        "https://a.example/v1",
        "https://a.example/v1/x?y",
        "https://a.example/v2/x",
        "http://a.example/v1/x",
        "https://a.example:8443/v1/x",
        "https://b.example/v1/x",
    ];
    for (wide, narrow) in
        patterns.iter().flat_map(|wide| patterns.map(|narrow| (reach(wide), reach(narrow))))
    {
        if wide.covers(&narrow) {
            for (url, method) in
                urls.iter().flat_map(|url| ["GET", "POST"].map(|method| (url, method)))
            {
                let (url, method) = (url.parse().unwrap(), method.parse().unwrap());
                let visit = Visit { method: &method, url: &url };
                assert!(
                    wide.matches(&visit) || !narrow.matches(&visit),
                    "{wide} covers {narrow}: {visit}"
                );
            }
        }
        assert!(wide.covers(&wide));
    }
    assert!(reach(patterns[0]).covers(&reach(patterns[5])));
    assert!(!reach(patterns[1]).covers(&reach(patterns[2])), "what begins with /v1/ is not /v1");
    assert!(!reach(patterns[4]).covers(&reach(patterns[0])), "any method is more than one");
}

// C3-3
#[test]
fn path_with_several_readings_is_within_a_right_to_the_whole_server_alone() {
    let (trick, method) =
        ("https://a.example/v1/..;/admin".parse().unwrap(), "GET".parse().unwrap());
    let visit = Visit { method: &method, url: &trick };
    for (pattern, matches) in [
        ("https://a.example/*", true),
        ("GET https://a.example/*", true),
        ("https://a.example/v1/*", false),
        ("https://a.example/v*", false),
        ("GET https://a.example/v1/*", false),
    ] {
        assert_eq!(reach(pattern).matches(&visit), matches, "{pattern}");
    }
    // One that was signed once is no exception.
    let exact = ReachPattern::try_from("https://a.example/v1/..;/admin".to_string()).unwrap();
    assert!(!exact.matches(&visit));
    let origin = "https://a.example".parse().unwrap();
    assert!(reach("https://a.example/*").is_all_of(&origin));
    for pattern in ["GET https://a.example/*", "https://a.example/v1/*", "https://a.example:8443/*"]
    {
        assert!(!reach(pattern).is_all_of(&origin), "{pattern}");
    }
    assert_eq!(reach("https://a.example/v1.*").to_string(), "https://a.example/v1.*");
}

#[test]
fn right_to_a_server_that_came_in_another_form_matches_nothing_more() {
    let url = "https://a.example.b.example/x".parse().unwrap();
    let method = "GET".parse().unwrap();
    let visit = Visit { method: &method, url: &url };
    for text in [
        "https://A.example/*",
        "HTTPS://a.example.b.example/*",
        "GET  https://a.example.b.example/*",
    ] {
        let pattern = ReachPattern::try_from(text.to_string()).unwrap();
        assert!(!pattern.matches(&visit), "{text}");
    }
    for text in [
        "https://a.example*",
        "https://a.example",
        "https://*/x",
        "https:///*",
        "*",
        "https://a.example/*/*",
        "https://a.example/\n*",
    ] {
        assert!(ReachPattern::try_from(text.to_string()).is_err(), "{text}");
    }
}
