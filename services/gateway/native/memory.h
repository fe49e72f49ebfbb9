/* Memory that connections hold, counted: what an idle one costs is a promise. */
#pragma once
#include <stddef.h>
#include <stdint.h>

/* Each is NULL where there is none. */
void *memory_take(size_t bytes);
void *memory_resize(void *memory, size_t bytes);
void memory_give(void *memory);

/* What is read goes here, for all connections: it stays until the next read of any. */
enum { COPY_BYTES = 64 * 1024 };
extern uint8_t copy_buffer[COPY_BYTES];
