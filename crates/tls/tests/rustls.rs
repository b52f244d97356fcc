//! Interoperation with rustls, in memory: its server and our client, our server and its client.

mod common;

use std::io::{Read as _, Write as _};
use std::sync::Arc;

use common::rustls_peer::*;
use common::{now, security};
use rustls::{ClientConnection, ServerConnection};
use tenure_crypto::Group;
use tenure_tls::{
    Client, ClientConfig, EarlyDataGuard, Event, PreSharedKey, Server, ServerConfig, Suite,
    TicketKey,
};

const GROUPS: [Group; 3] = [Group::X25519, Group::Secp256r1, Group::Secp384r1];
fn send_as_client(client: &mut Client<'_, '_>, bytes: &[u8]) -> usize {
    client.send(&mut security(), bytes).expect("connected")
}

fn send_as_server(server: &mut Server<'_, '_>, bytes: &[u8]) -> usize {
    server.send(&mut security(), bytes).expect("connected")
}

#[test]
fn every_suite_and_group_carries_data_with_their_server() {
    let world = world(KINDS[0]);
    as_client(&world, |config, _| {
        for suite in Suite::ALL {
            for group in GROUPS {
                let mut peer = rustls_server(world.server(provider(Some(*suite), None), false));
                let groups = [group];
                let config = ClientConfig { groups: &groups, ..config };
                let mut buffer = [0; 20_000];
                let mut client = Client::new(&mut buffer, &config, &now()).expect("a client");
                let seen = run(&mut client, &mut peer, &mut ignore);
                let seen = seen.unwrap_or_else(|error| panic!("{suite:?} {group:?}: {error}"));
                assert_eq!(seen.certificates, 1);
                assert_eq!((client.suite(), client.group()), (Some(*suite), Some(group)));
                converse(&mut client, &mut peer, send_as_client);
            }
        }
    });
}

#[test]
fn every_suite_and_group_carries_data_with_their_client() {
    let world = world(KINDS[0]);
    as_server(&world, |config, _| {
        for suite in Suite::ALL {
            for group in GROUPS {
                let peer = Arc::new(world.client(provider(Some(*suite), Some(group)), false));
                let mut peer = rustls_client(&peer);
                let mut buffer = [0; 20_000];
                let server = Server::new(&mut buffer, &config, None, &now());
                let mut server = server.expect("a server");
                let seen = run(&mut server, &mut peer, &mut ignore);
                seen.unwrap_or_else(|error| panic!("{suite:?} {group:?}: {error}"));
                assert_eq!((server.suite(), server.group()), (Some(*suite), Some(group)));
                converse(&mut server, &mut peer, send_as_server);
            }
        }
    });
}

#[test]
fn another_group_is_agreed_on_by_a_retry_both_ways() {
    let world = world(KINDS[0]);
    as_client(&world, |config, _| {
        let only = provider(None, Some(Group::Secp384r1));
        let mut peer = rustls_server(world.server(only, false));
        let mut buffer = [0; 20_000];
        let mut client = Client::new(&mut buffer, &config, &now()).expect("a client");
        run(&mut client, &mut peer, &mut ignore).expect("a connection");
        assert_eq!(client.group(), Some(Group::Secp384r1));
        converse(&mut client, &mut peer, send_as_client);
    });
    as_server(&world, |config, _| {
        let config = ServerConfig { groups: &[Group::Secp384r1], ..config };
        let mut peer = rustls_client(&Arc::new(world.client(provider(None, None), false)));
        let mut buffer = [0; 20_000];
        let mut server = Server::new(&mut buffer, &config, None, &now()).expect("a server");
        run(&mut server, &mut peer, &mut ignore).expect("a connection");
        assert_eq!(server.group(), Some(Group::Secp384r1));
        converse(&mut server, &mut peer, send_as_server);
    });
}

#[test]
fn both_ends_prove_who_they_are_by_every_kind_of_key() {
    for kind in KINDS {
        let world = world(kind);
        as_client(&world, |config, identity| {
            let config = ClientConfig { identity: Some(identity), ..config };
            let mut peer = rustls_server(world.server(provider(None, None), true));
            let mut buffer = [0; 20_000];
            let mut client = Client::new(&mut buffer, &config, &now()).expect("a client");
            run(&mut client, &mut peer, &mut ignore).expect("a connection");
            assert_eq!(peer.peer_certificates().map(<[_]>::len), Some(1));
            converse(&mut client, &mut peer, send_as_client);
        });
        as_server(&world, |config, trust| {
            let config =
                ServerConfig { client_trust: Some(trust), client_must_prove: true, ..config };
            let mut peer = rustls_client(&Arc::new(world.client(provider(None, None), true)));
            let mut buffer = [0; 20_000];
            let mut server = Server::new(&mut buffer, &config, None, &now()).expect("a server");
            let seen = run(&mut server, &mut peer, &mut ignore).expect("a connection");
            assert_eq!(seen.certificates, 1);
            converse(&mut server, &mut peer, send_as_server);
        });
    }
}

