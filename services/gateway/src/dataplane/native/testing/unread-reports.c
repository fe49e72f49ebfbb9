/*
 * control.c, to whose reports nobody listens. "unread": whether what is no line of the access log arrives all the same, and what cannot be
 * kept ends nothing. "closed": whether it goes on trying after the reader left.
 */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../../../../native/control.h"

enum { LINE_BYTES = 300, LINES = 40 * 1000 };
/* More than the memory that there is, which is too little for 32 MiB at once. */
enum { ANSWERS = 64 * 1024, MEMORY_BYTES = 28 * 1024 * 1024 };
/* Of computing: who waits uses none. */
enum { MAX_SECONDS = 5 };

static const uint8_t line[LINE_BYTES];

static int read_whole(FILE *from) {
  uint32_t size, lines = 0;
  uint8_t frame[LINE_BYTES + 1];
  int others = 0;
  while (fread(&size, sizeof size, 1, from) == 1 && size <= sizeof frame && fread(frame, size, 1, from) == 1) {
    if (frame[0] == REPORT_ACCESS) lines++;
    else if (frame[0] == REPORT_HANDED_OVER) others++;
  }
  fprintf(stderr, "%s lines, handed over %d\n", lines > 0 && lines < LINES ? "some" : "none or all", others);
  return 0;
}

static bool tell_to(int end) {
  return dup2(end, STDOUT_FILENO) >= 0 && close(end) == 0 && fcntl(STDOUT_FILENO, F_SETFL, O_NONBLOCK) == 0;
}

static int unread(void) {
  const struct rlimit memory = {MEMORY_BYTES, MEMORY_BYTES};
  int ends[2];
  if (pipe(ends) != 0 || !tell_to(ends[1]) || setrlimit(RLIMIT_AS, &memory) != 0) return 1;
  for (int i = 0; i < LINES; i++) control_tell(REPORT_ACCESS, line, sizeof line);
  /* Until there is no room for the shortest either. */
  for (int i = 0; i < LINE_BYTES; i++) control_tell(REPORT_ACCESS, NULL, 0);
  control_tell(REPORT_HANDED_OVER, NULL, 0);
  for (int i = 0; i < ANSWERS; i++) control_tell(REPORT_ANSWER, line, sizeof line);
  pid_t reader = fork();
  if (reader < 0) return 1;
  if (reader == 0) {
    close(STDOUT_FILENO);
    return read_whole(fdopen(ends[0], "r"));
  }
  close(ends[0]);
  control_finish();
  close(STDOUT_FILENO);
  return waitpid(reader, NULL, 0) == reader ? 0 : 1;
}

/* The reader takes what it was told, and leaves before it is told the rest. */
static int closed(void) {
  static uint8_t taken[64 * 1024];
  const struct rlimit computing = {MAX_SECONDS, MAX_SECONDS};
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) != 0 || !tell_to(ends[1]) || setrlimit(RLIMIT_CPU, &computing) != 0) return 1;
  signal(SIGPIPE, SIG_IGN);
  for (int i = 0; i < LINES; i++) control_tell(REPORT_ACCESS, line, sizeof line);
  while (recv(ends[0], taken, sizeof taken, MSG_DONTWAIT) > 0) continue;
  close(ends[0]);
  control_finish();
  fprintf(stderr, "finished\n");
  return 0;
}

int main(int count, char **arguments) {
  if (count == 1) return 0;
  return strcmp(arguments[1], "closed") == 0 ? closed() : unread();
}
