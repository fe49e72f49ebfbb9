#include "mutants.h"

#include <string.h>

#include "../../../native/flight.h"

enum {
  MAX_SEEDS = 32,
  MAX_SEED_DATAGRAMS = 20,
  IDS = 8,
  MAX_MESSAGE_BYTES = MAX_QUIC_HELLO_BYTES + 256,
  MAX_DAMAGE = 4,
  HEAD_BYTES = 60,      /* of a datagram: what is not sealed */
  HELLO_HEAD_BYTES = 200, /* of a hello: most of its lengths */
  MAX_CUTS = 24,
  MANY_CUTS = 400, /* more than the reader takes, where they come in disorder */
  MAX_DRAWN_PIECES = 1024,
  PIECE_BYTES = 900,
  ROOM_BYTES = 1000,
  PAYLOAD_BYTES = 1120,
  LEAST_PAYLOAD_BYTES = 4,
  MAX_TOKEN_BYTES = 80,
};

struct seed {
  struct datagram datagrams[MAX_SEED_DATAGRAMS];
  uint32_t count, message_length;
  struct initial_keys keys;
  uint8_t message[MAX_QUIC_HELLO_BYTES];
};

/* Of the client of a mutant: what its packets begin with. */
struct sender {
  const struct initial_keys *keys;
  uint32_t version, token_length;
  struct id destination, source;
  uint8_t number_bytes;
};

struct payload {
  uint8_t bytes[MUTANT_DATAGRAM_BYTES];
  uint32_t length;
};

/* A mutant while it is made. */
struct making {
  struct sender sender;
  struct payload payload;
  struct datagram *out;
  uint32_t count;
};

static struct seed seeds[MAX_SEEDS];
static uint32_t seed_count;
static uint64_t state;
static uint8_t ids[IDS][MAX_ID_BYTES];
static const uint8_t id_lengths[IDS] = {8, 8, 8, 9, 16, 18, 20, 20};
static struct initial_keys id_keys[2][IDS];
static const uint32_t versions[2] = {QUIC_VERSION_1, QUIC_VERSION_2};

/* xorshift64* */
uint32_t below(uint32_t limit) {
  state ^= state >> 12;
  state ^= state << 25;
  state ^= state >> 27;
  return (uint32_t)((state * 0x2545f4914f6cdd1du >> 32) % limit);
}

static uint32_t least(uint32_t one, uint32_t other) { return one < other ? one : other; }

static uint8_t telling_byte(void) {
  static const uint8_t bytes[] = {0, 1, 2, 3, 6, 0x1c, 0x3f, 0x40, 0x7f, 0x80, 0xbf, 0xc0, 0xff};
  return below(4) ? bytes[below(sizeof bytes)] : (uint8_t)below(256);
}

static void damage(uint8_t *bytes, uint32_t length) {
  for (uint32_t left = 1 + below(MAX_DAMAGE); left > 0 && length > 0; left--) bytes[below(length)] = telling_byte();
}

/* Protects a packet whose head is bare, with room for the tag behind the payload. */
static void seal(const struct initial_keys *keys, uint8_t *packet, uint8_t *number, uint32_t number_bytes,
                 const uint8_t *payload, uint32_t length) {
  uint8_t nonce[GCM_NONCE_BYTES];
  memcpy(nonce, keys->iv, sizeof nonce);
  for (uint32_t i = 0; i < number_bytes; i++) nonce[sizeof nonce - number_bytes + i] ^= number[i];
  struct gcm_message message = {nonce, packet, payload, (uint32_t)(number - packet) + number_bytes, length};
  gcm_seal(&keys->key, &message, number + number_bytes);
  initial_mask(keys, packet, number, number_bytes);
}

/* Damages the frames of a recorded datagram's first packet, and seals it again. */
static void damage_inside(struct datagram *datagram, const struct initial_keys *keys) {
  static uint8_t payload[MAX_DATAGRAM_BYTES];
  struct packet packet = packet_read(datagram->bytes, datagram->length);
  if (packet.type != PACKET_INITIAL) return;
  int32_t length = initial_open(keys, datagram->bytes, &packet, payload);
  if (length < 0) return;
  damage(payload, below(2) ? least(40, (uint32_t)length) : (uint32_t)length);
  uint32_t number_bytes = packet.end - packet.number_at - (uint32_t)length - GCM_TAG_BYTES;
  uint8_t *number = datagram->bytes + packet.number_at;
  initial_mask(keys, datagram->bytes, number, number_bytes);
  seal(keys, datagram->bytes, number, number_bytes, payload, (uint32_t)length);
}

static void put_varint(struct payload *to, uint32_t value) {
  uint32_t power = value < 0x40 ? 0 : value < 0x4000 ? 1 : 2;
  if (below(8) == 0) power += below(4 - power); /* longer than it must be */
  uint32_t size = 1u << power;
  for (uint32_t i = 0; i < size; i++) {
    uint32_t shift = 8 * (size - 1 - i);
    to->bytes[to->length++] = shift > 24 ? 0 : (uint8_t)(value >> shift);
  }
  to->bytes[to->length - size] |= (uint8_t)(power << 6);
}

