#include "memory.h"

#include <malloc.h>
#include <stdlib.h>

#include "stats.h"

uint8_t copy_buffer[COPY_BYTES];

/* What the allocator took for it: its rounding and its own header belong to the price. */
static uint64_t cost_of(void *memory) { return memory ? malloc_usable_size(memory) + sizeof(size_t) : 0; }

void *memory_take(size_t bytes) {
  void *memory = malloc(bytes);
  stats->connection_bytes += cost_of(memory);
  return memory;
}

void *memory_resize(void *memory, size_t bytes) {
  uint64_t before = cost_of(memory);
  void *resized = realloc(memory, bytes);
  if (resized) stats->connection_bytes += cost_of(resized) - before;
  return resized;
}

void memory_give(void *memory) {
  stats->connection_bytes -= cost_of(memory);
  free(memory);
}
