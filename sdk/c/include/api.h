/* The name under which Nihilo's programs include its API. */
#pragma once
#include "nihilo.h"
