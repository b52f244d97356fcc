/* Beside the standard library: <nihilo.h> without the small C library that lies in its folder. */
#include "../include/nihilo.h"
