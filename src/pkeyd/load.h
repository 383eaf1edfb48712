/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Loads both files, and the secrets that the settings name, as a generation. */

#include "control/control.h"
#include "pkeyd/pkeyd_options.h"
#include "state/state.h"

/* Files that are taken from a stored generation (borrowed); NULL: as they are on the disk now. */
struct load_from {
        const struct stored_files *policy, *settings;
        bool undoes; /* they are of an older generation, not of the one in force */
};

/* Appends the findings about both files. Returns 0, -EBADMSG, -ENOMEM; *ret is owned and has number 0. from: NULL: both files. */
int load_generation(const struct options *o, const struct load_from *from, struct findings *findings, struct generation **ret);

/* The generation that was in force when pkeyd last ran, with its number, facts and layout. Its settings are those of the file,
 * which may have been edited since. Returns as load_generation(). */
int load_in_force(const struct options *o, struct state *s, const struct stored_files *files, struct findings *findings,
                  struct generation **ret);

/* A file that an undo put out of force is not loaded at the start. If the generation in force is an undo, and a file is still that
 * of a generation that was undone, *ret says what to load in its place (borrowed from m). Returns true if there is such a file. */
bool load_off_files(const struct options *o, struct state *s, struct arena *a, const struct remembered *m, struct load_from *ret);

/* What control asks for with CONTROL_LOAD_UNDO. With a store that head nodes share the settings stay as they are: they are of one
 * host. Returns as load_generation(). */
int load_undo(const struct options *o, struct state *s, const struct control_undo *undo, struct findings *findings,
              struct generation **ret);
