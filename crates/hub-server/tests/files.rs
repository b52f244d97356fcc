//! Lists as files of any length: what they hold, and what they take.

mod world;

use std::io::{Read as _, Write as _};
use std::net::TcpStream;

use serde_json::Value;
use tenure_testbed::wait_until;
use world::{World, chunks, owner};

/// A hub with so many alarms of owner 1 that are over, each of 200 bytes and more.
fn world_with_alarms(count: u32) -> World {
    let mut world = World::with_fleet();
    let owner = owner(1).verifying_key().to_string();
    let padding = "x".repeat(150);
    world.write_by_hand(&format!(
        "INSERT INTO rule_alarms (rule, condition, owner, device, detail, state, raised_unix_s, over_unix_s) \
         WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {count}) \
         SELECT 'away', 'silent > 10m', '{owner}', 'attic', '{padding}', 'over', i, i FROM n"
    ));
    world
}

fn ask(world: &World, path: &str, token: &str) -> TcpStream {
    let mut stream = world.connect();
    let request =
        format!("GET {path} HTTP/1.1\r\nhost: hub\r\nconnection: close\r\n{token}\r\n\r\n");
    stream.write_all(request.as_bytes()).unwrap();
    stream
}

/// How many files the hub sends, by its own figures.
fn files_under_way(world: &World, token: &str) -> String {
    let figures = world.get("/metrics", &[token]).body;
    let value = figures.lines().find_map(|line| line.strip_prefix("tenure_hub_files "));
    value.unwrap().to_string()
}

fn wait_for_files(world: &World, token: &str, count: &str) {
    wait_until(|| {
        let found = files_under_way(world, token);
        if found == count { Ok(()) } else { Err(format!("{found} files are sent")) }
    });
}

#[test]
fn list_of_100_000_rows_is_a_whole_file_that_comes_in_small_parts() {
    let mut world = world_with_alarms(100_000);
    let token = world.token(&owner(1));
    let mut bytes = Vec::new();
    ask(&world, "/rule-alarms.csv?sort=raised", &token).read_to_end(&mut bytes).unwrap();
    let end = bytes.windows(4).position(|four| four == b"\r\n\r\n").unwrap();
    let parts = chunks(&bytes[end + 4..]);
    let longest = parts.iter().map(|part| part.len()).max().unwrap();
    assert!(longest <= 64 * 1024, "a part has {longest} bytes");
    let body = String::from_utf8(parts.concat()).unwrap();
    assert!(body.len() > 20_000_000, "{} bytes", body.len());
    let mut lines = body.lines();
    let heading = lines.next().unwrap();
    let column = heading.split(',').position(|name| name == "\"raised\"").unwrap();
    let mut before = String::new();
    let mut count = 0;
    for line in lines {
        // Each has another second, and all have the same number of digits.
        let raised = line.split("\",\"").nth(column).unwrap();
        assert!(*raised > *before, "{raised} stands behind {before}");
        before = raised.into();
        count += 1;
    }
    assert_eq!(count, 100_000);
}

#[test]
fn file_of_json_is_the_list_of_the_api_beyond_its_pages() {
    let mut world = world_with_alarms(4_100);
    let token = world.token(&owner(1));
    let all: Vec<Value> =
        serde_json::from_str(&world.get("/rule-alarms.json", &[&token]).body).unwrap();
    assert_eq!(all.len(), 4_100);
    let page = |skip: usize| {
        let path = format!("/v1/rule-alarms?limit=1000&skip={skip}");
        world.get(&path, &[&token]).json()["items"].as_array().unwrap().clone()
    };
    assert_eq!(all[..1_000], page(0));
    assert_eq!(all[3_500..], page(3_500));
    let some = world.get("/rule-alarms.json?limit=3&skip=2", &[&token]).body;
    assert_eq!(serde_json::from_str::<Vec<Value>>(&some).unwrap(), all[2..5]);
    let none = world.get("/rule-alarms.json?rule=other", &[&token]).body;
    assert_eq!(serde_json::from_str::<Vec<Value>>(&none).unwrap(), Vec::<Value>::new());
    assert_eq!(world.get("/rule-alarms.json?nothing=1", &[&token]).status, 400);
    let stranger = world.token(&owner(2));
    assert_eq!(world.get("/rule-alarms.csv", &[&stranger]).body.lines().count(), 1);
}

#[test]
fn client_that_leaves_ends_the_reading_and_gives_its_place_back() {
    let mut world = world_with_alarms(100_000);
    let token = world.token(&owner(1));
    let clients = [(); 2].map(|()| ask(&world, "/rule-alarms.csv", &token));
    wait_for_files(&world, &token, "2");
    drop(clients);
    wait_for_files(&world, &token, "0");
    assert_eq!(world.get("/rule-alarms.csv?limit=10", &[&token]).body.lines().count(), 11);
}
