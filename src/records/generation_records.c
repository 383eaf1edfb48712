/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "records/generation_records.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#include "util/json.h"
#include "util/scan.h"
#include "util/vector.h"

#define NUMBER_DIGITS 20
#define PART_DIGITS   2
#define PART_KEY      RECORDS_GENERATION_KEY "/%s/%02u" /* format: of its number, the file, and the number of the part */
#define POLICY        "policy"
#define SETTINGS      "settings"
#define MAX_SENTENCE  4096 /* bytes */
#define CUT           "..."

static unsigned n_parts(size_t size)
{
        return (unsigned) ((size + STORE_VALUE_MAX - 1) / STORE_VALUE_MAX);
}

/* --- facts to JSON -------------------------------------------------------------------------------------------------- */

/* 0 is left out. */
static void add_number(json_t *o, const char *name, uint64_t value)
{
        if (value > 0)
                (void) json_object_set_new(o, name, json_integer((json_int_t) value));
}

/* "" is left out. */
static void add_text(json_t *o, const char *name, const char *value)
{
        if (*value)
                (void) json_object_set_new(o, name, json_string(value));
}

static void add_origin(json_t *o, const struct origin *by, const char *via, const char *uid, const char *user)
{
        if (by->kind == ORIGIN_UNKNOWN)
                return;
        add_text(o, via, origin_to_string(by->kind));
        if (by->kind == ORIGIN_BUS || by->kind == ORIGIN_COMMAND)
                (void) json_object_set_new(o, uid, json_integer(by->uid));
        add_text(o, user, by->user);
}

/* The hosts of a sentence may be many; a reader refuses what is longer than MAX_SENTENCE. */
static json_t *sentence_to_json(const char *text)
{
        size_t n = strlen(text);

        if (n <= MAX_SENTENCE)
                return json_string(text);
        n = MAX_SENTENCE - strlen(CUT);
        while (n > 0 && ((unsigned char) text[n] & 0xc0) == 0x80) /* within a character */
                n--;
        return json_sprintf("%.*s" CUT, (int) n, text);
}

static void add_lists(json_t *o, const struct generation_facts *f)
{
        json_t *held = json_array(), *changes = json_array();

        for (uint32_t i = 0; i < MIN(f->n_held, (uint32_t) GENERATION_MAX_HELD); i++)
                (void) json_array_append_new(held, json_sprintf("0x%04x", f->held[i]));
        for (size_t i = 0; i < f->n_changes; i++)
                (void) json_array_append_new(changes, sentence_to_json(f->changes[i]));
        if (f->n_held > 0)
                (void) json_object_set(o, "held", held);
        if (f->n_changes > 0)
                (void) json_object_set(o, "changes", changes);
        json_decref(held);
        json_decref(changes);
}

/* settings_size: of the stored file. If out of memory, facts are missing; the files are not. */
static json_t *header_to_json(const struct generation *g, size_t settings_size)
{
        const struct generation_facts *f = &g->facts;
        json_t *o = json_pack("{s:I, s:I, s:I}", "number", (json_int_t) g->number, "time", (json_int_t) f->time,
                              "policy_size", (json_int_t) g->n_policy_bytes);

        if (!o || f->origin.kind == ORIGIN_UNKNOWN)
                return o;
        (void) json_object_set_new(o, "settings_size", json_integer((json_int_t) settings_size));
        add_origin(o, &f->origin, "via", "uid", "user");
        add_number(o, "undoes", f->undoes);
        add_number(o, "restores", f->restores);
        add_number(o, "confirm_for", f->confirm_for);
        add_number(o, "confirm_until", f->confirm_until);
        add_number(o, "confirmed", f->confirmed);
        add_origin(o, &f->confirmed_by, "confirmed_via", "confirmed_uid", "confirmed_user");
        add_text(o, "outcome", f->outcome);
        add_number(o, "ended", f->ended);
        add_number(o, "n_held", f->n_held);
        add_lists(o, f);
        return o;
}

/* --- to the store --------------------------------------------------------------------------------------------------- */

void generation_history_done(struct generation_history *h)
{
        free(h->items);
        *h = (struct generation_history) {};
}

