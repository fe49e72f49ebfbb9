/* Memory that connections hold, counted: what an idle one costs is a promise. */
#pragma once
#include <stddef.h>

/* Each is NULL where there is none. */
void *memory_take(size_t bytes);
void *memory_resize(void *memory, size_t bytes);
void memory_give(void *memory);
