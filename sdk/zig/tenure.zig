//! Tenure for Zig: what a machine can do.
//!
//! A machine is a program whose exported functions others call; `entry`, if there is one, runs once when it starts:
//!
//!     const std = @import("std");
//!     const tenure = @import("tenure");
//!
//!     pub const panic = tenure.panic;
//!
//!     comptime {
//!         tenure.exports(.{ .entry = entry, .greet = greet });
//!     }
//!
//!     fn entry() void {
//!         tenure.info("it starts", .{});
//!     }
//!
//!     fn greet(arena: std.mem.Allocator) ![]const u8 {
//!         const whom = try tenure.parameter(arena) orelse "world";
//!         return std.fmt.allocPrint(arena, "Hello, {s}!", .{whom});
//!     }
//!
//! Between calls a machine keeps its variables, and after a loss of power its tree alone. Memory of `arena` is free again
//! when the call is over; that of `allocator` lasts.

const std = @import("std");
const Allocator = std.mem.Allocator;

/// The raw host calls.
pub const host = @import("generated/host.zig");
/// Why a host call failed.
pub const Error = host.Error;
/// Why a function that allocates failed.
pub const AllocError = Error || Allocator.Error;
/// An error in a few words.
pub const errorText = host.errorText;
/// Memory that lasts from call to call.
pub const allocator = @import("heap.zig").allocator;

/// A panic stops the machine, with its message in the log.
pub const panic = @import("panic.zig");

/// Makes functions callable by the names of their fields. Each takes nothing, or an allocator whose memory lasts as long as
/// the call; it returns nothing or the call's result, a `[]const u8` or `?[]const u8`. An error that it returns fails the
/// call, and the machine goes on.
pub fn exports(comptime functions: anytype) void {
    for (std.meta.fieldNames(@TypeOf(functions))) |name| {
        @export(&Exported(@field(functions, name)).run, .{ .name = name });
    }
}

fn Exported(comptime function: anytype) type {
    return struct {
        fn run() callconv(.c) void {
            var arena: std.heap.ArenaAllocator = .init(allocator);
            defer arena.deinit();
            finish(if (takesArena) function(arena.allocator()) else function());
        }

        const takesArena = @typeInfo(@TypeOf(function)).@"fn".param_types.len == 1;
    };
}

/// Sets the result of the call being served, or makes it fail.
fn finish(outcome: anytype) void {
    switch (@typeInfo(@TypeOf(outcome))) {
        .void => {},
        .error_union => if (outcome) |value| finish(value) else |failure| fail("{s}", .{@errorName(failure)}),
        .optional => if (outcome) |value| finish(value),
        else => reply(outcome) catch |failure| fail("{s}", .{@errorName(failure)}),
    }
}

// ---- the call being served ----

/// Its parameter, or null if it has none.
pub fn parameter(arena: Allocator) AllocError!?[]u8 {
    const length = host.parameter_length();
    if (length < 0) return null;
    const value = try arena.alloc(u8, @intCast(length));
    _ = try check(host.parameter_read(0, value.ptr, value.len));
    return value;
}

/// Sets its result. The last one counts.
pub fn reply(value: []const u8) Error!void {
    _ = try check(host.reply(given(value), value.len));
}

/// Makes it fail once the function returns, with a message in the log; the machine goes on. The device's owner gets the
/// message, too, and with `errors = "callers"` in tenure.toml every caller.
pub fn fail(comptime format: []const u8, arguments: anytype) void {
    var buffer: [line_bytes]u8 = undefined;
    const message = line(&buffer, format, arguments);
    host.log(@backingInt(Level.err), message.ptr, message.len);
    _ = host.reply(message.ptr, message.len);
    host.fail();
}

/// The public key of the machine that made it; null if the device itself did.
pub fn caller() ?[32]u8 {
    var key: [32]u8 = undefined;
    return if (host.caller(&key, key.len) == key.len) key else null;
}

/// Ends it as failed and stops the machine, with a message in the log.
pub fn abort(message: []const u8) noreturn {
    host.abort(message.ptr, message.len);
    @trap();
}

// ---- the log ----

