//! Findings of computers, hubs and clocks of all kinds.

use tenure_reach::TunnelUrl;

use super::here::{interface, kind};
use super::*;

fn ips(texts: &[&str]) -> Vec<IpAddr> {
    texts.iter().map(|text| text.parse().unwrap()).collect()
}

#[test]
fn interface_is_told_with_the_family_of_each_address_and_who_reaches_it() {
    let finding = interface("eth0", &ips(&["192.168.1.20", "8.8.8.8", "fe80::1", "fd00::1"]));
    assert_eq!(
        finding.text(),
        "interface  eth0: 192.168.1.20 (IPv4, private), 8.8.8.8 (IPv4, public), fe80::1 (IPv6, this link alone), \
         fd00::1 (IPv6, private)"
    );
    for (address, of) in [
        ("127.0.0.1", "this computer alone"),
        ("::1", "this computer alone"),
        ("169.254.1.1", "this link alone"),
        ("100.64.0.1", "shared by a provider's customers"),
        ("100.128.0.1", "public"),
        ("2001:4860::1", "public"),
    ] {
        assert_eq!(kind(&address.parse().unwrap()), of, "{address}");
    }
    assert!(ipv6(&ips(&["2001:4860::1"])).text().contains("has a public address"));
    let private = ipv6(&ips(&["10.0.0.1", "fe80::1", "::1"])).text();
    assert!(private.ends_with("no public address of IPv6; IPv4 does as well"), "{private}");
    let alone = ipv6(&ips(&["127.0.0.1", "2001:4860::1", "::1"])).text();
    assert!(alone.ends_with("a public address of IPv6, and no IPv4"), "{alone}");
}

#[test]
fn address_that_the_hub_sees_and_no_interface_has_is_a_routers() {
    let own = ips(&["192.168.1.20", "::1"]);
    let at = |ip: [u8; 4]| Address::Udp((ip, 40_000).into());
    let routed = seen_from(&at([203, 0, 113, 9]), &own);
    assert!(routed.said.contains("203.0.113.9:40000") && routed.said.contains("NAT"));
    assert_eq!(routed.object()["nat"], true);
    assert_eq!(seen_from(&at([192, 168, 1, 20]), &own).object()["nat"], false);
    assert!(routed.todo.is_none(), "it isn't wrong");
    let on_link = Address::Udp("[fe80::2]:40000".parse().unwrap());
    assert_eq!(seen_from(&on_link, &own).object()["nat"], false, "no router carries it");
    let unknown = seen_from(&at([203, 0, 113, 9]), &[]);
    assert!(unknown.object()["nat"].is_null() && unknown.said.ends_with("203.0.113.9:40000"));
    let six = ips(&["192.168.1.20", "2001:db8:1:2::20"]);
    for (host, nat) in [("192.168.1.20", false), ("2001:db8:1:2::20", false), ("203.0.113.9", true)]
    {
        let by_connection = Address::Udp(carried::address_of(host.parse().unwrap(), 7));
        let seen = seen_from(&by_connection, &six);
        assert_eq!(seen.object()["nat"], nat, "{host}");
        assert!(seen.said.contains(", by WebSocket, "), "{}", seen.said);
    }
}

#[test]
fn silent_address_of_a_hub_is_wrong_only_if_no_other_answers() {
    let addresses: [SocketAddr; 2] =
        ["203.0.113.5:7369".parse().unwrap(), "[2001:4860::1]:7369".parse().unwrap()];
    let own = ips(&["192.168.1.20"]);
    let (trip, silent) = (Echo::After(Duration::from_millis(700)), Echo::Silent);
    let half = udp(&addresses, &[trip, silent], &own, false);
    assert!(half.iter().all(|finding| finding.todo.is_none()), "{half:?}");
    assert_eq!(half[0].said, "gets to 203.0.113.5:7369 and back in 700.0 ms, which is slow");
    let none = udp(&addresses, &[silent, silent], &own, false);
    assert!(none[0].todo.as_ref().unwrap().ends_with("UDP: let it through to port 7369"));
    assert!(none[1].todo.as_ref().unwrap().starts_with("this computer has no IPv6"));
    let blocked = udp(&addresses, &[silent, silent], &own, true);
    assert!(blocked.iter().all(|finding| finding.todo.is_none()), "{blocked:?}");
}

#[test]
fn websocket_is_wrong_only_if_it_is_needed_and_cannot_be_had() {
    let url: TunnelUrl = "wss://hub.example".parse().unwrap();
    let said = |ways, failure| websocket(&url, ways, failure).text();
    assert!(said((false, true), None).contains("by WebSocket, wss://hub.example, as UDP"));
    assert!(said((true, false), None).contains("isn't needed: UDP gets through"));
    let wrong = websocket(&url, (false, false), Some("the proxy refuses"));
    assert!(wrong.said == "the proxy refuses" && wrong.todo.is_some());
}

