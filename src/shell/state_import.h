/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The state directory of version 0.1.0, to be taken over once:
 *
 *     indexes.json   the index memory
 *     known.json     endports that were seen once
 *     policy.yaml    the last policy in force, as its bytes were; generation.json its number and time
 *
 * A damaged file is left as it is, and nothing of it is taken.
 */

#include "control/stored_records.h"

enum state_import_file {
        STATE_IMPORT_INDEXES,
        STATE_IMPORT_KNOWN,
        STATE_IMPORT_POLICY,
        STATE_IMPORT_GENERATION,
        STATE_IMPORT_N_FILES,
};

struct state_import {
        /* 0: it was taken; -ENOENT: there is none; -EBADMSG: it is damaged; or what the system said */
        int errors[STATE_IMPORT_N_FILES];
};

/* "indexes.json"; static. */
const char *state_import_name(enum state_import_file file);
/* Puts what the files in `dir` have into a transaction. Returns 0 or -ENOMEM. */
int state_import_read(const char *dir, struct store_transaction *t, struct state_import *ret);
/* What was taken is in the store: it is renamed to NAME.imported. */
void state_import_done(const char *dir, const struct state_import *import);
