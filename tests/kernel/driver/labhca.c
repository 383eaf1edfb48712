// SPDX-License-Identifier: GPL-2.0-or-later OR BSD-3-Clause
/*
 * labhca: a host channel adapter without hardware whose link layer is InfiniBand, for tests.
 *
 * It only carries MADs. All packets from queue pairs 0 and 1, and all queries to the port's own subnet management agent, go to the
 * process that holds /dev/labhca open (see labhca.h), and answers come back from it. The state, LIDs and P_Key table of the port for
 * ib_core, ib_umad and ib_uverbs are those that this process set last.
 */

#include <linux/fs.h>
#include <linux/list.h>
#include <linux/miscdevice.h>
#include <linux/module.h>
#include <linux/poll.h>
#include <linux/slab.h>
#include <linux/spinlock.h>
#include <linux/uaccess.h>
#include <linux/wait.h>
#include <rdma/ib_mad.h>
#include <rdma/ib_smi.h>
#include <rdma/ib_verbs.h>

#include "labhca.h"

#define MAX_QUEUED   8192
#define CQ_DEPTH     2048
#define RQ_DEPTH     1024
#define ASK_TIMEOUT  (2 * HZ)
#define GRH_SIZE     40

/* A driver that lies: ibv_query_pkey gives the entry of this index with the other membership. -1: it does not. */
static int lie = -1;
module_param(lie, int, 0644);
MODULE_PARM_DESC(lie, "index of the P_Key that query_pkey tells wrong; -1: none");

/* Packets with a P_Key that is not in the table: there is no traffic, so the process sets their number. */
static uint bad_p_keys;
module_param(bad_p_keys, uint, 0644);
MODULE_PARM_DESC(bad_p_keys, "bad_pkey_cntr of every port");

struct lab_cq {
	struct ib_cq ib;
	spinlock_t lock;
	struct ib_wc *ring;
	u32 head, n;
	bool armed;
};

struct lab_recv {
	u64 wr_id;
	int n_sge;
	struct ib_sge sge[2];
};

struct lab_qp {
	struct ib_qp ib;
	spinlock_t lock;
	struct lab_recv *ring;
	u32 head, n;
};

struct lab_pd {
	struct ib_pd ib;
};

struct lab_ah {
	struct ib_ah ib;
	struct rdma_ah_attr attr;
};

struct lab_ucontext {
	struct ib_ucontext ib;
};

struct lab_item {
	struct list_head list;
	struct labhca_message message;
};

/* A pending query to the SMA. */
struct lab_ask {
	struct list_head list;
	u32 id;
	bool answered;
	u8 mad[LABHCA_MAD_SIZE];
};

struct lab_hca {
	struct ib_device ib;
	struct labhca_setup setup;
	spinlock_t lock;               /* of all that follows */
	struct labhca_state state;
	struct list_head out;
	u32 n_out;
	struct list_head asks;
	u32 next_id;
	bool gone;
	struct lab_qp *qp[2];
	wait_queue_head_t readers, askers;
};

/* One open descriptor; hca is NULL before SETUP. */
struct lab_file {
	struct mutex lock;
	struct lab_hca *hca;
};

static struct lab_hca *to_hca(struct ib_device *ib)
{
	return container_of(ib, struct lab_hca, ib);
}

/* --- to the other end ------------------------------------------------------------------------------------------ */

static int put_out(struct lab_hca *h, struct lab_item *item)
{
	unsigned long flags;
	int r = 0;

	spin_lock_irqsave(&h->lock, flags);
	if (h->gone || h->n_out >= MAX_QUEUED) {
		r = -ENODEV;
	} else {
		list_add_tail(&item->list, &h->out);
		h->n_out++;
	}
	spin_unlock_irqrestore(&h->lock, flags);
	if (r < 0)
		kfree(item);
	else
		wake_up_interruptible(&h->readers);
	return r;
}

static struct lab_item *new_item(u32 type)
{
	struct lab_item *item = kzalloc(sizeof(*item), GFP_ATOMIC);

	if (item)
		item->message.type = type;
	return item;
}

/* --- what the port is ------------------------------------------------------------------------------------------ */