/* Frames that may stand between those of the hello, and now and then one that may not. */
static void put_filler(struct payload *to) {
  uint32_t ranges = below(4), kind = below(24);
  if (kind < 12) return;
  if (kind < 16) put_varint(to, 0);
  else if (kind < 19) put_varint(to, 1);
  else if (kind < 22) {
    put_varint(to, 2 + kind % 2); /* ACK, with and without ECN */
    for (uint32_t i = 0; i < 2; i++) put_varint(to, below(1 << below(20)));
    put_varint(to, ranges);
    for (uint32_t left = 1 + 2 * ranges + (kind % 2 ? 3 : 0); left > 0; left--) put_varint(to, below(1 << below(20)));
  } else if (kind == 22 && below(8) == 0) {
    put_varint(to, 0x1c);
    for (uint32_t left = 2; left > 0; left--) put_varint(to, below(1 << below(20)));
    uint32_t reason = below(30);
    put_varint(to, reason);
    memset(to->bytes + to->length, 'x', reason);
    to->length += reason;
  } else if (kind == 23 && below(16) == 0) put_varint(to, below(64));
}

/* One more datagram: a packet with these frames, and at times another before it. */
static void end_datagram(struct making *making) {
  struct payload *payload = &making->payload;
  const struct sender *sender = &making->sender;
  struct datagram *datagram = &making->out[making->count++];
  uint8_t *begin = datagram->bytes, *at;
  if (below(12) == 0) { /* a piece of a packet of another kind */
    uint32_t length = below(60);
    memset(begin, below(2) ? 0xff : 0x40, length);
    begin += length;
  }
  if (below(6) == 0) damage(payload->bytes, below(2) ? least(40, payload->length) : payload->length);
  if (below(8) == 0) payload->length -= least(payload->length, below(4) ? 1 + below(2) : below(ROOM_BYTES));
  uint32_t filled = below(4) ? PAYLOAD_BYTES : LEAST_PAYLOAD_BYTES; /* with PADDING frames, or zeros behind the packet */
  if (payload->length < filled) memset(payload->bytes + payload->length, 0, filled - payload->length);
  if (payload->length < filled) payload->length = filled;
  at = begin;
  *at++ = (uint8_t)((sender->version == QUIC_VERSION_1 ? 0xc0 : 0xd0) | (sender->number_bytes - 1));
  for (int shift = 24; shift >= 0; shift -= 8) *at++ = (uint8_t)(sender->version >> shift);
  *at++ = sender->destination.length;
  memcpy(at, sender->destination.bytes, sender->destination.length);
  at += sender->destination.length;
  *at++ = sender->source.length;
  memcpy(at, sender->source.bytes, sender->source.length);
  at += sender->source.length;
  *at++ = 0x40;
  *at++ = (uint8_t)sender->token_length;
  memset(at, 't', sender->token_length);
  at += sender->token_length;
  uint32_t rest = sender->number_bytes + payload->length + GCM_TAG_BYTES;
  *at++ = (uint8_t)(0x40 | rest >> 8);
  *at++ = (uint8_t)rest;
  for (uint32_t i = 0; i < sender->number_bytes; i++) at[i] = (uint8_t)(below(4) ? 0 : below(256));
  seal(sender->keys, begin, at, sender->number_bytes, payload->bytes, payload->length);
  at += rest;
  while (at < datagram->bytes + MIN_CLIENT_DATAGRAM_BYTES) *at++ = 0;
  datagram->length = (uint32_t)(at - datagram->bytes);
  payload->length = 0;
}

static void put_piece(struct making *making, const uint8_t *message, struct piece piece) {
  for (uint32_t at = piece.start, end; at < piece.end && making->count < MAX_MUTANT_DATAGRAMS; at = end) {
    struct payload *to = &making->payload;
    end = least(piece.end, at + PIECE_BYTES);
    if (to->length > 0 && to->length + end - at > ROOM_BYTES) {
      end_datagram(making);
      if (making->count == MAX_MUTANT_DATAGRAMS) return;
    }
    put_filler(to);
    put_varint(to, 6);
    put_varint(to, at);
    put_varint(to, end - at);
    memcpy(to->bytes + to->length, message + at, end - at);
    if (below(64) == 0) damage(to->bytes + to->length, end - at);
    to->length += end - at;
  }
}

