//! Charts of what machines used, drawn by the hub as SVG.

use std::collections::BTreeMap;

use axum::response::Response;
use maud::{Markup, html};

use tenure_wire::printable::counted;

use crate::store::audit::seconds;
use crate::store::sql::{self, Connection, Next, params};
use crate::web::now;
use crate::web::state::HubState;

/// The span of a bar, in seconds, and how many bars there are: 12 hours.
const SPAN_S: i64 = 300;
const BARS: i64 = 144;
/// The height of a chart, in its own units; a bar is 4 wide.
const HEIGHT: i64 = 60;

/// The use of one machine: when, fuel, and faults.
type Bars = Vec<(i64, i64, i64)>;

/// A chart of each machine of a device.
///
/// # Errors
/// The answer where the database fails.
pub(crate) async fn of_device(
    hub: &HubState,
    who: String,
    device: &str,
) -> Result<Markup, Response> {
    let (device, from) = (device.to_string(), first_bar(hub));
    let machines = hub.run(move |_, database| Ok(read(&database.connection, &who, &device, from)?));
    let machines = machines.await?;
    Ok(html! {
        @if !machines.is_empty() { div.charts { @for (machine, bars) in &machines {
            (chart(machine, bars, from))
        } } }
    })
}

/// When the first bar begins.
fn first_bar(hub: &HubState) -> i64 {
    let now = seconds(now(hub));
    now - now.rem_euclid(SPAN_S) - (BARS - 1) * SPAN_S
}

fn read(
    connection: &Connection,
    who: &str,
    device: &str,
    from: i64,
) -> Result<BTreeMap<String, Bars>, sql::Error> {
    let query = "SELECT u.machine, u.from_unix_s, u.fuel, u.faults FROM machine_use u \
         JOIN devices d ON d.name = u.device WHERE d.owner = ?1 AND u.device = ?2 AND u.span_s = ?3 \
         AND u.from_unix_s >= ?4";
    let statement = connection.statement(query);
    let mut machines: BTreeMap<String, Bars> = BTreeMap::new();
    statement.each(params![who, device, SPAN_S, from], |row| {
        let bar = (row.get(1)?, row.get(2)?, row.get(3)?);
        machines.entry(row.get(0)?).or_default().push(bar);
        Ok(Next::Row)
    })?;
    Ok(machines)
}

fn chart(machine: &str, bars: &Bars, from: i64) -> Markup {
    let most = bars.iter().map(|(_, fuel, _)| *fuel).max().unwrap_or(0);
    let faults: i64 = bars.iter().map(|(_, _, faults)| *faults).sum();
    let text = format!(
        "{machine}: fuel of 5 minutes each in the last 12 hours, {most} units at most; {}",
        counted(faults, "fault")
    );
    // The ratio fits, as each is 2^61 at most.
    let height = |fuel: i64| i128::from(fuel) * i128::from(HEIGHT) / i128::from(most.max(1));
    html! {
        figure {
            figcaption { (text) }
            svg role="img" aria-label=(text) viewBox={ "0 0 " (BARS * 4) " " (HEIGHT) } preserveAspectRatio="none" {
                @for (begins, fuel, faults) in bars {
                    @let (x, height) = ((begins - from) / SPAN_S * 4, height(*fuel).max(1));
                    rect.bad[*faults > 0] x=(x) y=(i128::from(HEIGHT) - height) width="3" height=(height) {}
                }
            }
        }
    }
}
