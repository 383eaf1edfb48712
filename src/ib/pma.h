/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Attributes of performance management (IBA 1.5, 16.1) that pkeyd reads, and the one thing that it ever writes there: a
 * single counter back to 0.
 *
 * The layout of every field is libibmad's. What libibmad does not know are the bits of CapabilityMask2 (16.1.3.1) and of
 * CounterSelect (16.1.3.5) and CounterSelect2 (16.1.4.11, PortCountersExtended); they stand in pma.c, once.
 */

#include "ib/mad.h"

#define PMA_DATA_SIZE 192

enum pma_attribute {
        PMA_ATTR_CLASS_PORT_INFO = 0x01,
        PMA_ATTR_PORT_COUNTERS = 0x12,
        PMA_ATTR_PORT_COUNTERS_EXTENDED = 0x1d,
};

/* Widths of the constraint error counters in both. */
#define PMA_PORT_COUNTERS_BITS          8
#define PMA_PORT_COUNTERS_EXTENDED_BITS 64

/* What pkeyd reads of ClassPortInfo. */
struct pma_class_port_info {
        /* PortCountersExtended has the error counters, too. (That it exists says CapabilityMask: with data counters.) */
        bool has_extended_errors;
        struct lid redirect_lid;  /* the PMA that answers for this one; 0: none */
        uint32_t redirect_qp;     /* its QP */
};

enum pma_counter {
        PMA_RCV_CONSTRAINT_ERRORS,
        PMA_XMIT_CONSTRAINT_ERRORS,
        PMA_N_COUNTERS,
};

void pma_class_port_info_decode(const uint8_t data[PMA_DATA_SIZE], struct pma_class_port_info *ret);

/* The question for PortCounters or PortCountersExtended of a port. Nothing is selected: it changes nothing, whatever the
 * method. */
void pma_counters_encode(uint8_t port, uint8_t ret[PMA_DATA_SIZE]);
/* The counters in the answer. */
void pma_counters_decode(const uint8_t data[PMA_DATA_SIZE], bool extended, uint64_t ret[PMA_N_COUNTERS]);

/* What a Set of PortCounters (or PortCountersExtended) must say to bring this counter to 0, and no other. */
void pma_clear_encode(uint8_t port, bool extended, enum pma_counter counter, uint8_t ret[PMA_DATA_SIZE]);
