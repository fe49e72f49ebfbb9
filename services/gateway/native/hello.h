/* The server name of a TLS ClientHello: the same reading, with the same limits and answers, as src/tls/client-hello.ts. */
#pragma once
#include <stdint.h>

enum {
  MAX_CLIENT_HELLO_BYTES = 32 * 1024,
  MAX_HELLO_WIRE_BYTES = 64 * 1024,
  MAX_NAME_BYTES = 255,
};

enum hello_kind { HELLO_NEED_MORE, HELLO_NOT_TLS, HELLO_NAME, HELLO_NO_NAME, HELLO_MALFORMED };

/* What a client is told that is refused: alerts of TLS (RFC 8446 section 6). */
enum alert { NO_ALERT = 0, ALERT_DECODE_ERROR = 50, ALERT_INTERNAL_ERROR = 80, ALERT_UNRECOGNIZED_NAME = 112 };

/* Where reading goes on when more bytes come: all zero at first. */
struct hello_reader {
  uint32_t at, record_end, message_bytes, message_length;
};

struct hello_name {
  uint8_t length;
  char text[MAX_NAME_BYTES];
};

/* `wire` is everything that came so far; `name` is set where the answer is HELLO_NAME: lower case, no trailing dot. */
enum hello_kind hello_read(struct hello_reader *reader, const uint8_t *wire, uint32_t length,
                           struct hello_name *name);
/* The same in the body of a whole ClientHello, a message without its header. */
enum hello_kind hello_read_body(const uint8_t *body, uint32_t length, struct hello_name *name);
