/* Beside the standard library: <tenure_host.h> without the small C library that lies in its folder. */
#include "../include/tenure_host.h"
