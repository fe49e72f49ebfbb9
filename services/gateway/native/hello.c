#include "hello.h"

#include <stdbool.h>
#include <string.h>

enum {
  RECORD_HEADER_BYTES = 5,
  RECORD_TYPE_HANDSHAKE = 22,
  TLS_MAJOR_VERSION = 3,
  MAX_RECORD_BYTES = 1 << 14, /* RFC 8446 section 5.1 */
  MESSAGE_HEADER_BYTES = 4,
  MESSAGE_TYPE_CLIENT_HELLO = 1,
  VERSION_AND_RANDOM_BYTES = 2 + 32,
  EXTENSION_SERVER_NAME = 0,
  NAME_TYPE_HOST = 0,
  FIRST_VISIBLE = 0x21,
  LAST_VISIBLE = 0x7e,
};

/* Bytes that nothing is read beyond. */
struct span {
  const uint8_t *bytes;
  uint32_t length;
};

struct vector_shape {
  uint8_t length_bytes;
  uint32_t min, max;
};

static const struct vector_shape SESSION_ID = {1, 0, 32};
static const struct vector_shape CIPHER_SUITES = {2, 2, 0xfffe};
static const struct vector_shape COMPRESSION_METHODS = {1, 1, 0xff};
static const struct vector_shape ANY_16 = {2, 0, 0xffff};
static const struct vector_shape FILLED_16 = {2, 1, 0xffff};

static uint32_t uint16_at(const uint8_t *bytes) { return (uint32_t)bytes[0] << 8 | bytes[1]; }

/* The length-prefixed vector at `at`; false where it does not fit. */
static bool read_vector(struct span in, uint32_t at, struct vector_shape shape, struct span *out) {
  if (at > in.length || in.length - at < shape.length_bytes) return false;
  uint32_t start = at + shape.length_bytes;
  uint32_t length = shape.length_bytes == 1 ? in.bytes[at] : uint16_at(in.bytes + at);
  if (length < shape.min || length > shape.max || length > in.length - start) return false;
  *out = (struct span){in.bytes + start, length};
  return true;
}

static enum hello_kind read_name(struct span host, struct hello_name *name) {
  if (host.length > MAX_NAME_BYTES) return HELLO_MALFORMED;
  for (uint32_t i = 0; i < host.length; i++) {
    uint8_t byte = host.bytes[i];
    if (byte < FIRST_VISIBLE || byte > LAST_VISIBLE) return HELLO_MALFORMED;
    name->text[i] = (char)(byte >= 'A' && byte <= 'Z' ? byte | 0x20 : byte);
  }
  uint32_t length = host.length;
  if (name->text[length - 1] == '.') length--;
  name->length = (uint8_t)length;
  return length == 0 ? HELLO_MALFORMED : HELLO_NAME;
}

static enum hello_kind read_name_list(struct span extension, struct hello_name *name) {
  struct span list, one, host = {0};
  if (!read_vector(extension, 0, FILLED_16, &list) || 2 + list.length != extension.length)
    return HELLO_MALFORMED;
  for (uint32_t at = 0; at < list.length; at += 3 + one.length) {
    if (!read_vector(list, at + 1, FILLED_16, &one)) return HELLO_MALFORMED;
    if (list.bytes[at] != NAME_TYPE_HOST) continue;
    if (host.bytes) return HELLO_MALFORMED;
    host = one;
  }
  return host.bytes ? read_name(host, name) : HELLO_NO_NAME;
}

static enum hello_kind read_extensions(struct span extensions, struct hello_name *name) {
  enum hello_kind found = HELLO_NO_NAME;
  bool seen = false;
  struct span data;
  for (uint32_t at = 0; at < extensions.length; at += 4 + data.length) {
    if (!read_vector(extensions, at + 2, ANY_16, &data)) return HELLO_MALFORMED;
    if (uint16_at(extensions.bytes + at) != EXTENSION_SERVER_NAME) continue;
    if (seen) return HELLO_MALFORMED;
    seen = true;
    found = read_name_list(data, name);
    if (found == HELLO_MALFORMED) return found;
  }
  return found;
}

