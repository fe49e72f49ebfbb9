#include "scarcity.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "loop.h"

enum { TELL_EVERY_MS = 60 * 1000 };

static const char LINE[] =
    "no file descriptors are left: clients wait, or are refused; raise LimitNOFILE, or lower SKERRY_GATEWAY_MAX_CONNECTIONS\n";

bool scarcity_note(int error) {
  static uint32_t told_ms;
  static bool is_told;
  if (error != EMFILE && error != ENFILE) return false;
  if (is_told && now_ms - told_ms < TELL_EVERY_MS) return true;
  told_ms = now_ms;
  is_told = write(STDERR_FILENO, LINE, strlen(LINE)) > 0;
  errno = error;
  return true;
}
