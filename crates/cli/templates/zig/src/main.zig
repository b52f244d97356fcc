//! The machine `{{name}}`: greets whoever calls it, and counts how often it did.

const std = @import("std");
const tenure = @import("tenure");

pub const panic = tenure.panic;

comptime {
    tenure.exports(.{ .entry = entry, .greet = greet });
}

/// Runs once when the machine starts.
fn entry() void {
    tenure.info("{{name}} has started", .{});
}

/// tenure call {{name}} greet Ada
fn greet(arena: std.mem.Allocator) ![]const u8 {
    const whom = try tenure.parameter(arena) orelse "world";
    const before = try tenure.tree.get(arena, "greetings") orelse "0";
    const count = (std.fmt.parseInt(u32, before, 10) catch 0) + 1;
    try tenure.tree.setText("greetings", try std.fmt.allocPrint(arena, "{d}", .{count}));
    return std.fmt.allocPrint(arena, "Hello, {s}! You are number {d}.", .{ whom, count });
}
