/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "doctor/diagnose.h"

static struct places places_of_lines(struct diagnosis_list *l, const struct doctor_lines *from)
{
        struct places ret = {};

        for (uint32_t i = 0; i < from->n; i++)
                places_add(l, &ret, SUBNET_NONE, from->items[i]);
        return ret;
}

static void diagnose_files(struct diagnosis_list *l)
{
        const struct doctor_host *h = &l->facts->host;
        const struct doctor_file *const files[] = {&h->settings_file, &h->policy_file, &h->state_dir};
        struct places changeable = {}, unreadable = places_of_lines(l, &h->unreadable);

        for (size_t i = 0; i < ELEMENTS(files); i++)
                if (files[i]->changeable)
                        places_add(l, &changeable, SUBNET_NONE, files[i]->path);
        diagnosis_add(l, DIAGNOSIS_FILE_CHANGEABLE, &changeable,
                      "users other than root can change %u of pkeyd's files", changeable.n);
        diagnosis_add(l, DIAGNOSIS_FILE_UNREADABLE, &unreadable, "the user pkeyd cannot read %u of pkeyd's files", unreadable.n);
}

static void diagnose_settings(struct diagnosis_list *l)
{
        const struct doctor_host *h = &l->facts->host;
        struct places errors = places_of_lines(l, &h->settings_errors), secrets = places_of_lines(l, &h->secret_errors);

        diagnosis_add(l, DIAGNOSIS_SETTINGS_REFUSED, &errors, "the settings are refused (%u error%s)", errors.n,
                      text_plural(errors.n));
        diagnosis_add(l, DIAGNOSIS_SECRET_REFUSED, &secrets, "a key file is refused");
        if (errors.n == 0 && l->facts->settings->mode == MODE_AUDIT)
                diagnosis_add(l, DIAGNOSIS_MODE_AUDIT, NULL, "pkeyd only compares (mode: audit)");
}

static void diagnose_policy(struct diagnosis_list *l)
{
        const struct doctor_host *h = &l->facts->host;
        struct places errors = places_of_lines(l, &h->policy_errors), warnings = places_of_lines(l, &h->policy_warnings);

        diagnosis_add(l, DIAGNOSIS_POLICY_REFUSED, &errors, "the policy is refused (%u error%s)", errors.n, text_plural(errors.n));
        diagnosis_add(l, DIAGNOSIS_POLICY_WARNINGS, &warnings, "the policy has %u warning%s on this fabric", warnings.n,
                      text_plural(warnings.n));
        if (!h->policy_file.exists && errors.n == 0)
                diagnosis_add(l, DIAGNOSIS_POLICY_NONE, NULL, "there is no policy");
}

static void diagnose_state(struct diagnosis_list *l)
{
        const struct doctor_host *h = &l->facts->host;
        struct places state = {}, other = {};

        if (!h->state_dir.path)
                return;
        if (h->state_dir.error)
                places_add(l, &state, SUBNET_NONE, diagnosis_text(l, "%s: %s", h->state_dir.path, h->state_dir.error));
        diagnosis_add(l, DIAGNOSIS_STATE_DIR_UNUSABLE, &state, "the state directory cannot be used");
        if (h->state_of_other_fabric)
                places_add(l, &other, SUBNET_NONE, h->state_dir.path);
        diagnosis_add(l, DIAGNOSIS_STATE_DIR_OTHER_FABRIC, &other, "what is stored is about another fabric");
        if (h->state_dir.error || !h->state_damaged)
                return;
        places_add(l, &state, SUBNET_NONE, h->state_dir.path);
        diagnosis_add(l, DIAGNOSIS_STATE_DIR_DAMAGED, &state, "the contents of the state directory are damaged");
}

static void diagnose_opensm(struct diagnosis_list *l)
{
        const struct doctor_opensm *o = &l->facts->host.opensm;
        struct places odd = places_of_lines(l, &o->odd), file = {};

        if (!o->path)
                return;
        places_add(l, &file, SUBNET_NONE, o->path);
        if (o->discarded)
                diagnosis_add(l, DIAGNOSIS_OPENSM_DISCARDS, odd.n > 0 ? &odd : &file,
                              "OpenSM drops %s and opens the fabric", o->path);
        else
                diagnosis_add(l, DIAGNOSIS_OPENSM_ODD, &odd, "OpenSM misreads %u place%s of its files", odd.n, text_plural(odd.n));
        if (o->is_edited)
                diagnosis_add(l, DIAGNOSIS_OPENSM_EDITED, &file, "a file that pkeyd wrote for OpenSM was edited or truncated");
        if (o->is_foreign)
                diagnosis_add(l, DIAGNOSIS_OPENSM_FOREIGN, &file, "pkeyd must write this file for OpenSM, but did not create it");
        if (o->instead_of)
                diagnosis_add(l, DIAGNOSIS_OPENSM_ELSEWHERE, &file, "pkeyd writes %s, and OpenSM reads %s", o->instead_of, o->path);
}

void diagnose_host(struct diagnosis_list *l)
{
        struct places verbs = {};

        diagnose_files(l);
        diagnose_settings(l);
        diagnose_policy(l);
        diagnose_state(l);
        diagnose_opensm(l);
        if (l->facts->host.verbs_error)
                places_add(l, &verbs, SUBNET_NONE, l->facts->host.verbs_error);
        diagnosis_add(l, DIAGNOSIS_NO_VERBS, &verbs, "the kernel's P_Key table of this port cannot be read");
}
