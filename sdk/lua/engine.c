/* Lua machines: the interpreter of Lua, and what its scripts can ask of a device.
 *
 * The script comes as bytecode, made by compile.c on the computer that builds the machine; the compiler stays
 * there. Code and line numbers of the script are used where the linker has put them, and aren't copied. Lua's
 * errors leave by longjmp, of which `tenure build` makes returns. */
#include <stdint.h>

/* The seed of `math.random`, and of the order in which `pairs` finds keys. */
static unsigned seed_of_device(void);
#define luai_makeseed() seed_of_device()
/* Where Lua would write what nobody reads. */
#define lua_writestring(text, length) ((void)0)
#define lua_writeline() ((void)0)
#define lua_writestringerror(text, parameter) ((void)0)

#include "core.h"

/* There are no files, and with them goes C's library for them. */
#define luaL_loadfilex(L, name, mode) luaL_error(L, "there are no files")

#include "lbaselib.c"
#include "lcorolib.c"
#include "lmathlib.c"
#include "lstrlib.c"
#include "ltablib.c"
#include "lutf8lib.c"

#include <tenure.h>

/* ---- the compiler, which isn't there ---- */

static void luaX_init(lua_State *L) {
    (void)L;
}

static LClosure *luaY_parser(lua_State *L, ZIO *z, Table *anchor, Mbuffer *buff, Dyndata *dyd, const char *name,
                             int firstchar) {
    luaG_runerror(L, "the compiler stays on the computer that builds");
}

static int luaU_dump(lua_State *L, const Proto *f, lua_Writer w, void *data, int strip) {
    return 1;
}

static unsigned seed_of_device(void) {
    unsigned seed = 0;
    tenure_host_random(&seed, sizeof seed);
    return seed;
}

/* ---- the program, which `tenure build` writes beside ---- */

/* A file of the script, by the name that `require` finds it by. */
struct tenure_lua_chunk {
    const char *name;
    const uint8_t *at;
    uint32_t length;
};

extern const struct tenure_lua_chunk tenure_lua_chunks[];
extern const uint32_t tenure_lua_chunk_count;
/* The functions that others call: globals of the first file. */
extern const char *const tenure_lua_exports[];
extern const uint32_t tenure_lua_export_count;

/* The libraries that the script mentions, up to one without a name. */
struct tenure_lua_library {
    const char *name;
    lua_CFunction open;
};

extern const struct tenure_lua_library tenure_lua_libraries[];

/* What isn't mentioned isn't linked. */
int tenure_lua_open_coroutine(lua_State *L) {
    return luaopen_coroutine(L);
}

int tenure_lua_open_math(lua_State *L) {
    return luaopen_math(L);
}

int tenure_lua_open_table(lua_State *L) {
    return luaopen_table(L);
}

int tenure_lua_open_utf8(lua_State *L) {
    return luaopen_utf8(L);
}

void tenure_lua_start(void);
void tenure_lua_call(const char *name);

#include "host.c"
#include "memory.c"

/* ---- files of the script ---- */

/* The function of a file. Its code stays where it is. */
static int load_chunk(lua_State *L, const struct tenure_lua_chunk *chunk) {
    return luaL_loadbufferx(L, (const char *)chunk->at, chunk->length, chunk->name, "B");
}

/* require: runs a file of the project once, and gives what it returns. */
static int require_file(lua_State *L) {
    const char *name = luaL_checkstring(L, 1);
    lua_settop(L, 1);
    luaL_getsubtable(L, LUA_REGISTRYINDEX, LUA_LOADED_TABLE);
    if (lua_getfield(L, 2, name) != LUA_TNIL) {
        return 1;
    }
    for (uint32_t at = 0; at < tenure_lua_chunk_count; at++) {
        if (strcmp(tenure_lua_chunks[at].name, name) == 0) {
            if (load_chunk(L, &tenure_lua_chunks[at]) != LUA_OK) {
                return lua_error(L);
            }
            lua_pushvalue(L, 1);
            lua_call(L, 1, 1);
            if (lua_isnil(L, -1)) {
                lua_pushboolean(L, 1);
            }
            lua_pushvalue(L, -1);
            lua_setfield(L, 2, name);
            return 1;
        }
    }
    return luaL_error(L, "the project has no file for require '%s'", name);
}

/* ---- the machine ---- */

static lua_State *state;

