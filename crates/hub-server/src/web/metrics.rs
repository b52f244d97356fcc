//! Figures of a fleet and of the hub, as Prometheus reads them.

use axum_core::response::{IntoResponse as _, Response};
use http::{HeaderMap, header};
use tenure_hub::Fullness;
use tenure_wire::hub::Scope;

use crate::store::{Database, DatabaseError};
use crate::web::gate::who;
use crate::web::state::State;

/// `GET /metrics`: the fleet of the pass's key, as Prometheus reads it.
pub(crate) async fn show(state: State, headers: HeaderMap) -> Response {
    let who = match who(&state, &headers, Scope::Read).await {
        Ok(who) => who,
        Err(answer) => return answer,
    };
    match state.run(move |_, database| measured(database, &who)).await {
        Ok(text) => ([(header::CONTENT_TYPE, "text/plain; version=0.0.4")], text).into_response(),
        Err(answer) => answer,
    }
}

fn measured(database: &mut Database, who: &str) -> Result<String, DatabaseError> {
    const METRICS: [(&str, &str, &str); 6] = [
        (
            "tenure_devices",
            "Devices that registered.",
            "SELECT count(*) FROM devices WHERE owner = ?1",
        ),
        (
            "tenure_devices_reachable",
            "Devices whose record is in force.",
            "SELECT count(*) FROM devices WHERE owner = ?1 AND expires_unix_s >= unixepoch()",
        ),
        (
            "tenure_machines",
            "Machines that devices list.",
            "SELECT coalesce(sum(machines), 0) FROM devices WHERE owner = ?1",
        ),
        (
            "tenure_receipts",
            "Receipts that are kept.",
            "SELECT count(*) FROM receipts WHERE owner = ?1 OR tenant = ?1",
        ),
        (
            "tenure_alarms",
            "Places where a chain of receipts isn't whole.",
            "SELECT count(*) FROM alarms WHERE owner = ?1 OR tenant = ?1",
        ),
        (
            "tenure_hub_database_bytes",
            "Size of the hub's database.",
            "SELECT page_count * page_size FROM pragma_page_count, pragma_page_size WHERE ?1 = ?1",
        ),
    ];
    let mut text = String::new();
    for (name, help, query) in METRICS {
        let mut statement = database.connection.prepare_cached(query)?;
        let value: i64 = statement.query_row([who], |row| row.get(0))?;
        text += &format!("# HELP {name} {help}\n# TYPE {name} gauge\n{name} {value}\n");
    }
    Ok(text + &of_tables(&database.running().fullness()))
}

/// How full the hub's own tables are, which all of its devices share.
fn of_tables(tables: &[Fullness]) -> String {
    type Figure = fn(&Fullness) -> u64;
    const METRICS: [(&str, &str, &str, Figure); 3] = [
        (
            "tenure_hub_table_used",
            "gauge",
            "Places that are taken in a table of the hub.",
            |table| table.used as u64,
        ),
        ("tenure_hub_table_most", "gauge", "Places that a table of the hub has.", |table| {
            table.most as u64
        }),
        (
            "tenure_hub_table_full_total",
            "counter",
            "How often one made room for another, or got none, in a table of the hub since its start.",
            |table| table.times_full,
        ),
    ];
    let mut text = String::new();
    for (name, kind, help, figure) in METRICS {
        text += &format!("# HELP {name} {help}\n# TYPE {name} {kind}\n");
        for table in tables {
            text += &format!("{name}{{table=\"{}\"}} {}\n", table.table, figure(table));
        }
    }
    text
}
