/* Runs a file of Lua that returns a function, by the same interpreter as this computer's compiler makes it, and
 * prints what that function returns. */
#define LUAI_MAXCCALLS 200
#include "core.h"

#include "ldump.c"
#include "llex.c"
#include "lcode.c"
#include "lparser.c"

#include "lbaselib.c"
#include "lcorolib.c"
#include "lmathlib.c"
#include "lstrlib.c"
#include "ltablib.c"
#include "lutf8lib.c"

int main(int count, char **words) {
    lua_State *L = luaL_newstate();
    luaL_requiref(L, LUA_GNAME, luaopen_base, 1);
    luaL_requiref(L, LUA_COLIBNAME, luaopen_coroutine, 1);
    luaL_requiref(L, LUA_TABLIBNAME, luaopen_table, 1);
    luaL_requiref(L, LUA_STRLIBNAME, luaopen_string, 1);
    luaL_requiref(L, LUA_MATHLIBNAME, luaopen_math, 1);
    luaL_requiref(L, LUA_UTF8LIBNAME, luaopen_utf8, 1);
    if (luaL_loadfile(L, words[count - 1]) || lua_pcall(L, 0, 1, 0) || lua_pcall(L, 0, 1, 0)) {
        fprintf(stderr, "%s\n", lua_tostring(L, -1));
        return 1;
    }
    fputs(lua_tostring(L, -1), stdout);
    return 0;
}
