//! A panic: it stops the machine, with its message in the log.
//!
//! The standard library formats messages on 4 KiB of stack, which is all that a machine has unless it asks for more. The
//! functions that do are here; the others are the standard library's.

const std = @import("std");
const host = @import("generated/host.zig");

const Full = std.debug.FullPanic(call);
/// The most that the log shows of a message.
const message_bytes = 256;

pub fn call(message: []const u8, _: ?usize) noreturn {
    host.abort(message.ptr, message.len);
    @trap();
}

fn formatted(comptime format: []const u8, arguments: anytype) noreturn {
    @branchHint(.cold);
    var buffer: [message_bytes]u8 = undefined;
    var writer: std.Io.Writer = .fixed(&buffer);
    writer.print(format, arguments) catch {};
    call(writer.buffered(), null);
}

pub fn sentinelMismatch(expected: anytype, found: @TypeOf(expected)) noreturn {
    formatted("sentinel mismatch: expected {any}, found {any}", .{ expected, found });
}

pub fn unwrapError(failure: anyerror) noreturn {
    formatted("attempt to unwrap error: {s}", .{@errorName(failure)});
}

pub fn unexpectedErrorCode(failure: anyerror) noreturn {
    formatted("unexpected error code, found error.{s}", .{@errorName(failure)});
}

pub fn outOfBounds(index: usize, length: usize) noreturn {
    formatted("index out of bounds: index {d}, len {d}", .{ index, length });
}

pub fn startGreaterThanEnd(start: usize, end: usize) noreturn {
    formatted("start index {d} is larger than end index {d}", .{ start, end });
}

pub fn inactiveUnionField(active: anytype, accessed: @TypeOf(active)) noreturn {
    formatted("access of union field '{s}' while field '{s}' is active", .{ @tagName(accessed), @tagName(active) });
}

pub fn sliceCastLenRemainder(length: usize) noreturn {
    formatted("slice length '{d}' does not divide exactly into destination elements", .{length});
}

pub const reachedUnreachable = Full.reachedUnreachable;
pub const unwrapNull = Full.unwrapNull;
pub const castToNull = Full.castToNull;
pub const incorrectAlignment = Full.incorrectAlignment;
pub const invalidErrorCode = Full.invalidErrorCode;
pub const integerOutOfBounds = Full.integerOutOfBounds;
pub const integerOverflow = Full.integerOverflow;
pub const shlOverflow = Full.shlOverflow;
pub const shrOverflow = Full.shrOverflow;
pub const divideByZero = Full.divideByZero;
pub const exactDivisionRemainder = Full.exactDivisionRemainder;
pub const integerPartOutOfBounds = Full.integerPartOutOfBounds;
pub const corruptSwitch = Full.corruptSwitch;
pub const shiftRhsTooBig = Full.shiftRhsTooBig;
pub const invalidEnumValue = Full.invalidEnumValue;
pub const forLenMismatch = Full.forLenMismatch;
pub const copyLenMismatch = Full.copyLenMismatch;
pub const memcpyAlias = Full.memcpyAlias;
pub const noreturnReturned = Full.noreturnReturned;
pub const loadUninstantiableType = Full.loadUninstantiableType;
