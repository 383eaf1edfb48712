/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * M_Keys: which key of management goes to which port (IBA 1.5, 14.2.4).
 *
 * A port with an M_Key carries out a Set only with that key in it (protection levels 0 and 1), and at levels 2 and 3 a Get,
 * too. Whoever has not got it hears nothing at all. Hence the file: either one key for all ports, or one for each port GUID,
 * as OpenSM remembers them in its guid2mkey.
 *
 *     0x1234567812345678                          0x0002c90300000001 0x1234567812345678
 *
 *                                                 0x0002c90300000002 0x8765432187654321
 *
 * A key goes to no port but its own: a wrong one is counted by the port (M_KeyViolations), told to the SM (trap 256), and
 * begins the port's M_Key lease. So none is guessed; only where all ports of a file have the same key, other ports are
 * taken to have it as well.
 *
 * The keys are in memory of their own, which is wiped. No finding shows any of the file.
 */

#include "ib/types.h"
#include "util/cleanup.h"
#include "util/findings.h"

#define M_KEYS_MAX_FILE_SIZE (8u << 20) /* some 200,000 ports */

struct m_keys;

/* Reads such a file. What is wrong becomes findings (SECRET_SYNTAX). Returns 0, -EBADMSG, -ENOMEM; *ret owned. */
int m_keys_parse(const char *file_name, const char *bytes, size_t n, struct findings *findings, struct m_keys **ret);
/* One more owner; k may be NULL. The last m_keys_free wipes them. */
struct m_keys *m_keys_ref(struct m_keys *k);
struct m_keys *m_keys_free(struct m_keys *k);
DEFINE_CLEANUP(struct m_keys *, m_keys_free)

/* The key of the port with this GUID, of a switch's ports that of its port 0 (struct subnet_port has it so); 0: it has none.
 * k may be NULL: nobody has. */
uint64_t m_keys_get(const struct m_keys *k, struct guid port_guid);

/* What is known of a port's key, for words about it. */
enum m_key_source {
        M_KEY_NO_FILE,  /* there are no keys */
        M_KEY_FOR_ALL,  /* the one for all ports */
        M_KEY_OF_PORT,  /* the file names this port */
        M_KEY_NOT_NAMED, /* the file names others, with keys that differ */
};
enum m_key_source m_keys_source(const struct m_keys *k, struct guid port_guid);

/* Why a port may give no answer; for printf, with m_key_source_to_string(). */
#define M_KEY_SILENCE_FORMAT "the node is hung, it was unplugged just now, MADs are lost, %s"
/* ... as far as M_Keys go: the last words of it. Static strings. */
const char *m_key_source_to_string(enum m_key_source source);
/* The same of a port that answers reads and no write. counted: its M_KeyViolations moved when it was written to. */
const char *m_key_source_of_reader(enum m_key_source source, bool counted);

/* The one key that most ports have, for a library that knows only one; 0: none has. k may be NULL. */
uint64_t m_keys_common(const struct m_keys *k);
/* Keys that differ from each other, 0 not counted. */
size_t m_keys_n_distinct(const struct m_keys *k);

/* The same keys for the same ports. Either may be NULL. */
bool m_keys_equal(const struct m_keys *a, const struct m_keys *b);

/* Reads a file of one key only, as the SM_Key is. Returns as m_keys_parse. */
int secret_number_parse(const char *file_name, const char *bytes, size_t n, struct findings *findings, uint64_t *ret);