#[test]
fn way_out_from_silence_follows_from_what_is_known_of_both_ends() {
    let to = |address: &str, echo, own: &[&str]| {
        lead(&address.parse::<SocketAddr>().unwrap(), echo, &ips(own))
    };
    let six = ["127.0.0.1", "2001:4860::1"];
    let told = to("203.0.113.5:7369", Echo::Silent, &six);
    assert!(told.starts_with("this computer has no IPv4: have the hub listen at"), "{told}");
    let told = to("[2001:4860::9]:7369", Echo::Silent, &six);
    assert!(told.contains("a firewall here, there or between"), "{told}");
    for loopback in [&["127.0.0.1", "::1"][..], &["169.254.3.4"]] {
        let told = to("203.0.113.5:7369", Echo::Silent, loopback);
        assert_eq!(told, "this computer is in no network: connect it");
    }
    for unknown in ["203.0.113.5:7369", "[fe80::1]:7369", "127.0.0.1:7369"] {
        let told = to(unknown, Echo::Silent, &[]);
        assert!(told.contains("a firewall here, there or between"), "{unknown}: {told}");
    }
    let told = to("203.0.113.5:7369", Echo::Refused, &["10.0.0.1"]);
    assert!(told.contains("listens at port 7369: somebody there says that nobody does"), "{told}");
}

#[test]
fn hub_of_an_earlier_version_is_no_fault_and_each_fault_has_its_own_way_out() {
    let own = ips(&["192.168.1.20"]);
    let found = heard(Ok(None), &own);
    let [old] = &found[..] else { panic!("{found:?}") };
    assert!(old.todo.is_none() && old.said.contains("of an earlier version"), "{old:?}");
    let failed = anyhow::Error::new(NoResult::Deadline).context("the hub at 203.0.113.5:7369");
    for (error, todo) in [(failed, "try again"), (anyhow!(UNREADABLE), "name the hub")] {
        let found = heard(Err(error), &own);
        let [finding] = &found[..] else { panic!("{found:?}") };
        assert!(finding.todo.as_ref().unwrap().starts_with(todo), "{finding:?}");
    }
    let from = Address::Udp(([192, 168, 1, 20], 40_000).into());
    let seen = Seen { from, unix_s: 1_800_000_000 };
    let found = heard(Ok(Some((seen, 1_800_000_000 - 400 * 86_400))), &own);
    let [_, clock] = &found[..] else { panic!("{found:?}") };
    assert_eq!(clock.said, "this computer's clock is 400 days behind the hub's");
    assert!(clock.todo.is_some());
}

#[test]
fn clock_that_ends_records_too_early_or_too_late_is_wrong() {
    let now = 1_800_000_000;
    assert!(clock(now, now + 2).said.ends_with("agrees with the hub's"));
    assert!(clock(now, now + 19).todo.is_none());
    let behind = clock(now, now - 300);
    assert_eq!(behind.said, "this computer's clock is 5 min behind the hub's");
    assert!(behind.todo.is_some());
    assert!(clock(now, now + 20).text().contains("20 s ahead of the hub's; set the one"));
}

#[test]
fn proxy_is_told_without_its_password() {
    let told = |wanted: &'static str, value: &'static str| {
        let findings = proxies(|name| (name == wanted).then(|| value.to_owned()));
        findings.iter().map(Finding::text).collect::<Vec<_>>().join("\n")
    };
    for (variable, value) in [
        ("HTTPS_PROXY", "http://user:pass@proxy.example:3128/x"),
        ("https_proxy", "proxy.example:3128"),
        ("ALL_PROXY", "socks5h://user:p@ss/w?#rd@proxy.example:3128"),
    ] {
        let text = told(variable, value);
        assert!(text.contains(&format!("{variable} names proxy.example:3128; ")), "{text}");
        assert!(!text.contains("pass") && !text.contains("ss/w"), "{text}");
    }
    assert!(told("HTTP_PROXY", "").contains("no variable"), "an empty one names none");
}

#[test]
fn finding_for_programs_has_its_facts_beside_the_words() {
    let finding = Finding::wrong("udp", "no answer", "let it through");
    let object = finding.with(json!({ "answers": false })).object();
    assert_eq!(
        object,
        json!({
            "finding": "udp", "ok": false, "said": "no answer", "todo": "let it through", "answers": false
        })
    );
}
