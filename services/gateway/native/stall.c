#include "stall.h"

#include <linux/sockios.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/sysinfo.h>
#include <unistd.h>

#include "layout.h"
#include "loop.h"
#include "memory.h"
#include "options.h"
#include "stats.h"

/* What is slow, what is stalled and how much such may hold is in layout.h. */
enum {
  TICK_MS = 100,
  MEASURE_MS = 1000,
  LOOK_PARTS = 2,                /* of those that are watched, a tick looks at one of so many, */
  MOST_LOOKS = 1024,             /* and at no more: each is three system calls */
  SLOW_WINDOW_BYTES = 64 * 1024, /* what the sender to a slow receiver may have on its way to us, */
  SLOW_UNSENT_BYTES = 64 * 1024, /* and what is kept to be sent on */
  ANY_BYTES = 1 << 30,
};
/* Of SO_MEMINFO, as in quic_socket.c: what was received, and what is to be sent. */
enum { MEMORY_RECEIVED = 0, MEMORY_QUEUED = 5, MEMORY_NUMBERS = 9 };

static struct stall *first, *last;
/* Where looking goes on, whatever is forgotten meanwhile. */
static struct stall *look_next;
static uint32_t watched, ticked_ms, measured_ms;
static bool is_scarce;
static uint32_t paced[PACE_STALLED + 1];
static uint64_t held_by_stalled;

static uint64_t tcp_share(void) {
  unsigned long pages = 0;
  FILE *file = fopen("/proc/sys/net/ipv4/tcp_mem", "re");
  int found = file ? fscanf(file, "%lu", &pages) : 0;
  if (file) fclose(file);
  if (found == 1 && pages > 0) return pages * (uint64_t)sysconf(_SC_PAGESIZE) / STALL_RULE_TCP_PARTS;
  struct sysinfo machine = {0};
  sysinfo(&machine);
  return (uint64_t)machine.totalram * machine.mem_unit / STALL_RULE_MEMORY_PARTS / STALL_RULE_TCP_PARTS;
}

static uint64_t most_held(void) {
  static uint64_t most;
  if (most == 0) most = options.max_stalled_bytes > 0 ? options.max_stalled_bytes : tcp_share();
  return most;
}

/* Of all of TCP on this machine; 0 where the system does not tell. */
static uint64_t tcp_bytes(void) {
  char line[256];
  unsigned long pages = 0;
  FILE *file = fopen("/proc/self/net/sockstat", "re");
  while (file && fgets(line, sizeof line, file))
    if (sscanf(line, "TCP: inuse %*u orphan %*u tw %*u alloc %*u mem %lu", &pages) == 1) break;
  if (file) fclose(file);
  return pages * (uint64_t)sysconf(_SC_PAGESIZE);
}

/* What any direction may have on its way. */
static uint32_t few_bytes(void) { return is_scarce ? STALL_RULE_FEW_SCARCE_BYTES : STALL_RULE_FEW_BYTES; }

bool stall_measure(void) {
  if (now_ms - measured_ms < MEASURE_MS) return false;
  measured_ms = now_ms;
  is_scarce = tcp_bytes() + stats->connection_bytes > most_held();
  return is_scarce;
}

uint32_t stall_measure_due_ms(void) {
  uint32_t passed = now_ms - measured_ms;
  return passed >= MEASURE_MS ? 0 : MEASURE_MS - passed;
}

static uint32_t memory_of(int fd, unsigned what) {
  uint32_t memory[MEMORY_NUMBERS] = {0};
  socklen_t length = sizeof memory;
  getsockopt(fd, SOL_SOCKET, SO_MEMINFO, memory, &length);
  return memory[what];
}

/* What was written and is not acknowledged. */
static uint32_t unsent_of(const struct conn *conn, int from) {
  int left = 0;
  ioctl(conn->fd[1 - from], SIOCOUTQ, &left);
  return (uint32_t)left;
}

/* A window that was offered is not taken back: what is on its way still comes. */
static void bound(struct stall *stall, bool is_bound) {
  if (stall->is_bound == is_bound) return;
  stall->is_bound = is_bound;
  int window = is_bound ? SLOW_WINDOW_BYTES : ANY_BYTES, unsent = is_bound ? SLOW_UNSENT_BYTES : ANY_BYTES;
  const int *fd = stall->conn->fd;
  setsockopt(fd[stall->from], IPPROTO_TCP, TCP_WINDOW_CLAMP, &window, sizeof window);
  setsockopt(fd[1 - stall->from], IPPROTO_TCP, TCP_NOTSENT_LOWAT, &unsent, sizeof unsent);
}

