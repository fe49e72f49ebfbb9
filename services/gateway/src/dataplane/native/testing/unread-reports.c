/* control.c, to whose lines nobody listens: whether what is no line of the access log arrives all the same. */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../../../../native/control.h"

enum { LINE_BYTES = 300, LINES = 40 * 1000 };

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

int main(int count, char **arguments) {
  static const uint8_t line[LINE_BYTES];
  int ends[2];
  (void)arguments;
  if (count == 1) return 0;
  if (pipe(ends) != 0 || dup2(ends[1], STDOUT_FILENO) < 0 || fcntl(STDOUT_FILENO, F_SETFL, O_NONBLOCK) != 0) return 1;
  close(ends[1]);
  for (int i = 0; i < LINES; i++) control_tell(REPORT_ACCESS, line, sizeof line);
  /* Until there is no room for the shortest either. */
  for (int i = 0; i < LINE_BYTES; i++) control_tell(REPORT_ACCESS, NULL, 0);
  control_tell(REPORT_HANDED_OVER, NULL, 0);
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
