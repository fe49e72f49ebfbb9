/* Descriptors or ports that are missing: where nobody says so, connections wait and end, and it looks as if instances did not answer. */
#pragma once
#include <stdbool.h>

/* Whether that is what an errno says. Then it is said on standard error, at most once a minute for each. errno stays as it was. */
bool scarcity_note(int error);