/// How grave a line of the log is.
pub const Level = enum(u32) { err, warning, info, debug };

/// The length at which the device cuts lines.
const line_bytes = 256;

/// Writes a line, cut at 256 bytes.
pub fn log(level: Level, comptime format: []const u8, arguments: anytype) void {
    var buffer: [line_bytes]u8 = undefined;
    const message = line(&buffer, format, arguments);
    host.log(@backingInt(level), message.ptr, message.len);
}

pub fn err(comptime format: []const u8, arguments: anytype) void {
    log(.err, format, arguments);
}

pub fn warning(comptime format: []const u8, arguments: anytype) void {
    log(.warning, format, arguments);
}

pub fn info(comptime format: []const u8, arguments: anytype) void {
    log(.info, format, arguments);
}

pub fn debug(comptime format: []const u8, arguments: anytype) void {
    log(.debug, format, arguments);
}

fn line(buffer: *[line_bytes]u8, comptime format: []const u8, arguments: anytype) []const u8 {
    var writer: std.Io.Writer = .fixed(buffer);
    writer.print(format, arguments) catch {};
    return writer.buffered();
}

// ---- the machine's tree: values at dotted paths ("a.b.c") that survive a loss of power ----

pub const tree = struct {
    /// The value at the path, or null if there is none.
    pub fn get(arena: Allocator, path: []const u8) AllocError!?[]u8 {
        return whole(arena, host.tree_get, .{ path.ptr, path.len });
    }

    /// Stores bytes, replacing what was at the path. Once it returns they are safe.
    pub fn set(path: []const u8, value: []const u8) Error!void {
        _ = try check(host.tree_set(path.ptr, path.len, 0, value.ptr, value.len));
    }

    /// Stores a text.
    pub fn setText(path: []const u8, text: []const u8) Error!void {
        _ = try check(host.tree_set(path.ptr, path.len, 1, text.ptr, text.len));
    }

    /// Deletes what is at the path and below; returns how many values went.
    pub fn delete(path: []const u8) Error!u32 {
        return check(host.tree_delete(path.ptr, path.len));
    }

    /// The names of what is right below the path ("": the root), in order.
    pub fn list(arena: Allocator, path: []const u8) AllocError!Names {
        return .{ .rest = try whole(arena, host.tree_list, .{ path.ptr, path.len }) orelse "" };
    }
};

/// Names, one after the other.
pub const Names = struct {
    rest: []const u8,

    pub fn next(names: *Names) ?[]const u8 {
        const end = std.mem.findScalar(u8, names.rest, 0) orelse return null;
        defer names.rest = names.rest[end + 1 ..];
        return names.rest[0..end];
    }
};

// ---- secrets that the tenant keeps on the device ----

/// The secret of that name. Read it where it is used: it may change while the machine runs.
pub fn secret(arena: Allocator, name: []const u8) AllocError![]u8 {
    return try whole(arena, host.secret_read, .{ name.ptr, name.len }) orelse Error.NotFound;
}

// ---- calling other machines ----

/// Calls a function of the machine `target` ("name", "name@device", "#key", or the URL of a server outside), and waits for
/// its result while other machines run. Null is no parameter, and no result.
pub fn call(arena: Allocator, target: []const u8, function: []const u8, value: ?[]const u8) AllocError!?[]u8 {
    return callWithin(arena, target, function, value, 0);
}

/// As `call`, with a deadline in milliseconds; 0 is the device's own.
pub fn callWithin(
    arena: Allocator,
    target: []const u8,
    function: []const u8,
    value: ?[]const u8,
    deadline_ms: u32,
) AllocError!?[]u8 {
    const length = check(host.call(
        target.ptr,
        target.len,
        function.ptr,
        function.len,
        optional(value),
        optionalLength(value),
        deadline_ms,
    )) catch |failure| return if (failure == Error.Null) null else failure;
    const result = try arena.alloc(u8, length);
    _ = try check(host.result_read(0, result.ptr, result.len));
    return result;
}

/// After a call failed: what the called machine says of it, if it tells its callers.
pub fn failureText(buffer: []u8) []u8 {
    const length = host.result_read(0, buffer.ptr, buffer.len);
    return buffer[0..@intCast(@max(length, 0))];
}

