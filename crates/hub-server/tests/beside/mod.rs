//! Two processes of a hub at once: what is counted in the database is counted over both.

use super::world;

use std::thread;

use serde_json::{Value, json};
use tenure_wire::hub::{Access, HubRefusal, Scope};
use world::place::Place;
use world::{World, owner, token_access};

/// The most passes of one key that are good at once, those for sessions apart.
const PASSES_MAX: usize = 64;

/// Two hubs on one database, in which the device `attic` of owner 1 is listed; none without PostgreSQL.
fn two() -> Option<[World; 2]> {
    let place = Place::on_a_server()?;
    let beside = place.beside();
    let mut hubs = [World::at(place), World::at(beside)];
    hubs[0].list(1, 10, "attic");
    Some(hubs)
}

#[test]
fn code_opens_the_pages_once_though_two_hubs_are_shown_it_at_once() {
    let Some(mut hubs) = two() else { return };
    for _ in 0..10 {
        let code = hubs[0].pass(&owner(1), Access::Page).unwrap().secret;
        let request =
            format!("GET /sign-in?code={code} HTTP/1.1\r\nhost: hub\r\nconnection: close\r\n\r\n");
        let pages = hubs.each_ref().map(|hub| hub.pages);
        let mut statuses = thread::scope(|scope| {
            let request = request.as_bytes();
            let asked = pages.map(|pages| scope.spawn(move || World::ask(pages, request).status));
            asked.map(|asked| asked.join().unwrap())
        });
        statuses.sort_unstable();
        assert_eq!(statuses, [303, 403], "one of both");
    }
}

#[test]
fn passes_of_a_key_are_as_many_however_many_hubs_make_them() {
    let Some(mut hubs) = two() else { return };
    let made = thread::scope(|scope| {
        let make = |hub: &mut World| {
            let access = token_access(vec![Scope::Read]);
            let passes = (0..PASSES_MAX).map(|_| hub.pass(&owner(1), access.clone()));
            let (made, refused): (Vec<_>, Vec<_>) = passes.partition(Result::is_ok);
            assert!(refused.iter().all(|refused| *refused == Err(HubRefusal::TooMany)));
            made.len()
        };
        let made = hubs.each_mut().map(|hub| scope.spawn(move || make(hub)));
        made.map(|made| made.join().unwrap())
    });
    assert_eq!(made.iter().sum::<usize>(), PASSES_MAX, "{made:?}");
    let kept = hubs[0].place.rows("SELECT count(*) FROM passes WHERE kind = 'token'");
    assert_eq!(kept, [PASSES_MAX.to_string()]);
}

/// The code of an invitation as a viewer.
fn invite(hub: &World, pass: &str, name: &str) -> String {
    let body = json!({ "name": name, "role": "viewer" }).to_string();
    let reply = hub.request("POST", "/v1/people", &[pass], &body);
    assert_eq!(reply.status, 201, "{}", reply.body);
    let told: Value = serde_json::from_str(&reply.body).unwrap();
    told["code"].as_str().unwrap().to_string()
}

#[test]
fn invitation_opens_once_though_two_keys_are_shown_to_two_hubs_at_once() {
    let Some(mut hubs) = two() else { return };
    let pass = hubs[0].token(&owner(1));
    for number in 0..10 {
        let code = invite(&hubs[0], &pass, &format!("p{number}"));
        let open = |hub: &mut World, key: u8| {
            hub.pass(&owner(key), Access::Invitation { code: code.clone() }).map(drop)
        };
        let opened = thread::scope(|scope| {
            let [first, second] = hubs.each_mut();
            let first = scope.spawn(move || open(first, 100 + 2 * number));
            let second = scope.spawn(move || open(second, 101 + 2 * number));
            [first.join().unwrap(), second.join().unwrap()]
        });
        let (taken, refused): (Vec<_>, Vec<_>) = opened.into_iter().partition(Result::is_ok);
        assert_eq!(taken.len(), 1, "one of both");
        assert_eq!(refused, [Err(HubRefusal::Invitation)]);
    }
    assert_eq!(
        hubs[0].place.rows("SELECT count(*) FROM people WHERE person_key IS NOT NULL"),
        ["10"]
    );
}

#[test]
fn person_who_is_dismissed_at_one_hub_is_out_at_the_other() {
    let Some(mut hubs) = two() else { return };
    let pass = hubs[0].token(&owner(1));
    let code = invite(&hubs[0], &pass, "Ada");
    hubs[1].pass(&owner(100), Access::Invitation { code }).unwrap();
    let cookies = hubs.each_mut().map(|hub| hub.cookie(&owner(100)));
    for (hub, cookie) in hubs.iter().zip(&cookies) {
        assert_eq!(hub.get("/v1/devices", &[cookie]).status, 200);
    }
    let reply = hubs[0].request("POST", "/v1/people/Ada/dismiss", &[&pass], "");
    assert_eq!(reply.status, 204, "{}", reply.body);
    for (hub, cookie) in hubs.iter().zip(&cookies) {
        assert_eq!(hub.get("/v1/devices", &[cookie]).status, 401);
    }
}
