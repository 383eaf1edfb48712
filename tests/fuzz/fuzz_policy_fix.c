/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Any bytes as a partitions.yaml to correct. A policy that is accepted stays as it is. Corrections are made within lines, and when
 * they are made, no further one is found.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "policy/policy.h"
#include "policy/policy_fix.h"

/* The search for a typing error parses a file of this length some thousand times. */
#define MAX_SIZE 120

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static void require(bool condition)
{
        if (!condition)
                abort();
}

static bool is_accepted(struct arena *a, const char *bytes, size_t n)
{
        struct findings findings = { .arena = a };
        struct policy *policy;
        int r;

        r = policy_parse(a, "partitions.yaml", bytes, n, &findings, &policy);
        findings_done(&findings);
        require(r == 0 || r == -EBADMSG);
        return r == 0;
}

static size_t count_lines(const char *bytes, size_t n)
{
        size_t lines = 0;

        for (size_t i = 0; i < n; i++)
                lines += bytes[i] == '\n';
        return lines;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
        struct arena *a = arena_new();
        const char *before = (const char *) data, *after, *again;
        size_t n_after, n_again;
        unsigned n_fixed;
        bool refused;

        require(a != NULL);
        if (n <= MAX_SIZE) {
                require(policy_fix(a, "partitions.yaml", before, n, &after, &n_after, &n_fixed, &refused) == 0);
                require(count_lines(before, n) == count_lines(after, n_after));
                if (n_fixed == 0 || is_accepted(a, before, n))
                        require(n_fixed == 0 && n_after == n && memcmp(before, after, n) == 0);
                require(policy_fix(a, "partitions.yaml", after, n_after, &again, &n_again, &n_fixed, &refused) == 0);
                require(n_fixed == 0);
        }
        arena_free(a);
        return 0;
}
