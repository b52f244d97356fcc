//! The page of limits: what users meet, with the number that the code has.

use std::fmt::Write as _;

use tenure_kernel::Config;
use tenure_package::{
    CODE_BYTES_MAX, DESCRIPTION_BYTES_MAX, EXPORTS_MAX, MANIFEST_BYTES_MAX, PACKAGE_BYTES_MAX,
    TREE_BYTES_MAX,
};
use tenure_vm::Limits;
use tenure_wire::Budget;
use tenure_wire::capability::CAPABILITIES_MAX;
use tenure_wire::control::{
    CARRIED_BYTES_MAX, CARRIED_PASSES_MAX, CARRIED_UNIT_BYTES, CARRIED_UNITS_AT_ONCE,
    CARRIED_UNITS_PER_S, CARRYING_PATIENCE_S, CARRYING_TOOLS_MAX, HELD_MS_MAX, HELD_OWNERS_MAX,
    HELD_TENANTS_MAX,
};
use tenure_wire::limits::{
    BUFFER_BYTES_MAX, EVENT_BYTES_MAX, FUNCTION_BYTES_MAX, LOG_BYTES_MAX, LOG_KEPT_BYTES_MAX,
    NAME_BYTES_MAX, PARAMETER_BYTES_MAX, PATH_BYTES_MAX, SECRET_BYTES_MAX, TIMERS_MAX,
    TOPIC_BYTES_MAX, VALUE_BYTES_MAX, WORDS_BYTES_MAX,
};

use super::Description;
use crate::digits::grouped;

/// A limit: of what, how much, and what becomes of what exceeds it.
type Limit = (&'static str, u64, &'static str);

pub(super) fn page(_: &Description) -> String {
    let mut text = String::from(
        "<!-- Generated from the limits in the code by `cargo xtask generate`. -->\n\
         # Limits\n\n\
         Sizes are in bytes unless a row says otherwise.\n",
    );
    section(&mut text, "Calls, trees, events", &messages());
    section(&mut text, "Packages", &packages());
    text += "\n## Modules\n\n\
             `tenure build` refuses what passes the second column, and says what passes the first. Memory and tables \
             count against the\nbudget besides.\n";
    modules(&mut text);
    section(&mut text, "A device through a member of its mesh (`--via`)", &carried());
    text += "\n## Budgets\n\n\
             A manifest asks for a budget, and these count where it is silent. What overspending does stands in \
             the\n[guide](../guide.md).\n";
    table(&mut text, "budget", "default", &budgets());
    text += "\n## Devices\n\n\
             A board sets these for itself. The numbers are those of the smallest class; `tenure device` on \
             Linux takes 32\nmachines, and more memory and log. `tenure status` shows what a device has left.\n";
    table(&mut text, "limit", "smallest class", &devices());
    text
}

fn messages() -> Vec<Limit> {
    vec![
        ("name of a machine or device", NAME_BYTES_MAX as u64, "rejected"),
        ("name of a function", FUNCTION_BYTES_MAX as u64, "rejected"),
        ("parameter or result of a call", PARAMETER_BYTES_MAX as u64, "the call fails: *too long*"),
        ("what one host call writes", BUFFER_BYTES_MAX as u64, "the rest is read by an offset"),
        ("path in a tree", PATH_BYTES_MAX as u64, "the host call fails: *too long*"),
        ("value in a tree", VALUE_BYTES_MAX as u64, "the write fails: *too long*"),
        ("topic", TOPIC_BYTES_MAX as u64, "the host call fails: *too long*"),
        ("payload of an event", EVENT_BYTES_MAX as u64, "the host call fails: *too long*"),
        ("text of an error, as the caller gets it", WORDS_BYTES_MAX as u64, "cut"),
        ("line of a log", LOG_BYTES_MAX as u64, "cut"),
        (
            "log of a machine that a restart keeps",
            LOG_KEPT_BYTES_MAX as u64,
            "the oldest lines aren't kept",
        ),
        ("secret", SECRET_BYTES_MAX as u64, "rejected"),
        (
            "timers of a machine, in number",
            TIMERS_MAX as u64,
            "the host call fails: *no room left*",
        ),
        ("rights of one kind, in number", CAPABILITIES_MAX as u64, "rejected at build"),
    ]
}

fn packages() -> Vec<Limit> {
    vec![
        ("package", PACKAGE_BYTES_MAX as u64, "rejected at build"),
        ("code of one kind", CODE_BYTES_MAX as u64, "rejected at build"),
        ("initial tree", TREE_BYTES_MAX as u64, "rejected at build"),
        ("manifest", MANIFEST_BYTES_MAX as u64, "rejected at build"),
        ("exports, in number", EXPORTS_MAX as u64, "rejected at build"),
        ("description", DESCRIPTION_BYTES_MAX as u64, "rejected at build"),
    ]
}

/// One of a module's limits.
type OfModule = fn(&Limits) -> u64;

