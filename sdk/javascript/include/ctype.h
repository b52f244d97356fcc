/* The engine includes it, and calls nothing of it. */
#pragma once