static u32 get16(const u8 *p)
{
	return p[0] << 8 | p[1];
}

static u32 get32(const u8 *p)
{
	return get16(p) << 16 | get16(p + 2);
}

/* PortInfo, IBA 14.2.5.6. */
static u32 info_lid(const u8 *info)
{
	return get16(info + 16);
}

static u32 info_sm_lid(const u8 *info)
{
	return get16(info + 18);
}

static u8 info_state(const u8 *info)
{
	return info[32] & 0xf;
}

static int lab_query_device(struct ib_device *ib, struct ib_device_attr *a, struct ib_udata *udata)
{
	memset(a, 0, sizeof(*a));
	a->max_mr_size = ~0ull;
	a->page_size_cap = PAGE_SIZE;
	a->max_qp = 16;
	a->max_qp_wr = RQ_DEPTH;
	a->max_send_sge = a->max_recv_sge = 2;
	a->max_cq = 16;
	a->max_cqe = CQ_DEPTH;
	a->max_mr = 16;
	a->max_pd = 16;
	a->max_ah = 65536;
	a->max_pkeys = to_hca(ib)->setup.n_p_keys;
	a->device_cap_flags = IB_DEVICE_BAD_PKEY_CNTR;
	a->sys_image_guid = ib->node_guid;
	return 0;
}

static int lab_query_port(struct ib_device *ib, u32 port, struct ib_port_attr *a)
{
	struct lab_hca *h = to_hca(ib);
	unsigned long flags;
	u8 info[64];

	spin_lock_irqsave(&h->lock, flags);
	memcpy(info, h->state.port_info, sizeof(info));
	spin_unlock_irqrestore(&h->lock, flags);
	a->state = info_state(info) ? info_state(info) : IB_PORT_DOWN;
	a->phys_state = info[33] >> 4;
	a->lid = info_lid(info);
	a->sm_lid = info_sm_lid(info);
	a->lmc = info[34] & 7;
	a->sm_sl = info[36] & 0xf;
	a->port_cap_flags = get32(info + 20);
	a->max_mtu = IB_MTU_2048;
	a->active_mtu = IB_MTU_2048;
	a->gid_tbl_len = 1;
	a->pkey_tbl_len = h->setup.n_p_keys;
	a->bad_pkey_cntr = READ_ONCE(bad_p_keys);
	a->qkey_viol_cntr = get16(info + 48);
	a->max_vl_num = 1;
	a->active_width = IB_WIDTH_4X;
	a->active_speed = IB_SPEED_QDR;
	a->max_msg_sz = 4096;
	a->subnet_timeout = info[51] & 0x1f;
	return 0;
}

static int lab_get_port_immutable(struct ib_device *ib, u32 port, struct ib_port_immutable *im)
{
	im->pkey_tbl_len = to_hca(ib)->setup.n_p_keys;
	im->gid_tbl_len = 1;
	im->core_cap_flags = RDMA_CORE_PORT_IBA_IB;
	im->max_mad_size = IB_MGMT_MAD_SIZE;
	return 0;
}

static enum rdma_link_layer lab_get_link_layer(struct ib_device *ib, u32 port)
{
	return IB_LINK_LAYER_INFINIBAND;
}

static int lab_query_pkey(struct ib_device *ib, u32 port, u16 index, u16 *ret)
{
	struct lab_hca *h = to_hca(ib);
	unsigned long flags;

	if (index >= h->setup.n_p_keys)
		return -EINVAL;
	spin_lock_irqsave(&h->lock, flags);
	*ret = h->state.p_keys[index];
	spin_unlock_irqrestore(&h->lock, flags);
	if (READ_ONCE(lie) == index)
		*ret ^= 0x8000;
	return 0;
}

static int lab_query_gid(struct ib_device *ib, u32 port, int index, union ib_gid *gid)
{
	struct lab_hca *h = to_hca(ib);
	unsigned long flags;

	if (index != 0)
		return -EINVAL;
	spin_lock_irqsave(&h->lock, flags);
	memcpy(gid->raw, h->state.port_info + 8, 8);
	spin_unlock_irqrestore(&h->lock, flags);
	gid->global.interface_id = cpu_to_be64(h->setup.port_guid);
	return 0;
}

