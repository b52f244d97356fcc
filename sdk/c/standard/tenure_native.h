/* Beside the standard library: <tenure_native.h> without the small C library that lies in its folder. */
#include "../include/tenure_native.h"
