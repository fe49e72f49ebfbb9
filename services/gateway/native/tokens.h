/* A share that is used up and comes back with time: so many at once, after some silence, and so many a second. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

struct rate {
  uint32_t at_once, per_s;
};

/* All zero where none is taken. */
struct tokens {
  uint32_t taken, given_ms;
};

/* False where none is left. */
bool tokens_take(struct tokens *tokens, struct rate rate);
