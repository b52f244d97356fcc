/* Lua's compiler, for the computer that builds a machine: files of Lua go in, a C file with their bytecode comes out.
 *
 *     compile OUTPUT NAME PATH [NAME PATH …]
 *
 * A name is the one that `require` finds the file by; the first file is the one that the machine begins with, and the
 * functions that it assigns to globals are the ones that others call. */
#define LUAI_MAXCCALLS 200
#include "core.h"
#include "names.h"

#include "ldump.c"
#include "llex.c"
#include "lcode.c"
#include "lparser.c"

/* How this ends if the project has a mistake, whose words are then all that was said. */
#define MISTAKE 3
#define FILES_MAX 256
#define NAMES_MAX 256

/* What a device has not, and what there is instead. */
static const char *const absent[][2] = {
    {"io", "output goes to tenure.log, and files are values of tenure.tree"},
    {"os", "tenure.unix_time_s and tenure.uptime_us say the time"},
    {"debug", "errors say file and line by themselves"},
    {"package", "require finds the files of the project"},
    {"load", "the compiler stays on the computer that builds"},
    {"loadfile", "the compiler stays on the computer that builds"},
    {"dofile", "require finds the files of the project"},
};

/* The libraries that are linked if a file has their name as a constant, as `math.floor` has. */
static const char *const libraries[] = {"coroutine", "math", "table", "utf8"};
#define LIBRARIES (sizeof libraries / sizeof libraries[0])

/* What the module "tenure" has. */
#define NAME(name, function) #name,
#define TABLE(name, functions) static const char *const name##_names[] = {functions(NAME) NULL};
TENURE_TABLES(TABLE)
#undef TABLE
#define TABLE(name, functions) #name,
static const char *const tenure_names[] = {TENURE_FUNCTIONS(NAME) TENURE_TABLES(TABLE) NULL};
#undef TABLE
#define TABLE(name, functions) {#name, name##_names},
static const struct {
    const char *name;
    const char *const *names;
} tenure_tables[] = {TENURE_TABLES(TABLE){NULL, NULL}};
#undef TABLE
#undef NAME

static const char *exported[NAMES_MAX], *assigned[NAMES_MAX];
static int exported_count, assigned_count;
static bool has_failed;

static void add(const char **names, int *count, const char *name) {
    for (int at = 0; at < *count; at++) {
        if (strcmp(names[at], name) == 0) {
            return;
        }
    }
    if (*count == NAMES_MAX) {
        fprintf(stderr, "more than %d globals are assigned\n", NAMES_MAX);
        exit(1);
    }
    names[(*count)++] = name;
}

/* The global that an instruction assigns, or NULL. */
static const char *assigns(const Proto *function, Instruction instruction) {
    if (GET_OPCODE(instruction) != OP_SETTABUP) {
        return NULL;
    }
    TString *table = function->upvalues[GETARG_A(instruction)].name;
    if (table == NULL || strcmp(getstr(table), "_ENV") != 0) {
        return NULL;
    }
    return getstr(tsvalue(&function->k[GETARG_B(instruction)]));
}

/* The global that an instruction reads, or NULL. */
static const char *reads(const Proto *function, Instruction instruction) {
    if (GET_OPCODE(instruction) != OP_GETTABUP) {
        return NULL;
    }
    TString *table = function->upvalues[GETARG_B(instruction)].name;
    if (table == NULL || strcmp(getstr(table), "_ENV") != 0) {
        return NULL;
    }
    return getstr(tsvalue(&function->k[GETARG_C(instruction)]));
}

static void find_assigned(const Proto *function) {
    for (int at = 0; at < function->sizecode; at++) {
        const char *name = assigns(function, function->code[at]);
        if (name != NULL) {
            add(assigned, &assigned_count, name);
        }
    }
    for (int at = 0; at < function->sizep; at++) {
        find_assigned(function->p[at]);
    }
}

