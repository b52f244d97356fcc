//! Figures of a fleet and of the hub, as Prometheus reads them.

use axum::extract::State;
use axum::response::{IntoResponse as _, Response};
use http::{StatusCode, header};
use prometheus::core::Collector;
use prometheus::{
    Gauge, IntCounter, IntCounterVec, IntGauge, IntGaugeVec, Opts, Registry, TEXT_FORMAT,
    TextEncoder,
};
use tenure_hub::{Counts, Fullness, RelayCounts};

use crate::running::carried::CarriedCounts;
use crate::running::hearing::Traffic;
use crate::store::sql::Words;
use crate::store::{Database, DatabaseError};
use crate::web::answers::problem;
use crate::web::extract::{Pass, Reading};
use crate::web::state::HubState;

/// The figures of a fleet: each with its name, its help, and its query.
const OF_FLEET: [(&str, &str, Words); 6] = [
    (
        "tenure_devices",
        "Devices that registered.",
        Words::alike("SELECT count(*) FROM devices WHERE owner = ?1 AND length(kept) > 0"),
    ),
    (
        "tenure_devices_reachable",
        "Devices whose record is in force, and that are reached directly or by the hub's relay.",
        Words::alike(
            "SELECT count(*) FROM devices WHERE owner = ?1 AND expires_unix_s >= unixepoch() AND way <> 'nobody'",
        ),
    ),
    (
        "tenure_machines",
        "Machines that devices list.",
        Words::alike(
            "SELECT CAST(coalesce(sum(machines), 0) AS BIGINT) FROM devices WHERE owner = ?1",
        ),
    ),
    (
        "tenure_receipts",
        "Receipts that are kept.",
        Words::alike("SELECT count(*) FROM receipts WHERE owner = ?1 OR tenant = ?1"),
    ),
    (
        "tenure_alarms",
        "Places where a chain of receipts isn't whole.",
        Words::alike(
            "SELECT count(*) FROM alarms r WHERE (r.owner = ?1 OR r.tenant = ?1) AND (r.machine IS NOT NULL OR EXISTS \
             (SELECT 1 FROM devices d WHERE d.device_key = r.device_key AND length(d.kept) > 0))",
        ),
    ),
    (
        "tenure_hub_database_bytes",
        "Size of the hub's database.",
        Words::each(
            "SELECT page_count * page_size FROM pragma_page_count, pragma_page_size WHERE ?1 = ?1",
            "SELECT pg_database_size(current_database()) WHERE ?1 = ?1",
        ),
    ),
];

/// `GET /metrics`: the fleet of the pass's key, and the hub.
pub(super) async fn show(State(hub): State<HubState>, Pass { who, .. }: Pass<Reading>) -> Response {
    let measured = hub.run(move |_, database| {
        let running = database.running();
        Ok((measured(database, &who)?, running.fullness(), running.relayed()))
    });
    let (fleet, tables, relayed) = match measured.await {
        Ok(measured) => measured,
        Err(answer) => return answer,
    };
    match text(&hub, &fleet, &tables, &relayed) {
        Ok(text) => ([(header::CONTENT_TYPE, TEXT_FORMAT)], text).into_response(),
        Err(error) => problem(StatusCode::INTERNAL_SERVER_ERROR, &error.to_string()),
    }
}

/// The values of a fleet's figures.
fn measured(database: &mut Database, who: &str) -> Result<Vec<i64>, DatabaseError> {
    let value = |(_, _, query): &(_, _, Words)| {
        database
            .connection
            .statement(query.of(database.connection.dialect()))
            .query_row([who], |row| row.get(0))
    };
    Ok(OF_FLEET.iter().map(value).collect::<Result<_, _>>()?)
}

fn text(
    hub: &HubState,
    fleet: &[i64],
    tables: &[Fullness],
    relayed: &RelayCounts,
) -> Result<String, prometheus::Error> {
    let registry = Registry::new();
    for ((name, help, _), value) in OF_FLEET.iter().zip(fleet) {
        let gauge = IntGauge::new(*name, *help)?;
        gauge.set(*value);
        registry.register(Box::new(gauge))?;
    }
    let of_devices = of_traffic(&hub.running().traffic())?;
    for collector in of_tables(tables)?.into_iter().chain(of_devices) {
        registry.register(collector)?;
    }
    for collector in of_relay(relayed)? {
        registry.register(collector)?;
    }
    for collector in of_carried(&hub.running().carried().counts())? {
        registry.register(collector)?;
    }
    let families = [registry.gather(), hub.figures().gather()].concat();
    TextEncoder::new().encode_to_string(&families)
}

