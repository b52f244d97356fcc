//! Keeps what the thermometer says, and compares it with the thermostat.

const std = @import("std");
const tenure = @import("tenure");
const Allocator = std.mem.Allocator;

pub const panic = tenure.panic;

comptime {
    tenure.exports(.{
        .entry = entry,
        .report = report,
        .on_temperature = onTemperature,
        .on_compare = onCompare,
    });
}

/// The readings that are kept.
const readings_max = 4;

fn entry() !void {
    try tenure.events.subscribe("device.temperature", .{ .policy = .latest_only, .handler = "on_temperature" });
    try tenure.timers.every(1000, "on_compare");
}

/// tenure call weather report
fn report(arena: Allocator) ![]const u8 {
    const history = try tenure.tree.get(arena, "history") orelse return "no reading yet";
    const verdict = try tenure.tree.get(arena, "verdict") orelse "not compared yet";
    return std.fmt.allocPrint(arena, "{s}: {s}", .{ history, verdict });
}

/// The thermometer's reading comes as a call. One like the last is no news.
fn onTemperature(arena: Allocator) !void {
    const degrees = try tenure.parameter(arena) orelse return tenure.Error.Invalid;
    const history = try tenure.tree.get(arena, "history") orelse "";
    if (std.mem.eql(u8, lastOf(history), degrees)) return;
    var text: []const u8 = try std.fmt.allocPrint(arena, "{s}{s}{s}", .{ history, if (history.len > 0) " " else "", degrees });
    while (std.mem.count(u8, text, " ") >= readings_max) {
        text = text[std.mem.findScalar(u8, text, ' ').? + 1 ..];
    }
    try tenure.tree.setText("history", text);
}

/// The timer's call.
fn onCompare(arena: Allocator) !void {
    const history = try tenure.tree.get(arena, "history") orelse return;
    const target = try tenure.call(arena, "thermostat", "read", null) orelse return;
    const word = if (try tenths(lastOf(history)) < try tenths(target)) "colder" else "warmer";
    const verdict = try std.fmt.allocPrint(arena, "{s} than {s}", .{ word, target });
    const before = try tenure.tree.get(arena, "verdict") orelse "";
    if (!std.mem.eql(u8, before, verdict)) try tenure.tree.setText("verdict", verdict);
}

/// The last of the readings, which are parted by spaces.
fn lastOf(history: []const u8) []const u8 {
    const space = std.mem.findScalarLast(u8, history, ' ') orelse return history;
    return history[space + 1 ..];
}

/// "21.5" as tenths of a degree.
fn tenths(text: []const u8) !i32 {
    const point = std.mem.findScalar(u8, text, '.') orelse return error.Invalid;
    const whole = try std.fmt.parseInt(i32, text[0..point], 10);
    const tenth = try std.fmt.parseInt(i32, text[point + 1 ..], 10);
    return whole * 10 + if (text[0] == '-') -tenth else tenth;
}
