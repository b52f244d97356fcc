/* What scripts can ask of a device, part of engine.c: the functions of the module "tenure", and `print`. */
#include "names.h"

/* ---- values as bytes for the host, and failures ---- */

struct span {
    const char *at;
    uint32_t length;
};

/* The name of a function that others call: the global of the first file that holds it. */
static const char *name_of_function(lua_State *L, int index) {
    for (uint32_t at = 0; at < tenure_lua_export_count; at++) {
        lua_getglobal(L, tenure_lua_exports[at]);
        bool is_it = lua_rawequal(L, -1, index);
        lua_pop(L, 1);
        if (is_it) {
            return tenure_lua_exports[at];
        }
    }
    luaL_argerror(L, index, "a function that is called later is a global one of the first file");
    return NULL;
}

/* What a value at a positive index says; nothing for nil. */
static struct span value_at(lua_State *L, int index) {
    size_t length = 0;
    const char *text = NULL;
    switch (lua_type(L, index)) {
    case LUA_TNONE:
    case LUA_TNIL:
        break;
    case LUA_TBOOLEAN:
        text = lua_toboolean(L, index) ? "true" : "false";
        length = strlen(text);
        break;
    case LUA_TSTRING:
    case LUA_TNUMBER:
        text = lua_tolstring(L, index, &length);
        break;
    case LUA_TFUNCTION:
        text = name_of_function(L, index);
        length = strlen(text);
        break;
    default:
        luaL_typeerror(L, index, "string, number or boolean");
    }
    return (struct span){text, (uint32_t)length};
}

/* A text that has to be there. */
static struct span text_at(lua_State *L, int index) {
    size_t length;
    const char *text = luaL_checklstring(L, index, &length);
    return (struct span){text, (uint32_t)length};
}

/* A function of the script, or its name. */
static struct span handler_at(lua_State *L, int index) {
    return lua_isfunction(L, index) ? value_at(L, index) : text_at(L, index);
}

static uint32_t number_at(lua_State *L, int index, uint32_t otherwise) {
    return (uint32_t)luaL_optinteger(L, index, otherwise);
}

/* The registry's name for what failures have in common. */
#define FAILURE "tenure.failure"

static int failure_text(lua_State *L) {
    lua_getfield(L, 1, "message");
    return 1;
}

/* Throws a failure of the host: a table with its words and their place as `message`, and its number as `code`. */
static int throw_with(lua_State *L, int32_t status, const char *words) {
    lua_createtable(L, 0, 2);
    luaL_where(L, 1);
    lua_pushfstring(L, *words ? "%s: %s" : "%s", tenure_error_text(status), words);
    lua_concat(L, 2);
    lua_setfield(L, -2, "message");
    lua_pushinteger(L, status);
    lua_setfield(L, -2, "code");
    if (luaL_newmetatable(L, FAILURE)) {
        lua_pushcfunction(L, failure_text);
        lua_setfield(L, -2, "__tostring");
    }
    lua_setmetatable(L, -2);
    return lua_error(L);
}

/* Throws if it failed. */
static int32_t check(lua_State *L, int32_t status) {
    if (status < 0) {
        throw_with(L, status, "");
    }
    return status;
}

static int counted(lua_State *L, int32_t status) {
    lua_pushinteger(L, check(L, status));
    return 1;
}

static int done(lua_State *L, int32_t status) {
    check(L, status);
    return 0;
}

/* ---- the call being served ---- */

/* Its parameter, or nil. */
static int push_parameter(lua_State *L) {
    int32_t length = tenure_host_parameter_length();
    if (length < 0) {
        lua_pushnil(L);
        return 1;
    }
    luaL_Buffer buffer;
    tenure_host_parameter_read(0, luaL_buffinitsize(L, &buffer, (size_t)length), (uint32_t)length);
    luaL_pushresultsize(&buffer, (size_t)length);
    return 1;
}

static int reply(lua_State *L) {
    struct span value = value_at(L, 1);
    return done(L, tenure_host_reply(value.at, value.length));
}

static int stop(lua_State *L) {
    struct span message = text_at(L, 1);
    tenure_host_abort(message.at, message.length);
    __builtin_trap();
}

#define KEY_BYTES 32

/* A key that was written; nil if it wasn't. */
static int key_or_nil(lua_State *L, int32_t status, const uint8_t key[KEY_BYTES]) {
    if (status == KEY_BYTES) {
        lua_pushlstring(L, (const char *)key, KEY_BYTES);
    } else {
        lua_pushnil(L);
    }
    return 1;
}