/// What came to the hub's socket, and how many devices it heard in time.
fn of_traffic(traffic: &Traffic) -> Result<[Box<dyn Collector>; 4], prometheus::Error> {
    let datagrams = Opts::new(
        "tenure_hub_datagrams_total",
        "Datagrams that came to the hub since its start: received, or dropped as its socket had no room.",
    );
    let datagrams = IntCounterVec::new(datagrams, &["what"])?;
    datagrams.with_label_values(&["received"]).inc_by(traffic.received);
    datagrams.with_label_values(&["dropped"]).inc_by(traffic.dropped);
    let due = Opts::new(
        "tenure_hub_devices_due",
        "Devices that are to be heard within a minute, and those that are overdue since a minute at the most.",
    );
    let due = IntGaugeVec::new(due, &["what"])?;
    due.with_label_values(&["in time"]).set(traffic.renewals.in_time as i64);
    due.with_label_values(&["overdue"]).set(traffic.renewals.overdue as i64);
    let turn = Gauge::new(
        "tenure_hub_turn_seconds",
        "The longest turn of the hub within the last 10 to 20 seconds: so long a datagram may have waited.",
    )?;
    turn.set(traffic.turn_ms as f64 / 1_000.0);
    let said = Opts::new(
        "tenure_hub_said_total",
        "What devices said to the hub since its start: touches that counted, records that it took, and calls whose devices it told \
         to come later, as it was late.",
    );
    let said = IntCounterVec::new(said, &["what"])?;
    let Counts { touches, records, later } = traffic.counts;
    for (what, count) in [("touch", touches), ("record", records), ("later", later)] {
        said.with_label_values(&[what]).inc_by(count);
    }
    Ok([Box::new(datagrams), Box::new(due), Box::new(turn), Box::new(said)])
}

/// What the hub relays, for all owners.
fn of_relay(relayed: &RelayCounts) -> Result<[Box<dyn Collector>; 4], prometheus::Error> {
    let ways = IntGauge::new("tenure_hub_relay_ways", "Ways by which the hub relays.")?;
    ways.set(relayed.ways as i64);
    let datagrams =
        IntCounter::new("tenure_hub_relayed_datagrams_total", "Datagrams that the hub relayed.")?;
    datagrams.inc_by(relayed.datagrams);
    let bytes = IntCounter::new("tenure_hub_relayed_bytes_total", "Bytes that the hub relayed.")?;
    bytes.inc_by(relayed.bytes);
    let dropped = IntCounterVec::new(
        Opts::new(
            "tenure_hub_relay_dropped_total",
            "Datagrams that the hub didn't relay: from neither end of a way, to an end that isn't there, or without room.",
        ),
        &["reason"],
    )?;
    let reasons =
        [("foreign", relayed.foreign), ("absent", relayed.absent), ("crowded", relayed.crowded)];
    for (reason, count) in reasons {
        dropped.with_label_values(&[reason]).inc_by(count);
    }
    Ok([Box::new(ways), Box::new(datagrams), Box::new(bytes), Box::new(dropped)])
}

/// What comes to the hub by WebSocket, where UDP is blocked.
fn of_carried(carried: &CarriedCounts) -> Result<[Box<dyn Collector>; 3], prometheus::Error> {
    let open =
        IntGauge::new("tenure_hub_websockets", "Connections by which datagrams come beside UDP.")?;
    open.set(carried.open as i64);
    let datagrams = Opts::new(
        "tenure_hub_websocket_datagrams_total",
        "Datagrams that came or went by WebSocket, or were dropped as there was no room.",
    );
    let datagrams = IntCounterVec::new(datagrams, &["what"])?;
    let counts =
        [("received", carried.received), ("sent", carried.sent), ("dropped", carried.dropped)];
    for (what, count) in counts {
        datagrams.with_label_values(&[what]).inc_by(count);
    }
    let refused = IntCounter::new(
        "tenure_hub_websockets_refused_total",
        "Connections that got no place, or lost theirs to others.",
    )?;
    refused.inc_by(carried.refused);
    Ok([Box::new(open), Box::new(datagrams), Box::new(refused)])
}

/// How full the hub's own tables are, which all of its devices share.
fn of_tables(tables: &[Fullness]) -> Result<[Box<dyn Collector>; 3], prometheus::Error> {
    let options = |name: &str, help: &str| Opts::new(name, help);
    let used = IntGaugeVec::new(
        options("tenure_hub_table_used", "Places that are taken in a table of the hub."),
        &["table"],
    )?;
    let most = IntGaugeVec::new(
        options("tenure_hub_table_most", "Places that a table of the hub has."),
        &["table"],
    )?;
    let full = IntCounterVec::new(
        options(
            "tenure_hub_table_full_total",
            "How often one made room for another, or got none, in a table of the hub since its start.",
        ),
        &["table"],
    )?;
    for table in tables {
        let name = [table.table.to_string()];
        used.with_label_values(&name).set(table.used as i64);
        most.with_label_values(&name).set(table.most as i64);
        full.with_label_values(&name).inc_by(table.times_full);
    }
    Ok([Box::new(used), Box::new(most), Box::new(full)])
}
