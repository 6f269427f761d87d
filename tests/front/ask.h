/*
 * What the tests of the front ask of their rig, and what they expect: small requests in their usual
 * forms, whole or in parts.
 */
#ifndef WEIR_TESTS_FRONT_ASK_H
#define WEIR_TESTS_FRONT_ASK_H

#include "rig.h"

/* Made by ask_set_up, with the usual settings. */
extern struct rig rig;

int ask_set_up(void **state);
int ask_tear_down(void **state);

#define TEST(name) cmocka_unit_test_setup_teardown(name, ask_set_up, ask_tear_down)

/* Listens on TCP too from now on, with buffers of so many bytes in the kernel; closed with the rig.
 */
extern uint16_t tcp_port;
void ask_listen_on_tcp(int buffers);

/* The rig anew, with other settings. */
void ask_anew(const struct front_settings *settings);

/* Parameters of requests in these modes. The body that is read has 100,000 bytes. */
extern const char *const dump[], *const reads_body[], *const waits[];

/* Sends bytes on a connection of their own and reads the answer to its end. */
void ask(struct answer *answer, struct slice bytes);

/* Sends the head of a request. */
void ask_begin(int fd, bool keep, const char *const *params);

/* Sends a whole request without a body. */
void ask_whole(int fd, const char *const *params, bool keep);

/* From now on the front takes so many connections. */
void ask_allow(unsigned connections);

/* A sound request with a body of three bytes, and its answer. */
extern const char *const usual[];
void put_usual(struct buf *out);
void assert_usual_body(const struct answer *answer);
void assert_usual_answer(const struct answer *answer);

/* The answer to request 1 is whole and has this status. */
void assert_answered(int fd, unsigned status);

/* The answer to request 1 is whole, 200, and its body so long; 0: of any length. */
void assert_answer_of(int fd, size_t len);

/* The end of our side without a byte more. */
void assert_ended(int fd);

/* The next request on a connection is served. */
void assert_goes_on(int fd);

#endif
