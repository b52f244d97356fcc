/* The program in wasm3. */
#include <stdint.h>

#include "m3_env.h"
#include "wasm3.h"

static IM3Runtime runtime;
static IM3Function function;

int subject_prepare(const uint8_t *bytes, uint32_t length) {
    IM3Environment environment = m3_NewEnvironment();
    IM3Module module;
    if (!environment) return 1;
    runtime = m3_NewRuntime(environment, 64 * 1024, NULL);
    if (!runtime) return 2;
    if (m3_ParseModule(environment, &module, bytes, length)) return 3;
    if (m3_LoadModule(runtime, module)) return 4;
    return m3_FindFunction(&function, runtime, "run") ? 5 : 0;
}

#if M3_VERSION_MAJOR == 0 && M3_VERSION_MINOR < 5
uint32_t subject_run(void) {
    if (m3_Call(function)) return 0xFFFFFFFF;
    return *(uint32_t *)runtime->stack;
}
#else
uint32_t subject_run(void) {
    uint32_t result = 0;
    const void *results[] = {&result};
    if (m3_Call(function, 0, NULL) || m3_GetResults(function, 1, results)) return 0xFFFFFFFF;
    return result;
}
#endif
