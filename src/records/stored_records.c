/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "records/stored_records.h"

#include <errno.h>
#include <string.h>

#include "util/json.h"

static json_t *guid_to_json(struct guid guid)
{
        return json_sprintf("0x%016" PRIx64, guid.v);
}

/* --- freed indexes ------------------------------------------------------------------------------------------------ */

static json_t *freed_to_json(const struct freed_index *f)
{
        return json_pack("{s:i, s:o, s:b, s:I, s:b}", "index", f->index, "base", json_sprintf("0x%04x", f->base), "full", f->full,
                         "sequence", (json_int_t) f->sequence, "lost", f->lost);
}

static json_t *indexes_to_json(const struct index_port *port, const struct freed_index *freed, size_t n)
{
        const size_t first = n - MIN(n, (size_t) RECORDS_MAX_FREED);

        return json_pack("{s:o, s:i, s:o}", "node", guid_to_json(port->node_guid), "port", port->number,
                         "freed", JSON_ARRAY(i, n - first, freed_to_json(&freed[first + i])));
}

void records_put_indexes(struct store_transaction *t, const struct index_memory *m)
{
        const struct index_port *ports;
        const struct freed_index *freed;
        size_t n_ports, n;

        ports = index_memory_unstored(m, &n_ports);
        for (size_t i = 0; i < n_ports; i++) {
                const struct store_key key = store_key(RECORDS_INDEX_KEY, ports[i].node_guid.v, ports[i].number);

                freed = index_memory_get(m, ports[i].node_guid, ports[i].number, &n);
                if (n > 0)
                        store_put_json(t, key.text, indexes_to_json(&ports[i], freed, n));
                else
                        store_delete(t, key.text);
        }
}

static bool read_freed(const json_t *o, struct freed_index *f)
{
        const json_t *lost = json_object_get(o, "lost"), *full = json_object_get(o, "full");
        json_int_t index, sequence;
        uint64_t base;

        if (!json_member_number(o, "index", 0, UINT16_MAX, &index) || !json_member_hex(o, "base", P_KEY_BASE_MASK, &base) ||
            !json_member_number(o, "sequence", 0, INT64_MAX, &sequence) || (lost && !json_is_boolean(lost)) ||
            (full && !json_is_boolean(full)))
                return false;
        f->index = (uint16_t) index;
        f->base = (uint16_t) base;
        f->sequence = (uint64_t) sequence;
        f->lost = json_is_true(lost);
        f->full = json_is_true(full);
        return true;
}

/* All freed indexes of a port or none: a part of them would count as all. */
static int restore_freed(struct index_memory *m, struct guid node_guid, uint8_t port, const json_t *list)
{
        size_t n = json_array_size(list);
        _cleanup_free_ struct freed_index *freed = calloc(n + 1, sizeof(*freed));
        int r = freed ? 0 : -ENOMEM;

        for (size_t i = 0; r == 0 && i < n; i++) {
                freed[i] = (struct freed_index) { .node_guid = node_guid, .port = port };
                r = read_freed(json_array_get(list, i), &freed[i]) ? 0 : -EBADMSG;
        }
        for (size_t i = 0; r == 0 && i < n; i++)
                r = index_memory_restore(m, &freed[i]);
        return r;
}

static int restore_indexes(struct index_memory *m, const char *key, const json_t *o)
{
        const json_t *list = json_object_get(o, "freed");
        json_int_t number;
        uint64_t guid;

        if (!json_member_hex(o, "node", UINT64_MAX, &guid) || !json_member_number(o, "port", 0, UINT8_MAX, &number) ||
            !json_is_array(list) || strcmp(key, store_key(RECORDS_INDEX_KEY, guid, (unsigned) number).text) != 0)
                return -EBADMSG;
        return restore_freed(m, (struct guid) { guid }, (uint8_t) number, list);
}

/* --- known endports ----------------------------------------------------------------------------------------------- */

static json_t *known_to_json(const struct known_port *p)
{
        return json_pack("{s:o, s:i, s:o, s:i, s:s, s:o, s:i, s:I, s:I}", "node", guid_to_json(p->node_guid), "port", p->number,
                         "port_guid", guid_to_json(p->port_guid), "type", (int) p->type, "description", p->description,
                         "switch", guid_to_json(p->switch_guid), "switch_port", p->switch_port, "seen", (json_int_t) p->seen,
                         "absent", (json_int_t) (p->absent / USEC_PER_SEC));
}

void records_put_known(struct store_transaction *t, const struct known *k)
{
        /* first, because a port that was gone may have returned */
        for (uint32_t i = 0; i < k->n_gone; i++)
                store_delete(t, store_key(RECORDS_KNOWN_KEY, k->gone[i].v).text);
        for (uint32_t i = 0; i < k->n; i++) {
                const struct known_port *p = &k->ports[i];

                if (!p->is_stored)
                        store_put_json(t, store_key(RECORDS_KNOWN_KEY, p->port_guid.v).text, known_to_json(p));
        }
}

