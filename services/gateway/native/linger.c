#include "linger.h"

#include <errno.h>
#include <sys/socket.h>

#include "memory.h"

enum { LINGER_BYTES = 1024 * 1024 };

bool linger_begin(const struct conn *conn, enum alert alert) {
  const uint8_t record[] = {21, 3, 3, 0, 2, 2, (uint8_t)alert};
  if (alert != NO_ALERT && send(conn->fd[CLIENT], record, sizeof record, MSG_NOSIGNAL) < 0) return false;
  shutdown(conn->fd[CLIENT], SHUT_WR);
  return true;
}

bool linger_read(struct conn *conn) {
  for (;;) {
    ssize_t size = recv(conn->fd[CLIENT], copy_buffer, sizeof copy_buffer, 0);
    if (size < 0 && (errno == EAGAIN || errno == EINTR)) return true;
    if (size > 0) conn->lingered += (uint32_t)size;
    if (size <= 0 || conn->lingered > LINGER_BYTES) return false;
  }
}
