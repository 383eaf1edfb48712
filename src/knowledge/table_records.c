/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "knowledge/table_records.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#include "knowledge/knowledge_internal.h"
#include "util/json.h"
#include "util/scan.h"
#include "util/text.h"

static const char *const presences[] = {
        [KNOWLEDGE_THERE] = "there", [KNOWLEDGE_SILENT] = "silent", [KNOWLEDGE_ABSENT] = "absent",
};
static const char *const kinds[] = { [KNOWLEDGE_ENDPORT] = "endport", [KNOWLEDGE_LEAF] = "leaf", [KNOWLEDGE_PLACE] = "place" };

/* --- to the store ------------------------------------------------------------------------------------------------------ */

/* Without the unused entries at the end. */
static json_t *entries_to_json(const struct p_key *entries, size_t n)
{
        _cleanup_text_ struct text t = {};

        while (n > 0 && entries[n - 1].v == 0)
                n--;
        p_keys_to_hex(&t, entries, n);
        return t.failed ? NULL : json_string(t.bytes ?: "");
}

static json_t *write_to_json(const struct knowledge_write *w)
{
        return json_pack("{s:i, s:o, s:b}", "block", w->block, "entries", entries_to_json(w->entries, P_KEY_BLOCK_ENTRIES),
                         "suspected", w->is_suspected);
}

/* Only a clock that is not set gives times before 1970. */
static json_int_t time_of(uint64_t t)
{
        return t > INT64_MAX ? 1 : (json_int_t) t;
}

/* "0xGUID/NUMBER", separated by blanks. */
static json_t *places_to_json(const struct knowledge_record *r)
{
        _cleanup_text_ struct text t = {};

        for (size_t i = 0; i < r->n_places; i++)
                text_add(&t, "%s0x%016" PRIx64 "/%u", i > 0 ? " " : "", r->places[i].node.v, r->places[i].number);
        return t.failed ? NULL : json_string(t.bytes ?: "");
}

/* NULL is left out of an object. */
static json_t *true_or_null(bool value)
{
        return value ? json_true() : NULL;
}

static json_t *record_to_json(const struct knowledge_record *r, const char *boot)
{
        bool is_of_boot = r->seen != USEC_INFINITY;
        _cleanup_json_ json_t *o = NULL;

        o = json_pack("{s:i, s:b, s:o, s:I, s:s, s:I, s:I, s:I, s:I, s:s, s:o, s:b, s:s, s:I, s:o, s:o*, s:o*, s:o*}", "capacity",
                      r->capacity, "read", r->entries != NULL, "entries", entries_to_json(r->entries, r->entries ? r->capacity : 0),
                      "read_at", time_of(r->read_at), "presence", presences[r->presence], "since", time_of(r->since), "seen_at",
                      time_of(r->seen_at), "there_at", time_of(r->there_at), "seen", (json_int_t) (is_of_boot ? r->seen : 0), "boot",
                      is_of_boot ? boot : "", "place", places_to_json(r), "vouched", r->vouched, "vouched_by",
                      r->vouched_by ?: "", "vouched_at", time_of(r->vouched_at), "writes",
                      JSON_ARRAY(i, r->n_writes, write_to_json(&r->writes[i])), "unfollowed", true_or_null(r->is_unfollowed),
                      "may_be_silent", true_or_null(r->may_be_silent), "found", true_or_null(r->found));
        if (!o || (r->has_clock && json_object_set_new(o, "clock", json_integer(r->clock)) < 0))
                return NULL;
        return STEAL(o);
}

static void put_record(const struct knowledge_record *r, const char *boot, struct store_transaction *t)
{
        const struct store_key key = store_key(KNOWLEDGE_PREFIX "%s/0x%016" PRIx64 "/%u", kinds[r->name.kind], r->name.node.v,
                                               r->name.number);

        store_put_json(t, key.text, record_to_json(r, boot));
}

/* The times of the last read and of the last presence are stored when the table is no longer read, or the port no longer there:
 * until then table/discovery stands for them, and a sweep that changes nothing stores nothing else. */
static bool must_be_stored(const struct knowledge_record *r)
{
        return !r->is_stored || r->presence != r->stored_presence || (r->stored_fresh && !r->fresh) ||
               r->is_unfollowed != r->stored_unfollowed || r->may_be_silent != r->stored_may_be_silent ||
               r->found != r->stored_found;
}

void knowledge_store(const struct knowledge *k, const char *boot, struct store_transaction *t)
{
        if (!k->is_stored && k->wall > 0)
                store_put_json(t, KNOWLEDGE_DISCOVERY, json_pack("{s:I, s:I, s:s}", "at", time_of(k->wall), "now", (json_int_t) k->now,
                                                                 "boot", boot));
        for (size_t i = 0; i < k->n; i++)
                if (must_be_stored(&k->records[i]))
                        put_record(&k->records[i], boot, t);
}

