/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "shell/umad_port.h"

#include <endian.h>
#include <errno.h>
#include <infiniband/mad.h>
#include <infiniband/umad.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/file.h>

#define RING_SIZE         4096 /* frames; a power of two, far more than a window */
#define BATCH             256  /* frames for which the eventfd is written once at most */
#define MANY              16   /* requests outstanding */
#define COLLECT_USEC      20
#define POLL_MSEC         20   /* within this time the thread notices that it must end */
#define LISTEN_MSEC       250  /* the same, while it waits for unsolicited MADs only */
#define MGMT_CLASS_OFFSET 1
#define GSI_QPN           1
#define GSI_Q_KEY         0x80010000 /* IBA 1.5, 10.2.5: the well known Q_Key of QP 1 */
#define QUIET_POLLS       50   /* polls without outstanding requests before the thread sleeps */
#define ERROR_USEC_MAX    128000
#define DRAIN_MAX         (1 * USEC_PER_SEC)
#define DRAIN_STEP_USEC   2000

struct received {
        uint8_t mad[MAD_SIZE];
        uint16_t length;
        struct lid lid;
        uint8_t sl;
};

enum agent {
        AGENT_SMI,
        AGENT_SMI_DIRECTED,
        AGENT_PMA,
        AGENT_SA,
        N_AGENTS,
};

static const struct {
        int mgmt_class, version;
} agent_classes[N_AGENTS] = {
        [AGENT_SMI] = { IB_SMI_CLASS, 1 },
        [AGENT_SMI_DIRECTED] = { IB_SMI_DIRECT_CLASS, 1 },
        [AGENT_PMA] = { IB_PERFORMANCE_CLASS, 1 },
        [AGENT_SA] = { IB_SA_CLASS, 2 },
};

struct mad_port {
        int fd;
        int agents[N_AGENTS]; /* -1: not registered */
        int p_key_index;      /* of MADs to QP 1 */
        int event_fd;
        void *send_buffer, *receive_buffer;

        /* The thread adds at `tail`, the loop removes at `head`; both only count up. */
        struct received *ring;
        _Atomic uint32_t head, tail;

        pthread_t thread;
        bool has_thread;
        _Atomic bool stop;
        _Atomic bool listening;  /* unsolicited MADs may come */
        _Atomic int outstanding; /* sent, and neither answered nor returned as timed out */
        _Atomic bool asleep;     /* the thread waits for `wake` */
        sem_t wake;
        bool has_wake;
};

/* On a wire every MAD has 256 bytes. ibsim delivers as many bytes as it was given, and OpenSM gives it an SA answer without its
 * unused end. The missing bytes are 0, as a kernel would have sent them. */
static void pad_sa_answer(struct received *r)
{
        if (r->length < IB_SA_DATA_OFFS || r->mad[MGMT_CLASS_OFFSET] != IB_SA_CLASS)
                return;
        memset(r->mad + r->length, 0, MAD_SIZE - r->length);
        r->length = MAD_SIZE;
}

static bool ring_put(struct mad_port *p, const void *umad, size_t length)
{
        const ib_mad_addr_t *from = umad_get_mad_addr((void *) umad);
        uint32_t tail = atomic_load_explicit(&p->tail, memory_order_relaxed);
        struct received *r = &p->ring[tail % RING_SIZE];

        if (tail - atomic_load_explicit(&p->head, memory_order_acquire) >= RING_SIZE)
                return false; /* dropped, as if the fabric had lost it */
        r->length = (uint16_t) MIN(length, (size_t) MAD_SIZE);
        memcpy(r->mad, umad_get_mad((void *) umad), r->length);
        pad_sa_answer(r);
        r->lid.v = be16toh(from->lid);
        r->sl = from->sl;
        atomic_store_explicit(&p->tail, tail + 1, memory_order_release);
        return true;
}

static void decrement_outstanding(struct mad_port *p)
{
        /* An unsolicited MAD is counted, too, so the number must not become negative. */
        if (atomic_fetch_sub(&p->outstanding, 1) <= 0)
                atomic_fetch_add(&p->outstanding, 1);
}

/* Returns 1 if a MAD was received, 0 on a timeout, or negative errno. */
static int receive_one(struct mad_port *p, int timeout_msec, bool *ret_put)
{
        int length = MAD_SIZE, r;

        *ret_put = false;
        r = umad_recv(p->fd, p->receive_buffer, &length, timeout_msec);
        if (r == -ETIMEDOUT || r == -EWOULDBLOCK || r == -EINTR)
                return 0;
        if (r < 0)
                return r;
        decrement_outstanding(p);
        /* With another status it is our own MAD, which got no answer: ignored, since the engine has deadlines of its own. */
        if (umad_status(p->receive_buffer) == 0 && length > 0)
                *ret_put = ring_put(p, p->receive_buffer, (size_t) length);
        return 1;
}

