/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "plan/port_plan.h"

#include <byteswap.h>
#include <string.h>

/* The level that the policy gives this port in a base. */
static enum level wanted_level(const struct port_plan *pp, uint16_t base)
{
        return p_keys_level(pp->want->wanted, pp->want->n_wanted, base);
}

/* True if the policy does not want the other entry of this base. */
static bool is_alone(const struct port_plan *pp, struct p_key key)
{
        return !p_keys_hold(pp->want->wanted, pp->want->n_wanted, p_key_make(p_key_base(key), !p_key_is_full(key)));
}

/* True if pkeyd may change entries of this base here. */
static bool may_touch(const struct port_plan *pp, struct p_key key)
{
        return policy_manages(pp->policy, pp->options->unmanaged == UNMANAGED_KEEP, p_key_base(key));
}

/* True if the policy wants one of two entries of the base that belongs at index 0, and index 0 holds the other. Then the entry at
 * index 0 becomes the wanted one, and this one is dropped. Otherwise index 0 would end up empty. */
static bool gives_way_to_index0(const struct port_plan *pp, struct p_key key)
{
        return pp->repairs && p_key_base(key) == pp->index0_base && p_key_same_partition(pp->a[0], key) && pp->a[0].v != key.v;
}

/* --- phases ---------------------------------------------------------------------------------------------------------- */

/* The phase in which an entry of A is dropped. One that does not change the level of the port may be dropped in any. */
static enum plan_phase drop_phase(const struct port_plan *pp, struct p_key key)
{
        enum level before = p_keys_level(pp->a, pp->capacity, p_key_base(key));
        enum level after = wanted_level(pp, p_key_base(key));

        /* a full entry that is dropped while the port stays full makes way for index 0, which is raised first */
        if (after != LEVEL_NONE && (after < before || gives_way_to_index0(pp, key)) && p_key_is_full(key))
                return pp->enforcing ? PHASE_LOWER_ENFORCING : PHASE_LOWER_ENDPORTS;
        return pp->enforcing ? PHASE_CLOSE : PHASE_REVOKE;
}

/* True if the peer has this base already, and only this switch port keeps it from having an effect (the switch lost its table, or
 * another program wrote the host). The level behind the switch is none, and an entry here raises it: that is a grant, and must come
 * after everything that is lowered. */
static bool is_grant_by_switch(const struct port_plan *pp, enum level before, uint16_t base)
{
        return pp->enforces_now && before == LEVEL_NONE && pp->peer && pp->peer->entries &&
               p_keys_level(pp->peer->entries, pp->peer->capacity, base) != LEVEL_NONE;
}

/* The phase in which an entry of B is added. One that does not change the level of the port may be added in any. */
static enum plan_phase add_phase(const struct port_plan *pp, struct p_key key)
{
        enum level before = p_keys_level(pp->a, pp->capacity, p_key_base(key));

        if (pp->enforcing)
                return is_grant_by_switch(pp, before, p_key_base(key)) ? PHASE_GRANT_ENFORCING : PHASE_OPEN;
        return before == LEVEL_LIMITED && p_key_is_full(key) ? PHASE_RAISE : PHASE_GRANT;
}

enum plan_phase port_plan_drop_phase(const struct port_plan *pp, uint16_t index)
{
        struct p_key before = pp->a[index], after = pp->b[index];

        if (!p_key_is_used(before) || p_key_same_partition(before, after))
                return PLAN_N_PHASES;
        return drop_phase(pp, before);
}

enum plan_phase port_plan_add_phase(const struct port_plan *pp, uint16_t index)
{
        struct p_key before = pp->a[index], after = pp->b[index];

        if (!p_key_is_used(after))
                return PLAN_N_PHASES;
        if (!p_key_same_partition(before, after))
                return add_phase(pp, after);
        if (p_key_is_full(after))
                return pp->enforcing ? PHASE_OPEN : PHASE_RAISE;
        return pp->enforcing ? PHASE_LOWER_ENFORCING : PHASE_LOWER_ENDPORTS;
}

/* --- where a new entry goes ------------------------------------------------------------------------------------------ */

/* The first entry that has this value in the bits of `mask`; -1: none. */
static int find_entry(const struct p_key *table, uint16_t capacity, uint16_t value, uint16_t mask)
{
        for (uint16_t i = 0; i < capacity; i++)
                if ((table[i].v & mask) == value)
                        return i;
        return -1;
}

