/* Beside the standard library: <api.h> without the small C library that lies in its folder. */
#include "../include/api.h"