static int caller(lua_State *L) {
    uint8_t key[KEY_BYTES];
    return key_or_nil(L, tenure_host_caller(key, KEY_BYTES), key);
}

static int public_key(lua_State *L) {
    uint8_t key[KEY_BYTES];
    return key_or_nil(L, tenure_host_public_key(key, KEY_BYTES), key);
}

static int resolve(lua_State *L) {
    uint8_t key[KEY_BYTES];
    struct span target = text_at(L, 1);
    return key_or_nil(L, tenure_host_resolve(target.at, target.length, key, KEY_BYTES), key);
}

/* ---- the log ---- */

/* The least that a line of the log is cut at, and a byte more. */
#define LINE_BYTES 257

static int log_words(lua_State *L, uint32_t level) {
    char line[LINE_BYTES];
    size_t length = 0;
    int count = lua_gettop(L);
    for (int at = 1; at <= count; at++) {
        size_t word_length;
        const char *word = luaL_tolstring(L, at, &word_length);
        if (at > 1 && length < LINE_BYTES) {
            line[length++] = ' ';
        }
        size_t taken = word_length < LINE_BYTES - length ? word_length : LINE_BYTES - length;
        memcpy(line + length, word, taken);
        length += taken;
        lua_pop(L, 1);
    }
    tenure_host_log(level, line, (uint32_t)length);
    return 0;
}

static int log_error(lua_State *L) {
    return log_words(L, TENURE_LOG_ERROR);
}

static int log_warning(lua_State *L) {
    return log_words(L, TENURE_LOG_WARNING);
}

static int log_info(lua_State *L) {
    return log_words(L, TENURE_LOG_INFO);
}

static int log_debug(lua_State *L) {
    return log_words(L, TENURE_LOG_DEBUG);
}

static int print(lua_State *L) {
    return log_words(L, TENURE_LOG_INFO);
}

/* ---- the tree, secrets, and lists of names ---- */

/* A host call that writes what has a name, as much as fits, and says how long it is. */
typedef int32_t reader(const char *name, uint32_t name_length, void *into, uint32_t capacity);

static int32_t read_tree(const char *name, uint32_t name_length, void *into, uint32_t capacity) {
    return tenure_host_tree_get(name, name_length, into, capacity);
}

static int32_t read_names(const char *name, uint32_t name_length, void *into, uint32_t capacity) {
    return tenure_host_tree_list(name, name_length, into, capacity);
}

static int32_t read_secret(const char *name, uint32_t name_length, void *into, uint32_t capacity) {
    return tenure_host_secret_read(name, name_length, into, capacity);
}

/* The whole of what has the name that is the first argument; nil if there is none. Between two host calls it stays. */
static int read_whole(lua_State *L, reader *read) {
    struct span name = text_at(L, 1);
    int32_t length = read(name.at, name.length, NULL, 0);
    if (length == TENURE_NOT_FOUND) {
        lua_pushnil(L);
        return 1;
    }
    check(L, length);
    luaL_Buffer buffer;
    read(name.at, name.length, luaL_buffinitsize(L, &buffer, (size_t)length), (uint32_t)length);
    luaL_pushresultsize(&buffer, (size_t)length);
    return 1;
}

static int tree_get(lua_State *L) {
    return read_whole(L, read_tree);
}

static int secret(lua_State *L) {
    return read_whole(L, read_secret);
}

/* Whether it is text in UTF-8, as the tree tells it from bytes. */
static bool is_text(struct span value) {
    const char *rest = value.at, *end = value.at + value.length;
    while (rest != NULL && rest < end) {
        l_uint32 character;
        // The function of lutf8lib reads up to a zero, which ends each string of Lua.
        rest = utf8_decode(rest, &character, 1);
    }
    return rest != NULL;
}

static int tree_set(lua_State *L) {
    struct span path = text_at(L, 1), value = value_at(L, 2);
    luaL_argcheck(L, value.at != NULL, 2, "there is no value to store; tree.remove deletes one");
    return done(L, tenure_host_tree_set(path.at, path.length, is_text(value), value.at, value.length));
}

static int tree_remove(lua_State *L) {
    struct span path = text_at(L, 1);
    return counted(L, tenure_host_tree_delete(path.at, path.length));
}

