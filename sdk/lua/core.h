/* Lua's core as one unit, for devices (engine.c) and for the computer that builds (compile.c), which includes more
 * of it.
 *
 * Both have the same numbers, integers of 64 bits and floats of 64, so that bytecode is the same for both. */
#pragma once

#include <locale.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Where C says `sig_atomic_t`: nothing interrupts. */
#define l_signalT int
#define lua_getlocaledecpoint() '.'
/* Calls of C functions in one another, such as `pcall` and what `string.gsub` calls: each takes up to 450 bytes of
 * the stack in memory, and the machine's own call is four of them. */
#ifndef LUAI_MAXCCALLS
#define LUAI_MAXCCALLS 20
#endif
/* The captures of a pattern, for each of which a search has room. */
#define LUA_MAXCAPTURES 12

#define LUA_CORE
#define LUA_LIB
#define ltable_c
#define lvm_c
#include "lprefix.h"

#include "luaconf.h"

#undef LUAI_FUNC
#undef LUAI_DDEC
#undef LUAI_DDEF
#undef LUA_API
#undef LUALIB_API
#undef LUAMOD_API
#define LUAI_FUNC static
#define LUAI_DDEC(def)
#define LUAI_DDEF static
#define LUA_API static
#define LUALIB_API static
#define LUAMOD_API static
/* A buffer on the stack, of which string functions have one or two. */
#undef LUAL_BUFFERSIZE
#define LUAL_BUFFERSIZE 96

#include "lzio.c"
#include "lctype.c"
#include "lopcodes.c"
#include "lmem.c"
#include "lundump.c"
#include "lstate.c"
#include "lgc.c"
#include "ldebug.c"
#include "lfunc.c"
#include "lobject.c"
#include "ltm.c"
#include "lstring.c"
#include "ltable.c"
#include "ldo.c"
#include "lvm.c"
#include "lapi.c"
#include "lauxlib.c"
