/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "rest/rest_limits.h"

#include <string.h>

#include "util/hash.h"

/* --- addresses ------------------------------------------------------------------------------------------------------- */

struct rest_address rest_address_of(const unsigned char *bytes, size_t n)
{
        static const unsigned char mapped[12] = { [10] = 0xff, [11] = 0xff }; /* RFC 4291, 2.5.5.2 */
        struct rest_address a = {};

        if (n == 4) {
                memcpy(a.bytes, mapped, sizeof(mapped));
                memcpy(a.bytes + sizeof(mapped), bytes, 4);
        } else {
                memcpy(a.bytes, bytes, memcmp(bytes, mapped, sizeof(mapped)) == 0 ? 16 : 8);
        }
        return a;
}

static bool is_same(const struct rest_address *a, const struct rest_address *b)
{
        return memcmp(a, b, sizeof(*a)) == 0;
}

/* --- rates ----------------------------------------------------------------------------------------------------------- */

usec_t rest_bucket_take(struct rest_bucket *b, const struct rest_rate *rate, usec_t now)
{
        usec_t one = USEC_PER_SEC / rate->per_second, all = one * rate->burst, full = MAX(b->full, now);

        if (full + one > now + all)
                return full + one - now - all;
        b->full = full + one;
        return 0;
}

/* --- logins that failed ---------------------------------------------------------------------------------------------- */

static uint64_t hash_address(const struct rest_address *a)
{
        return hash_mix(1, hash_bytes(HASH_START, (const char *) a->bytes, sizeof(a->bytes)));
}

static uint64_t hash_name(const char *name, size_t n)
{
        return hash_mix(2, hash_bytes(HASH_START, name, n));
}

static bool is_remembered(const struct rest_failure_entry *i, usec_t now)
{
        return i->n > 0 && now - i->last < REST_FORGET_AFTER;
}

/* The entry of this hash, or the one that makes room for it. */
static struct rest_failure_entry *find_entry(struct rest_failures *f, uint64_t hash)
{
        struct rest_failure_entry *oldest = &f->items[0];

        for (size_t i = 0; i < REST_MAX_FAILURES; i++) {
                struct rest_failure_entry *item = &f->items[i];

                if (item->n > 0 && item->hash == hash)
                        return item;
                if (oldest->n > 0 && (item->n == 0 || item->last < oldest->last))
                        oldest = item;
        }
        *oldest = (struct rest_failure_entry) { .hash = hash };
        return oldest;
}

/* Counts one more. Returns the number. */
static uint64_t count(struct rest_failures *f, uint64_t hash, usec_t now)
{
        struct rest_failure_entry *item = find_entry(f, hash);

        item->n = is_remembered(item, now) ? item->n + 1 : 1;
        item->last = now;
        return item->n;
}

static usec_t delay_of(uint64_t n)
{
        usec_t delay = REST_DELAY_FIRST;

        while (--n > 0 && delay < REST_DELAY_MAX)
                delay *= 2;
        return delay;
}

struct rest_failure rest_failures_add(struct rest_failures *f, const struct rest_address *from, const char *name, size_t n_name,
                                      usec_t now)
{
        uint64_t n = count(f, hash_address(from), now), n_of_name = count(f, hash_name(name, n_name), now);

        return (struct rest_failure) { .delay = delay_of(MAX(n, n_of_name)), .n = n };
}

bool rest_failures_has(const struct rest_failures *f, const struct rest_address *from, usec_t now)
{
        uint64_t hash = hash_address(from);

        for (size_t i = 0; i < REST_MAX_FAILURES; i++)
                if (f->items[i].hash == hash && is_remembered(&f->items[i], now))
                        return true;
        return false;
}

/* --- credentials that were checked ----------------------------------------------------------------------------------- */

static size_t find_login(const struct rest_logins *l, const struct rest_digest *digest)
{
        size_t i = 0;

        while (i < l->n && memcmp(&l->items[i].digest, digest, sizeof(*digest)) != 0)
                i++;
        return i;
}

bool rest_logins_find(struct rest_logins *l, const struct rest_digest *digest, usec_t now, size_t *ret_client)
{
        size_t i = find_login(l, digest);

        if (i == l->n || now - l->items[i].used >= REST_LOGIN_LASTS)
                return false;
        l->items[i].used = now;
        *ret_client = l->items[i].client;
        return true;
}

void rest_logins_add(struct rest_logins *l, const struct rest_digest *digest, size_t client, usec_t now)
{
        size_t place = find_login(l, digest);

        if (place == REST_MAX_LOGINS) {
                place = 0;
                for (size_t i = 1; i < l->n; i++)
                        if (l->items[i].used < l->items[place].used)
                                place = i;
        }
        l->n = MAX(l->n, place + 1);
        l->items[place].digest = *digest;
        l->items[place].client = client;
        l->items[place].used = now;
}

/* --- connections ------------------------------------------------------------------------------------------------------ */

/* The one that waits for a request for the longest time; NULL: none waits. from NULL: of any address. */
static struct rest_connection *find_waiting(struct rest_connection *connections, const struct rest_address *from)
{
        struct rest_connection *longest = NULL;

        for (struct rest_connection *c = connections; c; c = c->next)
                if (!c->is_busy && (!from || is_same(&c->from, from)) && (!longest || c->since < longest->since))
                        longest = c;
        return longest;
}

enum rest_admission rest_admit(struct rest_connection *connections, const struct rest_address *from, size_t max,
                               struct rest_connection **ret_instead)
{
        size_t share = MAX(max / 2, (size_t) 1), n = 0, n_same = 0;

        for (const struct rest_connection *c = connections; c; c = c->next) {
                n++;
                n_same += is_same(&c->from, from);
        }
        if (n < max && n_same < share)
                return REST_ADMIT;
        *ret_instead = find_waiting(connections, n_same >= share ? from : NULL);
        return *ret_instead ? REST_ADMIT_INSTEAD : REST_TURN_AWAY;
}
