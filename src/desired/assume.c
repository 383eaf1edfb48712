/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "desired/assume.h"

/* Index 0 is for one partition; the others stand in the order in which a first run would have granted them. */
static void fill(struct observed_table *t, const struct desired_port *wanted, uint16_t index0_base)
{
        uint16_t next = 1;
        bool has_index0 = false;

        for (uint32_t i = 0; i < wanted->n_wanted; i++) {
                if (!has_index0 && p_key_base(wanted->wanted[i]) == index0_base) {
                        t->entries[0] = wanted->wanted[i];
                        has_index0 = true;
                        continue;
                }
                t->entries[next++] = wanted->wanted[i];
        }
        t->source = TABLE_ASSUMED;
}

/* One more than what is wanted if nothing of it belongs at index 0, which then stays free. */
static uint32_t room_needed(const struct desired_port *wanted, uint16_t index0_base)
{
        for (uint32_t i = 0; i < wanted->n_wanted; i++)
                if (p_key_base(wanted->wanted[i]) == index0_base)
                        return wanted->n_wanted;
        return wanted->n_wanted + 1;
}

uint32_t desired_assume_unread(struct observed *observed, const struct desired *old)
{
        uint32_t filled = 0;

        if (old->subnet != observed->subnet)
                return 0;
        for (uint32_t p = 0; p < observed->subnet->n_ports; p++) {
                struct observed_table *t = &observed->tables[p];
                const struct desired_port *wanted = &old->ports[p];

                if (t->source != TABLE_UNKNOWN || !t->entries || wanted->n_wanted == 0)
                        continue;
                if (room_needed(wanted, old->index0_base) > t->capacity)
                        continue;
                fill(t, wanted, old->index0_base);
                filled++;
        }
        return filled;
}
