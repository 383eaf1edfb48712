/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * records/: what pkeyd remembers from one run to the next, as records of a store:
 *
 *     table/KIND/0xNODE/NUMBER       what is known of a P_Key table (knowledge/table_records.h)
 *     index/0xNODE/NUMBER            the freed indexes of a port, so that no other partition gets them while a process may still
 *                                    use them, {"node", "port", "freed": [{"index", "base", "full", "sequence", "lost"}]}: base of
 *                                    the partition that used the index, and whether by a full entry; the lower the sequence, the
 *                                    longer ago it was freed; lost: another writer freed it, and the entry will be put back there
 *     known/0xPORTGUID               an endport that was seen, and was not absent for 90 days since: OpenSM's partition file
 *                                    names hosts that are down, {"node", "port", "port_guid", "type", "description", "switch",
 *                                    "switch_port", "seen", "absent"}; type: 1 channel adapter, 2 switch, 3 router; absent: for
 *                                    how many seconds, rounded to hours, counting only the time in which pkeyd ran and swept
 *     pin/0xNODE                     a name that is bound to a node (pins/pins.h), {"node", "type", "description", "name", "device",
 *                                    "since"}. If one is damaged, the name of that node counts as new
 *     lease/..., rest/...            leases, and P_Keys that rest (records/lease_records.h)
 *     generation/...                 policies that came into force (records/generation_records.h)
 *     before/...                     tables as they were before a generation wrote them (records/layout_records.h)
 *
 * Times are seconds since 1970, P_Keys and GUIDs in hex. The highest generation is in force.
 *
 * A transaction puts only what has changed since it was stored last, and deletes what is gone. The owner of each kind of records
 * knows what has changed; after the commit it marks everything as stored:
 *
 *     knowledge_store, records_put_...  ->  commit  ->  knowledge_stored, index_memory_stored, known_stored, ...
 *
 * A record that is damaged is counted and named. It does not count as an empty one: then nothing is known of that table, or, if it
 * belongs to the highest generation, no policy is known to be in force.
 */

#include "knowledge/table_records.h"
#include "pins/pins.h"
#include "plan/index_memory.h"
#include "records/generation_records.h"
#include "records/layout_records.h"
#include "records/lease_records.h"
#include "store/store.h"
#include "subnet/known.h"

#define RECORDS_INDEX "index/"
#define RECORDS_KNOWN "known/"
#define RECORDS_PIN   "pin/"

/* Formats: of a node GUID and a port number; of a port GUID; of a node GUID. */
#define RECORDS_INDEX_KEY RECORDS_INDEX "0x%016" PRIx64 "/%u"
#define RECORDS_KNOWN_KEY RECORDS_KNOWN "0x%016" PRIx64
#define RECORDS_PIN_KEY   RECORDS_PIN "0x%016" PRIx64

/* Of more freed indexes of a port those that were freed last are stored, so that no value is too large. */
#define RECORDS_MAX_FREED 8192

/* --- all records of a store --------------------------------------------------------------------------------------- */

/* A reader takes what it needs (STEAL), remembered_free() frees the rest. */
struct remembered {
        struct arena *arena;                /* owned */
        const char *boot;                   /* of this host, for knowledge_store(); in the arena */
        struct knowledge *knowledge;        /* owned, never NULL */
        struct index_memory *indexes;       /* owned, never NULL */
        struct known known;                 /* owned */
        struct pins pins;                   /* owned */
        struct leases *leases;              /* owned, never NULL */
        struct generation_history history;  /* owned */
        struct before_records before;       /* owned */
        uint64_t generation;                /* the highest number that ever was in force; 0: none */
        const char *policy;                 /* of that generation, borrowed from this struct; NULL: not known */
        size_t n_policy;
        size_t n_damaged;                   /* damaged records */
        const char *first_damaged;          /* the key of the first one, in the arena */

        struct stored_files files;          /* the generation that is being read; at the end the highest */
        bool in_doubt;                      /* a damaged record may belong to a higher generation */
};

/* Empty. `boot` names this boot of the host, and is copied. Returns owned, or NULL when out of memory. */
struct remembered *remembered_new(const char *boot);
/* Accepts NULL, returns NULL. */
struct remembered *remembered_free(struct remembered *r);
DEFINE_CLEANUP(struct remembered *, remembered_free)
#define _cleanup_remembered_ _cleanup_(remembered_free_p)

/* Restores one record; the caller gives all in the order of their keys. Key or value NULL: damaged (see store/store.h). Returns 0,
 * for a damaged record, too, or -ENOMEM. */
int remembered_restore(struct remembered *r, const char *key, const void *value, size_t n);
/* All records were given. Sets the generation and the policy. */
void remembered_end(struct remembered *r);

/* --- to the store ------------------------------------------------------------------------------------------------- */

/* Put the ports whose freed indexes changed; the endports and the pins that are new, changed or gone. Errors stay in the
 * transaction. */
void records_put_indexes(struct store_transaction *t, const struct index_memory *m);
void records_put_known(struct store_transaction *t, const struct known *k);
void records_put_pins(struct store_transaction *t, const struct pins *p);
/* The description and type of a known endport, without a check of the rest: several times as fast as remembered_restore(). Returns
 * false if the record has none. */
bool records_peek_known(const void *value, size_t n, char ret_description[SUBNET_NAME_SIZE], enum node_type *ret_type);
