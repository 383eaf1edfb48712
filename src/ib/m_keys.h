/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * M_Keys: which management key is sent to which port (IBA 1.5, 14.2.4).
 *
 * A port with an M_Key carries out a Set only with that key in it (protection levels 0 and 1), and at levels 2 and 3 also a Get.
 * Without the key there is no answer. Hence the file: either one key for all ports, or one for each port GUID, as OpenSM stores
 * them in its guid2mkey.
 *
 *     0x1234567812345678                          0x0002c90300000001 0x1234567812345678
 *
 *                                                 0x0002c90300000002 0x8765432187654321
 *
 * A key is sent only to its own port: a port counts a wrong one (M_KeyViolations), reports it to the SM (trap 256), and begins its
 * M_Key lease. So no key is guessed, except that other ports count as having the same key if all ports of a file do.
 *
 * The keys are in memory of their own, which is wiped. No finding shows any part of the file.
 */

#include "ib/types.h"
#include "util/findings.h"
#include "util/macros.h"

#define M_KEYS_MAX_FILE_SIZE (8u << 20) /* some 200,000 ports */

struct m_keys;

/* Parses such a file. Errors become findings (SECRET_SYNTAX). Returns 0, -EBADMSG, -ENOMEM; *ret owned. */
int m_keys_parse(const char *file_name, const char *bytes, size_t n, struct findings *findings, struct m_keys **ret);
/* Adds an owner; k may be NULL. The last m_keys_free wipes the keys. */
struct m_keys *m_keys_ref(struct m_keys *k);
struct m_keys *m_keys_free(struct m_keys *k);
DEFINE_CLEANUP(struct m_keys *, m_keys_free)

/* The key of the port with this GUID, for ports of a switch that of its port 0 (as in struct subnet_port); 0: none. k may be NULL:
 * no port has one. */
uint64_t m_keys_get(const struct m_keys *k, struct guid port_guid);

/* What is known of a port's key, for messages. */
enum m_key_source {
        M_KEY_NO_FILE,   /* there are no keys */
        M_KEY_IN_FILE,   /* the file names this port, or has one key for all */
        M_KEY_NOT_NAMED, /* the file names others, with keys that differ */
};
enum m_key_source m_keys_source(const struct m_keys *k, struct guid port_guid);

/* Why a port may not answer; for printf, with m_key_source_to_string(). */
#define M_KEY_SILENCE_FORMAT "the node is hung, it was unplugged just now, MADs are lost, %s"
/* The last part of it, about M_Keys; a static string. */
const char *m_key_source_to_string(enum m_key_source source);
/* A static string for a port that answers reads but not writes. counted: its M_KeyViolations rose when pkeyd wrote to it. */
const char *m_key_source_of_reader(enum m_key_source source, bool counted);

/* The key that most ports have; 0: no port has a key. k may be NULL. */
uint64_t m_keys_common(const struct m_keys *k);
/* The number of different keys other than 0. */
size_t m_keys_n_distinct(const struct m_keys *k);

/* True if the same ports have the same keys. Either may be NULL. */
bool m_keys_equal(const struct m_keys *a, const struct m_keys *b);

/* Parses a file with the SM_Key. It is here because such a file looks like one with one M_Key for all ports. Returns as
 * m_keys_parse(). */
int sm_key_parse(const char *file_name, const char *bytes, size_t n, struct findings *findings, uint64_t *ret);