/// A call to be queued. Fields that are left out are null, the default, or none.
pub const Task = struct {
    /// Empty: this machine.
    target: []const u8 = "",
    function: []const u8,
    parameter: ?[]const u8 = null,
    /// Functions of this machine, called with the result or with the reason of the failure.
    on_success: []const u8 = "",
    on_failure: []const u8 = "",
    deadline_ms: u32 = 0,
    retries: u32 = 0,
};

/// Queues a call and goes on; returns its number.
pub fn queue(task: Task) Error!u32 {
    return check(host.queue(
        task.target.ptr,
        task.target.len,
        task.function.ptr,
        task.function.len,
        optional(task.parameter),
        optionalLength(task.parameter),
        task.on_success.ptr,
        task.on_success.len,
        task.on_failure.ptr,
        task.on_failure.len,
        task.deadline_ms,
        task.retries,
    ));
}

/// The number of the queued call whose callback is being served.
pub fn callbackOf() Error!u32 {
    return check(host.callback_of());
}

// ---- timers: functions of this machine called later, or again and again ----
//
// A machine has eight timers at most, one for each function. Setting one again as it is changes nothing, so `entry` may do
// it at each start.

pub const timers = struct {
    /// Calls `function` once, after so many milliseconds.
    pub fn after(delay_ms: u32, function: []const u8) Error!void {
        _ = try check(host.timer_after(function.ptr, function.len, null, 0, delay_ms, 0));
    }

    /// Calls `function` after each `period_ms` milliseconds, 10 at least.
    pub fn every(period_ms: u32, function: []const u8) Error!void {
        _ = try check(host.timer_after(function.ptr, function.len, null, 0, period_ms, period_ms));
    }

    /// Calls `function` at a time of day, in seconds since 1970-01-01 00:00 UTC, and then after each `period_ms`
    /// milliseconds if that isn't 0.
    pub fn at(unix_time_s: u32, period_ms: u32, function: []const u8) Error!void {
        _ = try check(host.timer_at(function.ptr, function.len, null, 0, unix_time_s, period_ms));
    }

    /// Calls `function` at each time of `times`: "06:30", or the five fields of crontab.
    pub fn schedule(times: []const u8, function: []const u8) Error!void {
        _ = try check(host.timer_schedule(function.ptr, function.len, null, 0, times.ptr, times.len));
    }

    /// Ends the timer of `function`.
    pub fn cancel(function: []const u8) Error!void {
        _ = try check(host.timer_cancel(function.ptr, function.len));
    }
};

// ---- events: readings of the device's sensors, and what machines tell one another ----

pub const events = struct {
    /// The event that is dropped when a queue is full.
    pub const Policy = enum(u32) { drop_oldest, drop_newest, latest_only };

    pub const Options = struct {
        policy: Policy = .drop_oldest,
        /// The most events that wait.
        depth: u32 = 8,
        /// The function of this machine that each event calls; without it, `next` gives them.
        handler: []const u8 = "",
    };

    /// Waits for ever.
    pub const for_ever: u32 = 0xffff_ffff;

    pub const Event = struct { topic: []const u8, payload: []const u8, dropped: u32 };

    /// Publishes an event; returns how many subscriptions have it in their queues.
    pub fn publish(topic: []const u8, payload: []const u8) Error!u32 {
        return check(host.publish(topic.ptr, topic.len, payload.ptr, payload.len));
    }

    /// Subscribes to a topic, to all below one ("door.*") or to all ("*"). Subscriptions end when the machine restarts:
    /// make them in `entry`.
    pub fn subscribe(topic: []const u8, options: Options) Error!void {
        const handler = options.handler;
        const policy = @backingInt(options.policy);
        _ = try check(host.subscribe(topic.ptr, topic.len, policy, options.depth, handler.ptr, handler.len));
    }

    pub fn unsubscribe(topic: []const u8) Error!void {
        _ = try check(host.unsubscribe(topic.ptr, topic.len));
    }

    /// Waits for the next event of the subscriptions without a handler; null if none comes in time.
    pub fn next(arena: Allocator, timeout_ms: u32) AllocError!?Event {
        const length = check(host.event_next(timeout_ms)) catch |failure|
            return if (failure == Error.Deadline) null else failure;
        const payload = try arena.alloc(u8, length);
        _ = try check(host.event_read(0, payload.ptr, payload.len));
        const name = try currentTopic(arena);
        return .{ .topic = name, .payload = payload, .dropped = @intCast(@max(host.event_dropped(), 0)) };
    }

    /// The topic of the event that is being handled.
    pub fn currentTopic(arena: Allocator) AllocError![]u8 {
        var buffer: [64]u8 = undefined;
        const length = try check(host.event_topic(&buffer, buffer.len));
        return arena.dupe(u8, buffer[0..length]);
    }

    /// How many events the subscription to a topic has dropped in all.
    pub fn dropped(of: []const u8) Error!u32 {
        return check(host.topic_dropped(of.ptr, of.len));
    }
};