static int open_all(lua_State *L) {
    luaL_requiref(L, LUA_GNAME, luaopen_base, 1);
    luaL_requiref(L, LUA_STRLIBNAME, luaopen_string, 1);
    for (const struct tenure_lua_library *library = tenure_lua_libraries; library->name != NULL; library++) {
        luaL_requiref(L, library->name, library->open, 1);
    }
    lua_settop(L, 0);
    luaL_requiref(L, "tenure", open_tenure, 0);
    lua_pop(L, 1);
    static const char *const gone[] = {"dofile", "load", "loadfile"};
    for (size_t at = 0; at < sizeof gone / sizeof gone[0]; at++) {
        lua_pushnil(L);
        lua_setglobal(L, gone[at]);
    }
    lua_pushcfunction(L, print);
    lua_setglobal(L, "print");
    lua_pushcfunction(L, require_file);
    lua_setglobal(L, "require");
    return 0;
}

/* The calls that are told of. */
#define CALLS_MAX 8

/* The places of the calls that led to the last error, the innermost first; and how many. */
static struct {
    char file[LUA_IDSIZE];
    int line;
} trail[CALLS_MAX];
static int trail_length;

/* Notes through which calls of Lua's functions an error came about, but for the first, which is in its text. */
static int note_trail(lua_State *L) {
    lua_Debug frame;
    bool is_first = true;
    trail_length = 0;
    for (int level = 1; trail_length < CALLS_MAX && lua_getstack(L, level, &frame); level++) {
        lua_getinfo(L, "Sl", &frame);
        if (frame.currentline <= 0) {
            continue;
        }
        if (!is_first) {
            memcpy(trail[trail_length].file, frame.short_src, LUA_IDSIZE);
            trail[trail_length].line = frame.currentline;
            trail_length++;
        }
        is_first = false;
    }
    luaL_tolstring(L, 1, NULL);
    return 1;
}

static void log_trail(void) {
    while (trail_length > 0) {
        trail_length--;
        tenure_error("  called at %s:%d", trail[trail_length].file, trail[trail_length].line);
    }
}

/* The words of the error on the top of the stack. */
static const char *words_of_error(lua_State *L) {
    const char *words = lua_tostring(L, -1);
    return words == NULL ? "an error that is no text" : words;
}

/* Runs the first file. */
static int run_main(lua_State *L) {
    if (load_chunk(L, &tenure_lua_chunks[0]) != LUA_OK) {
        return lua_error(L);
    }
    lua_call(L, 0, 0);
    return 0;
}

/* Calls a function without parameters and results, and notes what led to an error. */
static int protected(lua_State *L, lua_CFunction function, const char *name) {
    lua_settop(L, 0);
    trail_length = 0;
    lua_pushcfunction(L, note_trail);
    lua_pushcfunction(L, function);
    lua_pushlightuserdata(L, (void *)name);
    return lua_pcall(L, 1, 0, 1);
}

/* Makes the interpreter and runs the script, once. A script with an error stops the machine. */
void tenure_lua_start(void) {
    if (state != NULL) {
        return;
    }
    take_memory();
    state = lua_newstate(allocate, NULL, seed_of_device());
    if (state == NULL) {
        tenure_abort("out of memory: Lua found none within memory_bytes of the machine's budget");
    }
    // Garbage goes early: memory that was written to counts.
    lua_gc(state, LUA_GCPARAM, LUA_GCPPAUSE, 120);
    if (protected(state, open_all, NULL) != LUA_OK || protected(state, run_main, NULL) != LUA_OK) {
        log_trail();
        tenure_abort(words_of_error(state));
    }
}

/* Calls the global function whose name is a light userdata, with the call's parameter; what it returns is the
 * result. */
static int call_exported(lua_State *L) {
    const char *name = lua_touserdata(L, 1);
    lua_settop(L, 0);
    lua_getglobal(L, name);
    push_parameter(L);
    lua_call(L, 1, 1);
    switch (lua_type(L, 1)) {
    case LUA_TTABLE:
    case LUA_TUSERDATA:
    case LUA_TTHREAD:
        return luaL_error(L, "%s returns a %s: a result is a string, a number or a boolean", name, luaL_typename(L, 1));
    case LUA_TNIL:
        break;
    default: {
        struct span value = value_at(L, 1);
        check(L, tenure_host_reply(value.at, value.length));
    }
    }
    return 0;
}

/* Frees what a call that ran out of memory has left: of the room for calls in one another each round gives back
 * half. */
static void tidy(void) {
    int now = lua_gc(state, LUA_GCCOUNT), before;
    do {
        before = now;
        lua_gc(state, LUA_GCCOLLECT);
        now = lua_gc(state, LUA_GCCOUNT);
    } while (now < before);
}

/* Calls the global function of that name. An error that nobody catches fails the call. */
void tenure_lua_call(const char *name) {
    tenure_lua_start();
    int outcome = protected(state, call_exported, name);
    if (outcome != LUA_OK) {
        log_trail();
        tenure_fail("%s", words_of_error(state));
    }
    if (outcome == LUA_ERRMEM) {
        tidy();
    }
    lua_settop(state, 0);
}
