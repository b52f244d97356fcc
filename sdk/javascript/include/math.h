/* The few of C's mathematical functions that the engine takes from its surroundings; the rest are its own. */
#pragma once

#define NAN __builtin_nan("")
#define INFINITY __builtin_inf()
#define isnan(NUMBER) __builtin_isnan(NUMBER)
#define isinf(NUMBER) __builtin_isinf(NUMBER)
#define isfinite(NUMBER) __builtin_isfinite(NUMBER)
#define signbit(NUMBER) __builtin_signbit(NUMBER)
#define copysign(NUMBER, SIGN) __builtin_copysign(NUMBER, SIGN)
#define fabs(NUMBER) __builtin_fabs(NUMBER)
