//! The mesh scenarios with their goals, and how fast they are simulated.
use tenure_sim::mesh::{Options, Scenario, run};

fn main() {
    let only = std::env::var("ONLY").unwrap_or_default();
    for (text, seeds) in [
        (include_str!("../../../scenarios/line.toml"), 3),
        (include_str!("../../../scenarios/lossy-line.toml"), 3),
        (include_str!("../../../scenarios/cut.toml"), 20),
        (include_str!("../../../scenarios/village.toml"), 8),
        (include_str!("../../../scenarios/grid.toml"), 2),
    ] {
        let mut scenario = Scenario::parse(text).expect("a scenario");
        if !scenario.name.contains(&only) {
            continue;
        }
        if let Ok(r) = std::env::var("ROUTER") {
            scenario.protocols.router = if r == "batman" {
                tenure_sim::mesh::Router::Batman
            } else {
                tenure_sim::mesh::Router::Aodv
            };
        }
        for seed in 1..=seeds {
            scenario.seed = seed;
            let started = std::time::Instant::now();
            let outcome =
                run(&scenario, Options { watches_loops: true, records: false }, |_| {}).unwrap();
            let m = &outcome.metrics;
            println!(
                "{} #{seed}: conv {:?} deliv {:.4} ({}/{}) dup {} hops {} ctl {:.1} B/s pay {:.1} tx {} coll {} lost {} loops {} lat {:.1}/{:.1} rec {:?} events {} {:.1} sim s/s {:?}",
                scenario.name,
                m.converged_s,
                m.delivery(),
                m.delivered,
                m.sent,
                m.duplicates,
                m.hops_max,
                m.control_bytes_per_node_second,
                m.payload_bytes_per_node_second,
                m.transmissions,
                m.collisions,
                m.lost,
                m.loops,
                m.latency_median_ms,
                m.latency_99_ms,
                m.recovered_s,
                m.events,
                m.seconds / started.elapsed().as_secs_f64(),
                outcome.first_loop
            );
            let bad: Vec<_> = outcome
                .seconds
                .iter()
                .enumerate()
                .filter(|(_, s)| s.delivered < s.sent)
                .map(|(i, s)| (i, s.sent, s.delivered, s.reachable))
                .collect();
            println!("   bad {bad:?}");
            if seed == 1 {
                println!("   {:?}", m.bytes_by_message);
            }
        }
    }
}