void knowledge_store_record(const struct knowledge *k, uint32_t record, const char *boot, struct store_transaction *t)
{
        assert(record < k->n);
        put_record(&k->records[record], boot, t);
}

void knowledge_stored(struct knowledge *k)
{
        k->is_stored = true;
        for (size_t i = 0; i < k->n; i++) {
                struct knowledge_record *r = &k->records[i];

                r->is_stored = true;
                r->stored_presence = r->presence;
                r->stored_fresh = r->fresh;
                r->stored_unfollowed = r->is_unfollowed;
                r->stored_may_be_silent = r->may_be_silent;
                r->stored_found = r->found;
                for (size_t w = 0; w < r->n_writes; w++)
                        r->writes[w].is_stored = true;
        }
}

void knowledge_unstore(struct knowledge *k)
{
        k->is_stored = false;
        for (size_t i = 0; i < k->n; i++) {
                k->records[i].is_stored = false;
                for (size_t w = 0; w < k->records[i].n_writes; w++)
                        k->records[i].writes[w].is_stored = false;
        }
}

/* --- from the store ---------------------------------------------------------------------------------------------------- */

/* Sums and differences of times in seconds must not overflow, whatever a damaged record states. */
#define MAX_SECONDS (INT64_C(1) << 53)

static bool is_time(json_int_t t)
{
        return t >= 0 && t <= MAX_SECONDS;
}

/* "0xGUID/NUMBER", with 16 digits of the GUID */
static int take_port(struct scan *s, struct guid *ret_node, uint8_t *ret_number)
{
        const char *start = s->p;
        uint64_t number;

        if (!scan_word(s, "0x") || !scan_number(s, 16, UINT64_MAX, &ret_node->v) || ret_node->v == 0 || s->p != start + 18 ||
            !scan_char(s, '/') || !scan_number(s, 10, UINT8_MAX, &number))
                return -EBADMSG;
        *ret_number = (uint8_t) number;
        return 0;
}

static int name_from_key(const char *key, struct knowledge_name *ret)
{
        struct scan s = { key, key + strlen(key) };

        if (!scan_word(&s, KNOWLEDGE_PREFIX))
                return -EBADMSG;
        for (size_t i = 0; i < ELEMENTS(kinds); i++) {
                *ret = (struct knowledge_name) { .kind = (enum knowledge_kind) i };
                if (scan_word(&s, kinds[i]))
                        return scan_char(&s, '/') && take_port(&s, &ret->node, &ret->number) == 0 && s.p == s.end ? 0 : -EBADMSG;
        }
        return -EBADMSG;
}

static int restore_write(struct knowledge_record *r, const json_t *write)
{
        struct knowledge_write *w;
        const char *entries;
        json_int_t block;
        int e;

        if (json_unpack((json_t *) write, "{s:I, s:s}", "block", &block, "entries", &entries) < 0 || block < 0 ||
            block > UINT16_MAX || block * P_KEY_BLOCK_ENTRIES >= r->capacity)
                return -EBADMSG;
        e = VECTOR_GROW(NULL, r->writes, r->n_writes, r->n_allocated);
        if (e < 0)
                return e;
        w = &r->writes[r->n_writes];
        *w = (struct knowledge_write) {
                .block = (uint16_t) block, .is_sent = true, .is_suspected = json_is_true(json_object_get(write, "suspected")),
        };
        if (!p_keys_from_hex(entries, strlen(entries), w->entries, P_KEY_BLOCK_ENTRIES))
                return -EBADMSG;
        r->n_writes++;
        return 0;
}

static int restore_entries(struct knowledge_record *r, const char *text, const json_t *writes)
{
        int e = 0;

        r->entries = calloc(MAX(r->capacity, 1u), sizeof(*r->entries));
        if (!r->entries)
                return -ENOMEM;
        if (!p_keys_from_hex(text, strlen(text), r->entries, r->capacity))
                return -EBADMSG;
        for (size_t i = 0; e == 0 && i < json_array_size(writes); i++)
                e = restore_write(r, json_array_get(writes, i));
        return e;
}

static int restore_places(struct knowledge_record *r, const char *text)
{
        struct scan s = { text, text + strlen(text) };
        int e = 0;

        r->places = calloc(strlen(text) / 20 + 1, sizeof(*r->places)); /* each has at least 20 characters */
        if (!r->places)
                return -ENOMEM;
        while (e == 0 && s.p < s.end) {
                e = take_port(&s, &r->places[r->n_places].node, &r->places[r->n_places].number);
                r->n_places += e == 0;
                (void) scan_char(&s, ' ');
        }
        return e;
}