/* The vectors must fill it exactly. */
enum hello_kind hello_read_body(const uint8_t *bytes, uint32_t length, struct hello_name *name) {
  const struct span body = {bytes, length};
  const struct vector_shape shapes[] = {SESSION_ID, CIPHER_SUITES, COMPRESSION_METHODS};
  uint32_t at = VERSION_AND_RANDOM_BYTES;
  struct span vector;
  for (unsigned i = 0; i < 3; i++) {
    if (!read_vector(body, at, shapes[i], &vector)) return HELLO_MALFORMED;
    at += shapes[i].length_bytes + vector.length;
  }
  if (at == body.length) return HELLO_NO_NAME;
  if (!read_vector(body, at, ANY_16, &vector) || at + 2 + vector.length != body.length)
    return HELLO_MALFORMED;
  return read_extensions(vector, name);
}

/* The message of `length` bytes, joined from the records that hold it. */
static enum hello_kind read_message(const uint8_t *wire, uint32_t length, struct hello_name *name) {
  static uint8_t joined[MAX_CLIENT_HELLO_BYTES];
  const uint8_t *message = wire + RECORD_HEADER_BYTES;
  if (uint16_at(wire + 3) < length) {
    uint32_t filled = 0;
    for (const uint8_t *record = wire; filled < length;) {
      uint32_t part = uint16_at(record + 3);
      uint32_t taken = part < length - filled ? part : length - filled;
      memcpy(joined + filled, record + RECORD_HEADER_BYTES, taken);
      filled += taken;
      record += RECORD_HEADER_BYTES + part;
    }
    message = joined;
  }
  return hello_read_body(message + MESSAGE_HEADER_BYTES, length - MESSAGE_HEADER_BYTES, name);
}

/* The answer while the message is not complete. */
static enum hello_kind need_more(uint32_t available) {
  return available < MAX_HELLO_WIRE_BYTES ? HELLO_NEED_MORE : HELLO_MALFORMED;
}

/* True where reading goes on behind it; otherwise `answer` is set. */
static bool read_record_header(struct hello_reader *reader, const uint8_t *wire, uint32_t available,
                               enum hello_kind *answer) {
  const uint8_t *header = wire + reader->at;
  uint32_t there = available - reader->at;
  if ((there > 0 && header[0] != RECORD_TYPE_HANDSHAKE) || (there > 1 && header[1] != TLS_MAJOR_VERSION))
    return *answer = reader->at == 0 ? HELLO_NOT_TLS : HELLO_MALFORMED, false;
  if (there < RECORD_HEADER_BYTES) return *answer = need_more(available), false;
  uint32_t length = uint16_at(header + 3);
  if (length == 0 || length > MAX_RECORD_BYTES) return *answer = HELLO_MALFORMED, false;
  reader->at += RECORD_HEADER_BYTES;
  reader->record_end = reader->at + length;
  return true;
}

/* True where the record's payload, as far as it is there, can be part of a ClientHello. */
static bool read_payload(struct hello_reader *reader, const uint8_t *wire, uint32_t available) {
  uint32_t end = reader->record_end < available ? reader->record_end : available;
  while (reader->message_bytes < MESSAGE_HEADER_BYTES && reader->at < end) {
    uint8_t byte = wire[reader->at++];
    if (reader->message_bytes++ > 0) reader->message_length = reader->message_length << 8 | byte;
    else if (byte != MESSAGE_TYPE_CLIENT_HELLO) return false;
  }
  if (reader->message_bytes < MESSAGE_HEADER_BYTES) return true;
  reader->message_bytes += end - reader->at;
  reader->at = end;
  return MESSAGE_HEADER_BYTES + reader->message_length <= MAX_CLIENT_HELLO_BYTES;
}

static bool is_complete(const struct hello_reader *reader) {
  return reader->message_bytes >= MESSAGE_HEADER_BYTES &&
         reader->message_bytes >= MESSAGE_HEADER_BYTES + reader->message_length;
}

enum hello_kind hello_read(struct hello_reader *reader, const uint8_t *wire, uint32_t length,
                           struct hello_name *name) {
  uint32_t available = length < MAX_HELLO_WIRE_BYTES ? length : MAX_HELLO_WIRE_BYTES;
  while (reader->at < available || reader->at == reader->record_end) {
    enum hello_kind answer;
    if (reader->at == reader->record_end) {
      if (!read_record_header(reader, wire, available, &answer)) return answer;
    } else if (!read_payload(reader, wire, available)) {
      return HELLO_MALFORMED;
    } else if (is_complete(reader)) {
      return read_message(wire, MESSAGE_HEADER_BYTES + reader->message_length, name);
    }
  }
  return need_more(available);
}
