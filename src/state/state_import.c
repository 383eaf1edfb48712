/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "state/state_import.h"

#include <errno.h>
#include <string.h>
#include <time.h>

#include "shell/file.h"
#include "util/json.h"

#define SCHEMA              1
#define MAX_SIZE            (64u << 20)
#define GENERATION_MAX_SIZE 4096u

DEFINE_WORDS(state_import_name, enum state_import_file, NULL,
             [STATE_IMPORT_INDEXES] = "indexes.json", [STATE_IMPORT_KNOWN] = "known.json",
             [STATE_IMPORT_POLICY] = "policy.yaml", [STATE_IMPORT_GENERATION] = "generation.json")

static int read_file(struct arena *a, const char *dir, enum state_import_file file, size_t max, const char **ret_bytes,
                     size_t *ret_n)
{
        const char *path = arena_printf(a, "%s/%s", dir, state_import_name(file));

        return path ? file_read(a, path, max, ret_bytes, ret_n) : -ENOMEM;
}

/* --- a list of ports ---------------------------------------------------------------------------------------------- */

/* Makes the key of the record that has this object as its value. */
static bool make_key(enum state_import_file file, const json_t *object, struct store_key *ret)
{
        bool is_known = file == STATE_IMPORT_KNOWN;
        json_int_t number;
        uint64_t guid;

        if (!json_member_hex(object, is_known ? "port_guid" : "node", UINT64_MAX, &guid) ||
            !json_member_number(object, "port", 0, UINT8_MAX, &number))
                return false;
        *ret = is_known ? store_key(RECORDS_KNOWN_KEY, guid) : store_key(RECORDS_INDEX_KEY, guid, (unsigned) number);
        return true;
}

/* The objects have the format of the records, so that remembered_restore() validates them. */
static int read_port(struct remembered *m, enum state_import_file file, const json_t *object)
{
        _cleanup_free_ char *text = NULL;
        struct store_key key;
        int r;

        if (!make_key(file, object, &key))
                return -EBADMSG;
        text = json_dumps(object, JSON_COMPACT);
        if (!text)
                return -ENOMEM;
        r = remembered_restore(m, key.text, text, strlen(text));
        return r == 0 && m->n_damaged > 0 ? -EBADMSG : r;
}

static int read_ports(struct arena *a, const char *dir, enum state_import_file file, struct remembered *m)
{
        _cleanup_json_ json_t *root = NULL;
        const json_t *ports;
        json_int_t schema;
        const char *bytes;
        size_t n;
        int r = read_file(a, dir, file, MAX_SIZE, &bytes, &n);

        if (r < 0)
                return r;
        root = json_loadb(bytes, n, JSON_REJECT_DUPLICATES, NULL);
        ports = json_object_get(root, "ports");
        if (!json_member_number(root, "schema", SCHEMA, SCHEMA, &schema) || !json_is_array(ports))
                return -EBADMSG;
        for (size_t i = 0; r == 0 && i < json_array_size(ports); i++)
                r = read_port(m, file, json_array_get(ports, i));
        return r;
}

/* Adds nothing unless the whole file was read, since a part would look like a complete file later. */
static int import_ports(struct arena *a, const char *dir, enum state_import_file file, struct store_transaction *t)
{
        _cleanup_remembered_ struct remembered *m = remembered_new("");
        int r = m ? read_ports(a, dir, file, m) : -ENOMEM;

        r = r ?: index_memory_unstore(m->indexes);
        if (r < 0)
                return r;
        known_unstore(&m->known);
        records_put_indexes(t, m->indexes);
        records_put_known(t, &m->known);
        return 0;
}

/* --- the policy in force ------------------------------------------------------------------------------------------ */

/* The number of a policy without generation.json. */
#define FIRST_GENERATION 1

static int read_generation(struct arena *a, const char *dir, uint64_t *ret_number, uint64_t *ret_time)
{
        _cleanup_json_ json_t *root = NULL;
        json_int_t number;
        const char *bytes, *time;
        struct tm tm = {};
        size_t n;
        int r = read_file(a, dir, STATE_IMPORT_GENERATION, GENERATION_MAX_SIZE, &bytes, &n);

        if (r < 0)
                return r;
        root = json_loadb(bytes, n, 0, NULL);
        if (!json_member_number(root, "generation", 1, INT64_MAX, &number))
                return -EBADMSG;
        time = json_string_value(json_object_get(root, "time"));
        *ret_time = time && strptime(time, "%Y-%m-%dT%H:%M:%SZ", &tm) ? (uint64_t) timegm(&tm) : 0;
        *ret_number = (uint64_t) number;
        return 0;
}

static void import_policy(struct arena *a, const char *dir, struct store_transaction *t, int errors[STATE_IMPORT_N_FILES])
{
        const struct generation_history none = {};
        const struct history_limits all = { .keep = SIZE_MAX, .seconds = UINT64_MAX };
        struct generation g = { .number = FIRST_GENERATION };

        errors[STATE_IMPORT_GENERATION] = read_generation(a, dir, &g.number, &g.facts.time);
        errors[STATE_IMPORT_POLICY] = read_file(a, dir, STATE_IMPORT_POLICY, POLICY_MAX_FILE_SIZE, &g.policy_bytes,
                                                &g.n_policy_bytes);
        if (errors[STATE_IMPORT_POLICY] == 0)
                records_put_generation(t, &none, &g, &all);
        else
                errors[STATE_IMPORT_GENERATION] = -ENOENT; /* a number without a policy is not imported */
}

/* --- all ---------------------------------------------------------------------------------------------------------- */

int state_import_read(const char *dir, struct store_transaction *t, struct state_import *ret)
{
        _cleanup_arena_ struct arena *a = arena_new();
        int *e = ret->errors;

        *ret = (struct state_import) {};
        if (!a)
                return -ENOMEM;
        e[STATE_IMPORT_INDEXES] = import_ports(a, dir, STATE_IMPORT_INDEXES, t);
        e[STATE_IMPORT_KNOWN] = import_ports(a, dir, STATE_IMPORT_KNOWN, t);
        import_policy(a, dir, t, e);
        for (size_t i = 0; i < STATE_IMPORT_N_FILES; i++)
                if (e[i] == -ENOMEM)
                        return -ENOMEM;
        return t->error;
}

void state_import_done(const char *dir, const struct state_import *import)
{
        _cleanup_arena_ struct arena *a = arena_new();

        for (size_t i = 0; a && i < STATE_IMPORT_N_FILES; i++) {
                const char *name = state_import_name((enum state_import_file) i);
                const char *from = arena_printf(a, "%s/%s", dir, name), *to = arena_printf(a, "%s/%s.imported", dir, name);

                /* if renaming fails, the file is still not imported again, because the store is not empty any more */
                if (import->errors[i] == 0 && from && to)
                        (void) rename(from, to);
        }
}