/// The limits of a module: on boards, and on devices with megabytes.
fn modules(text: &mut String) {
    let (board, ample) = (Limits::default(), Limits::ample());
    let rows: [(&str, OfModule); 14] = [
        ("module without names and debug information", |limits| {
            limits.module_bytes.min(CODE_BYTES_MAX) as u64
        }),
        ("memory at the start", |limits| limits.memory_bytes),
        ("functions, imported ones too, in number", |limits| limits.functions.into()),
        ("code of a function", |limits| limits.function_bytes.into()),
        ("parameters and variables of a function, in number", |limits| limits.locals.into()),
        ("frame of a function", |limits| limits.frame_bytes.into()),
        ("blocks in one another, in number", |limits| limits.nesting.into()),
        ("types of functions, in number", |limits| limits.types.into()),
        ("imports, in number", |limits| limits.imports.into()),
        ("exports, in number", |limits| limits.exports.into()),
        ("global variables, in number", |limits| limits.globals.into()),
        ("tables, in number", |limits| limits.tables.into()),
        ("elements of a table, in number", |limits| limits.table_elements.into()),
        ("segments of data, and of elements, in number", |limits| limits.segments.into()),
    ];
    text.push_str("\n| limit of | boards | devices with megabytes |\n|---|--:|--:|\n");
    for (what, of) in rows {
        let (board, ample) = (grouped(of(&board), ','), grouped(of(&ample), ','));
        let _ = writeln!(text, "| {what} | {board} | {ample} |");
    }
}

fn budgets() -> Vec<(&'static str, u64)> {
    let budget = Budget::default();
    vec![
        ("`memory_bytes`", budget.memory_bytes.into()),
        ("`stack_bytes`", budget.stack_bytes.into()),
        ("`stored_bytes`", budget.stored_bytes.into()),
        ("`queue_length`, tasks", budget.queue_length.into()),
        ("`task_fuel`, units of fuel", budget.task_fuel),
        ("`fuel_per_second`, units of fuel", budget.fuel_per_second),
        ("`flash_bytes_per_day`", budget.flash_bytes_per_day.into()),
        ("`messages_per_second`, messages", budget.messages_per_second.into()),
        ("`message_bytes_per_second`", budget.message_bytes_per_second.into()),
    ]
}

fn carried() -> Vec<Limit> {
    let tools = "the tool that was served longest ago begins anew";
    let soon = "others are answered at once, and ask again";
    let lost = "the datagram is lost, and sent again";
    vec![
        (
            "tools and devices that a member serves at once, in number",
            CARRYING_TOOLS_MAX as u64,
            tools,
        ),
        (
            "datagrams that one call carries",
            CARRIED_BYTES_MAX as u64,
            "the rest is carried by the next",
        ),
        (
            "datagrams that wait at a member for a tool",
            CARRIED_BYTES_MAX as u64,
            "the oldest are lost, and sent again",
        ),
        (
            "wait of a member for a tool's next call, seconds",
            CARRYING_PATIENCE_S,
            "what waits for it is lost",
        ),
        (
            "calls of the owner's tools that a member holds until something comes, in number",
            HELD_OWNERS_MAX as u64,
            soon,
        ),
        ("the same of tenants' tools", HELD_TENANTS_MAX as u64, soon),
        (
            "wait of such a call, milliseconds",
            HELD_MS_MAX.into(),
            "it is answered then, and asked again",
        ),
        (
            "passes of tenants that a member remembers, in number; they have as many tools beside the owner's",
            CARRIED_PASSES_MAX as u64,
            "the pass that was used longest ago is shown again",
        ),
        (
            "bytes of a tenant's datagram for each unit, begun ones count",
            CARRIED_UNIT_BYTES as u64,
            lost,
        ),
        (
            "units that a member sends for a tenant at once; twice that for all",
            CARRIED_UNITS_AT_ONCE.into(),
            lost,
        ),
        (
            "units that a tenant has again each second; twice that for all",
            CARRIED_UNITS_PER_S.into(),
            lost,
        ),
    ]
}

fn devices() -> Vec<(&'static str, u64)> {
    let config = Config::default();
    let events = &config.events;
    vec![
        ("machines, in number", config.machines_max as u64),
        ("memory and stacks of all machines", config.memory_bytes_max as u64),
        ("parameters that wait, of all machines", config.parameter_bytes_max as u64),
        ("longest deadline of a call, seconds", config.deadline_max.as_secs()),
        ("deadline of a call that names none, seconds", config.deadline_default.as_secs()),
        ("subscriptions of a machine, in number", events.subscriptions_per_subscriber_max as u64),
        ("events in the queue of a subscription, in number", events.depth_max as u64),
        ("events in all queues of a machine", events.bytes_per_subscriber_max as u64),
        ("log of a machine in a second", config.log_bytes_per_second),
    ]
}

fn section(text: &mut String, title: &str, limits: &[Limit]) {
    let _ =
        write!(text, "\n## {title}\n\n| limit of | at most | what exceeds it |\n|---|--:|---|\n");
    for (what, most, outcome) in limits {
        let _ = writeln!(text, "| {what} | {} | {outcome} |", grouped(*most, ','));
    }
}

fn table(text: &mut String, what: &str, how_much: &str, rows: &[(&str, u64)]) {
    let _ = write!(text, "\n| {what} | {how_much} |\n|---|--:|\n");
    for (what, number) in rows {
        let _ = writeln!(text, "| {what} | {} |", grouped(*number, ','));
    }
}