static void set_pace(struct stall *stall, enum pace pace, uint32_t held) {
  stats->stalled_bytes += (uint64_t)held - stall->held;
  if (stall->pace == PACE_STALLED) held_by_stalled -= stall->held;
  if (pace == PACE_STALLED) held_by_stalled += held;
  stall->held = held;
  paced[stall->pace]--;
  paced[pace]++;
  stall->pace = (uint8_t)pace;
}

static void append(struct stall *stall) {
  stall->previous = last;
  stall->next = NULL;
  if (last) last->next = stall;
  else first = stall;
  last = stall;
}

static void unlink_stall(struct stall *stall) {
  if (look_next == stall) look_next = stall->next;
  if (stall->previous) stall->previous->next = stall->next;
  else first = stall->next;
  if (stall->next) stall->next->previous = stall->previous;
  else last = stall->previous;
}

void stall_watch(struct stall *stall, struct conn *conn, int from, uint64_t written) {
  if (stall->is_watched) return;
  if (!first) ticked_ms = now_ms;
  *stall = (struct stall){.conn = conn, .looked_ms = now_ms, .moved_ms = now_ms, .from = (uint8_t)from, .is_watched = true};
  stall->taken = stall->moved_taken = written - unsent_of(conn, from);
  append(stall);
  watched++;
  paced[PACE_FAST]++;
}

void stall_forget(struct stall *stall) {
  if (!stall->is_watched) return;
  set_pace(stall, PACE_FAST, 0);
  paced[PACE_FAST]--;
  unlink_stall(stall);
  stall->is_watched = false;
  watched--;
}

static enum pace pace_of(const struct stall *stall, uint64_t took, uint32_t bytes) {
  if (bytes <= few_bytes() || took * STALL_RULE_SLOW_MS >= (uint64_t)bytes * (now_ms - stall->looked_ms)) return PACE_FAST;
  return now_ms - stall->moved_ms >= STALL_RULE_STALLED_MS ? PACE_STALLED : PACE_SLOW;
}

static void note_moved(struct stall *stall, uint64_t taken) {
  if (taken - stall->moved_taken < STALL_RULE_MOVING_BYTES) return;
  stall->moved_taken = taken;
  stall->moved_ms = now_ms;
  unlink_stall(stall);
  append(stall);
}

bool stall_is_on_its_way(const struct conn *conn, int from) { return unsent_of(conn, from) > few_bytes(); }

/* The end of stream is a byte that is not taken, too: what is taken never becomes less. */
static uint64_t taken_of(const struct stall *stall, uint64_t written, uint32_t unsent) {
  uint64_t taken = written - unsent;
  return (int64_t)(taken - stall->taken) > 0 ? taken : stall->taken;
}

/* False where next to nothing is on its way any more. */
static bool look(struct stall *stall, const struct stall_view *view) {
  const int *fd = stall->conn->fd;
  uint32_t unsent = unsent_of(stall->conn, stall->from);
  uint32_t received = memory_of(fd[stall->from], MEMORY_RECEIVED);
  uint32_t bytes = view->waiting + received + memory_of(fd[1 - stall->from], MEMORY_QUEUED);
  uint64_t taken = taken_of(stall, view->written, unsent);
  note_moved(stall, taken);
  /* Who was slow has drained, and takes what comes. */
  if (!view->is_blocked && bytes <= few_bytes() && (!stall->is_bound || unsent <= SLOW_UNSENT_BYTES / 2)) {
    bound(stall, false);
    stall_forget(stall);
    return false;
  }
  enum pace pace = pace_of(stall, taken - stall->taken, bytes);
  set_pace(stall, pace, pace == PACE_FAST ? 0 : bytes);
  if (pace != PACE_FAST) bound(stall, true);
  stall->taken = taken;
  stall->looked_ms = now_ms;
  return true;
}

/* What a network holds. */
struct share {
  struct in6_addr network;
  uint64_t held;
};

static struct share *share_in(struct share *shares, uint32_t count, const struct in6_addr *network) {
  uint32_t at = client_hash(network) & (count - 1);
  while (shares[at].held > 0 && memcmp(&shares[at].network, network, sizeof *network) != 0) at = (at + 1) & (count - 1);
  shares[at].network = *network;
  return &shares[at];
}

/* What has its share of a limit: stalled ones, or slow ones with them. */
static bool is_counted(const struct stall *stall, enum pace pace) { return stall->pace >= pace && stall->held > 0; }

static uint32_t most_counted(enum pace pace) { return paced[PACE_STALLED] + (pace == PACE_SLOW ? paced[PACE_SLOW] : 0); }

