/* Beside the standard library: <tenure.h> without the small C library that lies in its folder. */
#include "../include/tenure.h"
