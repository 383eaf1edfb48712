/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Any bytes as pkeyd.yaml: either they are refused with findings, or there are settings. */
#include <errno.h>
#include <stdlib.h>

#include "settings/settings.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
        struct arena *a = arena_new();
        struct settings *settings = NULL;
        struct findings findings = { .arena = a };
        size_t i;
        int r;

        r = settings_parse(a, "pkeyd.yaml", (const char *) data, n, &findings, &settings);
        if (r != 0 && r != -EBADMSG)
                abort();
        if ((r == 0) != (settings != NULL) || (r == 0) == findings_refuse(&findings))
                abort();
        for (i = 0; i < findings.n; i++)
                if (!finding_format(a, &findings.items[i]))
                        abort();
        findings_done(&findings);
        arena_free(a);
        return 0;
}
