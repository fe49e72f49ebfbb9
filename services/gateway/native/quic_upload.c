#include "quic_upload.h"

#include "quic_access.h"
#include "quic_allowance.h"
#include "quic_turn.h"
#include "stats.h"

/* What waits, and behind it what one call receives. */
static uint8_t room[MAX_BATCH_BYTES + MAX_DATAGRAM_BYTES];
static struct quic_flow *waiting_flow;
static struct quic_batch waiting;

uint8_t *quic_upload_room(void) {
  if (!waiting_flow) return room;
  uint8_t *end = (uint8_t *)waiting.bytes + waiting.length;
  if (end + MAX_DATAGRAM_BYTES <= room + sizeof room) return end;
  quic_upload_flush();
  return room;
}

void quic_upload_send(struct quic_flow *flow, struct quic_batch batch) {
  uint32_t sent = quic_pass_on(flow->fd, batch);
  quic_turn_passed(batch);
  quic_allowance_owe(flow, sent);
  stats->quic_bytes_to_instances += sent;
  quic_access_passed(flow, CLIENT, sent);
}

/* All but the last are of one size. */
static bool is_continued_by(const struct quic_flow *flow, const uint8_t *bytes, uint32_t length) {
  return flow == waiting_flow && bytes == waiting.bytes + waiting.length && length <= waiting.segment &&
         waiting.length % waiting.segment == 0 && waiting.length / waiting.segment < MAX_BATCH_SEGMENTS &&
         waiting.length + length <= MAX_BATCH_BYTES;
}

void quic_upload_add(struct quic_flow *flow, const uint8_t *bytes, uint32_t length) {
  if (waiting_flow && is_continued_by(flow, bytes, length)) {
    waiting.length += length;
    return;
  }
  quic_upload_flush();
  waiting_flow = flow;
  waiting = (struct quic_batch){bytes, length, length};
}

void quic_upload_flush(void) {
  if (!waiting_flow) return;
  struct quic_flow *flow = waiting_flow;
  waiting_flow = NULL;
  quic_upload_send(flow, waiting);
}
