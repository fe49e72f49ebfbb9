#include "connect.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "layout.h"
#include "memory.h"
#include "options.h"
#include "proxy.h"
#include "relay.h"
#include "table.h"

enum { KEEP_ALIVE_PROBE_S = 60 };

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

struct first_bytes {
  const uint8_t *header, *hello;
  uint32_t header_length, hello_length;
};

/* Sends the hello at once: on a short way the handshake is over already, which saves a turn of the loop. */
static ssize_t send_first(const struct conn *conn, const struct first_bytes *first) {
  struct iovec parts[] = {{(void *)first->header, first->header_length}, {(void *)first->hello, first->hello_length}};
  bool has_header = first->header_length > 0;
  struct msghdr message = {.msg_iov = has_header ? parts : parts + 1, .msg_iovlen = has_header ? 2 : 1};
  return sendmsg(conn->fd[INSTANCE], &message, MSG_NOSIGNAL);
}

static bool keep_rest(struct conn *conn, const struct first_bytes *first, uint32_t sent) {
  uint32_t length = first->header_length + first->hello_length;
  if (sent == length) return true;
  uint8_t *whole = memory_take(length);
  if (!whole) return false;
  memcpy(whole, first->header, first->header_length);
  memcpy(whole + first->header_length, first->hello, first->hello_length);
  bool kept = relay_keep(conn, CLIENT, whole + sent, length - sent);
  memory_give(whole);
  return kept;
}

int connect_begin(struct conn *conn, const uint8_t *bytes, uint32_t length) {
  uint8_t header[MAX_PROXY_HEADER_BYTES];
  struct first_bytes first = {header, bytes, 0, length};
  if (conn->route->flags & ROUTE_FLAG_PROXY_HEADER) first.header_length = proxy_header(conn->fd[CLIENT], header);
  conn->bytes[CLIENT] = length;
  if ((conn->fd[INSTANCE] = open_instance(conn)) < 0) return errno;
  ssize_t sent = send_first(conn, &first);
  if (sent < 0 && errno != EAGAIN && errno != ENOTCONN && errno != EINTR) return errno;
  if (!keep_rest(conn, &first, sent < 0 ? 0 : (uint32_t)sent) || !conn_watch(conn, INSTANCE)) return ENOMEM;
  if (sent < 0) return EINPROGRESS;
  conn->flags[INSTANCE] |= WRITABLE;
  return 0;
}

int connect_finish(const struct conn *conn) {
  int error = 0;
  socklen_t length = sizeof error;
  getsockopt(conn->fd[INSTANCE], SOL_SOCKET, SO_ERROR, &error, &length);
  if (error) return error;
  return conn->flags[INSTANCE] & WRITABLE ? 0 : EINPROGRESS;
}