uint64_t generation_history_before(const struct generation_history *h, uint64_t number)
{
        size_t at = LOWER_BOUND(item, h->items, h->n, item->number < number);

        return at > 0 ? h->items[at - 1].number : 0;
}

uint64_t generation_history_target(const struct generation_history *h, uint64_t number, uint64_t restores)
{
        while (restores > 0) {
                const struct stored_generation *g = FIND_SORTED(item, h->items, h->n, ORDER(item->number, restores));

                if (restores >= number || !g)
                        return 0;
                number = restores;
                restores = g->restores;
        }
        return generation_history_before(h, number);
}

const char *generation_history_no_target(uint64_t restores)
{
        if (restores == 0)
                return "there is nothing to undo: the store has no generation before the one in force";
        return "there is nothing to undo: the store has no generation before the one whose files are in force again; the later ones were "
               "undone";
}

static struct stored_generation *add(struct generation_history *h, uint64_t number)
{
        size_t at = LOWER_BOUND(item, h->items, h->n, item->number < number);

        if (at < h->n && h->items[at].number == number)
                return &h->items[at];
        if (VECTOR_INSERT(NULL, h->items, h->n, h->allocated, at, (struct stored_generation) { .number = number }) < 0)
                return NULL;
        return &h->items[at];
}

struct stored_generation *generation_history_note(struct generation_history *h, const struct generation_key *key)
{
        struct stored_generation *item = add(h, key->number);

        if (item && key->what == GENERATION_POLICY)
                item->n_policy_parts = key->part + 1;
        else if (item && key->what == GENERATION_SETTINGS)
                item->n_settings_parts = key->part + 1;
        return item;
}

/* How many to delete, so that the new one is within the limits. */
static size_t n_surplus(const struct generation_history *h, const struct generation *g, const struct history_limits *limits)
{
        bool is_again = h->n > 0 && h->items[h->n - 1].number == g->number;
        size_t others = h->n - is_again, n = 0;

        assert(limits->keep >= 2);
        while (others - n >= limits->keep)
                n++;
        while (others - n > 1 && h->items[n].time < g->facts.time && g->facts.time - h->items[n].time > limits->seconds)
                n++;
        return n;
}

static void delete_parts(struct store_transaction *t, uint64_t number, const char *file, unsigned n)
{
        for (unsigned i = 0; i < n; i++)
                store_delete(t, store_key(PART_KEY, number, file, i).text);
}

static void delete_generation(struct store_transaction *t, const struct stored_generation *g)
{
        store_delete(t, store_key(RECORDS_GENERATION_KEY, g->number).text);
        delete_parts(t, g->number, POLICY, g->n_policy_parts);
        delete_parts(t, g->number, SETTINGS, g->n_settings_parts);
}

static void put_parts(struct store_transaction *t, uint64_t number, const char *file, const char *bytes, size_t n)
{
        for (unsigned i = 0; i < n_parts(n); i++) {
                size_t at = i * STORE_VALUE_MAX;

                store_put(t, store_key(PART_KEY, number, file, i).text, bytes + at, MIN(n - at, STORE_VALUE_MAX));
        }
}

static void put_header(struct store_transaction *t, const struct generation *g, size_t settings_size)
{
        assert(g->number > 0);
        store_put_json(t, store_key(RECORDS_GENERATION_KEY, g->number).text, header_to_json(g, settings_size));
}

void records_put_facts(struct store_transaction *t, const struct generation *g)
{
        put_header(t, g, g->facts.settings_size);
}

static bool stores_settings(const struct generation *g)
{
        return g->facts.origin.kind != ORIGIN_UNKNOWN;
}

void records_put_generation(struct store_transaction *t, const struct generation_history *h, const struct generation *g,
                            const struct history_limits *limits)
{
        size_t n = n_surplus(h, g, limits);

        assert(g->n_policy_bytes <= POLICY_MAX_FILE_SIZE && g->n_settings_bytes <= SETTINGS_MAX_FILE_SIZE);
        for (size_t i = 0; i < n; i++)
                delete_generation(t, &h->items[i]);
        put_header(t, g, g->n_settings_bytes);
        put_parts(t, g->number, POLICY, g->policy_bytes, g->n_policy_bytes);
        if (stores_settings(g))
                put_parts(t, g->number, SETTINGS, g->settings_bytes, g->n_settings_bytes);
}

