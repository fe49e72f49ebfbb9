#include "access.h"

#include <string.h>
#include <time.h>

#include "control.h"
#include "hello.h"
#include "layout.h"
#include "loop.h"
#include "memory.h"
#include "options.h"

struct trace *access_trace(const struct sockaddr_in6 *client, uint8_t none) {
  static uint32_t since_told;
  if (options.access_every == 0 || ++since_told < options.access_every) return NULL;
  struct trace *trace = memory_take(sizeof *trace);
  if (!trace) return NULL;
  since_told = 0;
  struct timespec time;
  clock_gettime(CLOCK_REALTIME, &time);
  *trace = (struct trace){.started_unix_ms = (uint64_t)time.tv_sec * 1000 + (uint64_t)time.tv_nsec / 1000000,
                          .client = *client, .started_ms = now_ms, .outcome = none};
  return trace;
}

void access_tell(struct trace *trace, enum refused_protocol protocol, const struct route *route) {
  uint8_t line[sizeof(struct access_record) + MAX_NAME_BYTES];
  struct access_record record = {
      .started_unix_ms = trace->started_unix_ms,
      .bytes_to_instance = trace->bytes[CLIENT],
      .bytes_to_client = trace->bytes[INSTANCE],
      .duration_ms = now_ms - trace->started_ms,
      .client_port = ntohs(trace->client.sin6_port),
      .protocol = (uint8_t)protocol,
      .outcome = trace->outcome,
      .name_length = route ? route->length : 0,
  };
  memcpy(record.client_address, &trace->client.sin6_addr, 16);
  memcpy(line, &record, sizeof record);
  if (route) memcpy(line + sizeof record, route->name, route->length);
  control_tell(REPORT_ACCESS, line, (uint32_t)sizeof record + record.name_length);
  memory_give(trace);
}

void access_begin(struct conn *conn, const struct sockaddr_in6 *client) { conn->trace = access_trace(client, OUTCOMES); }

void access_end(struct conn *conn) {
  struct trace *trace = conn->trace;
  if (!trace) return;
  conn->trace = NULL;
  trace->outcome = conn->outcome;
  memcpy(trace->bytes, conn->bytes, sizeof trace->bytes);
  access_tell(trace, REFUSED_PROTOCOL_TLS, conn->route);
}