static bool read_known(const json_t *o, struct known_port *ret)
{
        const char *description = json_string_value(json_object_get(o, "description"));
        json_int_t type, number, switch_port, seen, absent = 0;

        if (!json_member_hex(o, "node", UINT64_MAX, &ret->node_guid.v) ||
            !json_member_hex(o, "port_guid", UINT64_MAX, &ret->port_guid.v) ||
            !json_member_hex(o, "switch", UINT64_MAX, &ret->switch_guid.v) ||
            !json_member_number(o, "type", NODE_CA, NODE_ROUTER, &type) ||
            !json_member_number(o, "port", 0, UINT8_MAX, &number) ||
            !json_member_number(o, "switch_port", 0, UINT8_MAX, &switch_port) ||
            !json_member_number(o, "seen", 0, INT64_MAX, &seen) ||
            (json_object_get(o, "absent") && !json_member_number(o, "absent", 0, INT32_MAX, &absent)) || !description || ret->port_guid.v == 0 ||
            (*description && !text_is_printable(description, sizeof(ret->description) - 1)))
                return false;
        (void) strcpy(ret->description, description);
        ret->type = (enum node_type) type;
        ret->number = (uint8_t) number;
        ret->switch_port = (uint8_t) switch_port;
        ret->seen = ret->noted = (uint64_t) seen;
        ret->absent = (usec_t) absent * USEC_PER_SEC;
        return true;
}

static int restore_known(struct known *k, const char *key, const json_t *o)
{
        struct known_port port = { .is_stored = true };

        if (!read_known(o, &port) || strcmp(key, store_key(RECORDS_KNOWN_KEY, port.port_guid.v).text) != 0)
                return -EBADMSG;
        return known_add(k, &port);
}

/* The value of a member of a compact JSON object; NULL: it has none. name: with its quotation marks and colon; it is found in no
 * string, where each quotation mark has a backslash in front. */
static const char *find_member(const char *value, size_t n, const char *name)
{
        const char *at = memmem(value, n, name, strlen(name));

        return at ? at + strlen(name) : NULL;
}

bool records_peek_known(const void *value, size_t n, char ret_description[SUBNET_NAME_SIZE], enum node_type *ret_type)
{
        const char *end = (const char *) value + n, *p = find_member(value, n, "\"type\":");
        size_t length = 0;

        if (!p || p == end || *p < '0' + NODE_CA || *p > '0' + NODE_ROUTER)
                return false;
        *ret_type = (enum node_type) (*p - '0');
        p = find_member(value, n, "\"description\":\"");
        for (; p && p < end && *p != '"' && length + 1 < SUBNET_NAME_SIZE; p++) {
                p += *p == '\\'; /* in printable ASCII only \" and \\ are escaped */
                if (p < end)
                        ret_description[length++] = *p;
        }
        ret_description[length] = '\0';
        return p && p < end && *p == '"';
}

/* --- pins --------------------------------------------------------------------------------------------------------- */

static json_t *pin_to_json(const struct pin *p)
{
        return json_pack("{s:o, s:i, s:s, s:s, s:s, s:I}", "node", guid_to_json(p->node), "type", (int) p->type, "description",
                         p->name.description, "name", p->name.name, "device", p->name.device, "since", (json_int_t) p->since);
}

void records_put_pins(struct store_transaction *t, const struct pins *p)
{
        /* first, because a node that lost its pin may have another one */
        for (uint32_t i = 0; i < p->n_gone; i++)
                store_delete(t, store_key(RECORDS_PIN_KEY, p->gone[i].v).text);
        for (uint32_t i = 0; i < p->n; i++) {
                const struct pin *pin = &p->items[i];

                assert(!pin->is_provisional);
                if (!pin->is_stored)
                        store_put_json(t, store_key(RECORDS_PIN_KEY, pin->node.v).text, pin_to_json(pin));
        }
}

static const char *read_name(const json_t *o, const char *member)
{
        const char *text = json_string_value(json_object_get(o, member));

        return text && strlen(text) < SUBNET_NAME_SIZE ? text : NULL;
}

static int restore_pin(struct pins *p, const char *key, const json_t *o)
{
        struct pin pin = {
                .name = { read_name(o, "description"), read_name(o, "name"), read_name(o, "device") }, .is_stored = true,
        };
        json_int_t type, since;

        if (!json_member_hex(o, "node", UINT64_MAX, &pin.node.v) || !json_member_number(o, "type", NODE_CA, NODE_ROUTER, &type) ||
            !json_member_number(o, "since", 0, INT64_MAX, &since) || !pin.name.description || !pin.name.name || !pin.name.device ||
            !pin.name.name[0] || strcmp(key, store_key(RECORDS_PIN_KEY, pin.node.v).text) != 0)
                return -EBADMSG;
        pin.type = (enum node_type) type;
        pin.since = (uint64_t) since;
        return pins_add(p, &pin);
}

