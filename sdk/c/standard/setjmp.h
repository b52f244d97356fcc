/* Beside the standard library, which has none without exceptions in WebAssembly. */
#include "../include/setjmp.h"
