/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "doctor/doctor.h"

#include <errno.h>

#include "doctor/diagnose.h"

const struct diagnosis_words diagnosis_words[DIAGNOSIS_CODE_MAX] = {
#define X(name, text, severity, why, advice) [DIAGNOSIS_##name] = {text, why, advice, FINDING_##severity},
#include "doctor/diagnosis-codes.def"
#undef X
};

static void sort_worst_first(const struct diagnosis_list *l, struct diagnosis *items, struct diagnoses *ret)
{
        for (int severity = FINDING_ERROR; severity >= FINDING_NOTE; severity--)
                for (int code = 0; code < DIAGNOSIS_CODE_MAX; code++)
                        if (l->items[code].title && (int) diagnosis_words[code].severity == severity) {
                                items[ret->n++] = l->items[code];
                                ret->n_errors += severity == FINDING_ERROR;
                                ret->n_warnings += severity == FINDING_WARNING;
                                ret->n_notes += severity == FINDING_NOTE;
                        }
}

int doctor_diagnose(struct arena *a, const struct doctor_facts *facts, struct diagnoses *ret)
{
        struct diagnosis *items = arena_new_array(a, struct diagnosis, DIAGNOSIS_CODE_MAX);
        struct diagnosis_list *l = arena_new_object(a, struct diagnosis_list);

        if (!items || !l)
                return -ENOMEM;
        l->arena = a;
        l->facts = facts;
        if (facts->subnet) {
                diagnose_protection(l);
                diagnose_tables(l);
                diagnose_names(l);
        }
        diagnose_host(l);
        if (l->out_of_memory)
                return -ENOMEM;
        *ret = (struct diagnoses) { .items = items };
        sort_worst_first(l, items, ret);
        return 0;
}
