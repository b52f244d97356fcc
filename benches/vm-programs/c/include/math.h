/* Functions of floating point that processors of WebAssembly have as instructions. */
#pragma once
#define NAN __builtin_nanf("")
#define INFINITY __builtin_inff()
#define HUGE_VAL __builtin_huge_val()
#define isnan(x) __builtin_isnan(x)
#define isinf(x) __builtin_isinf(x)
#define signbit(x) __builtin_signbit(x)
float ceilf(float);
float copysignf(float, float);
float fabsf(float);
float floorf(float);
float rintf(float);
float sqrtf(float);
float truncf(float);
double ceil(double);
double copysign(double, double);
double fabs(double);
double floor(double);
double rint(double);
double sqrt(double);
double trunc(double);
