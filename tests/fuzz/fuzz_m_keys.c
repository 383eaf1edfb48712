/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Any bytes as a file of M_Keys: keys or findings, never both; and no finding has a line of the file. */
#include <errno.h>
#include <stdlib.h>

#include "ib/m_keys.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static void require(bool condition)
{
        if (!condition)
                abort();
}

static struct m_keys *parse(struct arena *a, const char *bytes, size_t n)
{
        struct m_keys *keys = NULL;
        struct findings findings = { .arena = a };
        int r;

        r = m_keys_parse("m_key", bytes, n, &findings, &keys);
        require(r == 0 || r == -EBADMSG);
        require((r == 0) == (keys != NULL) && (r == 0) != findings_refuse(&findings));
        for (size_t i = 0; i < findings.n; i++) {
                require(!findings.items[i].source_line && !findings.items[i].hint);
                require(finding_format(a, &findings.items[i]) != NULL);
        }
        findings_done(&findings);
        return keys;
}

static void parse_number(struct arena *a, const char *bytes, size_t n, const struct m_keys *keys)
{
        struct findings findings = { .arena = a };
        uint64_t number = 0;
        int r;

        r = sm_key_parse("sa_key", bytes, n, &findings, &number);
        require((r == 0) != findings_refuse(&findings));
        require(r < 0 || (keys && number != 0 && number == m_keys_common(keys)));
        findings_done(&findings);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
        struct arena *a = arena_new();
        struct m_keys *keys, *again;

        require(a != NULL);
        keys = parse(a, (const char *) data, n);
        again = parse(a, (const char *) data, n);
        require(m_keys_equal(keys, again));
        for (uint64_t guid = 0; guid < 8; guid++)
                require(m_keys_get(keys, (struct guid) { guid << 4 }) == m_keys_get(again, (struct guid) { guid << 4 }));
        require(!keys || m_keys_n_distinct(keys) > 0 || m_keys_common(keys) == 0);
        parse_number(a, (const char *) data, n, keys);
        (void) m_keys_free(again);
        (void) m_keys_free(keys);
        arena_free(a);
        return 0;
}
