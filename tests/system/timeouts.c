/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * timeouts-preload.so: preloaded into an OpenSM with ibsim's library, it adds the timeouts of ib_umad that the library lacks: a
 * MAD without an answer is sent again, and finally returned with ETIMEDOUT. Otherwise OpenSM would wait in its sweep forever,
 * for example for the TrapRepress of its own trap 144, which ibsim drops.
 */
#include <dlfcn.h>
#include <endian.h>
#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <time.h>

#include <infiniband/umad.h>

#define TICK_MS 20
#define MAD_SIZE 256
#define METHOD_TRAP_REPRESS 0x07
#define METHOD_RESPONSE 0x80

struct request {
        bool waits;
        int fd, agent, length, timeout_ms, retries;
        uint64_t due_ms;
        _Alignas(8) uint8_t umad[sizeof(ib_user_mad_t) + MAD_SIZE];
};

static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct request requests[4096]; /* further requests have no timeout, as without this library */
static int (*next_send)(int, int, void *, int, int, int);
static int (*next_recv)(int, void *, int *, int);

static void start(void)
{
        next_send = (int (*)(int, int, void *, int, int, int)) dlsym(RTLD_NEXT, "umad_send");
        next_recv = (int (*)(int, void *, int *, int)) dlsym(RTLD_NEXT, "umad_recv");
}

static uint64_t now_ms(void)
{
        struct timespec t;

        clock_gettime(CLOCK_MONOTONIC, &t);
        return (uint64_t) t.tv_sec * 1000 + (uint64_t) t.tv_nsec / 1000000;
}

/* The half of the transaction ID that belongs to the program; ibsim's library uses the other one. */
static uint32_t transaction(const uint8_t *mad)
{
        uint32_t id;

        memcpy(&id, mad + 12, sizeof(id));
        return be32toh(id);
}

static void remember(int fd, int agent, const void *umad, int length, int timeout_ms, int retries)
{
        pthread_mutex_lock(&lock);
        for (size_t i = 0; i < sizeof(requests) / sizeof(requests[0]); i++) {
                struct request *r = &requests[i];

                if (r->waits)
                        continue;
                *r = (struct request) { true, fd, agent, length, timeout_ms, retries, now_ms() + (uint64_t) timeout_ms };
                memcpy(r->umad, umad, umad_size() + (size_t) length);
                break;
        }
        pthread_mutex_unlock(&lock);
}

static void forget(int fd, const uint8_t *mad)
{
        pthread_mutex_lock(&lock);
        for (size_t i = 0; i < sizeof(requests) / sizeof(requests[0]); i++) {
                if (requests[i].waits && requests[i].fd == fd && transaction(umad_get_mad(requests[i].umad)) == transaction(mad))
                        requests[i].waits = false;
        }
        pthread_mutex_unlock(&lock);
}

/* Takes a request that has timed out; it stays pending if it may be sent again. */
static bool take_due(int fd, struct request *ret_request)
{
        bool found = false;

        pthread_mutex_lock(&lock);
        for (size_t i = 0; !found && i < sizeof(requests) / sizeof(requests[0]); i++) {
                struct request *r = &requests[i];

                if (!r->waits || r->fd != fd || r->due_ms > now_ms())
                        continue;
                found = true;
                *ret_request = *r;
                r->waits = r->retries-- > 0;
                r->due_ms += (uint64_t) r->timeout_ms;
        }
        pthread_mutex_unlock(&lock);
        return found;
}

int umad_send(int fd, int agent, void *umad, int length, int timeout_ms, int retries)
{
        pthread_once(&once, start);
        if (timeout_ms > 0 && length <= MAD_SIZE)
                remember(fd, agent, umad, length, timeout_ms, retries);
        return next_send(fd, agent, umad, length, timeout_ms, retries);
}

int umad_recv(int fd, void *umad, int *length, int timeout_ms)
{
        pthread_once(&once, start);
        for (int waited = 0;; waited += TICK_MS) {
                struct request r;
                int room = *length, agent;
                const uint8_t *mad = umad_get_mad(umad);

                while (take_due(fd, &r)) {
                        if (r.retries > 0) {
                                (void) next_send(fd, r.agent, r.umad, r.length, r.timeout_ms, 0);
                                continue;
                        }
                        memcpy(umad, r.umad, umad_size() + (size_t) r.length);
                        ((ib_user_mad_t *) umad)->agent_id = (uint32_t) r.agent;
                        ((ib_user_mad_t *) umad)->status = ETIMEDOUT;
                        *length = r.length;
                        return r.agent;
                }
                if (timeout_ms >= 0 && waited >= timeout_ms)
                        return -ETIMEDOUT;
                agent = next_recv(fd, umad, &room, TICK_MS);
                /* ibsim's poll() treats a wake-up without a MAD as an error */
                if (agent == -ETIMEDOUT || agent == -EIO)
                        continue;
                if (agent >= 0 && (mad[3] & METHOD_RESPONSE || mad[3] == METHOD_TRAP_REPRESS || umad_status(umad)))
                        forget(fd, mad);
                *length = room;
                return agent;
        }
}