/* Index 0 of an endport is reserved for one partition, whether the port has it or not. */
static uint16_t first_index(const struct port_plan *pp)
{
        return pp->index0_base ? 1 : 0;
}

/* True if this index is unused before and after this transition and is not emptied by a repair within it. */
static bool is_unused(const struct port_plan *pp, uint16_t index)
{
        return index < pp->capacity && !p_key_is_used(pp->observed[index]) && !p_key_is_used(pp->a[index]) &&
               !p_key_is_used(pp->b[index]);
}

/* True if any entry may go to this index. */
static bool is_free(const struct port_plan *pp, uint16_t index)
{
        return index >= first_index(pp) && is_unused(pp, index);
}

/* The index after the highest one that was ever used, as far as is known. */
static uint32_t first_never_used(const struct port_plan *pp)
{
        uint32_t next = first_index(pp);

        for (uint16_t i = 0; i < pp->capacity; i++)
                if (p_key_is_used(pp->observed[i]) || p_key_is_used(pp->a[i]) || p_key_is_used(pp->b[i]))
                        next = MAX(next, (uint32_t) i + 1);
        for (size_t k = 0; k < pp->n_freed; k++)
                next = MAX(next, (uint32_t) pp->freed[k].index + 1);
        return next;
}

static bool is_remembered(const struct port_plan *pp, uint16_t index)
{
        for (size_t k = 0; k < pp->n_freed; k++)
                if (pp->freed[k].index == index)
                        return true;
        return false;
}

/* True if this index is freed in this transition, in an earlier phase than that in which the entry is added. */
static bool is_freed_before(const struct port_plan *pp, uint16_t index, struct p_key key)
{
        bool is_repaired = p_key_is_used(pp->observed[index]) && !p_key_is_used(pp->a[index]);
        bool is_dropped = p_key_is_used(pp->a[index]) && drop_phase(pp, pp->a[index]) < add_phase(pp, key);

        return !p_key_is_used(pp->b[index]) && (is_repaired || is_dropped);
}

/* The first index that is freed before this entry is added. -1: none. */
static int find_freed_just_now(const struct port_plan *pp, struct p_key key)
{
        for (uint16_t i = first_index(pp); i < pp->capacity; i++)
                if (is_freed_before(pp, i, key))
                        return i;
        return -1;
}

/* The last index of this base from which it was freed, or, with `lost`, from which another program removed it. If the port gets
 * both entries of a base, each looks for the index of exactly that entry. -1: none. */
static int former_index(const struct port_plan *pp, struct p_key key, bool lost)
{
        bool either = is_alone(pp, key);

        for (size_t k = pp->n_freed; k > 0; k--) {
                const struct freed_index *f = &pp->freed[k - 1];

                if (f->lost == lost && f->base == p_key_base(key) && (either || f->full == p_key_is_full(key)) &&
                    is_free(pp, f->index))
                        return f->index;
        }
        return -1;
}

/* Chooses an index in this order: the one that the base lost; one that was never used; one that is unused for longer than is known;
 * the one from which this base was freed; the one that was freed longest ago; one that is freed in this transition. -1: none. */
static int choose_index(const struct port_plan *pp, struct p_key key)
{
        uint32_t next = first_never_used(pp);
        int own = former_index(pp, key, true);

        if (own >= 0)
                return own;
        if (next < pp->capacity)
                return (int) next;
        for (uint16_t i = first_index(pp); i < pp->capacity; i++)
                if (is_free(pp, i) && !is_remembered(pp, i))
                        return i;
        own = former_index(pp, key, false);
        if (own >= 0)
                return own;
        for (size_t k = 0; k < pp->n_freed; k++)
                if (is_free(pp, pp->freed[k].index))
                        return pp->freed[k].index;
        return find_freed_just_now(pp, key);
}

static bool belongs_at_index0(const struct port_plan *pp, struct p_key key)
{
        return pp->index0_base && p_key_base(key) == pp->index0_base;
}

/* The partition of index 0 takes it if it is empty. If another entry is dropped from index 0 in this transition, only a repair
 * may use it, because the index goes from one base to another. (A partition of which nothing stays is granted last, after all
 * drops.) */