/* The functions that a file's own code assigns to globals: `function name() … end` becomes two instructions. */
static void find_exported(const Proto *function) {
    for (int at = 1; at < function->sizecode; at++) {
        Instruction before = function->code[at - 1], instruction = function->code[at];
        const char *name = assigns(function, instruction);
        if (name != NULL && GET_OPCODE(before) == OP_CLOSURE && !TESTARG_k(instruction) &&
            GETARG_A(before) == GETARG_C(instruction)) {
            add(exported, &exported_count, name);
        }
    }
}

/* Whether the project assigns a global of that name. */
static bool is_own(const char *name) {
    for (int own = 0; own < assigned_count; own++) {
        if (strcmp(assigned[own], name) == 0) {
            return true;
        }
    }
    return false;
}

static void refuse_absent(const Proto *function) {
    for (int at = 0; at < function->sizecode; at++) {
        const char *name = reads(function, function->code[at]);
        if (name == NULL || is_own(name)) {
            continue;
        }
        for (size_t one = 0; one < sizeof absent / sizeof absent[0]; one++) {
            if (strcmp(absent[one][0], name) == 0) {
                fprintf(stderr, "%s:%d: there is no %s on devices: %s\n", getstr(function->source) + 1,
                        luaG_getfuncline(function, at), name, absent[one][1]);
                has_failed = true;
            }
        }
    }
    for (int at = 0; at < function->sizep; at++) {
        refuse_absent(function->p[at]);
    }
}

/* How many letters must be put in, left out or changed to make one word of the other; words of 63 letters at most. */
static int distance(const char *one, const char *other) {
    int before[64], row[64], length = (int)strlen(other);
    if (strlen(one) > 63 || length > 63) {
        return 64;
    }
    for (int to = 0; to <= length; to++) {
        row[to] = to;
    }
    for (int at = 1; one[at - 1] != 0; at++) {
        memcpy(before, row, sizeof row);
        row[0] = at;
        for (int to = 1; to <= length; to++) {
            int changed = before[to - 1] + (one[at - 1] != other[to - 1]);
            int put = row[to - 1] + 1, left = before[to] + 1;
            row[to] = changed < put ? changed : put;
            row[to] = row[to] < left ? row[to] : left;
        }
    }
    return row[length];
}

/* Says that `where` has no `name`, unless it is among `names`, and which one was meant. */
static void check_name(const Proto *function, int at, const char *where, const char *name, const char *const *names) {
    const char *meant = NULL;
    int least = 64;
    for (int one = 0; names[one] != NULL; one++) {
        if (strcmp(names[one], name) == 0) {
            return;
        }
        bool begins = strncmp(names[one], name, strlen(name)) == 0 ||
            strncmp(names[one], name, strlen(names[one])) == 0;
        int letters = begins ? 1 : distance(name, names[one]);
        if (letters < least) {
            least = letters;
            meant = names[one];
        }
    }
    fprintf(stderr, "%s:%d: %s has no %s; ", getstr(function->source) + 1, luaG_getfuncline(function, at), where, name);
    if (meant != NULL && (least == 1 || least <= (int)strlen(name) / 3)) {
        fprintf(stderr, "did you mean %s?\n", meant);
    } else {
        fputs("it has", stderr);
        for (int one = 0; names[one] != NULL; one++) {
            fprintf(stderr, "%s %s", one > 0 ? "," : "", names[one]);
        }
        fputs(names[0] != NULL ? "\n" : " nothing\n", stderr);
    }
    has_failed = true;
}

/* What the compiler knows of a value: nothing, the module "tenure", or one of its tables, counted from there. */
enum { UNKNOWN = -2, MODULE = -1 };

/* A function, and where the one around it makes it. */
struct level {
    const Proto *function;
    const struct level *around;
    int made_at;
};

static const char *text_at(const Proto *function, int constant) {
    return ttisstring(&function->k[constant]) ? getstr(tsvalue(&function->k[constant])) : NULL;
}

