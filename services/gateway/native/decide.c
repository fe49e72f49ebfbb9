/* From a client's first bytes to a connected instance, or to a refusal. */
#include <errno.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "conn.h"

enum { LINGER_BYTES = 1024 * 1024, KEEP_ALIVE_PROBE_S = 60, FIRST_HELLO_CAPACITY = 2048 };
enum { ALERT_DECODE_ERROR = 50, ALERT_INTERNAL_ERROR = 80, ALERT_UNRECOGNIZED_NAME = 112, NO_ALERT = 0 };

static uint32_t unix_seconds(void) {
  struct timespec time;
  clock_gettime(CLOCK_REALTIME_COARSE, &time);
  return (uint32_t)time.tv_sec;
}

static void count(struct conn *conn, enum outcome outcome) {
  conn->outcome = (uint8_t)outcome;
  stats->outcomes[outcome]++;
}

void decide_give_up(struct conn *conn, enum outcome outcome) {
  count(conn, outcome);
  conn_end(conn);
}

/*
 * The last word, then the end. What still comes is read and dropped: closing with unread bytes would make the kernel
 * reset the connection, and the client could lose our answer.
 */
static void refuse(struct conn *conn, enum outcome outcome, uint8_t alert) {
  const uint8_t record[] = {21, 3, 3, 0, 2, 2, alert};
  count(conn, outcome);
  if (alert != NO_ALERT && send(conn->fd[CLIENT], record, sizeof record, MSG_NOSIGNAL) < 0) {
    conn_end(conn);
    return;
  }
  shutdown(conn->fd[CLIENT], SHUT_WR);
  memory_give(conn->hello);
  conn->flow[0] = conn->flow[1] = NULL;
  conn_enter(conn, LINGERING);
  linger_read(conn);
}

void linger_read(struct conn *conn) {
  for (;;) {
    ssize_t size = recv(conn->fd[CLIENT], copy_buffer, sizeof copy_buffer, 0);
    if (size < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (size > 0) conn->lingered += (uint32_t)size;
    if (size <= 0 || conn->lingered > LINGER_BYTES) {
      conn_end(conn);
      return;
    }
  }
}

/* The instance took the connection, and `hello`'s bytes are on their way or wait. */
static void joined(struct conn *conn) {
  count(conn, RELAYED);
  conn->route->connected_at = unix_seconds();
  conn_enter(conn, OPEN);
  relay_both(conn);
}

void decide_connect_failed(struct conn *conn, int error) {
  conn->route->failed_at = unix_seconds();
  conn->route->failure = (uint8_t)error;
  count(conn, CONNECT_FAILED);
  conn_reset(conn);
}

void decide_connected(struct conn *conn) {
  int error = 0;
  socklen_t length = sizeof error;
  getsockopt(conn->fd[INSTANCE], SOL_SOCKET, SO_ERROR, &error, &length);
  if (error) decide_connect_failed(conn, error);
  else if (conn->flags[INSTANCE] & WRITABLE) joined(conn);
}

/* Keeps what the instance has not taken yet. */
static bool keep(struct conn *conn, const uint8_t *bytes, uint32_t length) {
  struct chunk *chunk = memory_take(sizeof *chunk + length);
  if (!chunk) return false;
  *chunk = (struct chunk){0, length};
  memcpy(chunk->bytes, bytes, length);
  conn->waiting[CLIENT] = chunk;
  return true;
}

static int open_instance(const struct conn *conn) {
  int fd = socket(AF_INET6, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0), on = 1, idle = KEEP_ALIVE_PROBE_S;
  if (fd < 0) return -1;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
  setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle, sizeof idle);
  struct sockaddr_in6 to = {.sin6_family = AF_INET6, .sin6_port = htons(options.instance_port)};
  memcpy(&to.sin6_addr, conn->route->address, 16);
  if (connect(fd, (struct sockaddr *)&to, sizeof to) == 0 || errno == EINPROGRESS) return fd;
  int error = errno;
  close(fd);
  errno = error;
  return -1;
}

/* Sends the hello at once: on a short way the handshake is over already, which saves a turn of the loop. */
static ssize_t send_first(const struct conn *conn, const uint8_t *bytes, uint32_t length, uint32_t header_length,
                          const uint8_t *header) {
  struct iovec parts[] = {{(void *)header, header_length}, {(void *)bytes, length}};
  struct msghdr message = {.msg_iov = header_length ? parts : parts + 1, .msg_iovlen = header_length ? 2 : 1};
  return sendmsg(conn->fd[INSTANCE], &message, MSG_NOSIGNAL);
}

static bool keep_rest(struct conn *conn, const uint8_t *bytes, uint32_t length, uint32_t header_length,
                      const uint8_t *header, uint32_t sent) {
  uint8_t *whole = memory_take(header_length + length);
  if (!whole) return false;
  memcpy(whole, header, header_length);
  memcpy(whole + header_length, bytes, length);
  bool kept = keep(conn, whole + sent, header_length + length - sent);
  memory_give(whole);
  return kept;
}