static void lab_get_fw_str(struct ib_device *ib, char *str)
{
	snprintf(str, IB_FW_VERSION_NAME_MAX, "1.0.0");
}

static int lab_modify_port(struct ib_device *ib, u32 port, int mask, struct ib_port_modify *m)
{
	struct lab_item *item;

	if (!((m->set_port_cap_mask | m->clr_port_cap_mask) & IB_PORT_SM))
		return 0;
	item = new_item(LABHCA_ISSM);
	if (!item)
		return -ENOMEM;
	item->message.id = !!(m->set_port_cap_mask & IB_PORT_SM);
	return put_out(to_hca(ib), item);
}

/* --- objects that only have to be there ------------------------------------------------------------------------- */

static int lab_alloc_pd(struct ib_pd *pd, struct ib_udata *udata)
{
	return 0;
}

static int lab_dealloc_pd(struct ib_pd *pd, struct ib_udata *udata)
{
	return 0;
}

static struct ib_mr *lab_get_dma_mr(struct ib_pd *pd, int access)
{
	struct ib_mr *mr = kzalloc(sizeof(*mr), GFP_KERNEL);

	return mr ? mr : ERR_PTR(-ENOMEM);
}

static struct ib_mr *lab_reg_user_mr(struct ib_pd *pd, u64 start, u64 length, u64 virt, int access, struct ib_udata *udata)
{
	return ERR_PTR(-EOPNOTSUPP);
}

static int lab_dereg_mr(struct ib_mr *mr, struct ib_udata *udata)
{
	kfree(mr);
	return 0;
}

static int lab_alloc_ucontext(struct ib_ucontext *c, struct ib_udata *udata)
{
	return 0;
}

static void lab_dealloc_ucontext(struct ib_ucontext *c)
{
}

static void lab_disassociate_ucontext(struct ib_ucontext *c)
{
}

static int lab_create_ah(struct ib_ah *ah, struct rdma_ah_init_attr *init, struct ib_udata *udata)
{
	container_of(ah, struct lab_ah, ib)->attr = *init->ah_attr;
	return 0;
}

static int lab_query_ah(struct ib_ah *ah, struct rdma_ah_attr *attr)
{
	*attr = container_of(ah, struct lab_ah, ib)->attr;
	return 0;
}

static int lab_destroy_ah(struct ib_ah *ah, u32 flags)
{
	return 0;
}

/* --- completions ------------------------------------------------------------------------------------------------ */

static int lab_create_cq(struct ib_cq *ib, const struct ib_cq_init_attr *attr, struct ib_udata *udata)
{
	struct lab_cq *cq = container_of(ib, struct lab_cq, ib);

	if (attr->cqe > CQ_DEPTH)
		return -EINVAL;
	cq->ring = kcalloc(CQ_DEPTH, sizeof(*cq->ring), GFP_KERNEL);
	if (!cq->ring)
		return -ENOMEM;
	spin_lock_init(&cq->lock);
	ib->cqe = CQ_DEPTH;
	return 0;
}

static int lab_destroy_cq(struct ib_cq *ib, struct ib_udata *udata)
{
	kfree(container_of(ib, struct lab_cq, ib)->ring);
	return 0;
}

static void complete_wc(struct ib_cq *ib, const struct ib_wc *wc)
{
	struct lab_cq *cq = container_of(ib, struct lab_cq, ib);
	unsigned long flags;
	bool notify = false;

	spin_lock_irqsave(&cq->lock, flags);
	if (!WARN_ON_ONCE(cq->n == CQ_DEPTH)) {
		cq->ring[(cq->head + cq->n) % CQ_DEPTH] = *wc;
		cq->n++;
		notify = cq->armed;
		cq->armed = false;
	}
	spin_unlock_irqrestore(&cq->lock, flags);
	if (notify && ib->comp_handler)
		ib->comp_handler(ib, ib->cq_context);
}