static int tree_list(lua_State *L) {
    lua_settop(L, 1);
    read_whole(L, read_names);
    lua_newtable(L);
    size_t length;
    const char *names = lua_tolstring(L, 2, &length);
    for (size_t at = 0, index = 1; names != NULL && at < length; at += strlen(names + at) + 1, index++) {
        lua_pushstring(L, names + at);
        lua_rawseti(L, 3, (lua_Integer)index);
    }
    return 1;
}

/* ---- calling other machines ---- */

/* The most that is shown of what a machine says of a failure. */
#define WORDS_BYTES 160

static int call(lua_State *L) {
    struct span target = text_at(L, 1), name = text_at(L, 2), value = value_at(L, 3);
    int32_t status = tenure_host_call(target.at, target.length, name.at, name.length, value.at, value.length,
                                      number_at(L, 4, 0));
    if (status == TENURE_NULL) {
        lua_pushnil(L);
        return 1;
    }
    if (status < 0) {
        char words[WORDS_BYTES] = "";
        // Of a server outside the device says why there is no answer.
        bool is_outside = memchr(target.at, ':', target.length) != NULL;
        if (is_outside || status == TENURE_EXECUTION || status == TENURE_OVERSPENT) {
            tenure_failure_text(words, sizeof words);
        }
        return throw_with(L, status, words);
    }
    luaL_Buffer buffer;
    tenure_host_result_read(0, luaL_buffinitsize(L, &buffer, (size_t)status), (uint32_t)status);
    luaL_pushresultsize(&buffer, (size_t)status);
    return 1;
}

static int queue(lua_State *L) {
    static const char *const fields[] = {"target",     "name",        "parameter", "on_success",
                                         "on_failure", "deadline_ms", "retries"};
    luaL_checktype(L, 1, LUA_TTABLE);
    lua_settop(L, 1);
    for (size_t at = 0; at < sizeof fields / sizeof fields[0]; at++) {
        lua_getfield(L, 1, fields[at]);
    }
    struct span target = value_at(L, 2), name = handler_at(L, 3), value = value_at(L, 4);
    struct span on_success = value_at(L, 5), on_failure = value_at(L, 6);
    return counted(L, tenure_host_queue(target.at, target.length, name.at, name.length, value.at, value.length,
                                        on_success.at, on_success.length, on_failure.at, on_failure.length,
                                        number_at(L, 7, 0), number_at(L, 8, 0)));
}

static int callback_of(lua_State *L) {
    return counted(L, tenure_host_callback_of());
}

/* Room for 16 keys: each host call costs a message. */
#define PEERS_BYTES 512

static int peers(lua_State *L) {
    uint32_t which = number_at(L, 1, TENURE_ALL), capacity = PEERS_BYTES;
    for (;;) {
        luaL_Buffer buffer;
        void *room = luaL_buffinitsize(L, &buffer, capacity);
        int32_t length = check(L, tenure_host_peers(which, room, capacity));
        if ((uint32_t)length <= capacity) {
            luaL_pushresultsize(&buffer, (size_t)length);
            return 1;
        }
        luaL_pushresultsize(&buffer, 0);
        capacity = (uint32_t)length;
    }
}

/* ---- timers ---- */

static int timer_after(lua_State *L) {
    struct span name = handler_at(L, 2);
    uint32_t delay_ms = (uint32_t)luaL_checkinteger(L, 1);
    return done(L, tenure_host_timer_after(name.at, name.length, NULL, 0, delay_ms, 0));
}

static int timer_every(lua_State *L) {
    struct span name = handler_at(L, 2);
    uint32_t period_ms = (uint32_t)luaL_checkinteger(L, 1);
    return done(L, tenure_host_timer_after(name.at, name.length, NULL, 0, period_ms, period_ms));
}

static int timer_at(lua_State *L) {
    struct span name = handler_at(L, 3);
    uint32_t time_s = (uint32_t)luaL_checkinteger(L, 1);
    return done(L, tenure_host_timer_at(name.at, name.length, NULL, 0, time_s, number_at(L, 2, 0)));
}

static int timer_schedule(lua_State *L) {
    struct span times = text_at(L, 1), name = handler_at(L, 2);
    return done(L, tenure_host_timer_schedule(name.at, name.length, NULL, 0, times.at, times.length));
}

static int timer_cancel(lua_State *L) {
    struct span name = handler_at(L, 1);
    return done(L, tenure_host_timer_cancel(name.at, name.length));
}

/* ---- events ---- */

static int publish(lua_State *L) {
    struct span topic = text_at(L, 1), value = value_at(L, 2);
    return counted(L, tenure_host_publish(topic.at, topic.length, value.at, value.length));
}