static int restore_presence(struct knowledge_record *r, const char *boot, const json_t *o)
{
        const char *presence, *place, *when;
        json_int_t since, seen_at, there_at = -1, seen, clock = json_integer_value(json_object_get(o, "clock"));

        if (json_unpack((json_t *) o, "{s:s, s:I, s:I, s?I, s:I, s:s, s:s}", "presence", &presence, "since", &since, "seen_at",
                        &seen_at, "there_at", &there_at, "seen", &seen, "boot", &when, "place", &place) < 0 ||
            !is_time(since) || !is_time(seen_at) || there_at > MAX_SECONDS || seen < 0 || clock < -MAX_SECONDS ||
            clock > MAX_SECONDS || !TEXT_READ_WORD(presence, presences, &r->presence))
                return -EBADMSG;
        r->since = (uint64_t) since;
        r->seen_at = (uint64_t) seen_at;
        r->there_at = (uint64_t) (there_at < 0 ? seen_at : there_at);
        r->may_be_silent = json_is_true(json_object_get(o, "may_be_silent"));
        r->found = json_is_true(json_object_get(o, "found"));
        r->seen = USEC_INFINITY;
        if (strcmp(when, boot) == 0) {
                r->seen = (usec_t) seen;
                r->has_clock = json_is_integer(json_object_get(o, "clock"));
                r->clock = clock;
        }
        return restore_places(r, place);
}

static int restore_vouch(struct knowledge_record *r, const json_t *o)
{
        const char *who;
        json_int_t at;
        int vouched;

        if (json_unpack((json_t *) o, "{s:b, s:s, s:I}", "vouched", &vouched, "vouched_by", &who, "vouched_at", &at) < 0 ||
            !is_time(at))
                return -EBADMSG;
        r->vouched = vouched;
        r->vouched_at = (uint64_t) at;
        r->vouched_by = *who ? strdup(who) : NULL;
        return *who && !r->vouched_by ? -ENOMEM : 0;
}

static int restore_table(struct knowledge_record *r, const json_t *o)
{
        const char *entries;
        json_int_t read_at;
        int capacity, read;
        json_t *writes;

        if (json_unpack((json_t *) o, "{s:i, s:b, s:s, s:I, s:o}", "capacity", &capacity, "read", &read, "entries", &entries,
                        "read_at", &read_at, "writes", &writes) < 0 ||
            capacity < 0 || capacity > UINT16_MAX || !is_time(read_at) || !json_is_array(writes))
                return -EBADMSG;
        r->capacity = (uint16_t) capacity;
        r->read_at = (uint64_t) read_at;
        r->is_unfollowed = read && json_is_true(json_object_get(o, "unfollowed"));
        return read ? restore_entries(r, entries, writes) : 0;
}

static int restore_record(struct knowledge_record *r, const char *boot, const json_t *o)
{
        return restore_presence(r, boot, o) ?: restore_table(r, o) ?: restore_vouch(r, o);
}

static int restore_discovery(struct knowledge *k, const char *boot, const json_t *o)
{
        json_int_t at, now;
        const char *when;

        if (json_unpack((json_t *) o, "{s:I, s:I, s:s}", "at", &at, "now", &now, "boot", &when) < 0 || at == 0 || !is_time(at) ||
            now < 0)
                return -EBADMSG;
        k->wall = (uint64_t) at;
        k->now = strcmp(when, boot) == 0 ? (usec_t) now : USEC_INFINITY;
        return 0;
}

void knowledge_restored(struct knowledge *k)
{
        if (k->wall > 0)
                knowledge_confirm_presence(k, k->now, k->wall);
        k->wall = 0;
        k->now = 0;
}

int knowledge_restore(struct knowledge *k, const char *boot, const char *key, const void *value, size_t n)
{
        _cleanup_json_ json_t *o = json_loadb(value, n, JSON_REJECT_DUPLICATES, NULL);
        struct knowledge_name name;
        uint32_t record;
        int r;

        if (strcmp(key, KNOWLEDGE_DISCOVERY) == 0)
                return o ? restore_discovery(k, boot, o) : -EBADMSG;
        if (name_from_key(key, &name) < 0 || knowledge_find(k, name) != KNOWLEDGE_NONE)
                return -EBADMSG;
        r = knowledge_ensure_record(k, name, &record);
        if (r == 0) {
                k->records[record].presence = KNOWLEDGE_THERE; /* if the record is damaged, the port counts as seen until now */
                k->records[record].is_restored = true;
                r = o ? restore_record(&k->records[record], boot, o) : -EBADMSG;
        }
        k->counts.valid = false;
        if (r < 0 && record < k->n)
                knowledge_forget_read(&k->records[record]);
        return r;
}
