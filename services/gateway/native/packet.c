#include "packet.h"

enum { LONG_FORM = 0x80, TYPE_SHIFT = 4, TYPE_MASK = 3, VERSION_END = 5 };

bool varint_read(const uint8_t *bytes, uint32_t length, uint32_t *at, uint64_t *value) {
  if (*at >= length) return false;
  uint32_t size = 1u << (bytes[*at] >> 6);
  if (length - *at < size) return false;
  *value = bytes[*at] & 0x3f;
  for (uint32_t i = 1; i < size; i++) *value = *value << 8 | bytes[*at + i];
  *at += size;
  return true;
}

static bool read_id(const uint8_t *bytes, uint32_t length, uint32_t *at, struct id *id) {
  if (*at >= length || length - *at - 1 < bytes[*at]) return false;
  *id = (struct id){bytes[*at], bytes + *at + 1};
  *at += 1 + id->length;
  return true;
}

static enum packet_type type_of(uint32_t version, uint8_t first) {
  unsigned bits = first >> TYPE_SHIFT & TYPE_MASK;
  return (enum packet_type)(version == QUIC_VERSION_1 ? bits : (bits + 3) % 4);
}

/* Behind the ids: a token, in Initial packets, and the length of number and payload (RFC 9000 section 17.2.2). */
static bool read_length(const uint8_t *bytes, uint32_t length, uint32_t at, struct packet *packet) {
  uint64_t token = 0, rest;
  if (packet->type == PACKET_INITIAL && !varint_read(bytes, length, &at, &token)) return false;
  if (token > length - at) return false;
  at += (uint32_t)token;
  if (!varint_read(bytes, length, &at, &rest) || rest > length - at) return false;
  packet->number_at = at;
  packet->end = at + (uint32_t)rest;
  return true;
}

struct packet packet_read(const uint8_t *bytes, uint32_t length) {
  const struct packet malformed = {.type = PACKET_MALFORMED};
  struct packet packet = {.type = PACKET_SHORT};
  if (length == 0) return malformed;
  if (!(bytes[0] & LONG_FORM)) return packet;
  if (length < VERSION_END) return malformed;
  uint32_t at = VERSION_END;
  packet.version = (uint32_t)bytes[1] << 24 | (uint32_t)bytes[2] << 16 | (uint32_t)bytes[3] << 8 | bytes[4];
  if (!read_id(bytes, length, &at, &packet.destination) || !read_id(bytes, length, &at, &packet.source))
    return malformed;
  if (packet.version == QUIC_NEGOTIATION_VERSION) packet.type = PACKET_NEGOTIATION;
  else if (packet.version != QUIC_VERSION_1 && packet.version != QUIC_VERSION_2)
    packet.type = PACKET_UNKNOWN_VERSION;
  else if (packet.destination.length > MAX_ID_BYTES || packet.source.length > MAX_ID_BYTES) return malformed;
  else {
    packet.type = type_of(packet.version, bytes[0]);
    if (packet.type != PACKET_RETRY && !read_length(bytes, length, at, &packet)) return malformed;
  }
  return packet;
}
