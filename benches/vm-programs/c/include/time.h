/* No clock. */
#pragma once
typedef long time_t;
typedef long clock_t;