void generation_history_stored(struct generation_history *h, const struct generation *g, const struct history_limits *limits)
{
        size_t surplus = n_surplus(h, g, limits);
        struct stored_generation *item;

        if (surplus > 0)
                memmove(h->items, h->items + surplus, (h->n -= surplus) * sizeof(*h->items));
        item = add(h, g->number);
        if (!item) /* it is deleted later than necessary */
                return;
        item->time = g->facts.time;
        item->restores = g->facts.restores;
        item->n_policy_parts = n_parts(g->n_policy_bytes);
        item->n_settings_parts = stores_settings(g) ? n_parts(g->n_settings_bytes) : 0;
}

/* --- keys ----------------------------------------------------------------------------------------------------------- */

/* Exactly n digits. */
static bool read_digits(struct scan *s, size_t n, uint64_t *ret)
{
        const char *begin = s->p;

        return scan_number(s, 10, INT64_MAX, ret) && (size_t) (s->p - begin) == n;
}

bool generation_key_read(const char *key, struct generation_key *ret)
{
        struct scan s = { key, key + strlen(key) };
        uint64_t part;

        *ret = (struct generation_key) {};
        if (!scan_word(&s, RECORDS_GENERATION) || !read_digits(&s, NUMBER_DIGITS, &ret->number) || ret->number == 0)
                return false;
        if (s.p == s.end)
                return true;
        if (scan_word(&s, "/" POLICY "/"))
                ret->what = GENERATION_POLICY;
        else if (scan_word(&s, "/" SETTINGS "/"))
                ret->what = GENERATION_SETTINGS;
        else
                return false;
        if (!read_digits(&s, PART_DIGITS, &part) || s.p < s.end)
                return false;
        ret->part = (unsigned) part;
        return true;
}

/* --- facts from JSON ------------------------------------------------------------------------------------------------ */

/* A member that may be absent. */
static bool read_number(const json_t *o, const char *name, uint64_t max, uint64_t *ret)
{
        json_int_t value = 0;

        if (json_object_get(o, name) && !json_member_number(o, name, 0, (json_int_t) max, &value))
                return false;
        *ret = (uint64_t) value;
        return true;
}

static bool read_text(const json_t *o, const char *name, char *ret, size_t size)
{
        const json_t *member = json_object_get(o, name);
        const char *text = member ? json_string_value(member) : "";

        if (!text || strlen(text) >= size) /* no JSON with a NUL was loaded */
                return false;
        (void) strcpy(ret, text);
        return true;
}

static bool read_origin(const json_t *o, const char *via, const char *uid, const char *user, struct origin *ret)
{
        const json_t *member = json_object_get(o, via);
        uint64_t number;

        if (!member)
                return true;
        if (!json_is_string(member) || !origin_from_string(json_string_value(member), &ret->kind) ||
            !read_number(o, uid, UINT32_MAX, &number) || !read_text(o, user, ret->user, sizeof(ret->user)))
                return false;
        ret->uid = (uint32_t) number;
        return true;
}

static bool read_held(const json_t *o, struct generation_facts *f)
{
        const json_t *list = json_object_get(o, "held");
        size_t n = json_array_size(list);
        uint64_t total;

        if ((list && !json_is_array(list)) || n > GENERATION_MAX_HELD || !read_number(o, "n_held", UINT32_MAX, &total) || total < n)
                return false;
        f->n_held = (uint32_t) total;
        for (size_t i = 0; i < n; i++) {
                _cleanup_json_ json_t *one = json_pack("{s:O}", "base", json_array_get(list, i));
                uint64_t base;

                if (!json_member_hex(one, "base", P_KEY_BASE_MASK, &base))
                        return false;
                f->held[i] = (uint16_t) base;
        }
        return true;
}

