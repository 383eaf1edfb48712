/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Imports the state directory of version 0.1.0, once:
 *
 *     indexes.json   the index memory
 *     known.json     the known endports
 *     policy.yaml    the last policy in force, byte by byte; generation.json: its number and time
 *
 * A damaged file is left as it is, and no part of it is imported.
 */

#include "records/stored_records.h"

enum state_import_file {
        STATE_IMPORT_INDEXES,
        STATE_IMPORT_KNOWN,
        STATE_IMPORT_POLICY,
        STATE_IMPORT_GENERATION,
        STATE_IMPORT_N_FILES,
};

struct state_import {
        /* 0: imported; -ENOENT: there is none; -EBADMSG: damaged; or another negative errno */
        int errors[STATE_IMPORT_N_FILES];
};

/* The name of the file in its directory; static. */
const char *state_import_name(enum state_import_file file);
/* Adds the content of the files in `dir` to a transaction. Returns 0, -ENOMEM, or another error of the transaction. */
int state_import_read(const char *dir, struct store_transaction *t, struct state_import *ret);
/* After the transaction was committed: renames the imported files to NAME.imported. */
void state_import_done(const char *dir, const struct state_import *import);