/* The file that the call at `at` requires by its name alone, or NULL. */
static const char *requires(const Proto *function, int at) {
    if (at < 2 || (GET_OPCODE(function->code[at]) != OP_CALL && GET_OPCODE(function->code[at]) != OP_TAILCALL)) {
        return NULL;
    }
    Instruction loaded = function->code[at - 1];
    int place = GETARG_A(function->code[at]);
    const char *global = reads(function, function->code[at - 2]);
    if (GET_OPCODE(loaded) != OP_LOADK || GETARG_A(loaded) != place + 1 || GETARG_A(function->code[at - 2]) != place ||
        global == NULL || strcmp(global, "require") != 0 || is_own(global)) {
        return NULL;
    }
    return text_at(function, GETARG_Bx(loaded));
}

static int of_register(const struct level *level, int at, int place);

static int of_upvalue(const struct level *level, int upvalue) {
    Upvaldesc value = level->function->upvalues[upvalue];
    if (level->around == NULL) {
        return UNKNOWN;
    }
    return value.instack ? of_register(level->around, level->made_at, value.idx) : of_upvalue(level->around, value.idx);
}

static int of_field(int table, const char *name) {
    for (int one = 0; table == MODULE && name != NULL && tenure_tables[one].name != NULL; one++) {
        if (strcmp(tenure_tables[one].name, name) == 0) {
            return one;
        }
    }
    return UNKNOWN;
}

/* What the instruction at `at` gives to the register `place`. */
static int of_instruction(const struct level *level, int at, int place) {
    if (at < 0 || !testAMode(GET_OPCODE(level->function->code[at])) || GETARG_A(level->function->code[at]) != place) {
        return UNKNOWN;
    }
    Instruction instruction = level->function->code[at];
    const char *file = requires(level->function, at);
    switch (GET_OPCODE(instruction)) {
    case OP_CALL:
        return file != NULL && strcmp(file, "tenure") == 0 ? MODULE : UNKNOWN;
    case OP_MOVE:
        return of_register(level, at, GETARG_B(instruction));
    case OP_GETUPVAL:
        return of_upvalue(level, GETARG_B(instruction));
    case OP_GETTABUP:
        return of_field(of_upvalue(level, GETARG_B(instruction)), text_at(level->function, GETARG_C(instruction)));
    case OP_GETFIELD:
        return of_field(of_register(level, at, GETARG_B(instruction)), text_at(level->function, GETARG_C(instruction)));
    default:
        return UNKNOWN;
    }
}

/* The instruction before `at` that gives a variable its value: of several in one statement each has its own. One that
 * gives several values is the one for each of them. */
static int setter(const Proto *function, int at, int place) {
    for (int before = at - 1; before >= 0 && before >= at - 32; before--) {
        Instruction instruction = function->code[before];
        OpCode code = GET_OPCODE(instruction);
        int first = GETARG_A(instruction);
        bool gives_several = code == OP_CALL || code == OP_VARARG || code == OP_LOADNIL;
        if (testAMode(code) && (first == place || (gives_several && first < place))) {
            return before;
        }
    }
    return -1;
}

/* What is in a register before the instruction at `at`: a variable that is set once, or what the instruction before
 * gave. */
static int of_register(const struct level *level, int at, int place) {
    const Proto *function = level->function;
    int variables = 0;
    for (int one = 0; one < function->sizelocvars; one++) {
        LocVar variable = function->locvars[one];
        if (variable.startpc > at || variable.endpc <= at || variables++ != place) {
            continue;
        }
        for (int within = variable.startpc; within < variable.endpc; within++) {
            Instruction instruction = function->code[within];
            if (testAMode(GET_OPCODE(instruction)) && GETARG_A(instruction) == place) {
                return UNKNOWN;
            }
        }
        return of_instruction(level, setter(function, variable.startpc, place), place);
    }
    return of_instruction(level, at - 1, place);
}