static int lab_poll_cq(struct ib_cq *ib, int max, struct ib_wc *wc)
{
	struct lab_cq *cq = container_of(ib, struct lab_cq, ib);
	unsigned long flags;
	int n = 0;

	spin_lock_irqsave(&cq->lock, flags);
	while (n < max && cq->n > 0) {
		wc[n++] = cq->ring[cq->head];
		cq->head = (cq->head + 1) % CQ_DEPTH;
		cq->n--;
	}
	spin_unlock_irqrestore(&cq->lock, flags);
	return n;
}

static int lab_req_notify_cq(struct ib_cq *ib, enum ib_cq_notify_flags what)
{
	struct lab_cq *cq = container_of(ib, struct lab_cq, ib);
	unsigned long flags;
	int missed;

	spin_lock_irqsave(&cq->lock, flags);
	cq->armed = true;
	missed = (what & IB_CQ_REPORT_MISSED_EVENTS) && cq->n > 0;
	spin_unlock_irqrestore(&cq->lock, flags);
	return missed;
}

/* --- queue pairs 0 and 1 ---------------------------------------------------------------------------------------- */

static int lab_create_qp(struct ib_qp *ib, struct ib_qp_init_attr *init, struct ib_udata *udata)
{
	struct lab_qp *qp = container_of(ib, struct lab_qp, ib);
	struct lab_hca *h = to_hca(ib->device);
	unsigned long flags;

	if (udata || (init->qp_type != IB_QPT_SMI && init->qp_type != IB_QPT_GSI))
		return -EOPNOTSUPP;
	if (init->cap.max_recv_wr > RQ_DEPTH || init->cap.max_recv_sge > 2)
		return -EINVAL;
	qp->ring = kcalloc(RQ_DEPTH, sizeof(*qp->ring), GFP_KERNEL);
	if (!qp->ring)
		return -ENOMEM;
	spin_lock_init(&qp->lock);
	ib->qp_num = init->qp_type == IB_QPT_SMI ? 0 : 1;
	spin_lock_irqsave(&h->lock, flags);
	h->qp[ib->qp_num] = qp;
	spin_unlock_irqrestore(&h->lock, flags);
	return 0;
}

static int lab_modify_qp(struct ib_qp *ib, struct ib_qp_attr *attr, int mask, struct ib_udata *udata)
{
	return 0;
}

static int lab_destroy_qp(struct ib_qp *ib, struct ib_udata *udata)
{
	struct lab_qp *qp = container_of(ib, struct lab_qp, ib);
	struct lab_hca *h = to_hca(ib->device);
	unsigned long flags;

	spin_lock_irqsave(&h->lock, flags);
	if (h->qp[ib->qp_num] == qp)
		h->qp[ib->qp_num] = NULL;
	spin_unlock_irqrestore(&h->lock, flags);
	kfree(qp->ring);
	return 0;
}

static void gather(const struct ib_send_wr *wr, u8 *mad)
{
	size_t n = 0;
	int i;

	for (i = 0; i < wr->num_sge; i++) {
		size_t part = min_t(size_t, wr->sg_list[i].length, LABHCA_MAD_SIZE - n);

		memcpy(mad + n, (void *)(uintptr_t)wr->sg_list[i].addr, part);
		n += part;
	}
}

static u16 p_key_at(struct lab_hca *h, u16 index)
{
	unsigned long flags;
	u16 p_key = 0;

	spin_lock_irqsave(&h->lock, flags);
	if (index < h->setup.n_p_keys)
		p_key = h->state.p_keys[index];
	spin_unlock_irqrestore(&h->lock, flags);
	return p_key;
}

static int send_one(struct ib_qp *ib, const struct ib_send_wr *wr)
{
	const struct ib_ud_wr *ud = ud_wr(wr);
	struct ib_wc wc = { .opcode = IB_WC_SEND, .qp = ib, .port_num = 1 };
	struct lab_item *item = new_item(LABHCA_SEND);

	if (!item)
		return -ENOMEM;
	item->message.qp = ib->qp_num;
	item->message.remote_qp = ud->remote_qpn;
	if (ib->qp_num == 1)
		item->message.p_key = p_key_at(to_hca(ib->device), ud->pkey_index);
	item->message.dlid = rdma_ah_get_dlid(&container_of(ud->ah, struct lab_ah, ib)->attr);
	gather(wr, item->message.mad);
	wc.wr_id = wr->wr_id;
	wc.status = put_out(to_hca(ib->device), item) < 0 ? IB_WC_WR_FLUSH_ERR : IB_WC_SUCCESS;
	complete_wc(ib->send_cq, &wc);
	return 0;
}

