//! How long machines wait for their turn under each policy: figures, and a picture of them.
//!
//! `cargo bench -p tenure-sim --bench scheduling -- [--json] [--svg FILE]`. The times are simulated, and
//! the same in every run: a device that burns ten million fuel a second, ten seconds of it.

use std::fmt::Write as _;
use std::time::Duration;

use tenure_kernel::policy::PolicyKind;
use tenure_sim::waiting::{Fared, run};

const SEED: u64 = 1;
const SPAN: Duration = Duration::from_secs(10);

/// The waits of some machines of one policy.
struct Group {
    policy: PolicyKind,
    name: &'static str,
    colour: &'static str,
    /// In microseconds, rising.
    waits_us: Vec<u64>,
    /// The largest bound among them.
    bound_us: u64,
}

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let json = arguments.iter().any(|argument| argument == "--json");
    let groups: Vec<Group> = PolicyKind::ALL.into_iter().flat_map(groups).collect();
    for group in &groups {
        let last = group.waits_us.len().saturating_sub(1);
        let at = |permille: usize| group.waits_us.get(last * permille / 1000).copied().unwrap_or(0);
        report(json, group, "median", at(500));
        report(json, group, "99 %", at(990));
        report(json, group, "longest", at(1000));
        report(json, group, "bound", group.bound_us);
    }
    if let Some(position) = arguments.iter().position(|argument| argument == "--svg") {
        let path = arguments.get(position + 1).expect("--svg FILE");
        std::fs::write(path, picture(&groups)).expect("the file can be written");
    }
}

fn report(json: bool, group: &Group, what: &str, us: u64) {
    let Group { policy, name, .. } = group;
    let value = us as f64 / 1000.0;
    if json {
        println!(
            "{{\"bench\":\"scheduling/{policy}\",\"target\":\"simulator\",\"subject\":\"{name}\",\
             \"metric\":\"wait for a turn, {what}\",\"unit\":\"ms\",\"value\":{value:.3}}}"
        );
    } else {
        println!("{:<18} {name:<22} {what:<8} {value:>10.3} ms", policy.as_str());
    }
}

fn groups(policy: PolicyKind) -> Vec<Group> {
    let fared = run(policy, SEED, SPAN);
    let reserving = policy == PolicyKind::EarliestDeadline;
    let modest = |one: &&Fared| one.habit.is_modest();
    let mut groups = Vec::new();
    let mut add = |name, colour, wanted: &dyn Fn(&&Fared) -> bool| {
        let chosen: Vec<&Fared> = fared.iter().filter(wanted).collect();
        let waits = chosen.iter().flat_map(|one| &one.waits);
        let mut waits_us: Vec<u64> = waits.map(|wait| wait.as_micros() as u64).collect();
        waits_us.sort_unstable();
        let bound = chosen.iter().map(|one| one.bound).max().unwrap_or_default();
        let bound_us = bound.as_micros() as u64;
        groups.push(Group { policy, name, colour, waits_us, bound_us });
    };
    add("three hogs", "#b5651d", &|one| !modest(one));
    if reserving {
        add("modest, unreserved", "#3b6ea5", &|one| modest(one) && !one.share.is_reserved());
        add("modest, reserved", "#3a7d44", &|one| modest(one) && one.share.is_reserved());
    } else {
        add("thirteen modest ones", "#3b6ea5", &modest);
    }
    groups
}

const PANEL: (f64, f64) = (430.0, 250.0);
const MARGIN: (f64, f64) = (72.0, 46.0);
/// The decades of the axes: waits from 0.01 ms to 1 s, shares from 1 to 1 in 10,000.
const WAIT_DECADES: (f64, f64) = (-2.0, 3.0);
const SHARE_DECADES: f64 = 4.0;