/* Refuses the files and the names of "tenure" that a function uses and that aren't there. */
static void refuse_unknown(const struct level *level, const char *const *files) {
    const Proto *function = level->function;
    for (int at = 0; at < function->sizecode; at++) {
        Instruction instruction = function->code[at];
        const char *file = requires(function, at);
        if (file != NULL) {
            check_name(function, at, "the project", file, files);
        }
        int table = UNKNOWN;
        if (GET_OPCODE(instruction) == OP_GETFIELD) {
            table = of_register(level, at, GETARG_B(instruction));
        } else if (GET_OPCODE(instruction) == OP_GETTABUP) {
            table = of_upvalue(level, GETARG_B(instruction));
        }
        const char *name = table == UNKNOWN ? NULL : text_at(function, GETARG_C(instruction));
        if (name != NULL && table == MODULE) {
            check_name(function, at, "tenure", name, tenure_names);
        } else if (name != NULL) {
            check_name(function, at, tenure_tables[table].name, name, tenure_tables[table].names);
        }
        if (GET_OPCODE(instruction) == OP_CLOSURE) {
            struct level inner = {function->p[GETARG_Bx(instruction)], level, at};
            refuse_unknown(&inner, files);
        }
    }
}

static bool has_constant(const Proto *function, const char *name) {
    for (int at = 0; at < function->sizek; at++) {
        if (ttisstring(&function->k[at]) && strcmp(getstr(tsvalue(&function->k[at])), name) == 0) {
            return true;
        }
    }
    for (int at = 0; at < function->sizep; at++) {
        if (has_constant(function->p[at], name)) {
            return true;
        }
    }
    return false;
}

/* Text as C has it in quotes. */
static void write_text(FILE *output, const char *text) {
    fputc('"', output);
    for (; *text != 0; text++) {
        if (*text == '"' || *text == '\\') {
            fputc('\\', output);
        }
        fputc(*text, output);
    }
    fputc('"', output);
}

static int write_bytes(lua_State *L, const void *bytes, size_t length, void *to) {
    (void)L;
    FILE *output = to;
    for (size_t at = 0; at < length; at++) {
        fprintf(output, "0x%02x,%s", ((const unsigned char *)bytes)[at], at % 16 == 15 ? "\n" : "");
    }
    return 0;
}

static const Proto *proto_of(lua_State *L, int file) {
    lua_rawgeti(L, 1, file + 1);
    const Proto *proto = clLvalue(s2v(L->top.p - 1))->p;
    lua_pop(L, 1);
    return proto;
}

static void write_libraries(lua_State *L, FILE *output, int count) {
    bool is_used[LIBRARIES] = {false};
    fputs("\nstruct lua_State;\n", output);
    for (size_t one = 0; one < LIBRARIES; one++) {
        for (int file = 0; file < count && !is_used[one]; file++) {
            is_used[one] = has_constant(proto_of(L, file), libraries[one]);
        }
        if (is_used[one]) {
            fprintf(output, "int tenure_lua_open_%s(struct lua_State *);\n", libraries[one]);
        }
    }
    fputs("struct tenure_lua_library {\n    const char *name;\n    int (*open)(struct lua_State *);\n};\n", output);
    fputs("const struct tenure_lua_library tenure_lua_libraries[] = {\n", output);
    for (size_t one = 0; one < LIBRARIES; one++) {
        if (is_used[one]) {
            fprintf(output, "    {\"%s\", tenure_lua_open_%s},\n", libraries[one], libraries[one]);
        }
    }
    fputs("    {0, 0},\n};\n", output);
}

