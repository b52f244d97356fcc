/* Integers, and how the engine's own printf writes them. */
#pragma once

#include <stdint.h>

#define PRIo32 "o"
#define PRId64 "lld"
#define PRIu64 "llu"
