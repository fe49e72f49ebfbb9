#include "options.h"

#include <stdlib.h>
#include <string.h>

#include "layout.h"

struct options options;

static bool read_option(const char *key, const char *value) {
  const struct { const char *key; uint32_t *to; } numbers[] = {
      {"max_connections", &options.max_connections}, {"max_undecided", &options.max_undecided},
      {"max_per_client", &options.max_per_client}, {"max_per_instance", &options.max_per_instance},
      {"hello_timeout_ms", &options.hello_timeout_ms}, {"connect_timeout_ms", &options.connect_timeout_ms},
      {"answer_timeout_ms", &options.answer_timeout_ms}, {"idle_timeout_ms", &options.idle_timeout_ms},
      {"max_refusals", &options.refusals.at_once}, {"refusals_per_s", &options.refusals.per_s},
      {"max_unanswered", &options.unanswered.at_once}, {"unanswered_per_s", &options.unanswered.per_s},
      {"orphan_ms", &options.orphan_ms},
      {"upgrade_drain_ms", &options.upgrade_drain_ms}, {"access_every", &options.access_every},
  };
  unsigned long number = strtoul(value, NULL, 10);
  for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
    if (strcmp(key, numbers[i].key) == 0) return *numbers[i].to = (uint32_t)number, true;
  if (strcmp(key, "max_stalled_bytes") == 0) return options.max_stalled_bytes = number, true;
  if (strcmp(key, "port") == 0) return options.port = (uint16_t)number, true;
  if (strcmp(key, "instance_port") == 0) return options.instance_port = (uint16_t)number, true;
  if (strcmp(key, "layout") == 0) return options.is_foreign = number != LAYOUT_NUMBER, true;
  if (strcmp(key, "share_port") == 0) return options.share_port = number != 0, true;
  if (strcmp(key, "quic") == 0) return options.quic = (enum quic_wish)number, number <= QUIC_YES;
  if (strcmp(key, "replace") == 0) return options.replace = number != 0, true;
  if (strcmp(key, "handover") == 0) return options.handover_path = value, strlen(value) < MAX_PATH_BYTES;
  if (strcmp(key, "host") == 0 && options.host_count < MAX_LISTENERS)
    return options.hosts[options.host_count++] = value, true;
  return false;
}

bool options_read(int count, char **arguments) {
  for (int i = 0; i < count; i++) {
    char *equals = strchr(arguments[i], '=');
    if (!equals) return false;
    *equals = 0;
    if (!read_option(arguments[i], equals + 1)) return false;
  }
  return true;
}
