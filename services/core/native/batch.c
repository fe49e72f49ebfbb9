/*
 * Checks many signatures of known keys at once, as strictly as recovering the key of each (docs/signatures.md, "Many at
 * once"). The arithmetic is libsecp256k1's, whose source the npm package secp256k1 brings; its sum of many products is
 * internal, so that the source is compiled in.
 *
 * A signature (r, s, parity) of a digest m recovers the key Q where R = (m/s) G + (r/s) Q, R being the point with that x
 * and parity. With a weight a of each that nobody can foresee, a sum of all shows it for all but one in 2^126:
 * (sum of a m/s) G + (sum of a r/s of each key) Q - sum of a R = 0.
 */
#define NAPI_VERSION 8
#include <node_api.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/random.h>

#include <secp256k1.c>

/* As claims.ts writes them: digest, r, s, number of the key (the lower byte first), parity of R's y, a byte of zero. */
enum { CLAIM_BYTES = 100, R_AT = 32, S_AT = 64, KEY_AT = 96, PARITY_AT = 98 };
/* x and y. */
enum { KEY_BYTES = 64 };
enum { MAX_CLAIMS = 512 };
enum { WEIGHT_BYTES = 16 };
enum verdict { FAILS = 0, HOLDS = 1, CANNOT_SAY = 2 };

struct term {
  secp256k1_scalar factor;
  secp256k1_ge point;
};

/* What one thread works with. */
struct bench {
  secp256k1_scratch *scratch;
  secp256k1_scalar r[MAX_CLAIMS];
  secp256k1_scalar s[MAX_CLAIMS];
  /* Products of s up to here. */
  secp256k1_scalar product[MAX_CLAIMS];
  uint8_t weights[MAX_CLAIMS * WEIGHT_BYTES];
  /* One of each claim, then one of each key. */
  struct term terms[2 * MAX_CLAIMS];
};

struct bytes {
  const uint8_t *data;
  size_t length;
};

/* Tables of multiples, for all threads; only read once they are made. */
static secp256k1_context *tables;
static pthread_once_t tables_once = PTHREAD_ONCE_INIT;
static void make_tables(void) { tables = secp256k1_context_create(SECP256K1_CONTEXT_VERIFY); }

static int read_scalar(secp256k1_scalar *scalar, const uint8_t *bytes) {
  int overflow;
  secp256k1_scalar_set_b32(scalar, bytes, &overflow);
  return !overflow && !secp256k1_scalar_is_zero(scalar);
}

static int read_key(struct term *term, const uint8_t *bytes) {
  secp256k1_fe x, y;
  if (!secp256k1_fe_set_b32(&x, bytes) || !secp256k1_fe_set_b32(&y, bytes + 32)) return 0;
  secp256k1_ge_set_xy(&term->point, &x, &y);
  secp256k1_scalar_set_int(&term->factor, 0);
  return secp256k1_ge_is_valid_var(&term->point);
}

/* The opposite of R, and its weight: odd, so that it is never zero, and below 2^127, which halves the work. */
static int read_point(struct term *term, const uint8_t *claim, const uint8_t *random) {
  uint8_t weight[32] = {0};
  secp256k1_fe x;
  memcpy(weight + 16, random, WEIGHT_BYTES);
  weight[16] &= 0x7f;
  weight[31] |= 1;
  secp256k1_scalar_set_b32(&term->factor, weight, NULL);
  /* r is below the order, and so a coordinate itself. */
  return secp256k1_fe_set_b32(&x, claim + R_AT) && secp256k1_ge_set_xo_var(&term->point, &x, !claim[PARITY_AT]);
}

static size_t key_of(const uint8_t *claim) { return claim[KEY_AT] | (size_t)claim[KEY_AT + 1] << 8; }

static int read_numbers(struct bench *bench, const uint8_t *claims, size_t count, size_t keys) {
  for (size_t at = 0; at < count; at++) {
    const uint8_t *claim = claims + at * CLAIM_BYTES;
    if (claim[PARITY_AT] > 1 || key_of(claim) >= keys) return 0;
    if (!read_scalar(&bench->r[at], claim + R_AT) || !read_scalar(&bench->s[at], claim + S_AT)) return 0;
    if (at == 0) bench->product[at] = bench->s[at];
    else secp256k1_scalar_mul(&bench->product[at], &bench->product[at - 1], &bench->s[at]);
  }
  return 1;
}

