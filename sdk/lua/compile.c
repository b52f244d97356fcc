/* Lua's compiler, for the computer that builds a machine: files of Lua go in, a C file with their bytecode comes out.
 *
 *     compile OUTPUT NAME PATH [NAME PATH …]
 *
 * A name is the one that `require` finds the file by; the first file is the one that the machine begins with, and the
 * functions that it assigns to globals are the ones that others call. */
#define LUAI_MAXCCALLS 200
#include "core.h"

#include "ldump.c"
#include "llex.c"
#include "lcode.c"
#include "lparser.c"

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

static void refuse_absent(const Proto *function) {
    for (int at = 0; at < function->sizecode; at++) {
        const char *name = reads(function, function->code[at]);
        bool is_own = name == NULL;
        for (int own = 0; own < assigned_count && !is_own; own++) {
            is_own = strcmp(assigned[own], name) == 0;
        }
        for (size_t one = 0; one < sizeof absent / sizeof absent[0] && !is_own; one++) {
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
            return 1;
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
    if (has_failed) {
        return 1;
    }
    FILE *output = fopen(words[1], "w");
    if (output == NULL) {
        fprintf(stderr, "can't write %s\n", words[1]);
        return 1;
    }
    write_program(L, output, words + 2, files);
    return fclose(output) == 0 ? 0 : 1;
}
