//! Peers that mean no good, or are broken: each costs at most the buffer that its connection was lent, and ends by the
//! deadline.
//!
//! The crate has no heap, and a connection has no memory but its own and its buffer; the tests look at how much of a
//! peer's bytes a buffer takes, at the end of the connection, and at what stays in the buffer.

mod common;

use common::pair::*;
use common::security;
use tenure_tls::{Alert, Client, Error, Event, Misbehaviour, Now, Server};

const BUFFER_BYTES: usize = 3_000;
const SMALL: (usize, usize) = (BUFFER_BYTES, BUFFER_BYTES);
const HOUR_MS: u64 = 3_600_000;

fn at(uptime_ms: u64) -> Now {
    Now { uptime_ms, ..NOW }
}

/// A record of application data that nobody sealed.
fn record_of(length: usize) -> Vec<u8> {
    let mut record = vec![23, 3, 3, (length >> 8) as u8, length as u8];
    record.resize(5 + length, 0x5a);
    record
}

#[test]
fn peer_that_stops_after_any_byte_of_the_handshake_ends_by_the_deadline() {
    in_world(|client, server, _| {
        let mut flight = Vec::new();
        with_pair(client, server, LARGE, |pair| {
            let _ = pair.client.poll(&mut pair.security, &NOW);
            flight.extend_from_slice(pair.client.output());
        });
        for length in 0..flight.len() {
            let mut buffer = vec![0; BUFFER_BYTES];
            let mut ours = Server::new(&mut buffer, server, None, &NOW).expect("a server");
            let mut security = security();
            assert_eq!(ours.feed(&flight[..length]), length);
            assert_eq!(ours.poll(&mut security, &NOW), Ok(Event::Idle), "{length} bytes");
            let deadline = ours.deadline_ms().expect("a handshake has a deadline");
            assert_eq!(ours.poll(&mut security, &at(deadline - 1)), Ok(Event::Idle));
            assert_eq!(ours.poll(&mut security, &at(deadline)), Err(Error::Deadline));
            assert_eq!(ours.deadline_ms(), None, "it has ended, and needs no other poll");
            ours.sent(usize::MAX);
            drop(ours);
            assert!(buffer.iter().all(|byte| *byte == 0));
        }
    });
}

#[test]
fn server_that_stops_after_any_record_of_its_flight_ends_by_the_deadline() {
    in_world(|client, server, _| {
        for stop in (0..1_500).step_by(50) {
            with_pair(client, server, SMALL, |pair| {
                let _ = pair.client.poll(&mut pair.security, &NOW);
                let fed = pair.server.feed(pair.client.output());
                pair.client.sent(fed);
                let _ = pair.server.poll(&mut pair.security, &NOW);
                let length = pair.server.output().len().min(stop);
                pair.client.feed(&pair.server.output()[..length]);
                let _ = skip(|| pair.client.poll(&mut pair.security, &NOW));
                if pair.client.is_connected() {
                    return;
                }
                let deadline = pair.client.deadline_ms().expect("a handshake has a deadline");
                let end = skip(|| pair.client.poll(&mut pair.security, &at(deadline)));
                assert_eq!(end, Err(Error::Deadline), "after {stop} bytes");
            });
        }
    });
}

#[test]
fn byte_an_hour_in_the_handshake_ends_by_the_first() {
    in_world(|_, server, _| {
        let mut buffer = vec![0; BUFFER_BYTES];
        let mut ours = Server::new(&mut buffer, server, None, &NOW).expect("a server");
        let mut security = security();
        assert_eq!(ours.poll(&mut security, &NOW), Ok(Event::Idle));
        ours.feed(&[22]);
        assert_eq!(ours.poll(&mut security, &at(NOW.uptime_ms + HOUR_MS)), Err(Error::Deadline));
    });
}

#[test]
fn byte_an_hour_after_the_handshake_ends_by_the_callers_deadline() {
    in_world(|client, server, _| {
        with_pair(client, server, SMALL, |pair| {
            pair.server.set_deadline_ms(None);
            assert!(pair.server.deadline_ms().is_some(), "that of the handshake stays");
            pair.connect();
            assert_eq!(pair.server.deadline_ms(), None);
            pair.client.send(&mut pair.security, &[7; 100]).expect("connected");
            let record = pair.client.output().to_vec();
            let day_ms = NOW.uptime_ms + 24 * HOUR_MS;
            pair.server.set_deadline_ms(Some(day_ms));
            let mut ended = None;
            for (hour, byte) in record.iter().enumerate() {
                let now = at(NOW.uptime_ms + hour as u64 * HOUR_MS);
                assert_eq!(pair.server.feed(&[*byte]), 1);
                match pair.server.poll(&mut pair.security, &now) {
                    Ok(event) => assert_eq!(event, Event::Idle),
                    Err(error) => {
                        ended = Some((hour, error));
                        break;
                    }
                }
            }
            assert_eq!(ended, Some((24, Error::Deadline)));
            assert_eq!(pair.server.send(&mut pair.security, b"more"), Err(Error::Deadline));
        });
    });
}

#[test]
fn deadline_moves_as_often_as_the_caller_likes() {
    in_world(|client, server, _| {
        with_pair(client, server, SMALL, |pair| {
            pair.connect();
            pair.server.set_deadline_ms(Some(2_000));
            pair.server.set_deadline_ms(Some(3_000));
            assert_eq!(pair.server.poll(&mut pair.security, &at(2_999)), Ok(Event::Idle));
            pair.server.set_deadline_ms(None);
            assert_eq!(pair.server.poll(&mut pair.security, &at(u64::MAX - 1)), Ok(Event::Idle));
            pair.echo(b"it lives");
        });
    });
}

