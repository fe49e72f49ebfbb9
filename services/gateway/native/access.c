#include "access.h"

#include <string.h>
#include <time.h>

#include "control.h"
#include "hello.h"
#include "layout.h"
#include "loop.h"
#include "memory.h"
#include "options.h"

struct trace {
  uint64_t started_unix_ms;
  struct sockaddr_in6 client;
};

void access_begin(struct conn *conn, const struct sockaddr_in6 *client) {
  static uint32_t since_told;
  if (options.access_every == 0 || ++since_told < options.access_every) return;
  if (!(conn->trace = memory_take(sizeof *conn->trace))) return;
  since_told = 0;
  struct timespec time;
  clock_gettime(CLOCK_REALTIME, &time);
  *conn->trace = (struct trace){(uint64_t)time.tv_sec * 1000 + (uint64_t)time.tv_nsec / 1000000, *client};
}

static void tell(const struct conn *conn) {
  uint8_t line[sizeof(struct access_record) + MAX_NAME_BYTES];
  struct access_record record = {
      .started_unix_ms = conn->trace->started_unix_ms,
      .bytes_to_instance = conn->bytes[CLIENT],
      .bytes_to_client = conn->bytes[INSTANCE],
      .duration_ms = now_ms - conn->started_ms,
      .client_port = ntohs(conn->trace->client.sin6_port),
      .outcome = conn->outcome,
      .name_length = conn->route ? conn->route->length : 0,
  };
  memcpy(record.client_address, &conn->trace->client.sin6_addr, 16);
  memcpy(line, &record, sizeof record);
  if (conn->route) memcpy(line + sizeof record, conn->route->name, conn->route->length);
  control_tell(REPORT_ACCESS, line, (uint32_t)sizeof record + record.name_length);
}

void access_end(struct conn *conn) {
  if (!conn->trace) return;
  tell(conn);
  memory_give(conn->trace);
  conn->trace = NULL;
}
