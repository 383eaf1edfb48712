/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "ib/pma.h"

#include <assert.h>
#include <string.h>

#include "ib/field.h"

static_assert(IB_PC_DATA_SZ == PMA_DATA_SIZE, "libibmad has the same sizes of a MAD");
static_assert((int) CLASS_PORT_INFO == PMA_ATTR_CLASS_PORT_INFO && (int) IB_GSI_PORT_COUNTERS == PMA_ATTR_PORT_COUNTERS &&
                      (int) IB_GSI_PORT_COUNTERS_EXT == PMA_ATTR_PORT_COUNTERS_EXTENDED,
              "libibmad has the same attribute IDs");

/* CapabilityMask2, IBA 1.5, 16.1.3.1: IsAdditionalPortCountersExtendedSupported. IsExtendedWidthSupported, bit 9 of CapabilityMask,
 * only means that there are 64-bit counters of data and packets. */
#define CAPABILITY_MASK2_ADDITIONAL_EXTENDED (1U << 1)

/* One row for each counter: its field in both attributes, its bit in CounterSelect of PortCounters (16.1.3.5) and in
 * CounterSelect2 of PortCountersExtended (16.1.4.11). */
static const struct {
        enum MAD_FIELDS field, extended_field;
        unsigned select, extended_select2;
} counters[PMA_N_COUNTERS] = {
        [PMA_RCV_CONSTRAINT_ERRORS] = { IB_PC_ERR_RCVCONSTR_F, IB_PC_EXT_ERR_RCVCONSTR_F, 1U << 8, 1U << 8 },
        [PMA_XMIT_CONSTRAINT_ERRORS] = { IB_PC_ERR_XMTCONSTR_F, IB_PC_EXT_ERR_XMTCONSTR_F, 1U << 7, 1U << 7 },
};

void pma_class_port_info_decode(const uint8_t data[PMA_DATA_SIZE], struct pma_class_port_info *ret)
{
        *ret = (struct pma_class_port_info) {
                .has_extended_errors = field(data, IB_CPI_CAPMASK2_F) & CAPABILITY_MASK2_ADDITIONAL_EXTENDED,
                .redirect_lid.v = (uint16_t) field(data, IB_CPI_REDIRECT_LID_F),
                .redirect_qp = field(data, IB_CPI_REDIRECT_QP_F),
        };
}

void pma_counters_encode(uint8_t port, uint8_t ret[PMA_DATA_SIZE])
{
        memset(ret, 0, PMA_DATA_SIZE);
        mad_set_field(ret, 0, IB_PC_PORT_SELECT_F, port);
}

void pma_counters_decode(const uint8_t data[PMA_DATA_SIZE], bool extended, uint64_t ret[PMA_N_COUNTERS])
{
        for (size_t i = 0; i < PMA_N_COUNTERS; i++)
                ret[i] = extended ? field64(data, counters[i].extended_field) : field(data, counters[i].field);
}

void pma_clear_encode(uint8_t port, bool extended, enum pma_counter counter, uint8_t ret[PMA_DATA_SIZE])
{
        pma_counters_encode(port, ret);
        if (extended)
                mad_set_field(ret, 0, IB_PC_EXT_COUNTER_SELECT2_F, counters[counter].extended_select2);
        else
                mad_set_field(ret, 0, IB_PC_COUNTER_SELECT_F, counters[counter].select);
}
