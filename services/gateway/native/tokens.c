#include "tokens.h"

#include "loop.h"

bool tokens_take(struct tokens *tokens, struct rate rate) {
  uint64_t back = (uint64_t)(now_ms - tokens->given_ms) * rate.per_s / 1000;
  if (back >= tokens->taken) {
    *tokens = (struct tokens){0, now_ms};
  } else if (back > 0) {
    tokens->taken -= (uint32_t)back;
    tokens->given_ms += (uint32_t)(back * 1000 / rate.per_s);
  }
  if (tokens->taken >= rate.at_once) return false;
  tokens->taken++;
  return true;
}
