/* The machine {{name}}, with the API of the 2020 Nihilo. */
#include <nihilo.h>

/* Runs once when the machine starts. */
NIH_VOID(entry, param) {
    logStr("{{name}} has started");
}

/* tenure call {{name}} greet Ada */
NIH_CHARS(greet, param) {
    char *count;
    readString("greetings", &count);
    int number = strdec(count) + 1;
    writeString("greetings", decstr(number));

    char *greeting;
    mallocWasm((void **)&greeting, 128);
    strcpy(greeting, "Hello, ");
    strncat(greeting, param ? param : "world", 64);
    strcat(greeting, "! You are number ");
    strcat(greeting, decstr(number));
    return strcat(greeting, ".");
}