/* Receives up to a batch, and wakes the loop once. Returns as receive_one. */
static int receive_batch(struct mad_port *p, int timeout_msec)
{
        bool put, any = false;
        int n = 0, r = receive_one(p, timeout_msec, &put);

        /* With many answers still to come, waking the loop for each costs more than the answers themselves. */
        if (r > 0 && atomic_load(&p->outstanding) >= MANY)
                (void) usleep(COLLECT_USEC);
        while (r > 0) {
                any = any || put;
                if (++n == BATCH)
                        break;
                r = receive_one(p, 0, &put);
        }
        if (any)
                (void) eventfd_write(p->event_fd, 1);
        return n > 0 ? 1 : r;
}

/* Without outstanding requests no answer will come, so the thread need not wake up 50 times a second. */
static void sleep_until_sent(struct mad_port *p)
{
        atomic_store(&p->asleep, true);
        if (atomic_load(&p->outstanding) > 0 || atomic_load(&p->stop)) {
                atomic_store(&p->asleep, false); /* if wake_thread() has posted already, the next sleep ends at once */
                return;
        }
        while (sem_wait(&p->wake) < 0 && errno == EINTR)
                ;
}

static void wake_thread(struct mad_port *p)
{
        if (atomic_exchange(&p->asleep, false))
                (void) sem_post(&p->wake);
}

static void *receiver(void *argument)
{
        struct mad_port *p = argument;
        unsigned quiet = 0, error_usec = 1000;

        while (!atomic_load(&p->stop)) {
                int r = receive_batch(p, quiet >= QUIET_POLLS ? LISTEN_MSEC : POLL_MSEC);

                if (r < 0) {
                        /* The device may be gone. Requests time out then; here it is enough not to spin. */
                        (void) usleep(error_usec);
                        error_usec = MIN(error_usec * 2, ERROR_USEC_MAX);
                        continue;
                }
                error_usec = 1000;
                if (r > 0 || atomic_load(&p->outstanding) > 0)
                        quiet = 0;
                else if (quiet < QUIET_POLLS)
                        quiet++;
                if (quiet >= QUIET_POLLS && !atomic_load(&p->listening)) {
                        sleep_until_sent(p);
                        quiet = 0;
                }
        }
        return NULL;
}

/* Blocks all signals in the thread, because they belong to the event loop. */
static int start_receiver(struct mad_port *p)
{
        sigset_t all, before;
        int r;

        (void) sigfillset(&all);
        r = pthread_sigmask(SIG_SETMASK, &all, &before);
        if (r != 0)
                return -r;
        r = pthread_create(&p->thread, NULL, receiver, p);
        (void) pthread_sigmask(SIG_SETMASK, &before, NULL);
        p->has_thread = r == 0;
        return -r;
}

/* methods: a bit for each method of requests to receive; 0: only answers. */
static int register_agent(struct mad_port *p, enum agent a, uint64_t methods)
{
        long mask[16 / sizeof(long)] = {};

        if (p->agents[a] >= 0)
                return 0;
        memcpy(mask, &methods, sizeof(methods));
        errno = 0;
        p->agents[a] = umad_register(p->fd, agent_classes[a].mgmt_class, agent_classes[a].version, 0, methods ? mask : NULL);
        return p->agents[a] >= 0 ? 0 : errno > 0 ? -errno : -EPERM;
}

int umad_port_use_pma(struct mad_port *p)
{
        return register_agent(p, AGENT_PMA, 0);
}

int umad_port_use_sa(struct mad_port *p, bool listen)
{
        int r = register_agent(p, AGENT_SA, listen ? UINT64_C(1) << MAD_REPORT : 0);

        if (r < 0 || !listen)
                return r;
        atomic_store(&p->listening, true);
        wake_thread(p);
        return 0;
}

void umad_port_set_p_key_index(struct mad_port *p, unsigned index)
{
        p->p_key_index = (int) index;
}

static int open_device(const struct local_port *lp)
{
        int fd;

        errno = 0;
        fd = umad_open_port(lp->ca, (int) lp->port);
        return fd == -EIO && errno > 0 ? -errno : fd; /* libibumad returns -EIO whenever open() fails */
}

int umad_port_open(const struct local_port *lp, struct mad_port **ret)
{
        _cleanup_(umad_port_close_p) struct mad_port *p = calloc(1, sizeof(*p));
        int r;

        if (!p)
                return -ENOMEM;
        p->fd = p->event_fd = -1;
        for (size_t i = 0; i < N_AGENTS; i++)
                p->agents[i] = -1;
        p->fd = open_device(lp);
        r = p->fd < 0 ? p->fd : register_agent(p, AGENT_SMI, 0) ?: register_agent(p, AGENT_SMI_DIRECTED, 0);
        if (r < 0)
                return r;

        /* umad_size() is right only after a port was opened. */
        p->send_buffer = umad_alloc(1, umad_size() + MAD_SIZE);
        p->receive_buffer = umad_alloc(1, umad_size() + MAD_SIZE);
        p->ring = calloc(RING_SIZE, sizeof(*p->ring));
        if (!p->send_buffer || !p->receive_buffer || !p->ring)
                return -ENOMEM;
        p->event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
        if (p->event_fd < 0 || sem_init(&p->wake, 0, 0) < 0)
                return -errno;
        p->has_wake = true;
        r = start_receiver(p);
        if (r < 0)
                return r;
        *ret = STEAL(p);
        return 0;
}

