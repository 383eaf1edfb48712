/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * lastset.so: preloaded into OpenSM, pkeyd or the bare loop, it counts in the file LASTSET the SMPs of the program, the
 * SubnSet(P_KeyTable) among them, and the time of the last answer to one of those. It is the same for all programs, and too
 * small to affect the results.
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <infiniband/umad.h>

/* The contents of the file, in host byte order; bench.py reads it. */
struct counts {
        uint64_t smps, sets, answers;
        uint64_t last_answer_ns; /* CLOCK_MONOTONIC */
};

static pthread_once_t once = PTHREAD_ONCE_INIT;
static struct counts nowhere, *counts = &nowhere;
static uint32_t set_tids[1 << 16]; /* of Sets without an answer, by their low bits, because GetResp also answers a Get */
static int (*next_send)(int, int, void *, int, int, int);
static int (*next_recv)(int, void *, int *, int);

static void start(void)
{
        const char *path = getenv("LASTSET");
        void *map;
        int fd;

        next_send = (int (*)(int, int, void *, int, int, int)) dlsym(RTLD_NEXT, "umad_send");
        next_recv = (int (*)(int, void *, int *, int)) dlsym(RTLD_NEXT, "umad_recv");
        if (!path)
                return;
        fd = (int) syscall(SYS_openat, AT_FDCWD, path, O_RDWR | O_CLOEXEC, 0600);
        map = mmap(NULL, sizeof(*counts), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        if (map != MAP_FAILED)
                counts = map;
        (void) syscall(SYS_close, fd);
}

static uint32_t *set_tid(const uint8_t *mad, uint32_t *ret_tid)
{
        *ret_tid = (uint32_t) mad[12] << 24 | (uint32_t) mad[13] << 16 | (uint32_t) mad[14] << 8 | mad[15];
        return &set_tids[*ret_tid & 0xffff];
}

static int is_p_key(const uint8_t *mad)
{
        return (mad[1] == 0x01 || mad[1] == 0x81) && mad[16] == 0 && mad[17] == 0x16;
}

int umad_send(int fd, int agent, void *umad, int length, int timeout, int retries)
{
        const uint8_t *mad = umad_get_mad(umad);
        uint32_t tid, *slot = set_tid(mad, &tid);

        pthread_once(&once, start);
        if (mad[1] == 0x01 || mad[1] == 0x81)
                __atomic_add_fetch(&counts->smps, 1, __ATOMIC_RELAXED);
        if (is_p_key(mad) && mad[3] == 0x02) {
                __atomic_add_fetch(&counts->sets, 1, __ATOMIC_RELAXED);
                __atomic_store_n(slot, tid, __ATOMIC_RELAXED);
        }
        return next_send(fd, agent, umad, length, timeout, retries);
}

int umad_recv(int fd, void *umad, int *length, int timeout)
{
        const uint8_t *mad = umad_get_mad(umad);
        struct timespec now;
        uint32_t tid, *slot;
        int r;

        pthread_once(&once, start);
        r = next_recv(fd, umad, length, timeout);
        if (r < 0 || !is_p_key(mad) || mad[3] != 0x81)
                return r;
        slot = set_tid(mad, &tid);
        if (__atomic_load_n(slot, __ATOMIC_RELAXED) != tid)
                return r;
        __atomic_store_n(slot, 0, __ATOMIC_RELAXED);
        clock_gettime(CLOCK_MONOTONIC, &now);
        counts->last_answer_ns = (uint64_t) now.tv_sec * 1000000000u + (uint64_t) now.tv_nsec;
        counts->answers++;
        return r;
}
