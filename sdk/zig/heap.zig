//! The heap: a first-fit allocator from the end of the variables to the end of memory.
//!
//! It is the SDK's own because the standard library's asks for pages of 64 KiB, more than a machine may have in all.
//! Free blocks form a list in the order of their addresses, so that a freed one joins its neighbours at once. Only this
//! file grows the memory.

const std = @import("std");
const Alignment = std.mem.Alignment;

/// The head of each block: its size with the header, a multiple of 8, and, in a free one, the next free block.
const Header = extern struct { size: u32, next: u32 };

const header_bytes = @sizeOf(Header);
/// Asked for at a time, unless more is needed.
const growth_bytes = 512;
const wasm_page_bytes = 65536;
/// A size that no machine can have.
const request_bytes_max = 0x7fff_0000;

extern var __heap_base: u8;

/// The first free block; 0 is none.
var first: u32 = 0;
/// Where the heap ends; 0 before its first use.
var end: u32 = 0;

/// The heap as the standard library takes it.
pub const allocator: std.mem.Allocator = .{ .ptr = undefined, .vtable = &.{
    .alloc = alloc,
    .resize = resize,
    .remap = remap,
    .free = free,
} };

fn alloc(_: *anyopaque, length: usize, alignment: Alignment, _: usize) ?[*]u8 {
    if (length > request_bytes_max or alignment.toByteUnits() > request_bytes_max) return null;
    const size = blockBytes(length);
    const step: u32 = @intCast(@max(alignment.toByteUnits(), 8));
    if (take(size, step)) |payload| return pointer(payload);
    if (!grow(size + step)) return null;
    return pointer(take(size, step) orelse return null);
}

fn resize(_: *anyopaque, memory: []u8, _: Alignment, length: usize, _: usize) bool {
    return length <= request_bytes_max and blockBytes(length) <= header(blockOf(memory)).size;
}

fn remap(context: *anyopaque, memory: []u8, alignment: Alignment, length: usize, at: usize) ?[*]u8 {
    return if (resize(context, memory, alignment, length, at)) memory.ptr else null;
}

fn free(_: *anyopaque, memory: []u8, _: Alignment, _: usize) void {
    give(blockOf(memory));
}

/// The payload of the first free block that has room, cut to `size`.
fn take(size: u32, step: u32) ?u32 {
    var previous: u32 = 0;
    var block = first;
    while (block != 0) : ({
        previous = block;
        block = header(block).next;
    }) {
        const whole = header(block).size;
        const start = std.mem.alignForward(u32, block + header_bytes, step) - header_bytes;
        if (start + size > block + whole) continue;
        var next = header(block).next;
        const behind = block + whole - (start + size);
        if (behind > 0) {
            header(start + size).* = .{ .size = behind, .next = next };
            next = start + size;
        }
        if (start > block) {
            header(block).* = .{ .size = start - block, .next = next };
            next = block;
        }
        link(previous, next);
        header(start).* = .{ .size = size, .next = 0 };
        return start + header_bytes;
    }
    return null;
}

/// Puts a block into the list, and joins it with its neighbours.
fn give(block: u32) void {
    var previous: u32 = 0;
    var next = first;
    while (next != 0 and next < block) {
        previous = next;
        next = header(next).next;
    }
    header(block).next = next;
    link(previous, block);
    if (next != 0) join(block, next);
    if (previous != 0) join(previous, block);
}

fn join(block: u32, next: u32) void {
    if (block + header(block).size == next) {
        header(block).* = .{ .size = header(block).size + header(next).size, .next = header(next).next };
    }
}

fn link(previous: u32, block: u32) void {
    if (previous == 0) first = block else header(previous).next = block;
}

/// Takes what memory there is at first, and then more by at least `bytes`.
fn grow(bytes: u32) bool {
    const page = pageBytes();
    const base = std.mem.alignForward(u32, @intCast(@intFromPtr(&__heap_base)), 8);
    if (end == 0) end = base;
    const wanted = @max(bytes, growth_bytes);
    const there: u32 = @intCast(@wasmMemorySize(0) * page);
    const whole = std.math.add(u32, end, wanted) catch return false;
    if (there < whole) {
        const pages = std.math.divCeil(u32, whole - there, page) catch return false;
        if (@wasmMemoryGrow(0, pages) < 0) return false;
    }
    const now: u32 = @intCast((@wasmMemorySize(0) * page) & ~@as(usize, 7));
    header(end).* = .{ .size = now - end, .next = 0 };
    const block = end;
    end = now;
    give(block);
    return true;
}

/// A page is 64 KiB, or one byte where the linker was told so; then the count of pages, being the length of the memory,
/// isn't less than the address where the heap begins.
fn pageBytes() u32 {
    return if (@wasmMemorySize(0) >= @intFromPtr(&__heap_base)) 1 else wasm_page_bytes;
}

fn blockBytes(length: usize) u32 {
    return @intCast(std.mem.alignForward(usize, length, 8) + header_bytes);
}

fn blockOf(memory: []u8) u32 {
    return @intCast(@intFromPtr(memory.ptr) - header_bytes);
}

fn header(block: u32) *Header {
    return @ptrFromInt(block);
}

fn pointer(payload: u32) [*]u8 {
    return @ptrFromInt(payload);
}