// ---- keys and peers ----

/// This machine's public key.
pub fn publicKey() Error![32]u8 {
    var key: [32]u8 = undefined;
    _ = try check(host.public_key(&key, key.len));
    return key;
}

/// The public key of the machine that a target names.
pub fn resolve(target: []const u8) Error![32]u8 {
    var key: [32]u8 = undefined;
    _ = try check(host.resolve(target.ptr, target.len, &key, key.len));
    return key;
}

pub const Which = enum(u32) { local = 1, remote, all };

/// The keys of the machines that this device knows, 32 bytes each.
pub fn peers(arena: Allocator, which: Which) AllocError![]u8 {
    return try whole(arena, host.peers, .{@backingInt(which)}) orelse "";
}

// ---- time and chance ----

/// Microseconds since the device booted.
pub fn uptimeUs() u64 {
    return @intCast(host.uptime_us());
}

/// Seconds since 1970-01-01 00:00 UTC, or null if the device doesn't know.
pub fn unixTimeS() ?u64 {
    const time = host.unix_time_s();
    return if (time < 0) null else @intCast(time);
}

/// Waits while other machines run.
pub fn sleepMs(duration_ms: u32) void {
    host.sleep_ms(duration_ms);
}

/// Lets other machines run.
pub fn yield() void {
    host.yield_now();
}

/// Fills with random bytes fit for keys.
pub fn random(into: []u8) Error!void {
    _ = try check(host.random(into.ptr, into.len));
}

pub const Budget = enum(u32) { fuel, flash_bytes, messages, message_bytes, stored_bytes, queue };

/// The rest of a budget now.
pub fn budgetLeft(budget: Budget) Error!u32 {
    return check(host.budget_left(@backingInt(budget)));
}

/// Asks for a higher tier for a critical section, for so much fuel; tier 0 ends it. Returns the tier that the machine has
/// from its next turn on.
pub fn raiseTier(tier: u32, fuel: u32) Error!u32 {
    return check(host.raise_tier(tier, fuel));
}

// ---- what the host calls have in common ----

fn check(status: i32) Error!u32 {
    return if (status < 0) host.errorOf(status) else @intCast(status);
}

/// All of what a host call writes that says how much there is; null if there is nothing.
fn whole(arena: Allocator, comptime function: anytype, arguments: anytype) AllocError!?[]u8 {
    var value: []u8 = &.{};
    while (true) {
        const status = @call(.auto, function, arguments ++ .{ given(value), value.len });
        const length = check(status) catch |failure| return if (failure == Error.NotFound) null else failure;
        if (length <= value.len) return value[0..length];
        value = try arena.alloc(u8, length);
    }
}

/// The host takes a null pointer for no value, so an empty one needs another.
fn given(value: []const u8) [*]u8 {
    return if (value.len == 0) @constCast(&nothing) else @constCast(value.ptr);
}

var nothing: [1]u8 = .{0};

fn optional(value: ?[]const u8) ?[*]const u8 {
    return if (value) |bytes| given(bytes) else null;
}

fn optionalLength(value: ?[]const u8) usize {
    return if (value) |bytes| bytes.len else 0;
}