/* The network whose directions hold most, from a pace on; `other` is what the next one's hold. False where there is no memory to find out. */
static bool heaviest(enum pace pace, struct share *most, uint64_t *other) {
  uint32_t count = 2;
  while (count <= 2 * most_counted(pace)) count *= 2;
  struct share *shares = memory_take(count * sizeof *shares);
  if (!shares) return false;
  memset(shares, 0, count * sizeof *shares);
  for (const struct stall *stall = first; stall; stall = stall->next) {
    if (!is_counted(stall, pace)) continue;
    const struct in6_addr network = client_network_of_place(&stall->conn->place);
    share_in(shares, count, &network)->held += stall->held;
  }
  *most = (struct share){0};
  *other = 0;
  for (uint32_t i = 0; i < count; i++) {
    if (shares[i].held > most->held) *other = most->held, *most = shares[i];
    else if (shares[i].held > *other) *other = shares[i].held;
  }
  memory_give(shares);
  return true;
}

static bool is_too_much(enum pace pace) {
  return pace == PACE_STALLED ? held_by_stalled > most_held() : stats->stalled_bytes > most_held() * STALL_RULE_READING_TIMES;
}

/* Who may have to go. Both directions of a connection end with it: nothing of them is looked at from then on. */
struct candidate {
  struct conn *conn;
  uint64_t taken;
  uint32_t moved_ms, held;
  bool is_stalled;
};

/*
 * Who was stalled for longest goes first; then who has taken least since its connection began: of those who read, the ones that have done so
 * for longest stay, and a crowd of newcomers, of whom nobody can say yet whether they will read, ends its own.
 */
static int compare(const void *one, const void *another) {
  const struct candidate *a = one, *b = another;
  if (a->is_stalled != b->is_stalled) return a->is_stalled ? -1 : 1;
  if (a->is_stalled) return (int32_t)(a->moved_ms - b->moved_ms);
  return (a->taken > b->taken) - (a->taken < b->taken);
}

static uint32_t candidates_of(struct candidate *found, enum pace pace, const struct in6_addr *wanted) {
  uint32_t count = 0;
  for (const struct stall *stall = first; stall; stall = stall->next) {
    if (!is_counted(stall, pace)) continue;
    const struct in6_addr network = client_network_of_place(&stall->conn->place);
    if (memcmp(&network, wanted, sizeof network) != 0) continue;
    found[count++] = (struct candidate){stall->conn, stall->taken, stall->moved_ms, stall->held, stall->pace == PACE_STALLED};
  }
  return count;
}

/* Of a network, until another one holds more. */
static uint32_t end_some(enum pace pace, struct share *most, uint64_t other, void (*crowding)(struct conn *conn)) {
  struct candidate *candidates = memory_take((most_counted(pace) + 1) * sizeof *candidates);
  if (!candidates) return 0;
  uint32_t count = candidates_of(candidates, pace, &most->network), ended = 0;
  qsort(candidates, count, sizeof *candidates, compare);
  for (uint32_t i = 0; i < count && is_too_much(pace) && most->held >= other; i++) {
    most->held -= candidates[i].held;
    if (candidates[i].conn->state == CLOSED) continue;
    crowding(candidates[i].conn);
    ended++;
  }
  memory_give(candidates);
  return ended;
}

static void end_crowding(enum pace pace, void (*crowding)(struct conn *conn)) {
  for (int networks = 0; networks < STALL_RULE_MOST_NETWORKS && is_too_much(pace); networks++) {
    struct share most;
    uint64_t other;
    if (!heaviest(pace, &most, &other) || end_some(pace, &most, other, crowding) == 0) return;
  }
}

static void look_at_some(struct stall_view (*view)(const struct conn *conn, int from), void (*drained)(struct conn *conn)) {
  uint32_t looks = watched / LOOK_PARTS + 1;
  for (looks = looks < MOST_LOOKS ? looks : MOST_LOOKS; looks > 0 && first; looks--) {
    struct stall *stall = look_next ? look_next : first;
    look_next = stall->next;
    const struct stall_view seen = view(stall->conn, stall->from);
    struct conn *conn = stall->conn;
    if (now_ms - stall->looked_ms >= TICK_MS && !look(stall, &seen)) drained(conn);
  }
}

void stall_tick(struct stall_view (*view)(const struct conn *conn, int from), void (*drained)(struct conn *conn),
                void (*crowding)(struct conn *conn)) {
  if (!first || now_ms - ticked_ms < TICK_MS) return;
  ticked_ms = now_ms;
  look_at_some(view, drained);
  end_crowding(PACE_STALLED, crowding);
  end_crowding(PACE_SLOW, crowding);
}

uint32_t stall_next_due_ms(void) {
  if (!first) return UINT32_MAX;
  uint32_t passed = now_ms - ticked_ms;
  return passed >= TICK_MS ? 0 : TICK_MS - passed;
}
