/* The figures that the plane counts, in memory that the TypeScript side reads. */
#pragma once
#include <stdbool.h>

#include "layout.h"

extern struct shared_stats *stats;

/* Maps the file that the TypeScript side gave as a descriptor; what is told of now begins at zero. */
bool stats_map(void);
