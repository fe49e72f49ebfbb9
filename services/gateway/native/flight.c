#include "flight.h"

#include <string.h>

enum {
  HEADER_BYTES = 4,
  CLIENT_HELLO = 1,
  ACK_NUMBERS_BEFORE_COUNT = 2,
  NUMBERS_PER_RANGE = 2,
  ECN_COUNTS = 3,
  CLOSE_NUMBERS = 2,
};

/* Frames that an Initial packet may have (RFC 9000 section 12.4). */
enum frame { FRAME_PADDING = 0, FRAME_PING = 1, FRAME_ACK = 2, FRAME_ACK_ECN = 3, FRAME_CRYPTO = 6, FRAME_CLOSE = 0x1c };

/* Numbers and bytes one after another. */
struct cursor {
  const uint8_t *bytes;
  uint32_t length, at;
};

static bool skip_numbers(struct cursor *cursor, uint64_t count) {
  uint64_t number;
  for (; count > 0; count--)
    if (!varint_read(cursor->bytes, cursor->length, &cursor->at, &number)) return false;
  return true;
}

/* A length and so many bytes. */
static bool read_bytes(struct cursor *cursor, const uint8_t **bytes, uint32_t *length) {
  uint64_t size;
  if (!varint_read(cursor->bytes, cursor->length, &cursor->at, &size)) return false;
  if (size > cursor->length - cursor->at) return false;
  *bytes = cursor->bytes + cursor->at;
  *length = (uint32_t)size;
  cursor->at += *length;
  return true;
}

static bool skip_ack(struct cursor *cursor, bool has_ecn) {
  uint64_t ranges;
  if (!skip_numbers(cursor, ACK_NUMBERS_BEFORE_COUNT)) return false;
  if (!varint_read(cursor->bytes, cursor->length, &cursor->at, &ranges)) return false;
  return skip_numbers(cursor, 1 + ranges * NUMBERS_PER_RANGE + (has_ecn ? ECN_COUNTS : 0));
}

/* Keeps the pieces in order, those that touch joined. */
static void note_piece(struct flight *flight, struct piece added) {
  struct piece *pieces = flight->pieces;
  uint32_t first = 0, last, count = flight->piece_count;
  while (first < count && pieces[first].end < added.start) first++;
  for (last = first; last < count && pieces[last].start <= added.end; last++) {
    if (pieces[last].start < added.start) added.start = pieces[last].start;
    if (pieces[last].end > added.end) added.end = pieces[last].end;
  }
  memmove(pieces + first + 1, pieces + last, (count - last) * sizeof *pieces);
  pieces[first] = added;
  flight->piece_count = count - (last - first) + 1;
}

/* False where it cannot be part of a ClientHello that we read. Of what is sent twice the last counts. */
static bool read_crypto(struct flight *flight, struct cursor *cursor) {
  const uint8_t *data;
  uint64_t offset;
  uint32_t length;
  if (!varint_read(cursor->bytes, cursor->length, &cursor->at, &offset)) return false;
  if (!read_bytes(cursor, &data, &length)) return false;
  if (offset > MAX_QUIC_HELLO_BYTES || length > MAX_QUIC_HELLO_BYTES - offset) return false;
  if (length == 0) return true;
  memcpy(flight->bytes + offset, data, length);
  note_piece(flight, (struct piece){(uint32_t)offset, (uint32_t)offset + length});
  return flight->piece_count <= MAX_PIECES;
}

static bool read_frame(struct flight *flight, struct cursor *cursor) {
  const uint8_t *reason;
  uint32_t length;
  uint64_t type;
  if (!varint_read(cursor->bytes, cursor->length, &cursor->at, &type)) return false;
  switch (type) {
    case FRAME_PADDING:
    case FRAME_PING: return true;
    case FRAME_ACK: return skip_ack(cursor, false);
    case FRAME_ACK_ECN: return skip_ack(cursor, true);
    case FRAME_CRYPTO: return read_crypto(flight, cursor);
    case FRAME_CLOSE: return skip_numbers(cursor, CLOSE_NUMBERS) && read_bytes(cursor, &reason, &length);
    default: return false;
  }
}

/* What the bytes without a hole before them say. */
static enum hello_kind read_message(const struct flight *flight, struct hello_name *name) {
  const uint8_t *bytes = flight->bytes;
  uint32_t there = flight->piece_count > 0 && flight->pieces[0].start == 0 ? flight->pieces[0].end : 0;
  if (there > 0 && bytes[0] != CLIENT_HELLO) return HELLO_MALFORMED;
  if (there < HEADER_BYTES) return HELLO_NEED_MORE;
  uint32_t whole = HEADER_BYTES + ((uint32_t)bytes[1] << 16 | (uint32_t)bytes[2] << 8 | bytes[3]);
  if (whole > MAX_QUIC_HELLO_BYTES) return HELLO_MALFORMED;
  if (there < whole) return HELLO_NEED_MORE;
  return hello_read_body(bytes + HEADER_BYTES, whole - HEADER_BYTES, name);
}

static enum hello_kind read_initial(struct flight *flight, const uint8_t *bytes, const struct packet *packet,
                                    struct hello_name *name) {
  static uint8_t payload[MAX_DATAGRAM_BYTES];
  int32_t length = initial_open(&flight->keys, bytes, packet, payload);
  if (length < 0) return HELLO_NEED_MORE;
  flight->is_begun = true;
  flight->initials++;
  struct cursor cursor = {payload, (uint32_t)length, 0};
  while (cursor.at < cursor.length)
    if (!read_frame(flight, &cursor)) return HELLO_MALFORMED;
  if (flight->initials > MAX_INITIALS) return HELLO_MALFORMED;
  return read_message(flight, name);
}

static bool is_of(const struct flight *flight, const struct packet *packet) {
  return packet->version == flight->version && packet->destination.length == flight->id_length &&
         memcmp(packet->destination.bytes, flight->id_bytes, flight->id_length) == 0;
}

/* False where the packet cannot be a client's first (RFC 9000 section 7.2). */
static bool start(struct flight *flight, const struct packet *packet) {
  if (packet->destination.length < MIN_FIRST_ID_BYTES) return false;
  flight->version = packet->version;
  flight->id_length = packet->destination.length;
  memcpy(flight->id_bytes, packet->destination.bytes, flight->id_length);
  initial_derive(&flight->keys, packet->version, packet->destination, SIDE_CLIENT);
  return true;
}

enum hello_kind flight_read(struct flight *flight, const uint8_t *datagram, uint32_t length, struct hello_name *name) {
  bool is_started = flight->is_begun;
  if (length < MIN_CLIENT_DATAGRAM_BYTES) return HELLO_NEED_MORE;
  for (uint32_t at = 0, count = 0; count < MAX_PACKETS_PER_DATAGRAM; count++) {
    struct packet packet = packet_read(datagram + at, length - at);
    if (packet.type > PACKET_HANDSHAKE) break;
    /* All packets of a datagram are of one connection (RFC 9000 section 12.2). */
    if (!is_started && !(is_started = start(flight, &packet))) break;
    if (!is_of(flight, &packet)) break;
    if (packet.type == PACKET_INITIAL) {
      enum hello_kind kind = read_initial(flight, datagram + at, &packet, name);
      if (kind != HELLO_NEED_MORE) return kind;
    }
    at += packet.end;
  }
  return HELLO_NEED_MORE;
}