static bool index0_can_take(const struct port_plan *pp, struct p_key key)
{
        if (p_key_is_used(pp->b[0]) || p_keys_level(pp->b, pp->capacity, p_key_base(key)) != LEVEL_NONE)
                return false;
        return !p_key_is_used(pp->a[0]) || pp->repairs;
}

static void place(struct port_plan *pp, struct p_key key)
{
        int index = belongs_at_index0(pp, key) && index0_can_take(pp, key) ? 0 : choose_index(pp, key);

        if (index < 0)
                pp->stuck = true;
        else
                pp->b[index] = key;
}

/* --- B --------------------------------------------------------------------------------------------------------------- */

/* Decides which entries of A stay, raised or lowered in place if needed; a base that stays keeps its index. place() adds what is
 * missing then. */
static void keep_entries(struct port_plan *pp)
{
        memset(pp->b, 0, pp->capacity * sizeof(*pp->b));
        for (uint16_t k = 0; k < pp->capacity; k++)
                if (p_key_is_used(pp->a[k]) && !may_touch(pp, pp->a[k]))
                        pp->b[k] = pp->a[k];
        for (uint32_t i = 0; i < pp->want->n_wanted; i++) {
                struct p_key key = pp->want->wanted[i];
                bool alone = is_alone(pp, key);
                int index = alone && gives_way_to_index0(pp, key) ? 0 : find_entry(pp->a, pp->capacity, key.v, UINT16_MAX);

                if (index < 0 && alone)
                        index = find_entry(pp->a, pp->capacity, p_key_base(key), P_KEY_BASE_MASK);
                if (index >= 0)
                        pp->b[index] = key;
        }
        /* an unused entry may hold 0x8000, which need not be written */
        for (uint16_t k = 0; k < pp->capacity; k++)
                if (!p_key_is_used(pp->a[k]) && !p_key_is_used(pp->b[k]))
                        pp->b[k] = pp->a[k];
}

static uint32_t count_missing(const struct port_plan *pp)
{
        uint32_t n = 0;

        for (uint32_t i = 0; i < pp->want->n_wanted; i++)
                n += !p_keys_hold(pp->b, pp->capacity, pp->want->wanted[i]);
        return n;
}

/* The order of this base among those that are added. OpenSM sorts its partitions by P_Key in network byte order, read as a number
 * of the machine, which is little-endian on every relevant host (found by experiment: 0x0200, 0x0101, 0x0010). */
static uint16_t turn_of(const struct port_plan *pp, struct p_key key)
{
        return pp->options->opensm_order ? bswap_16(p_key_base(key)) : p_key_base(key);
}

/* The next turn after this one; UINT32_MAX: none. */
static uint32_t next_turn(const struct port_plan *pp, int64_t last)
{
        uint32_t next = UINT32_MAX;

        for (uint32_t i = 0; i < pp->want->n_wanted; i++) {
                uint16_t turn = turn_of(pp, pp->want->wanted[i]);

                if (turn > last && turn < next)
                        next = turn;
        }
        return next;
}

/* Of both entries of a base, index 0 is for the full one, which is the last: programs that use the index are full members then. */
static void place_turn(struct port_plan *pp, uint32_t turn, bool at_index0)
{
        for (uint32_t i = 0; i < pp->want->n_wanted; i++) {
                struct p_key key = pp->want->wanted[at_index0 ? pp->want->n_wanted - 1 - i : i];

                if (turn_of(pp, key) == turn && belongs_at_index0(pp, key) == at_index0 && !p_keys_hold(pp->b, pp->capacity, key))
                        place(pp, key);
        }
}

/* The index of this entry in the layout, or else of the other one of its base, if it can go there. -1: none. A lease comes before
 * the layout at index 0. */
static int layout_index(const struct port_plan *pp, struct p_key key)
{
        uint16_t n = MIN(pp->layout->n, pp->capacity);
        int index = find_entry(pp->layout->entries, n, key.v, UINT16_MAX);

        if (index < 0 && is_alone(pp, key))
                index = find_entry(pp->layout->entries, n, p_key_base(key), P_KEY_BASE_MASK);
        if (index == 0 && pp->want->index0_base > 0)
                return -1;
        if (index < 0 || (!is_unused(pp, (uint16_t) index) && !is_freed_before(pp, (uint16_t) index, key)))
                return -1;
        return index;
}

