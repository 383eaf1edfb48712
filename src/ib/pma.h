/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Attributes of performance management (IBA 1.5, 16.1) that pkeyd reads. The only thing that it writes there sets a single counter
 * to 0.
 *
 * libibmad defines the layout of every field. The bits of CapabilityMask2 (16.1.3.1), CounterSelect (16.1.3.5) and CounterSelect2
 * (16.1.4.11, PortCountersExtended) are in pma.c.
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
        /* PortCountersExtended has the error counters, too. (CapabilityMask states only that it exists, with data counters.) */
        bool has_extended_errors;
        struct lid redirect_lid;  /* the PMA that answers instead; 0: none */
        uint32_t redirect_qp;     /* its QP */
};

enum pma_counter {
        PMA_RCV_CONSTRAINT_ERRORS,
        PMA_XMIT_CONSTRAINT_ERRORS,
        PMA_N_COUNTERS,
};

void pma_class_port_info_decode(const uint8_t data[PMA_DATA_SIZE], struct pma_class_port_info *ret);

/* Makes the request for PortCounters or PortCountersExtended of a port. It selects no counter, so it changes nothing with any
 * method. */
void pma_counters_encode(uint8_t port, uint8_t ret[PMA_DATA_SIZE]);
/* Gets the counters of the answer. */
void pma_counters_decode(const uint8_t data[PMA_DATA_SIZE], bool extended, uint64_t ret[PMA_N_COUNTERS]);

/* Makes a Set of PortCounters (or PortCountersExtended) that sets this counter to 0, and no other. */
void pma_clear_encode(uint8_t port, bool extended, enum pma_counter counter, uint8_t ret[PMA_DATA_SIZE]);
