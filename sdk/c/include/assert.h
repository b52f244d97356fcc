/* assert: what it finds wrong ends the call as failed and stops the machine. */
#undef assert
#ifdef NDEBUG
#define assert(CONDITION) ((void)0)
#else
#include "tenure.h"
#define assert(CONDITION) \
    ((CONDITION) ? (void)0 : tenure_abort(__FILE__ ": assertion failed: " #CONDITION))
#endif