/* Where the message is cut, in the order that the pieces are sent: some overlap, some come twice, one may be missing. */
static uint32_t draw_pieces(struct piece pieces[MAX_DRAWN_PIECES], uint32_t length) {
  uint32_t count = 1, cuts = below(below(64) ? MAX_CUTS : MANY_CUTS);
  pieces[0] = (struct piece){0, length};
  for (; cuts > 0; cuts--) {
    uint32_t chosen = below(count);
    struct piece *piece = &pieces[chosen];
    if (piece->end - piece->start < 2) continue;
    uint32_t place = piece->start + 1 + below(piece->end - piece->start - 1);
    memmove(piece + 1, piece, (count - chosen) * sizeof *piece);
    piece[0].end = piece[1].start = place;
    count++;
  }
  if (below(8) == 0)
    for (uint32_t i = 0; i < count; i++) pieces[i].end = least(length, pieces[i].end + below(40));
  for (uint32_t left = below(3) ? 0 : below(count + 1); left > 0; left--) pieces[count++] = pieces[below(count)];
  for (uint32_t left = below(2) ? count : 0; left > 1; left--) {
    uint32_t other = below(left);
    struct piece last = pieces[left - 1];
    pieces[left - 1] = pieces[other];
    pieces[other] = last;
  }
  if (below(8) == 0) pieces[below(count)].end = 0;
  return count;
}

static struct sender draw_sender(void) {
  uint32_t version = below(2), id = below(IDS), source = below(IDS);
  struct sender sender = {.keys = &id_keys[version][id], .version = versions[version]};
  sender.destination = (struct id){id_lengths[id], ids[id]};
  sender.source = (struct id){below(2) ? id_lengths[source] : 0, ids[source]};
  sender.token_length = below(3) ? 0 : below(MAX_TOKEN_BYTES);
  sender.number_bytes = (uint8_t)(1 + below(4));
  return sender;
}

/* A hello that is damaged, or whole, and cut anew. */
static uint32_t make_cut(struct datagram *out) {
  static uint8_t message[MAX_MESSAGE_BYTES];
  static struct making making;
  struct piece pieces[MAX_DRAWN_PIECES];
  const struct seed *seed = &seeds[below(seed_count)];
  uint32_t length = seed->message_length;
  memcpy(message, seed->message, length);
  if (below(2)) damage(message, below(2) ? least(HELLO_HEAD_BYTES, length) : length);
  if (below(64) == 0) length = 1 + below(MAX_MESSAGE_BYTES); /* beyond it is what an earlier one left */
  uint32_t count = draw_pieces(pieces, length);
  making.sender = draw_sender();
  making.out = out;
  making.count = making.payload.length = 0;
  for (uint32_t i = 0; i < count; i++) put_piece(&making, message, pieces[i]);
  if (making.payload.length > 0 && making.count < MAX_MUTANT_DATAGRAMS) end_datagram(&making);
  return making.count;
}

/* A recorded flight, in another order, some of its frames damaged. */
static uint32_t make_recorded(struct datagram *out) {
  const struct seed *seed = &seeds[below(seed_count)];
  uint32_t count = 1 + below(seed->count), first = below(seed->count);
  for (uint32_t i = 0; i < count; i++) {
    const struct datagram *from = &seed->datagrams[below(8) ? (first + i) % seed->count : below(seed->count)];
    out[i].length = from->length;
    memcpy(out[i].bytes, from->bytes, from->length);
    if (below(2)) damage_inside(&out[i], &seed->keys);
  }
  return count;
}

uint32_t mutant_make(struct datagram datagrams[MAX_MUTANT_DATAGRAMS]) {
  uint32_t count = below(4) ? make_cut(datagrams) : make_recorded(datagrams);
  for (uint32_t i = 0; i < count; i++) {
    struct datagram *datagram = &datagrams[i];
    if (below(12) == 0) damage(datagram->bytes, least(HEAD_BYTES, datagram->length));
    if (below(40) == 0) datagram->length = below(datagram->length + 1);
  }
  return count;
}

static bool read_seed(FILE *from, struct seed *seed) {
  static struct flight flight;
  struct hello_name name;
  memset(&flight, 0, sizeof flight);
  if (seed->count == 0 || seed->count > MAX_SEED_DATAGRAMS) return false;
  for (uint32_t i = 0; i < seed->count; i++) {
    struct datagram *datagram = &seed->datagrams[i];
    if (fread(&datagram->length, 4, 1, from) != 1 || datagram->length > sizeof datagram->bytes) return false;
    if (fread(datagram->bytes, 1, datagram->length, from) != datagram->length) return false;
    flight_read(&flight, datagram->bytes, datagram->length, &name);
  }
  seed->keys = flight.keys;
  seed->message_length = flight.piece_count > 0 ? flight.pieces[0].end : 0;
  memcpy(seed->message, flight.bytes, seed->message_length);
  return seed->message_length > 0;
}

bool mutants_begin(FILE *flights, uint64_t seed) {
  state = seed * 2 + 1;
  while (seed_count < MAX_SEEDS && fread(&seeds[seed_count].count, 4, 1, flights) == 1)
    if (!read_seed(flights, &seeds[seed_count++])) return false;
  for (uint32_t i = 0; i < IDS; i++) {
    for (uint32_t at = 0; at < MAX_ID_BYTES; at++) ids[i][at] = (uint8_t)below(256);
    for (uint32_t version = 0; version < 2; version++)
      initial_derive(&id_keys[version][i], versions[version], (struct id){id_lengths[i], ids[i]}, SIDE_CLIENT);
  }
  return seed_count > 0;
}