static void write_program(lua_State *L, FILE *output, char **words, int count) {
    fputs("/* Made by `tenure build`. */\n#include <stdint.h>\n\n", output);
    for (int file = 0; file < count; file++) {
        lua_rawgeti(L, 1, file + 1);
        fprintf(output, "_Alignas(8) static const uint8_t chunk_%d[] = {\n", file);
        lua_dump(L, write_bytes, output, 0);
        fputs("};\n", output);
        lua_pop(L, 1);
    }
    fputs("\nstruct tenure_lua_chunk {\n    const char *name;\n    const uint8_t *at;\n", output);
    fputs("    uint32_t length;\n};\n", output);
    fputs("const struct tenure_lua_chunk tenure_lua_chunks[] = {\n", output);
    for (int file = 0; file < count; file++) {
        fputs("    {", output);
        write_text(output, words[2 * file]);
        fprintf(output, ", chunk_%d, sizeof chunk_%d},\n", file, file);
    }
    fprintf(output, "};\nconst uint32_t tenure_lua_chunk_count = %d;\n", count);
    fputs("const char *const tenure_lua_exports[] = {\n", output);
    for (int name = 0; name < exported_count; name++) {
        fputs("    ", output);
        write_text(output, exported[name]);
        fputs(",\n", output);
    }
    fprintf(output, "    0};\nconst uint32_t tenure_lua_export_count = %d;\n", exported_count);
    write_libraries(L, output, count);
    fputs("\nvoid tenure_lua_start(void);\nvoid tenure_lua_call(const char *name);\n", output);
    bool has_entry = false;
    for (int name = 0; name < exported_count; name++) {
        has_entry |= strcmp(exported[name], "entry") == 0;
        fprintf(output,
                "\n__attribute__((export_name(\"%s\"))) void export_%d(void) {\n    tenure_lua_call(\"%s\");\n}\n",
                exported[name], name, exported[name]);
    }
    if (!has_entry) {
        fputs("\n__attribute__((export_name(\"entry\"))) void start(void) {\n    tenure_lua_start();\n}\n", output);
    }
}

/* The whole of a file, with a zero behind it; its length. */
static char *whole(const char *path, size_t *length) {
    FILE *file = fopen(path, "rb");
    if (file == NULL || fseek(file, 0, SEEK_END) != 0) {
        fprintf(stderr, "can't read %s\n", path);
        exit(1);
    }
    long size = ftell(file);
    rewind(file);
    char *text = malloc((size_t)size + 1);
    *length = fread(text, 1, (size_t)size, file);
    text[*length] = 0;
    fclose(file);
    return text;
}

int main(int count, char **words) {
    int files = (count - 2) / 2;
    if (files < 1 || files > FILES_MAX) {
        fprintf(stderr, "a program has 1 to %d files\n", FILES_MAX);
        return 1;
    }
    lua_State *L = luaL_newstate();
    lua_newtable(L);
    for (int file = 0; file < files; file++) {
        const char *path = words[3 + 2 * file];
        size_t length;
        char *text = whole(path, &length);
        char name[1024];
        snprintf(name, sizeof name, "@%s", path);
        if (luaL_loadbufferx(L, text, length, name, "t") != LUA_OK) {
            fprintf(stderr, "%s\n", lua_tostring(L, -1));
            return MISTAKE;
        }
        lua_rawseti(L, 1, file + 1);
        free(text);
    }
    for (int file = 0; file < files; file++) {
        find_assigned(proto_of(L, file));
    }
    find_exported(proto_of(L, 0));
    for (int file = 0; file < files; file++) {
        refuse_absent(proto_of(L, file));
    }
    const char *names[FILES_MAX + LIBRARIES + 4] = {"tenure", "string", "_G"};
    for (size_t one = 0; one < LIBRARIES; one++) {
        names[3 + one] = libraries[one];
    }
    for (int file = 0; file < files; file++) {
        names[3 + LIBRARIES + (size_t)file] = words[2 + 2 * file];
    }
    for (int file = 0; file < files; file++) {
        struct level level = {proto_of(L, file), NULL, 0};
        refuse_unknown(&level, names);
    }
    if (has_failed) {
        return MISTAKE;
    }
    FILE *output = fopen(words[1], "w");
    if (output == NULL) {
        fprintf(stderr, "can't write %s\n", words[1]);
        return 1;
    }
    write_program(L, output, words + 2, files);
    return fclose(output) == 0 ? 0 : 1;
}