/* The events that a queue holds unless it is said. */
#define DEPTH 8

static int subscribe(lua_State *L) {
    static const char *const policies[] = {"drop-oldest", "drop-newest", "latest-only", NULL};
    struct span topic = text_at(L, 1), handler = {NULL, 0};
    if (!lua_isnoneornil(L, 2)) {
        handler = handler_at(L, 2);
    }
    uint32_t policy = (uint32_t)luaL_checkoption(L, 3, policies[0], policies);
    return done(L, tenure_host_subscribe(topic.at, topic.length, policy, number_at(L, 4, DEPTH), handler.at,
                                         handler.length));
}

static int unsubscribe(lua_State *L) {
    struct span topic = text_at(L, 1);
    return done(L, tenure_host_unsubscribe(topic.at, topic.length));
}

static int event_topic(lua_State *L) {
    char topic[TENURE_TOPIC_BYTES];
    lua_pushstring(L, tenure_event_topic(topic) < 0 ? NULL : topic);
    return 1;
}

static int dropped(lua_State *L) {
    if (lua_isnoneornil(L, 1)) {
        return counted(L, tenure_host_event_dropped());
    }
    struct span topic = text_at(L, 1);
    return counted(L, tenure_host_topic_dropped(topic.at, topic.length));
}

static int event_next(lua_State *L) {
    int32_t length = tenure_host_event_next(number_at(L, 1, TENURE_FOR_EVER));
    if (length == TENURE_DEADLINE) {
        lua_pushnil(L);
        return 1;
    }
    check(L, length);
    lua_createtable(L, 0, 3);
    luaL_Buffer buffer;
    tenure_host_event_read(0, luaL_buffinitsize(L, &buffer, (size_t)length), (uint32_t)length);
    luaL_pushresultsize(&buffer, (size_t)length);
    lua_setfield(L, -2, "payload");
    event_topic(L);
    lua_setfield(L, -2, "topic");
    lua_pushinteger(L, tenure_host_event_dropped());
    lua_setfield(L, -2, "dropped");
    return 1;
}

/* ---- time, chance and budgets ---- */

static int uptime_us(lua_State *L) {
    lua_pushinteger(L, (lua_Integer)tenure_host_uptime_us());
    return 1;
}

/* nil while the device doesn't know it. */
static int unix_time_s(lua_State *L) {
    int64_t time_s = tenure_host_unix_time_s();
    if (time_s < 0) {
        lua_pushnil(L);
    } else {
        lua_pushinteger(L, time_s);
    }
    return 1;
}

static int sleep_ms(lua_State *L) {
    tenure_host_sleep_ms((uint32_t)luaL_checkinteger(L, 1));
    return 0;
}

static int yield_now(lua_State *L) {
    (void)L;
    tenure_host_yield_now();
    return 0;
}

static int random_bytes(lua_State *L) {
    uint32_t length = (uint32_t)luaL_checkinteger(L, 1);
    luaL_Buffer buffer;
    tenure_host_random(luaL_buffinitsize(L, &buffer, length), length);
    luaL_pushresultsize(&buffer, length);
    return 1;
}

static int budget_left(lua_State *L) {
    return counted(L, tenure_host_budget_left(number_at(L, 1, TENURE_BUDGET_FUEL)));
}

static int raise_tier(lua_State *L) {
    return counted(L, tenure_host_raise_tier(number_at(L, 1, 0), number_at(L, 2, 0)));
}

/* ---- the module ---- */

#define ROW(name, function) {#name, function},
static const luaL_Reg functions[] = {TENURE_FUNCTIONS(ROW){NULL, NULL}};
static const luaL_Reg log_functions[] = {TENURE_LOG(ROW){NULL, NULL}};
static const luaL_Reg tree_functions[] = {TENURE_TREE(ROW){NULL, NULL}};
static const luaL_Reg timer_functions[] = {TENURE_TIMERS(ROW){NULL, NULL}};
static const luaL_Reg event_functions[] = {TENURE_EVENTS(ROW){NULL, NULL}};
#undef ROW

static int open_tenure(lua_State *L) {
    luaL_newlib(L, functions);
    luaL_newlib(L, log_functions);
    lua_setfield(L, -2, "log");
    luaL_newlib(L, tree_functions);
    lua_setfield(L, -2, "tree");
    luaL_newlib(L, timer_functions);
    lua_setfield(L, -2, "timers");
    luaL_newlib(L, event_functions);
    lua_setfield(L, -2, "events");
    return 1;
}
