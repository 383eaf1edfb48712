/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* What the leaf port of an endport lets through, as far as that is known. */

#include "knowledge/knowledge.h"
#include "opensm/partitions_file.h"

/* A leaf port that filters, or may. */
struct opensm_filter {
        bool is_on;   /* the leaf port filters, or may filter */
        bool is_sure; /* it certainly filters */
        const struct p_key *entries;
        uint16_t capacity;
        const struct partitions_file_port *given; /* what the file in place gives its peer, which OpenSM may have written to the
                                                   * leaf port since its table was read; opensm_nothing_given: read since */
};

/* The filter of an endport of the snapshot, and the one that an endport was behind last, by its record. given: what the file in
 * place gives the endport. */
struct opensm_filter opensm_filter_of_port(const struct observed *observed, uint32_t port, const struct knowledge *k,
                                           const struct partitions_file_port *given);
struct opensm_filter opensm_filter_of_record(const struct knowledge *k, const struct knowledge_record *r,
                                             const struct partitions_file_port *given);

/* The membership with which packets of this base pass the filter, or may by now. */
enum membership opensm_filter_passes(const struct opensm_filter *f, uint16_t base);

/* True if a filter that lets this membership pass drops packets of this entry. Every file gives the limited entry of the default
 * partition, so that one never counts. */
bool opensm_filter_drops(enum membership passes, struct p_key key);

/* Returns whether the leaf port filters, or may, and was never read. It is not known what it lets through, and a file with what the
 * endport holds could let that through. */
bool opensm_filter_is_unread(const struct observed *observed, uint32_t port, const struct knowledge *k);

/* True if the other end of the link filters, or may: it did not answer discovery. */
bool opensm_may_be_filtered(const struct subnet *s, uint32_t port);

/* True if the table was read in this sweep. */
bool opensm_table_was_read(const struct observed_table *t);

/* True if the endport was read, and its leaf port, too, if that may filter; or if one of these could not be read. If both are
 * false, one of the two was not queried. */
bool opensm_pair_was_read(const struct observed *observed, uint32_t port);
bool opensm_pair_failed(const struct observed *observed, uint32_t port);
