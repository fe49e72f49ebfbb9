/* What the TypeScript side says (standard input) and is told (standard output): a length, a type, a payload; little endian. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "layout.h"
#include "table.h"

bool control_open(void);
void control_event(unsigned which);
/* Lines of the access log, and who was refused, are dropped where nobody reads them fast enough; nothing else is. */
void control_tell(enum report type, const void *payload, uint32_t length);
/* As of all that was said before now: a connection that was opened after a change shall see it. */
struct route *control_find_route(const char *name, uint8_t length);
/* The same as of what was heard: while a command is obeyed. */
struct route *control_known_route(const char *name, uint8_t length);
/* Whether the program has come to its end. */
bool control_is_over(void);
uint32_t control_due_in_ms(void);
/* Before the end: waits until what was told is read, unless nobody reads. */
void control_finish(void);
