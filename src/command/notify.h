/* Tells systemd how we are (sd_notify(3)), if it asked. Private to the room. */
#ifndef WEIR_COMMAND_NOTIFY_H
#define WEIR_COMMAND_NOTIFY_H

/* One or more lines, such as "READY=1". Nothing happens without NOTIFY_SOCKET, or if it cannot be
 * told. */
void notify(const char *state);

#endif