static int lab_post_send(struct ib_qp *ib, const struct ib_send_wr *wr, const struct ib_send_wr **bad)
{
	int r;

	for (; wr; wr = wr->next) {
		r = send_one(ib, wr);
		if (r < 0) {
			*bad = wr;
			return r;
		}
	}
	return 0;
}

static int lab_post_recv(struct ib_qp *ib, const struct ib_recv_wr *wr, const struct ib_recv_wr **bad)
{
	struct lab_qp *qp = container_of(ib, struct lab_qp, ib);
	unsigned long flags;
	int r = 0, i;

	spin_lock_irqsave(&qp->lock, flags);
	for (; wr; wr = wr->next) {
		struct lab_recv *slot;

		if (qp->n == RQ_DEPTH || wr->num_sge > 2) {
			*bad = wr;
			r = -ENOMEM;
			break;
		}
		slot = &qp->ring[(qp->head + qp->n) % RQ_DEPTH];
		slot->wr_id = wr->wr_id;
		slot->n_sge = wr->num_sge;
		for (i = 0; i < wr->num_sge; i++)
			slot->sge[i] = wr->sg_list[i];
		qp->n++;
	}
	spin_unlock_irqrestore(&qp->lock, flags);
	return r;
}

/* An empty GRH, then the MAD. */
static void scatter(const struct lab_recv *slot, const u8 *mad)
{
	u8 packet[GRH_SIZE + LABHCA_MAD_SIZE] = {};
	size_t n = 0;
	int i;

	memcpy(packet + GRH_SIZE, mad, LABHCA_MAD_SIZE);
	for (i = 0; i < slot->n_sge; i++) {
		size_t part = min_t(size_t, slot->sge[i].length, sizeof(packet) - n);

		memcpy((void *)(uintptr_t)slot->sge[i].addr, packet + n, part);
		n += part;
	}
}

/* Queue pair 1 takes what has a P_Key of the port's table. With h->lock. */
static bool find_p_key(const struct lab_hca *h, u16 p_key, u16 *ret_index)
{
	u32 i;

	for (i = 0; i < h->setup.n_p_keys; i++)
		if (h->state.p_keys[i] != 0 && ((h->state.p_keys[i] ^ p_key) & 0x7fff) == 0) {
			*ret_index = i;
			return true;
		}
	return false;
}

/* h->lock keeps the queue pair there; a MAD that finds no buffer is dropped, as on hardware. */
static void receive(struct lab_hca *h, const struct labhca_message *m)
{
	struct ib_wc wc = { .opcode = IB_WC_RECV, .byte_len = GRH_SIZE + LABHCA_MAD_SIZE, .port_num = 1 };
	struct ib_cq *cq = NULL;
	unsigned long flags;
	struct lab_qp *qp;

	spin_lock_irqsave(&h->lock, flags);
	qp = h->qp[m->qp & 1];
	if (qp && (qp->ib.qp_num == 0 || find_p_key(h, m->p_key, &wc.pkey_index))) {
		spin_lock(&qp->lock);
		if (qp->n > 0) {
			scatter(&qp->ring[qp->head], m->mad);
			wc.wr_id = qp->ring[qp->head].wr_id;
			qp->head = (qp->head + 1) % RQ_DEPTH;
			qp->n--;
			cq = qp->ib.recv_cq;
		}
		spin_unlock(&qp->lock);
		wc.qp = &qp->ib;
		wc.src_qp = m->remote_qp;
		wc.slid = m->slid;
		if (cq)
			complete_wc(cq, &wc);
	}
	spin_unlock_irqrestore(&h->lock, flags);
}

/* --- the port's own SMA ----------------------------------------------------------------------------------------- */