int umad_port_claim(const struct mad_port *p)
{
        return flock(umad_get_fd(p->fd), LOCK_EX | LOCK_NB) < 0 && errno == EWOULDBLOCK ? -EBUSY : 0;
}

/* A kernel drops outstanding requests when the descriptor is closed. ibsim's preload library does not, and fails on an answer
 * without a receiver; so this waits, for a limited time, until no request is outstanding. */
static void drain(struct mad_port *p)
{
        usec_t until = clock_now() + DRAIN_MAX;

        while (atomic_load(&p->outstanding) > 0 && clock_now() < until)
                (void) usleep(DRAIN_STEP_USEC);
}

struct mad_port *umad_port_close(struct mad_port *p)
{
        if (!p)
                return NULL;
        if (p->has_thread) {
                drain(p);
                atomic_store(&p->stop, true);
                wake_thread(p);
                (void) pthread_join(p->thread, NULL);
        }
        for (size_t i = 0; i < N_AGENTS; i++)
                if (p->agents[i] >= 0)
                        (void) umad_unregister(p->fd, p->agents[i]);
        if (p->fd >= 0)
                (void) umad_close_port(p->fd);
        if (p->event_fd >= 0)
                (void) close(p->event_fd);
        if (p->has_wake)
                (void) sem_destroy(&p->wake);
        umad_free(p->send_buffer);
        umad_free(p->receive_buffer);
        free(p->ring);
        free(p);
        return NULL;
}

/* The kernel accepts an answer only while its own timer runs, and refuses a retry with the same transaction ID until the timer
 * ends. So its timeout is a little shorter than the engine's. */
static int kernel_timeout_msec(usec_t timeout)
{
        usec_t msec = MIN(timeout, 3600 * USEC_PER_SEC) / USEC_PER_MSEC;

        msec -= MIN(msec / 8, (usec_t) 20);
        return (int) MAX(msec, (usec_t) 1);
}

static enum agent agent_of(const struct mad_frame *frame)
{
        switch (frame->mgmt_class) {
        case MAD_CLASS_PMA:
                return AGENT_PMA;
        case MAD_CLASS_SA:
                return AGENT_SA;
        case MAD_CLASS_SMP:
        case MAD_N_CLASSES:
                break;
        }
        return frame->directed ? AGENT_SMI_DIRECTED : AGENT_SMI;
}

static void set_address(struct mad_port *p, const struct mad_frame *frame)
{
        if (frame->mgmt_class == MAD_CLASS_SMP) {
                (void) umad_set_addr(p->send_buffer, frame->lid.v, 0, 0, 0);
                (void) umad_set_pkey(p->send_buffer, 0);
        } else {
                (void) umad_set_addr(p->send_buffer, frame->lid.v, GSI_QPN, frame->sl, (int) GSI_Q_KEY);
                (void) umad_set_pkey(p->send_buffer, p->p_key_index);
        }
        (void) umad_set_grh(p->send_buffer, NULL);
}

int umad_port_send(struct mad_port *p, const struct mad_frame *frame)
{
        bool answered = frame->timeout > 0;
        enum agent a = agent_of(frame);
        int r;

        if (p->agents[a] < 0)
                return -ENODEV;
        set_address(p, frame);
        memcpy(umad_get_mad(p->send_buffer), frame->mad, MAD_SIZE);

        if (answered)
                atomic_fetch_add(&p->outstanding, 1);
        r = umad_send(p->fd, p->agents[a], p->send_buffer, MAD_SIZE, answered ? kernel_timeout_msec(frame->timeout) : 0, 0);
        if (r < 0) {
                r = errno > 0 ? -errno : r;
                if (answered)
                        decrement_outstanding(p);
                return r;
        }
        wake_thread(p);
        return 0;
}

int umad_port_event_fd(const struct mad_port *p)
{
        return p->event_fd;
}

size_t umad_port_take(struct mad_port *p, struct mad_frame *ret, size_t max)
{
        uint32_t head = atomic_load_explicit(&p->head, memory_order_relaxed), tail;
        eventfd_t rings;
        size_t n = 0;

        (void) eventfd_read(p->event_fd, &rings);
        tail = atomic_load_explicit(&p->tail, memory_order_acquire);
        for (; head != tail && n < max; head++, n++) {
                const struct received *r = &p->ring[head % RING_SIZE];

                ret[n].length = r->length;
                ret[n].lid = r->lid;
                ret[n].sl = r->sl;
                memcpy(ret[n].mad, r->mad, r->length);
        }
        atomic_store_explicit(&p->head, head, memory_order_release);
        if (head != tail)
                (void) eventfd_write(p->event_fd, 1);
        return n;
}
