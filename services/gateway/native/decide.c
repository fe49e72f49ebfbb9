#include "decide.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>

#include "memory.h"
#include "options.h"

enum {
  FIRST_HELLO_CAPACITY = 2048,
  /* Nearly all hellos are smaller. Of larger ones, nobody has more memory than this for what is not whole. */
  SMALL_HELLO_CAPACITY = 4096,
  MAX_KEPT_BYTES = 32 * 1024 * 1024,
};

/* An incomplete ClientHello. */
struct pending_hello {
  struct hello_reader reader;
  uint32_t length, capacity;
  uint8_t bytes[];
};

/* Of all that is not whole. */
static uint32_t kept_bytes;

static struct decision refuse(enum outcome outcome, enum alert alert) {
  return (struct decision){.kind = REFUSE, .outcome = outcome, .alert = alert};
}

static struct decision route_to(struct route *route) {
  if (!route) return refuse(UNKNOWN_NAME, ALERT_UNRECOGNIZED_NAME);
  if (route->open >= options.max_per_instance) return refuse(INSTANCE_LIMIT, ALERT_INTERNAL_ERROR);
  return (struct decision){.kind = CONNECT, .route = route};
}

static struct decision decide(enum hello_kind kind, const struct hello_name *name, find_route *find) {
  switch (kind) {
    case HELLO_NAME: return route_to(find(name->text, name->length));
    case HELLO_NO_NAME: return refuse(NO_SERVER_NAME, ALERT_UNRECOGNIZED_NAME);
    case HELLO_MALFORMED: return refuse(MALFORMED, ALERT_DECODE_ERROR);
    case HELLO_NOT_TLS: return refuse(NOT_TLS, NO_ALERT);
    default: return (struct decision){.kind = WAIT_FOR_MORE};
  }
}

static bool may_keep(uint32_t had, uint32_t wanted) {
  return wanted <= SMALL_HELLO_CAPACITY || kept_bytes - had + wanted <= MAX_KEPT_BYTES;
}

/* Appends to the part that is kept; false where there is no memory for it, and what was kept stays. */
static bool append(struct conn *conn, const uint8_t *bytes, uint32_t length) {
  struct pending_hello *hello = conn->hello;
  uint32_t had = hello ? hello->length : 0, capacity = hello ? hello->capacity : 0;
  if (had + length > capacity) {
    if (capacity == 0) capacity = FIRST_HELLO_CAPACITY;
    while (capacity < had + length) capacity *= 2;
    uint32_t before = hello ? hello->capacity : 0;
    struct pending_hello *larger = may_keep(before, capacity) ? memory_resize(hello, sizeof *hello + capacity) : NULL;
    if (!larger) return false;
    if (!hello) memset(larger, 0, sizeof *larger);
    kept_bytes += capacity - before;
    conn->hello = hello = larger;
    hello->capacity = capacity;
  }
  memcpy(hello->bytes + had, bytes, length);
  hello->length = had + length;
  return true;
}

/* With the bytes that came now, which nearly always are the whole hello: only what is incomplete is kept. */
static struct decision hear(struct conn *conn, const uint8_t *bytes, uint32_t length, find_route *find) {
  const struct decision no_memory = {.kind = GIVE_UP, .outcome = CROWDED_OUT};
  struct hello_reader reader = {0};
  struct hello_name name;
  bool is_first = !conn->hello;
  if (!is_first) {
    if (!append(conn, bytes, length)) return no_memory;
    reader = conn->hello->reader;
    bytes = conn->hello->bytes;
    length = conn->hello->length;
  }
  struct decision decision = decide(hello_read(&reader, bytes, length, &name), &name, find);
  decision.bytes = bytes;
  decision.length = length;
  if (decision.kind != WAIT_FOR_MORE) return decision;
  if (is_first && !append(conn, bytes, length)) return no_memory;
  conn->hello->reader = reader;
  return decision;
}

struct decision decide_read(struct conn *conn, find_route *find) {
  for (;;) {
    ssize_t size = recv(conn->fd[CLIENT], copy_buffer, sizeof copy_buffer, 0);
    if (size < 0 && errno == EINTR) continue;
    if (size < 0 && errno == EAGAIN) return (struct decision){.kind = WAIT_FOR_MORE};
    if (size <= 0) return (struct decision){.kind = GIVE_UP, .outcome = GONE};
    uint32_t length = (uint32_t)size;
    /* A short read took all there was; more is told of, but for an end that was told of already. */
    if (length < COPY_BYTES && !(conn->flags[CLIENT] & PEER_CLOSED)) conn->flags[CLIENT] &= (uint8_t)~READABLE;
    else conn->flags[CLIENT] |= READABLE;
    struct decision decision = hear(conn, copy_buffer, length, find);
    if (decision.kind != WAIT_FOR_MORE) return decision;
  }
}

struct pending_hello *decide_end(struct conn *conn) {
  struct pending_hello *hello = conn->hello;
  if (hello) kept_bytes -= hello->capacity;
  client_leave(&conn->undecided);
  for (int side = 0; side < 2; side++) {
    conn->flow[side] = NULL;
    conn->waiting[side] = NULL;
  }
  return hello;
}