static bool is_for_own_sma(const struct ib_smp *smp)
{
	if (smp->mgmt_class != IB_MGMT_CLASS_SUBN_DIRECTED_ROUTE || smp->hop_cnt != 0)
		return false;
	if (smp->method != IB_MGMT_METHOD_GET && smp->method != IB_MGMT_METHOD_SET)
		return false;
	return smp->attr_id != IB_SMP_ATTR_SM_INFO && smp->attr_id != IB_SMP_ATTR_NOTICE;
}

static bool ask_is_over(struct lab_hca *h, struct lab_ask *ask)
{
	unsigned long flags;
	bool over;

	spin_lock_irqsave(&h->lock, flags);
	over = ask->answered || h->gone;
	spin_unlock_irqrestore(&h->lock, flags);
	return over;
}

static int lab_process_mad(struct ib_device *ib, int mad_flags, u32 port, const struct ib_wc *wc, const struct ib_grh *grh,
			   const struct ib_mad *in, struct ib_mad *out, size_t *out_size, u16 *out_pkey_index)
{
	struct lab_hca *h = to_hca(ib);
	struct lab_ask *ask;
	struct lab_item *item;
	unsigned long flags;
	bool answered;

	if (!is_for_own_sma((const struct ib_smp *)in))
		return IB_MAD_RESULT_SUCCESS;
	ask = kzalloc(sizeof(*ask), GFP_KERNEL);
	item = new_item(LABHCA_ASK);
	if (!ask || !item) {
		kfree(ask);
		kfree(item);
		return IB_MAD_RESULT_FAILURE;
	}
	memcpy(item->message.mad, in, LABHCA_MAD_SIZE);
	spin_lock_irqsave(&h->lock, flags);
	ask->id = item->message.id = ++h->next_id;
	list_add_tail(&ask->list, &h->asks);
	spin_unlock_irqrestore(&h->lock, flags);
	if (put_out(h, item) == 0)
		wait_event_timeout(h->askers, ask_is_over(h, ask), ASK_TIMEOUT);
	spin_lock_irqsave(&h->lock, flags);
	list_del(&ask->list);
	answered = ask->answered;
	spin_unlock_irqrestore(&h->lock, flags);
	if (answered)
		memcpy(out, ask->mad, LABHCA_MAD_SIZE);
	kfree(ask);
	/* without an answer the sender waits for its timeout: the MAD is consumed without a reply */
	return IB_MAD_RESULT_SUCCESS | (answered ? IB_MAD_RESULT_REPLY : IB_MAD_RESULT_CONSUMED);
}

static void take_answer(struct lab_hca *h, const struct labhca_message *m)
{
	struct lab_ask *ask;
	unsigned long flags;

	spin_lock_irqsave(&h->lock, flags);
	list_for_each_entry(ask, &h->asks, list)
		if (ask->id == m->id) {
			memcpy(ask->mad, m->mad, LABHCA_MAD_SIZE);
			ask->answered = true;
		}
	spin_unlock_irqrestore(&h->lock, flags);
	wake_up_all(&h->askers);
}

static void dispatch(struct lab_hca *h, enum ib_event_type type)
{
	struct ib_event event = { .device = &h->ib, .event = type, .element.port_num = 1 };

	ib_dispatch_event(&event);
}

static void take_state(struct lab_hca *h, const struct labhca_state *now)
{
	const u8 *info = now->port_info;
	u32 state, lid, sm_lid;
	unsigned long flags;
	bool p_keys;

	spin_lock_irqsave(&h->lock, flags);
	state = info_state(h->state.port_info);
	lid = info_lid(h->state.port_info);
	sm_lid = info_sm_lid(h->state.port_info);
	p_keys = memcmp(h->state.p_keys, now->p_keys, sizeof(now->p_keys)) != 0;
	h->state = *now;
	spin_unlock_irqrestore(&h->lock, flags);
	if (state != info_state(info) && info_state(info) == IB_PORT_ACTIVE)
		dispatch(h, IB_EVENT_PORT_ACTIVE);
	else if (state != info_state(info) && state == IB_PORT_ACTIVE)
		dispatch(h, IB_EVENT_PORT_ERR);
	if (lid != info_lid(info))
		dispatch(h, IB_EVENT_LID_CHANGE);
	if (sm_lid != info_sm_lid(info))
		dispatch(h, IB_EVENT_SM_CHANGE);
	if (p_keys)
		dispatch(h, IB_EVENT_PKEY_CHANGE);
	if (now->reregister)
		dispatch(h, IB_EVENT_CLIENT_REREGISTER);
}

