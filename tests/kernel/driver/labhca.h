/* SPDX-License-Identifier: GPL-2.0-or-later OR BSD-3-Clause */
#ifndef LABHCA_H
#define LABHCA_H

/*
 * Between the driver labhca and the process that is its port's other end. Opening /dev/labhca and writing a SETUP makes an
 * HCA with one port, closing the descriptor unplugs it. Each read and each write is one struct labhca_message.
 */

#include <linux/types.h>

#define LABHCA_MAD_SIZE    256
#define LABHCA_MAX_P_KEYS  1024
#define LABHCA_DESCRIPTION 64
#define LABHCA_NAME        16

enum labhca_type {
	/* to the driver */
	LABHCA_SETUP = 1,   /* what it is */
	LABHCA_STATE,       /* PortInfo and P_Key table of the port as they are now */
	LABHCA_RECEIVE,     /* a MAD for queue pair 0 or 1 */
	LABHCA_ANSWER,      /* to an ASK with this id */
	/* from the driver */
	LABHCA_SEND,        /* a MAD from queue pair 0 or 1 */
	LABHCA_ASK,         /* a MAD for the port's own SMA; wants an ANSWER */
	LABHCA_ISSM,        /* `id` is 1: there is a subnet manager on this port; 0: no more */
};

struct labhca_setup {
	char name[LABHCA_NAME];
	__u64 node_guid, port_guid;              /* host byte order */
	char description[LABHCA_DESCRIPTION];
	__u32 n_p_keys;
};

struct labhca_state {
	__u8 port_info[64];                      /* as in the MAD */
	__u16 p_keys[LABHCA_MAX_P_KEYS];         /* host byte order */
	__u32 reregister;
};

struct labhca_message {
	__u32 type, id;
	__u32 qp, remote_qp;
	__u32 slid, dlid;
	__u32 p_key;                             /* of queue pair 1: what the packet carries */
	union {
		__u8 mad[LABHCA_MAD_SIZE];
		struct labhca_setup setup;
		struct labhca_state state;
	};
};

#endif
