#include "scarcity.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>

#include "loop.h"

enum { TELL_EVERY_MS = 60 * 1000 };

struct scarcity {
  const char *line;
  uint32_t told_ms;
  bool is_told;
};

static struct scarcity descriptors = {
    .line = "no file descriptors are left: clients wait, or are refused; raise LimitNOFILE, or lower SKERRY_GATEWAY_MAX_CONNECTIONS\n"};
static struct scarcity ports = {
    .line = "no ports are left to connect to an instance from: its clients are refused; set net.ipv4.tcp_tw_reuse=1, "
            "or widen net.ipv4.ip_local_port_range\n"};

static struct scarcity *scarcity_of(int error) {
  switch (error) {
    case EMFILE:
    case ENFILE: return &descriptors;
    case EADDRNOTAVAIL: return &ports;
    default: return NULL;
  }
}

bool scarcity_note(int error) {
  struct scarcity *scarcity = scarcity_of(error);
  if (!scarcity) return false;
  if (scarcity->is_told && now_ms - scarcity->told_ms < TELL_EVERY_MS) return true;
  scarcity->told_ms = now_ms;
  scarcity->is_told = write(STDERR_FILENO, scarcity->line, strlen(scarcity->line)) > 0;
  errno = error;
  return true;
}