/* --- generations --------------------------------------------------------------------------------------------------- */

static void count_damaged(struct remembered *r, const char *key)
{
        if (r->n_damaged++ == 0)
                r->first_damaged = arena_strdup(r->arena, key) ?: "?";
}

/* All records of the generation that is being read were given: it is damaged if it does not have all its bytes. */
static void end_generation(struct remembered *r)
{
        struct stored_files *f = &r->files;
        bool was_damaged = f->is_damaged;

        if (f->number > 0 && !stored_files_end(f) && !was_damaged)
                count_damaged(r, store_key(RECORDS_GENERATION_KEY, f->number).text);
}

static int restore_generation(struct remembered *r, const char *key, const void *value, size_t n)
{
        struct stored_generation *stored;
        struct generation_key k;
        int e;

        if (!generation_key_read(key, &k)) {
                r->in_doubt = true;
                return -EBADMSG;
        }
        if (k.number < r->files.number) /* out of order */
                return -EBADMSG;
        stored = generation_history_note(&r->history, &k);
        if (!stored)
                return -ENOMEM;
        if (k.number > r->files.number) {
                end_generation(r);
                stored_files_begin(&r->files, k.number);
        }
        e = stored_files_read(&r->files, r->arena, &k, value, n);
        stored->time = r->files.facts.time;
        stored->restores = e < 0 ? k.number : r->files.facts.restores;
        return e;
}

void remembered_end(struct remembered *r)
{
        const struct stored_files *f = &r->files;

        knowledge_restored(r->knowledge);
        end_generation(r);
        r->generation = f->number;
        if (r->generation == 0 || f->is_damaged || r->in_doubt)
                return;
        r->policy = f->policy.bytes ?: "";
        r->n_policy = f->policy.n;
}

/* --- all records -------------------------------------------------------------------------------------------------- */

struct remembered *remembered_new(const char *boot)
{
        _cleanup_remembered_ struct remembered *r = calloc(1, sizeof(*r));

        if (!r)
                return NULL;
        r->arena = arena_new();
        r->boot = r->arena ? arena_strdup(r->arena, boot) : NULL;
        r->knowledge = knowledge_new();
        r->indexes = index_memory_new();
        r->leases = leases_new();
        return r->boot && r->knowledge && r->indexes && r->leases ? STEAL(r) : NULL;
}

struct remembered *remembered_free(struct remembered *r)
{
        if (!r)
                return NULL;
        stored_files_done(&r->files);
        generation_history_done(&r->history);
        before_records_done(&r->before);
        known_done(&r->known);
        pins_done(&r->pins);
        (void) leases_free(r->leases);
        (void) index_memory_free(r->indexes);
        (void) knowledge_free(r->knowledge);
        (void) arena_free(r->arena);
        free(r);
        return NULL;
}

static bool begins_with(const char *key, const char *prefix)
{
        return strncmp(key, prefix, strlen(prefix)) == 0;
}

static int restore_object(struct remembered *r, const char *key, const void *value, size_t n)
{
        _cleanup_json_ json_t *o = json_loadb(value, n, JSON_REJECT_DUPLICATES, NULL);

        if (begins_with(key, RECORDS_INDEX))
                return restore_indexes(r->indexes, key, o);
        if (begins_with(key, RECORDS_KNOWN))
                return restore_known(&r->known, key, o);
        if (begins_with(key, RECORDS_PIN))
                return restore_pin(&r->pins, key, o);
        return -EBADMSG;
}

int remembered_restore(struct remembered *r, const char *key, const void *value, size_t n)
{
        int e;

        if (!key) {
                r->in_doubt = true; /* it may belong to a generation */
                count_damaged(r, "(a record without a key)");
                return 0;
        }
        if (begins_with(key, KNOWLEDGE_PREFIX))
                e = knowledge_restore(r->knowledge, r->boot, key, value, n);
        else if (begins_with(key, RECORDS_GENERATION))
                e = restore_generation(r, key, value, n);
        else if (begins_with(key, RECORDS_BEFORE))
                e = before_records_restore(&r->before, key);
        else if (begins_with(key, RECORDS_LEASE) || begins_with(key, RECORDS_REST))
                e = lease_record_restore(r->leases, &r->known, key, value, n);
        else
                e = restore_object(r, key, value, n);
        if (e == -ENOMEM)
                return e;
        if (e < 0)
                count_damaged(r, key);
        return 0;
}