/* First, so that no other entry takes their indexes. */
static void place_by_layout(struct port_plan *pp)
{
        for (uint32_t i = 0; i < pp->want->n_wanted; i++) {
                struct p_key key = pp->want->wanted[i];
                bool is_placed = p_keys_hold(pp->b, pp->capacity, key) || p_key_base(key) == pp->want->index0_base;
                int index = is_placed ? -1 : layout_index(pp, key);

                if (index >= 0)
                        pp->b[index] = key;
        }
}

static void place_missing(struct port_plan *pp)
{
        if (count_missing(pp) == 0)
                return; /* the usual case */
        if (pp->layout)
                place_by_layout(pp);
        /* the partition that belongs at index 0 first, so that it does not get another index */
        for (int pass = 0; pass < 2; pass++)
                for (uint32_t turn = next_turn(pp, -1); turn != UINT32_MAX; turn = next_turn(pp, turn))
                        place_turn(pp, turn, pass == 0);
}

/* --- repair of index 0 ----------------------------------------------------------------------------------------------- */

static void repair_entry(struct port_plan *pp, int index, struct p_key key, enum plan_phase phase)
{
        pp->a[index] = key;
        /* entries in block 0 change in the same MAD as index 0 */
        pp->repair_phase[index] = index < P_KEY_BLOCK_ENTRIES ? PHASE_REPAIR_SWAP : phase;
}

/* Where the base of index 0 is, of both entries the full one, unless index 0 has either. -1: nowhere. */
static int find_for_index0(const struct port_plan *pp)
{
        int full = find_entry(pp->a, pp->capacity, p_key_make(pp->index0_base, true).v, UINT16_MAX);
        int first = find_entry(pp->a, pp->capacity, pp->index0_base, P_KEY_BASE_MASK);

        return first == 0 || full < 0 ? first : full;
}

/* Adds a wanted entry of index 0 at another index, too. False: no index is free. */
static bool displace(struct port_plan *pp)
{
        int index;

        memcpy(pp->b, pp->a, pp->capacity * sizeof(*pp->b));
        index = choose_index(pp, pp->a[0]);
        if (index < 0)
                return false;
        repair_entry(pp, index, pp->a[0], PHASE_REPAIR_ADD);
        return true;
}

/*
 * Moves the partition of index 0 there without a change of any level: a wanted entry at index 0 gets a new place first, then
 * index 0 changes, then the old place is dropped. An unwanted entry at index 0 is replaced at once; a revoke before all others
 * breaks no promise. If the table does not have the partition, index 0 is only emptied for it, and place() adds it there. Nothing
 * is done if pkeyd may not change the entry there.
 */
static void repair_index0(struct port_plan *pp)
{
        int old = find_for_index0(pp);
        struct p_key displaced = pp->a[0];
        bool is_wanted = p_key_is_used(displaced) && wanted_level(pp, p_key_base(displaced)) != LEVEL_NONE;

        if (old == 0 || (p_key_is_used(displaced) && !may_touch(pp, displaced)))
                return;
        if (old < 0 && !is_wanted)
                return; /* index 0 is free, or revoked before the entry is added */
        if (is_wanted && !displace(pp))
                return;
        repair_entry(pp, 0, old < 0 ? (struct p_key) { 0 } : pp->a[old], PHASE_REPAIR_SWAP);
        if (old > 0)
                repair_entry(pp, old, (struct p_key) { 0 }, PHASE_REPAIR_DROP);
}

void port_plan_compute(struct port_plan *pp)
{
        size_t size = pp->capacity * sizeof(*pp->a);

        memcpy(pp->a, pp->observed, size);
        memset(pp->b, 0, size);
        memset(pp->repair_phase, 0, pp->capacity);
        if (pp->repairs)
                repair_index0(pp);

        keep_entries(pp);
        pp->needed = p_keys_count(pp->b, pp->capacity) + count_missing(pp);
        pp->overflow = pp->needed > pp->capacity;
        if (pp->overflow)
                return;
        place_missing(pp);
        pp->index0_wrong = pp->index0_base && pp->capacity > 0 && p_key_base(pp->b[0]) != pp->index0_base;
}