/// Four panels: which share of the turns was waited for longer, and the bounds.
fn picture(groups: &[Group]) -> String {
    let (width, height) = (2.0 * PANEL.0 + 2.5 * MARGIN.0, 2.0 * PANEL.1 + 3.7 * MARGIN.1);
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" \
         font-family=\"sans-serif\" font-size=\"12\">\n\
         <rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n"
    );
    for (index, policy) in PolicyKind::ALL.into_iter().enumerate() {
        let left = MARGIN.0 + (index % 2) as f64 * (PANEL.0 + MARGIN.0);
        let top = MARGIN.1 + (index / 2) as f64 * (PANEL.1 + 1.75 * MARGIN.1);
        let of_policy: Vec<&Group> = groups.iter().filter(|group| group.policy == policy).collect();
        let _ = writeln!(svg, "<g transform=\"translate({left} {top})\">");
        panel(&mut svg, policy, &of_policy);
        svg += "</g>\n";
    }
    svg + "</svg>\n"
}

fn panel(svg: &mut String, policy: PolicyKind, groups: &[&Group]) {
    let (width, height) = PANEL;
    let _ = writeln!(
        svg,
        "<text x=\"0\" y=\"-14\" font-weight=\"bold\" font-size=\"14\">{policy}</text>\
         <text x=\"{width}\" y=\"-14\" text-anchor=\"end\" fill=\"#666\">\
         turns that waited longer; dashed: the bound</text>"
    );
    for decade in WAIT_DECADES.0 as i32..=WAIT_DECADES.1 as i32 {
        let x = x_of(10_f64.powi(decade));
        let label = match decade {
            ..3 => format!("{} ms", 10_f64.powi(decade)),
            _ => format!("{} s", 10_f64.powi(decade - 3)),
        };
        let _ = writeln!(
            svg,
            "<path d=\"M{x:.1} 0V{height}\" stroke=\"#ddd\"/>\
             <text x=\"{x:.1}\" y=\"{}\" text-anchor=\"middle\">{label}</text>",
            height + 16.0
        );
    }
    for decade in 0..=SHARE_DECADES as i32 {
        let y = y_of(10_f64.powi(-decade));
        let label = if decade == 0 {
            "all".to_owned()
        } else {
            format!("1 in 10{}", SUPERSCRIPTS[decade as usize])
        };
        let _ = writeln!(
            svg,
            "<path d=\"M0 {y:.1}H{width}\" stroke=\"#ddd\"/>\
             <text x=\"-6\" y=\"{:.1}\" text-anchor=\"end\">{label}</text>",
            y + 4.0
        );
    }
    for (row, group) in groups.iter().enumerate() {
        curve(svg, group);
        let (x, y) = (12.0, height - 14.0 - 17.0 * row as f64);
        let _ = writeln!(
            svg,
            "<path d=\"M{x} {y}h18\" stroke=\"{0}\" stroke-width=\"2\"/>\
             <text x=\"{1}\" y=\"{2}\">{3}</text>",
            group.colour,
            x + 24.0,
            y + 4.0,
            group.name
        );
    }
}

const SUPERSCRIPTS: [&str; 6] = ["", "", "²", "³", "⁴", "⁵"];

/// The share of turns that were waited for longer, and where the bound is.
fn curve(svg: &mut String, group: &Group) {
    let count = group.waits_us.len() as f64;
    let mut path = String::new();
    let mut last = (-1.0, -1.0);
    for (shorter, wait_us) in group.waits_us.iter().enumerate() {
        let (x, y) = (x_of(*wait_us as f64 / 1000.0), y_of((count - shorter as f64) / count));
        // Points that can't be told apart in the picture aren't drawn.
        if (x - last.0).abs() + (y - last.1).abs() > 0.7 {
            let _ = write!(path, "{}{x:.1} {y:.1}", if path.is_empty() { "M" } else { "L" });
            last = (x, y);
        }
    }
    let bound = x_of(group.bound_us as f64 / 1000.0);
    let colour = group.colour;
    let _ = writeln!(
        svg,
        "<path d=\"{path}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"2\"/>\
         <path d=\"M{bound:.1} 0V{}\" stroke=\"{colour}\" stroke-dasharray=\"5 4\"/>",
        PANEL.1
    );
}

fn x_of(wait_ms: f64) -> f64 {
    let (first, last) = WAIT_DECADES;
    let decades = wait_ms.max(1e-9).log10().clamp(first, last) - first;
    decades / (last - first) * PANEL.0
}

fn y_of(share: f64) -> f64 {
    (-share.max(1e-9).log10()).clamp(0.0, SHARE_DECADES) / SHARE_DECADES * PANEL.1
}
