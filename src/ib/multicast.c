/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "ib/multicast.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "util/macros.h"

struct multicast_parameters multicast_ipoib_default(void)
{
        return (struct multicast_parameters) {
                .mtu = MULTICAST_MTU_2048, .rate = MULTICAST_RATE_10, .scopes = 1u << MULTICAST_SCOPE_LINK,
                .q_key = MULTICAST_Q_KEY_IPOIB,
        };
}

struct multicast_parameters multicast_inherit(const struct multicast_parameters *broadcast, const struct mgid *mgid)
{
        struct multicast_parameters p = *broadcast;

        p.tclass = 0;
        if (!mgid_is_ip(mgid))
                p.q_key = 0;
        return p;
}

bool multicast_equal(const struct multicast_parameters *a, const struct multicast_parameters *b)
{
        return a->mtu == b->mtu && a->rate == b->rate && a->sl == b->sl && a->tclass == b->tclass &&
               a->scopes == b->scopes && a->q_key == b->q_key && a->flow_label == b->flow_label;
}

/* IBA 1.5, 14.2.5.6: 1 is 256 bytes, each further one twice as much. */
uint8_t multicast_mtu_code(unsigned long bytes)
{
        for (uint8_t code = 1; code <= 5; code++)
                if (bytes == 128ul << code)
                        return code;
        return 0;
}

unsigned multicast_mtu_bytes(uint8_t code)
{
        return code >= 1 && code <= 5 ? 128u << code : 0;
}

/* IBA 1.5, PathRecord:Rate; by code. */
static const char *const rates[] = {
        NULL, NULL, "2.5", "10", "30", "5", "20", "40", "60", "80", "120", "14", "56", "112", "168", "25", "100", "200", "300",
        "28", "50", "400", "600", "800", "1200",
};

uint8_t multicast_rate_code(const char *gigabits)
{
        for (uint8_t code = 0; code < ELEMENTS(rates); code++)
                if (rates[code] && strcmp(rates[code], gigabits) == 0)
                        return code;
        return 0;
}

const char *multicast_rate_text(uint8_t code)
{
        return code < ELEMENTS(rates) ? rates[code] : NULL;
}

uint8_t multicast_rate_code_of_tenths(unsigned tenths)
{
        char text[24];

        if (tenths % 10 > 0)
                (void) snprintf(text, sizeof(text), "%u.%u", tenths / 10, tenths % 10);
        else
                (void) snprintf(text, sizeof(text), "%u", tenths / 10);
        return multicast_rate_code(text);
}

int mgid_parse(const char *text, struct mgid *ret)
{
        struct mgid mgid;

        if (inet_pton(AF_INET6, text, mgid.raw) != 1 || mgid.raw[0] != 0xff)
                return -EINVAL;
        *ret = mgid;
        return 0;
}

const char *mgid_text(struct arena *a, const struct mgid *mgid)
{
        char buffer[INET6_ADDRSTRLEN];

        return inet_ntop(AF_INET6, mgid->raw, buffer, sizeof(buffer)) ? arena_strdup(a, buffer) : NULL;
}

bool mgid_is_ip(const struct mgid *mgid)
{
        return (mgid->raw[2] == 0x40 || mgid->raw[2] == 0x60) && mgid->raw[3] == 0x1b;
}

bool multicast_fits(const struct multicast_parameters *broadcast, const struct multicast_group *group)
{
        return !mgid_is_ip(&group->mgid) || (group->parameters.mtu == broadcast->mtu && group->parameters.rate == broadcast->rate);
}

bool mgid_fits_partition(const struct mgid *mgid, uint16_t base)
{
        static const uint8_t broadcast[16] = { 0xff, 0x12, 0x40, 0x1b, 0xff, 0xff, [12] = 0xff, 0xff, 0xff, 0xff };
        uint16_t key = (uint16_t) (mgid->raw[4] << 8 | mgid->raw[5]);

        return key == 0 || key == (base | P_KEY_FULL_BIT) || memcmp(mgid->raw, broadcast, sizeof(broadcast)) == 0;
}