#[test]
fn flood_of_data_that_nobody_consumes_fills_the_buffer_and_no_more() {
    in_world(|client, server, _| {
        with_pair(client, server, (60_000, BUFFER_BYTES), |pair| {
            pair.connect();
            let mut taken = 0;
            for _ in 0..100 {
                let _ = pair.client.send(&mut pair.security, &[7; 500]).expect("connected");
                let fed = pair.server.feed(pair.client.output());
                pair.client.sent(fed);
                taken += fed;
                assert_eq!(pair.server.poll(&mut pair.security, &NOW), Ok(Event::Data));
            }
            // Header, type and tag of the record that was opened are gone.
            let held = taken - 22;
            assert!(held <= BUFFER_BYTES, "{held} bytes in a buffer of {BUFFER_BYTES}");
            assert!(pair.server.space().is_empty(), "the transport is to wait");
            // Once it is consumed, the rest goes on.
            pair.server.consume(usize::MAX);
            assert!(!pair.server.space().is_empty());
        });
    });
}

#[test]
fn flood_of_change_cipher_spec_is_refused() {
    in_world(|client, server, _| {
        with_pair(client, server, SMALL, |pair| {
            // A peer may send some once it has spoken; the RFC names no number (§5).
            let mut security = security();
            let _ = pair.client.poll(&mut security, &NOW);
            pair.server.feed(pair.client.output());
            let _ = pair.server.poll(&mut security, &NOW);
            pair.server.sent(usize::MAX);
            let mut end = Ok(Event::Idle);
            for number in 0..10 {
                pair.server.feed(&[20, 3, 3, 0, 1, 1]);
                end = pair.server.poll(&mut security, &NOW);
                assert!(number > 0 || end == Ok(Event::Idle), "{end:?}");
            }
            assert_eq!(end, Err(Error::Peer(Misbehaviour::Unexpected)));
            assert_eq!(pair.server.output()[..2], [23, 3], "an alert says so");
        });
    });
}

#[test]
fn flood_of_warnings_is_refused_and_none_is_kept() {
    in_world(|_, server, _| {
        let mut buffer = vec![0; BUFFER_BYTES];
        let mut ours = Server::new(&mut buffer, server, None, &NOW).expect("a server");
        let mut security = security();
        let user_canceled = [21, 3, 3, 0, 2, 1, Alert::USER_CANCELED.0];
        for number in 1..=33 {
            assert_eq!(ours.feed(&user_canceled), user_canceled.len(), "nothing is kept");
            let end = ours.poll(&mut security, &NOW);
            if number <= 32 {
                assert_eq!(end, Ok(Event::Idle), "warning {number}");
            } else {
                assert_eq!(end, Err(Error::Peer(Misbehaviour::Flood)));
            }
        }
    });
}

#[test]
fn record_longer_than_the_buffer_is_refused_by_its_header() {
    in_world(|client, server, _| {
        with_pair(client, server, SMALL, |pair| {
            pair.connect();
            let record = record_of(16_000);
            pair.server.feed(&record[..5]);
            let end = pair.server.poll(&mut pair.security, &NOW);
            assert_eq!(end, Err(Error::BufferTooSmall));
        });
    });
}

#[test]
fn reset_after_any_byte_ends_at_once_and_leaves_nothing() {
    in_world(|client, server, _| {
        for stop in (0..1_500).step_by(25) {
            let mut buffer = vec![0; BUFFER_BYTES];
            let mut security = security();
            let mut other = vec![0; BUFFER_BYTES];
            let mut peer = Server::new(&mut other, server, None, &NOW).expect("a server");
            let mut ours = Client::new(&mut buffer, client, &NOW).expect("a client");
            let _ = ours.poll(&mut security, &NOW);
            let fed = peer.feed(ours.output());
            ours.sent(fed);
            let _ = peer.poll(&mut security, &NOW);
            let length = peer.output().len().min(stop);
            ours.feed(&peer.output()[..length]);
            let _ = skip(|| ours.poll(&mut security, &NOW));
            assert_eq!(ours.end_of_input(&mut security), Err(Error::Truncated));
            assert_eq!(ours.poll(&mut security, &NOW), Err(Error::Truncated));
            assert_eq!(ours.deadline_ms(), None);
            ours.sent(usize::MAX);
            drop(ours);
            assert!(buffer.iter().all(|byte| *byte == 0), "after {stop} bytes");
        }
    });
}

#[test]
fn key_update_after_each_record_costs_one_answer_however_many_there_are() {
    in_world(|client, server, _| {
        with_pair(client, server, (20_000, BUFFER_BYTES), |pair| {
            pair.connect();
            // A peer that never reads what is sent to it.
            for _ in 0..1_000 {
                assert_eq!(pair.client.send(&mut pair.security, b"x"), Ok(1));
                pair.client.update_keys(&mut pair.security, true).expect("connected");
                while !pair.client.output().is_empty() {
                    let fed = pair.server.feed(pair.client.output());
                    assert!(fed > 0, "a buffer that is empty takes a record");
                    pair.client.sent(fed);
                    while let Event::Data =
                        pair.server.poll(&mut pair.security, &NOW).expect("no rule is broken")
                    {
                        pair.server.consume(usize::MAX);
                    }
                }
            }
            let answer = pair.server.output().len();
            assert!((1..100).contains(&answer), "{answer} bytes wait for a peer that doesn't read");
            // The connection is as good as before once the peer reads.
            pair.echo(b"still here");
            // Without reading or data, it ends by the deadline that the caller sets.
            pair.server.set_deadline_ms(Some(9_000));
            assert_eq!(pair.server.poll(&mut pair.security, &at(9_000)), Err(Error::Deadline));
        });
    });
}