/* Makes the terms of the sum, beside the factor of G. One inversion serves all: 1/s = (product before) / (product). */
static int fill_terms(struct bench *bench, secp256k1_scalar *g, const uint8_t *claims, size_t count) {
  secp256k1_scalar inverse;
  secp256k1_scalar_inverse_var(&inverse, &bench->product[count - 1]);
  secp256k1_scalar_set_int(g, 0);
  for (size_t at = count; at-- > 0;) {
    const uint8_t *claim = claims + at * CLAIM_BYTES;
    struct term *term = &bench->terms[at], *key = &bench->terms[count + key_of(claim)];
    secp256k1_scalar weighted = inverse, part;
    if (at > 0) secp256k1_scalar_mul(&weighted, &inverse, &bench->product[at - 1]);
    secp256k1_scalar_mul(&inverse, &inverse, &bench->s[at]);
    if (!read_point(term, claim, bench->weights + at * WEIGHT_BYTES)) return 0;
    secp256k1_scalar_mul(&weighted, &weighted, &term->factor);
    /* A digest of the order or above is reduced, as recovery does it. */
    secp256k1_scalar_set_b32(&part, claim, NULL);
    secp256k1_scalar_mul(&part, &part, &weighted);
    secp256k1_scalar_add(g, g, &part);
    secp256k1_scalar_mul(&part, &bench->r[at], &weighted);
    secp256k1_scalar_add(&key->factor, &key->factor, &part);
  }
  return 1;
}

static int give_term(secp256k1_scalar *factor, secp256k1_ge *point, size_t at, void *data) {
  const struct term *terms = data;
  *factor = terms[at].factor;
  *point = terms[at].point;
  return 1;
}

static enum verdict check_batch(struct bench *bench, struct bytes claims, struct bytes keys) {
  size_t count = claims.length / CLAIM_BYTES, key_count = keys.length / KEY_BYTES;
  secp256k1_scalar g;
  secp256k1_gej sum;
  if (count == 0 || count > MAX_CLAIMS || key_count > count) return CANNOT_SAY;
  if (claims.length % CLAIM_BYTES || keys.length % KEY_BYTES) return CANNOT_SAY;
  ssize_t wanted = (ssize_t)(count * WEIGHT_BYTES);
  if (getrandom(bench->weights, (size_t)wanted, 0) != wanted) return CANNOT_SAY;
  if (!read_numbers(bench, claims.data, count, key_count)) return FAILS;
  for (size_t at = 0; at < key_count; at++)
    if (!read_key(&bench->terms[count + at], keys.data + at * KEY_BYTES)) return FAILS;
  if (!fill_terms(bench, &g, claims.data, count)) return FAILS;
  if (!secp256k1_ecmult_multi_var(&default_error_callback, &tables->ecmult_ctx, bench->scratch, &sum, &g, give_term,
                                  bench->terms, count + key_count))
    return CANNOT_SAY;
  return secp256k1_gej_is_infinity(&sum) ? HOLDS : FAILS;
}

static int get_bytes(napi_env env, napi_value value, struct bytes *bytes) {
  napi_typedarray_type type;
  void *data;
  if (napi_get_typedarray_info(env, value, &type, &bytes->length, &data, NULL, NULL) != napi_ok) return 0;
  bytes->data = data;
  return type == napi_uint8_array;
}

/* check(claims: Uint8Array, keys: Uint8Array): number, a verdict. */
static napi_value check(napi_env env, napi_callback_info info) {
  size_t count = 2;
  napi_value args[2], answer;
  void *bench;
  struct bytes claims, keys;
  if (napi_get_cb_info(env, info, &count, args, NULL, NULL) != napi_ok || count != 2) return NULL;
  if (napi_get_instance_data(env, &bench) != napi_ok) return NULL;
  if (!get_bytes(env, args[0], &claims) || !get_bytes(env, args[1], &keys)) {
    napi_throw_type_error(env, NULL, "expected two Uint8Array");
    return NULL;
  }
  return napi_create_int32(env, check_batch(bench, claims, keys), &answer) == napi_ok ? answer : NULL;
}

static void free_bench(napi_env env, void *data, void *hint) {
  struct bench *bench = data;
  (void)env, (void)hint;
  secp256k1_scratch_destroy(&default_error_callback, bench->scratch);
  free(bench);
}

static size_t scratch_bytes(void) {
  size_t points = 2 * MAX_CLAIMS;
  size_t many = secp256k1_pippenger_scratch_size(points, secp256k1_pippenger_bucket_window(points));
  size_t few = secp256k1_strauss_scratch_size(ECMULT_PIPPENGER_THRESHOLD);
  /* Room for each piece to begin at a round address. */
  return (many > few ? many : few) + 4096;
}

NAPI_MODULE_INIT() {
  napi_value function;
  struct bench *bench = calloc(1, sizeof *bench);
  pthread_once(&tables_once, make_tables);
  if (!bench || !tables) return NULL;
  bench->scratch = secp256k1_scratch_create(&default_error_callback, scratch_bytes());
  if (!bench->scratch || napi_set_instance_data(env, bench, free_bench, NULL) != napi_ok) return NULL;
  if (napi_create_function(env, "check", NAPI_AUTO_LENGTH, check, NULL, &function) != napi_ok) return NULL;
  if (napi_set_named_property(env, exports, "check", function) != napi_ok) return NULL;
  return exports;
}
