/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Fields of a MAD, for the codecs of this folder: libibmad reads through pointers that are not const. */

#include <infiniband/mad.h>

static inline uint32_t field(const uint8_t *bytes, enum MAD_FIELDS f)
{
        return mad_get_field((void *) bytes, 0, f);
}

static inline uint64_t field64(const uint8_t *bytes, enum MAD_FIELDS f)
{
        return mad_get_field64((void *) bytes, 0, f);
}