/* --- the device ------------------------------------------------------------------------------------------------- */

static const struct ib_device_ops lab_ops = {
	.owner = THIS_MODULE,
	.driver_id = RDMA_DRIVER_RXE, /* which provider libibverbs takes */
	.uverbs_abi_ver = 2,
	.query_device = lab_query_device,
	.query_port = lab_query_port,
	.get_port_immutable = lab_get_port_immutable,
	.get_link_layer = lab_get_link_layer,
	.query_pkey = lab_query_pkey,
	.query_gid = lab_query_gid,
	.get_dev_fw_str = lab_get_fw_str,
	.modify_port = lab_modify_port,
	.alloc_pd = lab_alloc_pd,
	.dealloc_pd = lab_dealloc_pd,
	.get_dma_mr = lab_get_dma_mr,
	.reg_user_mr = lab_reg_user_mr,
	.dereg_mr = lab_dereg_mr,
	.alloc_ucontext = lab_alloc_ucontext,
	.dealloc_ucontext = lab_dealloc_ucontext,
	.disassociate_ucontext = lab_disassociate_ucontext,
	.create_ah = lab_create_ah,
	.query_ah = lab_query_ah,
	.destroy_ah = lab_destroy_ah,
	.create_cq = lab_create_cq,
	.destroy_cq = lab_destroy_cq,
	.poll_cq = lab_poll_cq,
	.req_notify_cq = lab_req_notify_cq,
	.create_qp = lab_create_qp,
	.modify_qp = lab_modify_qp,
	.destroy_qp = lab_destroy_qp,
	.post_send = lab_post_send,
	.post_recv = lab_post_recv,
	.process_mad = lab_process_mad,
	INIT_RDMA_OBJ_SIZE(ib_ah, lab_ah, ib),
	INIT_RDMA_OBJ_SIZE(ib_cq, lab_cq, ib),
	INIT_RDMA_OBJ_SIZE(ib_pd, lab_pd, ib),
	INIT_RDMA_OBJ_SIZE(ib_qp, lab_qp, ib),
	INIT_RDMA_OBJ_SIZE(ib_ucontext, lab_ucontext, ib),
};

static int plug(struct lab_file *f, const struct labhca_setup *setup)
{
	struct lab_hca *h;
	int r;

	if (f->hca)
		return -EBUSY;
	if (setup->n_p_keys == 0 || setup->n_p_keys > LABHCA_MAX_P_KEYS)
		return -EINVAL;
	h = ib_alloc_device(lab_hca, ib);
	if (!h)
		return -ENOMEM;
	h->setup = *setup;
	h->setup.name[LABHCA_NAME - 1] = '\0';
	spin_lock_init(&h->lock);
	INIT_LIST_HEAD(&h->out);
	INIT_LIST_HEAD(&h->asks);
	init_waitqueue_head(&h->readers);
	init_waitqueue_head(&h->askers);
	h->ib.node_type = RDMA_NODE_IB_CA;
	h->ib.phys_port_cnt = 1;
	h->ib.num_comp_vectors = 1;
	h->ib.node_guid = cpu_to_be64(setup->node_guid);
	memcpy(h->ib.node_desc, setup->description, sizeof(h->ib.node_desc));
	h->ib.attrs.kernel_cap_flags = IBK_LOCAL_DMA_LKEY;
	ib_set_device_ops(&h->ib, &lab_ops);
	f->hca = h;
	r = ib_register_device(&h->ib, h->setup.name, NULL);
	if (r < 0) {
		f->hca = NULL;
		ib_dealloc_device(&h->ib);
	}
	return r;
}

