#include "conn.h"

#include "loop.h"

static const uint32_t ALWAYS_TOLD = EPOLLOUT | EPOLLRDHUP | EPOLLET;

static uint64_t tag_of(const struct conn *conn, int side) { return (uintptr_t)conn | (unsigned)side; }

bool conn_watch(struct conn *conn, int side) {
  return loop_watch(conn->fd[side], EPOLLIN | ALWAYS_TOLD, tag_of(conn, side));
}

void conn_mute(struct conn *conn, int side, bool muted) {
  uint32_t input = muted ? 0 : EPOLLIN;
  if (!loop_change(conn->fd[side], input | ALWAYS_TOLD, tag_of(conn, side))) return;
  conn->flags[side] = (uint8_t)(muted ? conn->flags[side] | MUTED : conn->flags[side] & ~MUTED);
}