#[test]
fn protocol_exporter_and_small_records_are_agreed_on_both_ways() {
    let world = world(KINDS[0]);
    as_client(&world, |config, _| {
        let mut theirs = world.server(provider(None, None), false);
        theirs.alpn_protocols = vec![b"mqtt".to_vec()];
        theirs.max_fragment_size = Some(256);
        let mut peer = rustls_server(theirs);
        let config = ClientConfig { application_protocols: &[b"h2", b"mqtt"], ..config };
        let mut buffer = [0; 20_000];
        let mut client = Client::new(&mut buffer, &config, &now()).expect("a client");
        run(&mut client, &mut peer, &mut ignore).expect("a connection");
        assert_eq!(client.application_protocol(), Some(&b"mqtt"[..]));
        let mut exported = [0; 40];
        client.export(b"label", b"context", &mut exported).expect("connected");
        let theirs = peer.export_keying_material([0; 40], b"label", Some(b"context"));
        assert_eq!(theirs.expect("connected"), exported);
        converse(&mut client, &mut peer, send_as_client);
    });
    as_server(&world, |config, _| {
        let mut theirs = world.client(provider(None, None), false);
        theirs.alpn_protocols = vec![b"h2".to_vec(), b"mqtt".to_vec()];
        theirs.max_fragment_size = Some(256);
        let mut peer = rustls_client(&Arc::new(theirs));
        let config = ServerConfig { application_protocols: &[b"mqtt"], ..config };
        let mut buffer = [0; 20_000];
        let mut server = Server::new(&mut buffer, &config, None, &now()).expect("a server");
        run(&mut server, &mut peer, &mut ignore).expect("a connection");
        assert_eq!(peer.alpn_protocol(), Some(&b"mqtt"[..]));
        let mut exported = [0; 40];
        server.export(b"label", b"context", &mut exported).expect("connected");
        let theirs = peer.export_keying_material([0; 40], b"label", Some(b"context"));
        assert_eq!(theirs.expect("connected"), exported);
        converse(&mut server, &mut peer, send_as_server);
    });
}

#[test]
fn ticket_of_their_server_resumes_with_early_data() {
    let world = world(KINDS[0]);
    as_client(&world, |config, _| {
        let mut theirs = world.server(provider(None, None), false);
        theirs.max_early_data_size = 1_000;
        let theirs = Arc::new(theirs);
        let serve = || ServerConnection::new(theirs.clone()).expect("a server");
        let mut peer = serve().into();
        let mut buffer = [0; 20_000];
        let mut client = Client::new(&mut buffer, &config, &now()).expect("a client");
        let mut kept = None;
        run(&mut client, &mut peer, &mut |client, event| {
            if event == Event::Ticket {
                let ticket = client.ticket().expect("a ticket");
                let key = (ticket.identity.to_vec(), ticket.key.to_vec());
                kept = Some((key, ticket.suite, ticket.age_add, ticket.early_data_bytes_max));
            }
        })
        .expect("a connection");
        drop(client);
        let ((identity, key), suite, obfuscated_age, early_data_bytes_max) =
            kept.expect("rustls sends tickets to whoever says how they are used");
        assert_eq!(early_data_bytes_max, 1_000);
        let ticket = PreSharedKey {
            identity: &identity,
            key: &key,
            suite,
            is_external: false,
            obfuscated_age,
            early_data_bytes_max,
        };
        let config = ClientConfig { pre_shared_key: Some(ticket), early_data: true, ..config };
        let mut peer = serve();
        let mut client = Client::new(&mut buffer, &config, &now()).expect("a client");
        let mut security = security();
        client.poll(&mut security, &now()).expect("a first message");
        assert_eq!(client.send(&mut security, b"early").expect("early data"), 5);
        let bytes = client.out();
        peer.read_tls(&mut &bytes[..]).expect("memory");
        peer.process_new_packets().expect("a first message");
        let mut early = [0; 5];
        peer.early_data().expect("taken").read_exact(&mut early).expect("early data");
        assert_eq!(&early, b"early");
        let mut peer = peer.into();
        run(&mut client, &mut peer, &mut ignore).expect("a connection");
        assert!(client.is_resumed());
        assert_eq!(client.took_early_data(), Some(true));
        converse(&mut client, &mut peer, send_as_client);
    });
}

#[test]
fn ticket_of_ours_resumes_their_client_with_early_data() {
    let world = world(KINDS[0]);
    as_server(&world, |config, _| {
        let (mut security, guard) = (security(), EarlyDataGuard::new());
        let ticket_key = TicketKey::generate(&mut security).expect("a key");
        let config =
            ServerConfig { ticket_key: Some(&ticket_key), early_data_bytes_max: 1_000, ..config };
        let mut theirs = world.client(provider(None, None), false);
        theirs.enable_early_data = true;
        let theirs = Arc::new(theirs);
        let mut buffer = [0; 20_000];
        for is_resumed in [false, true] {
            let name = "server.test".try_into().expect("a name");
            let mut peer = ClientConnection::new(theirs.clone(), name).expect("a client");
            if is_resumed {
                let mut early = peer.early_data().expect("a ticket that allows it");
                early.write_all(b"early").expect("memory");
            }
            let mut peer: rustls::Connection = peer.into();
            let server = Server::new(&mut buffer, &config, Some(&guard), &now());
            let mut server = server.expect("a server");
            let seen = run(&mut server, &mut peer, &mut ignore).expect("a connection");
            assert_eq!(server.is_resumed(), is_resumed);
            assert_eq!(seen.data, if is_resumed { &b"early"[..] } else { &[] });
            server.send_ticket(&mut security, &now()).expect("connected");
            run(&mut server, &mut peer, &mut ignore).expect("a ticket");
            converse(&mut server, &mut peer, send_as_server);
        }
    });
}