/* Returns 0, -EBADMSG or -ENOMEM. */
static int read_changes(struct arena *a, const json_t *o, struct generation_facts *f)
{
        const json_t *list = json_object_get(o, "changes");
        size_t n = json_array_size(list);
        const char **changes = arena_new_array(a, const char *, n);

        if ((list && !json_is_array(list)) || n > GENERATION_MAX_CHANGES)
                return -EBADMSG;
        for (size_t i = 0; changes && i < n; i++) {
                const json_t *one = json_array_get(list, i);

                if (!json_is_string(one) || json_string_length(one) > MAX_SENTENCE)
                        return -EBADMSG;
                changes[i] = arena_strdup(a, json_string_value(one));
                if (!changes[i])
                        return -ENOMEM;
        }
        f->changes = changes;
        f->n_changes = n;
        return changes ? 0 : -ENOMEM;
}

static bool read_numbers(const json_t *o, struct generation_facts *f)
{
        return read_number(o, "undoes", INT64_MAX, &f->undoes) && read_number(o, "restores", INT64_MAX, &f->restores) &&
               read_number(o, "confirm_for", INT64_MAX, &f->confirm_for) &&
               read_number(o, "confirm_until", INT64_MAX, &f->confirm_until) &&
               read_number(o, "confirmed", INT64_MAX, &f->confirmed) && read_number(o, "ended", INT64_MAX, &f->ended);
}

static int read_header(struct stored_files *s, struct arena *a, const void *value, size_t n)
{
        _cleanup_json_ json_t *o = value ? json_loadb(value, n, JSON_REJECT_DUPLICATES, NULL) : NULL;
        struct generation_facts f = {};
        json_int_t number, time, policy_size;
        uint64_t settings_size;

        if (!json_member_number(o, "number", (json_int_t) s->number, (json_int_t) s->number, &number) ||
            !json_member_number(o, "time", 0, INT64_MAX, &time) ||
            !json_member_number(o, "policy_size", 0, POLICY_MAX_FILE_SIZE, &policy_size) ||
            !read_number(o, "settings_size", SETTINGS_MAX_FILE_SIZE, &settings_size) || !read_numbers(o, &f) ||
            !read_origin(o, "via", "uid", "user", &f.origin) ||
            !read_origin(o, "confirmed_via", "confirmed_uid", "confirmed_user", &f.confirmed_by) ||
            !read_text(o, "outcome", f.outcome, sizeof(f.outcome)) || !read_held(o, &f))
                return -EBADMSG;
        f.time = (uint64_t) time;
        f.settings_size = (size_t) settings_size;
        s->has_settings = json_object_get(o, "settings_size");
        s->policy_size = (size_t) policy_size;
        s->settings_size = (size_t) settings_size;
        s->is_damaged = false;
        s->facts = f;
        return read_changes(a, o, &s->facts);
}

/* --- reading -------------------------------------------------------------------------------------------------------- */

void stored_files_begin(struct stored_files *f, uint64_t number)
{
        stored_files_done(f);
        *f = (struct stored_files) { .number = number, .is_missing = true, .is_damaged = true }; /* until its header was read */
}

void stored_files_done(struct stored_files *f)
{
        text_done(&f->policy);
        text_done(&f->settings);
}

static int add_part(struct text *to, size_t size, unsigned part, unsigned *n_read, const void *value, size_t n)
{
        if (!value || part != *n_read || n > size - to->n)
                return -EBADMSG;
        text_add_n(to, value, n);
        (*n_read)++;
        return to->failed ? -ENOMEM : 0;
}

int stored_files_read(struct stored_files *f, struct arena *a, const struct generation_key *key, const void *value, size_t n)
{
        int r;

        assert(key->number == f->number);
        f->is_missing = false;
        if (key->what == GENERATION_FACTS)
                r = read_header(f, a, value, n);
        else if (f->is_damaged)
                r = -EBADMSG;
        else if (key->what == GENERATION_POLICY)
                r = add_part(&f->policy, f->policy_size, key->part, &f->n_policy_parts, value, n);
        else
                r = add_part(&f->settings, f->settings_size, key->part, &f->n_settings_parts, value, n);
        f->is_damaged |= r < 0;
        return r;
}

bool stored_files_end(struct stored_files *f)
{
        f->is_damaged |= f->policy.n != f->policy_size || f->settings.n != f->settings_size;
        return !f->is_damaged;
}