static void unplug(struct lab_hca *h)
{
	struct lab_item *item, *next;
	unsigned long flags;

	spin_lock_irqsave(&h->lock, flags);
	h->gone = true;
	spin_unlock_irqrestore(&h->lock, flags);
	wake_up_all(&h->askers);
	ib_unregister_device(&h->ib);
	list_for_each_entry_safe(item, next, &h->out, list)
		kfree(item);
	ib_dealloc_device(&h->ib);
}

/* --- /dev/labhca ------------------------------------------------------------------------------------------------ */

static int lab_open(struct inode *inode, struct file *file)
{
	struct lab_file *f = kzalloc(sizeof(*f), GFP_KERNEL);

	if (!f)
		return -ENOMEM;
	mutex_init(&f->lock);
	file->private_data = f;
	return 0;
}

static int lab_release(struct inode *inode, struct file *file)
{
	struct lab_file *f = file->private_data;

	if (f->hca)
		unplug(f->hca);
	kfree(f);
	return 0;
}

static struct lab_item *take_out(struct lab_hca *h)
{
	struct lab_item *item;
	unsigned long flags;

	spin_lock_irqsave(&h->lock, flags);
	item = list_first_entry_or_null(&h->out, struct lab_item, list);
	if (item) {
		list_del(&item->list);
		h->n_out--;
	}
	spin_unlock_irqrestore(&h->lock, flags);
	return item;
}

/* Never waits: that is what poll is for. */
static ssize_t lab_read(struct file *file, char __user *buffer, size_t size, loff_t *offset)
{
	struct lab_file *f = file->private_data;
	struct lab_item *item;
	ssize_t r = sizeof(item->message);

	if (!f->hca)
		return -ENODEV;
	if (size < sizeof(item->message))
		return -EINVAL;
	item = take_out(f->hca);
	if (!item)
		return -EAGAIN;
	if (copy_to_user(buffer, &item->message, sizeof(item->message)))
		r = -EFAULT;
	kfree(item);
	return r;
}

static int handle(struct lab_file *f, const struct labhca_message *m)
{
	int r = 0;

	if (m->type == LABHCA_SETUP) {
		/* Registering asks the port's own SMA nothing; others may do so as soon as it is done. */
		mutex_lock(&f->lock);
		r = plug(f, &m->setup);
		mutex_unlock(&f->lock);
		return r;
	}
	if (!f->hca)
		return -ENODEV;
	switch (m->type) {
	case LABHCA_STATE:
		take_state(f->hca, &m->state);
		break;
	case LABHCA_RECEIVE:
		receive(f->hca, m);
		break;
	case LABHCA_ANSWER:
		take_answer(f->hca, m);
		break;
	default:
		r = -EINVAL;
	}
	return r;
}

static ssize_t lab_write(struct file *file, const char __user *buffer, size_t size, loff_t *offset)
{
	struct labhca_message *m;
	int r;

	if (size != sizeof(*m))
		return -EINVAL;
	m = memdup_user(buffer, size);
	if (IS_ERR(m))
		return PTR_ERR(m);
	r = handle(file->private_data, m);
	kfree(m);
	return r < 0 ? r : size;
}

static __poll_t lab_poll(struct file *file, poll_table *wait)
{
	struct lab_file *f = file->private_data;
	__poll_t ready = EPOLLOUT;
	unsigned long flags;

	if (!f->hca)
		return ready;
	poll_wait(file, &f->hca->readers, wait);
	spin_lock_irqsave(&f->hca->lock, flags);
	if (!list_empty(&f->hca->out))
		ready |= EPOLLIN;
	spin_unlock_irqrestore(&f->hca->lock, flags);
	return ready;
}

static const struct file_operations lab_file_ops = {
	.owner = THIS_MODULE,
	.open = lab_open,
	.release = lab_release,
	.read = lab_read,
	.write = lab_write,
	.poll = lab_poll,
};

static struct miscdevice lab_device = {
	.minor = MISC_DYNAMIC_MINOR,
	.name = "labhca",
	.fops = &lab_file_ops,
	.mode = 0600,
};
module_misc_device(lab_device);

MODULE_LICENSE("Dual BSD/GPL");
MODULE_DESCRIPTION("InfiniBand HCA without hardware, for tests");
