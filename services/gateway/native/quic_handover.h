/* QUIC flows that pass, each with its socket, from a process to the one that replaces it. */
#pragma once

/* Says what there is to `fd`, a socket of a local stream, and ends it here; half a hello stays behind, since its client says it
 * again. */
void quic_handover_give(int fd);
/* Hears it, once the listeners are open. What does not come, or is told in another form, is lost. */
void quic_handover_take(int fd);