static void connect_instance(struct conn *conn, const uint8_t *bytes, uint32_t length) {
  uint8_t header[MAX_PROXY_HEADER_BYTES];
  uint32_t header_length = conn->route->flags & ROUTE_PROXY_HEADER ? proxy_header(conn->fd[CLIENT], header) : 0;
  conn->bytes[CLIENT] = length;
  if ((conn->fd[INSTANCE] = open_instance(conn)) < 0) {
    decide_connect_failed(conn, errno);
    return;
  }
  ssize_t sent = send_first(conn, bytes, length, header_length, header);
  if (sent < 0 && errno != EAGAIN && errno != ENOTCONN && errno != EINTR) {
    decide_connect_failed(conn, errno);
    return;
  }
  bool is_connected = sent >= 0;
  if (sent < 0) sent = 0;
  struct epoll_event event = {EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET, {.u64 = (uintptr_t)conn | INSTANCE}};
  if (((uint32_t)sent < header_length + length &&
       !keep_rest(conn, bytes, length, header_length, header, (uint32_t)sent)) ||
      epoll_ctl(epoll_fd, EPOLL_CTL_ADD, conn->fd[INSTANCE], &event) < 0) {
    decide_connect_failed(conn, ENOMEM);
    return;
  }
  if (is_connected) {
    conn->flags[INSTANCE] |= WRITABLE;
    joined(conn);
  }
}

static void route_to(struct conn *conn, const struct hello_name *name, const uint8_t *bytes, uint32_t length) {
  control_catch_up();
  struct route *route = table_find(&routes, name->text, name->length);
  if (!route) {
    refuse(conn, UNKNOWN_NAME, ALERT_UNRECOGNIZED_NAME);
    return;
  }
  if (route->open >= options.max_per_instance) {
    refuse(conn, INSTANCE_LIMIT, ALERT_INTERNAL_ERROR);
    return;
  }
  struct pending_hello *hello = conn->hello;
  conn->flow[0] = conn->flow[1] = NULL;
  conn->route = route;
  route->refs++;
  route->open++;
  conn_enter(conn, CONNECTING);
  connect_instance(conn, bytes, length);
  memory_give(hello); /* `bytes` may be in it */
}

/* True where the answer is final and acted on. */
static bool act(struct conn *conn, enum hello_kind kind, const struct hello_name *name, const uint8_t *bytes,
                uint32_t length) {
  switch (kind) {
    case HELLO_NEED_MORE: return false;
    case HELLO_NAME: route_to(conn, name, bytes, length); break;
    case HELLO_NO_NAME: refuse(conn, NO_SERVER_NAME, ALERT_UNRECOGNIZED_NAME); break;
    case HELLO_MALFORMED: refuse(conn, MALFORMED, ALERT_DECODE_ERROR); break;
    case HELLO_NOT_TLS: refuse(conn, NOT_TLS, NO_ALERT); break;
  }
  return true;
}

/* Appends what came to the part that is kept. */
static struct pending_hello *append(struct pending_hello *hello, const uint8_t *bytes, uint32_t length) {
  uint32_t had = hello ? hello->length : 0, capacity = hello ? hello->capacity : 0;
  if (had + length > capacity) {
    if (capacity == 0) capacity = FIRST_HELLO_CAPACITY;
    while (capacity < had + length) capacity *= 2;
    struct pending_hello *larger = memory_resize(hello, sizeof *hello + capacity);
    if (!larger) return NULL;
    if (!hello) memset(larger, 0, sizeof *larger);
    hello = larger;
    hello->capacity = capacity;
  }
  memcpy(hello->bytes + had, bytes, length);
  hello->length = had + length;
  return hello;
}

void decide_read(struct conn *conn) {
  struct hello_name name;
  for (;;) {
    ssize_t size = recv(conn->fd[CLIENT], copy_buffer, sizeof copy_buffer, 0);
    if (size < 0 && errno == EINTR) continue;
    if (size < 0 && errno == EAGAIN) return;
    if (size <= 0) {
      decide_give_up(conn, GONE);
      return;
    }
    uint32_t length = (uint32_t)size;
    /* A short read took all there was; more is told of, but for an end that was told of already. */
    if (length < COPY_BYTES && !(conn->flags[CLIENT] & PEER_CLOSED)) conn->flags[CLIENT] &= (uint8_t)~READABLE;
    else conn->flags[CLIENT] |= READABLE;
    if (!conn->hello) {
      struct hello_reader reader = {0};
      enum hello_kind kind = hello_read(&reader, copy_buffer, length, &name);
      if (act(conn, kind, &name, copy_buffer, length)) return;
      if ((conn->hello = append(NULL, copy_buffer, length))) conn->hello->reader = reader;
    } else {
      struct pending_hello *hello = append(conn->hello, copy_buffer, length);
      if (hello) {
        conn->hello = hello;
        enum hello_kind kind = hello_read(&hello->reader, hello->bytes, hello->length, &name);
        if (act(conn, kind, &name, hello->bytes, hello->length)) return;
      } else {
        memory_give(conn->hello);
        conn->hello = NULL;
      }
    }
    if (!conn->hello) {
      decide_give_up(conn, GONE); /* no memory for it */
      return;
    }
  }
}
