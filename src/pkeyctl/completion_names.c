/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "pkeyctl/completion_names.h"

#include <string.h>

#include "policy/selector.h"
#include "records/stored_records.h"
#include "shell/file.h"
#include "state/sqlite_store.h"
#include "state/state.h"
#include "util/vector.h"

/* So that completion takes less than a tenth of a second. */
#define MAX_POLICY_SIZE (1u << 20)
#define MAX_EXPANDED    50000 /* names of the hostlists of a policy */

struct names {
        struct candidates *candidates;
        enum names_kind kind;
        uint64_t expanded;
};

void candidates_add(struct candidates *c, const char *word, const char *about)
{
        if (strncmp(word, c->prefix, strlen(c->prefix)) != 0)
                return;
        word = arena_strdup(c->arena, word);
        if (word)
                (void) VECTOR_ADD(c->arena, c->items, c->n, c->allocated, (struct candidate) { word, about });
}

static void add_name(struct names *names, const char *name, bool is_switch, const char *about)
{
        char word[1 + HOSTLIST_MAX_NAME];

        /* What can be the name of a group means no more to a shell than to a selector. */
        if (selector_name_problem(name))
                return;
        (void) snprintf(word, sizeof(word), "%s%s", is_switch && names->kind == NAMES_SELECTOR ? "@" : "", name);
        candidates_add(names->candidates, word, about);
}

/* --- the policy ------------------------------------------------------------------------------------------------------ */

static void add_hostlist(struct names *names, const struct hostlist *h, bool is_switch)
{
        char name[HOSTLIST_MAX_NAME];

        for (uint64_t i = 0; i < h->n_names && names->expanded < MAX_EXPANDED; i++, names->expanded++) {
                hostlist_name(h, i, name);
                add_name(names, name, is_switch, is_switch ? "switch of the policy" : "host of the policy");
        }
}

static void add_partitions(struct names *names, const struct policy *p)
{
        struct candidates *c = names->candidates;

        for (uint32_t i = 0; i < p->n_partitions; i++)
                candidates_add(c, p->partitions[i].name, arena_printf(c->arena, "0x%04x", p->partitions[i].base));
}

static void add_pools(struct names *names, const struct policy *p)
{
        for (uint32_t i = 0; i < p->n_pools; i++)
                candidates_add(names->candidates, p->pools[i].name, NULL);
}

static void add_hosts(struct names *names, const struct policy *p)
{
        struct selector_list all = {};

        for (uint32_t i = 0; i < p->n_groups && names->kind == NAMES_SELECTOR; i++)
                add_name(names, p->groups[i].name, false, "group of the policy");
        (void) selector_list_all(names->candidates->arena, p, &all);
        for (size_t i = 0; i < all.n; i++)
                if (all.items[i]->host)
                        add_hostlist(names, all.items[i]->host, all.items[i]->kind == SELECTOR_SWITCH);
}

/* The word may be as it was typed: the shell has not replaced a ~ at its beginning yet. */
static const char *expand_home(struct arena *a, const char *path)
{
        const char *home = getenv("HOME");

        return strncmp(path, "~/", 2) == 0 && home ? arena_printf(a, "%s%s", home, path + 1) ?: "" : path;
}

static void add_names(struct names *names, const struct policy *p)
{
        switch (names->kind) {
        case NAMES_PARTITION:
                add_partitions(names, p);
                break;
        case NAMES_POOL:
                add_pools(names, p);
                break;
        case NAMES_PLAIN:
        case NAMES_SELECTOR:
                add_hosts(names, p);
                break;
        }
}

static void read_policy(struct names *names, const char *path)
{
        struct arena *a = names->candidates->arena;
        _cleanup_findings_ struct findings ignored = { .arena = a };
        struct policy *policy;
        const char *bytes;
        size_t n;

        /* standard input is the shell's */
        if (strcmp(path, "-") != 0 && file_read(a, path, MAX_POLICY_SIZE, &bytes, &n) == 0 &&
            policy_parse(a, path, bytes, n, &ignored, &policy) == 0)
                add_names(names, policy);
}

/* --- the store ------------------------------------------------------------------------------------------------------- */

/* Of the key of a known endport. */
static void add_guid(struct names *names, const char *guid)
{
        if (strncmp(guid, "0x", 2) == 0 && strspn(guid + 2, "0123456789abcdef") == strlen(guid + 2))
                candidates_add(names->candidates, guid, "port GUID");
}

static int add_known(void *userdata, const char *key, const void *value, size_t n)
{
        struct names *names = userdata;
        struct arena *a = names->candidates->arena;
        const char *name, *device;
        char description[SUBNET_NAME_SIZE];
        enum node_type type;

        if (!key || !value || !records_peek_known(value, n, description, &type))
                return 0;
        if (names->kind == NAMES_SELECTOR && strncmp(names->candidates->prefix, "0x", 2) == 0)
                add_guid(names, key + strlen(RECORDS_KNOWN));
        else if (node_description_split(a, description, &name, &device) == 0)
                add_name(names, name, type == NODE_SWITCH, type == NODE_SWITCH ? "switch" : "host");
        return 0;
}

void completion_add_names(struct candidates *c, enum names_kind kind, const char *policy, const char *state_dir)
{
        struct names names = { .candidates = c, .kind = kind };

        if (kind != NAMES_PARTITION && kind != NAMES_POOL)
                (void) sqlite_store_peek(expand_home(c->arena, state_dir), RECORDS_KNOWN, add_known, &names);
        read_policy(&names, expand_home(c->arena, policy));
}

/* --- leases ---------------------------------------------------------------------------------------------------------- */

static int add_lease(void *userdata, const char *key, const void *value, size_t)
{
        if (key && value && !lease_id_problem(key + strlen(RECORDS_LEASE)))
                candidates_add(userdata, key + strlen(RECORDS_LEASE), NULL);
        return 0;
}

void completion_add_leases(struct candidates *c, const char *state_dir)
{
        (void) sqlite_store_peek(expand_home(c->arena, state_dir), RECORDS_LEASE, add_lease, c);
}

/* --- generations ----------------------------------------------------------------------------------------------------- */

static int add_generation(void *userdata, const char *key, const void *value, size_t n)
{
        struct candidates *c = userdata;
        struct stored_files files = {};
        struct generation_key k;
        const char *about = NULL;

        if (!key || !generation_key_read(key, &k) || k.what != GENERATION_FACTS)
                return 0;
        stored_files_begin(&files, k.number);
        if (stored_files_read(&files, c->arena, &k, value, n) == 0)
                about = clock_to_text(c->arena, files.facts.time);
        stored_files_done(&files);
        candidates_add(c, arena_printf(c->arena, "%" PRIu64, k.number) ?: "", about);
        return 0;
}

void completion_add_generations(struct candidates *c, const char *state_dir)
{
        (void) sqlite_store_peek(expand_home(c->arena, state_dir), RECORDS_GENERATION, add_generation, c);
}
