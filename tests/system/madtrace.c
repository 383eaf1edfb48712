/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * madtrace-preload.so: preloaded into a program, it appends every subnet management MAD that the program sends and receives to
 * the file in MADTRACE, one line each, in order:
 *
 *     > METHOD ATTRIBUTE MODIFIER TID LID STATUS PATH DATA       sent
 *     < METHOD ATTRIBUTE MODIFIER TID LID STATUS PATH DATA       received
 *
 * all in hex; LID is the destination of a sent and the source of a received MAD, PATH a directed route ("-": LID routed), DATA
 * the 64 bytes of the attribute. The line is written before a MAD is sent, and before the program receives one, so at each line
 * of the trace a write without an answer may or may not be in the hardware.
 *
 * MADTRACE_DENIED=1: the port cannot be opened, as without permission. MADTRACE_SIGNAL=SIGNAL:N sends the program this signal (a
 * number) right after its Nth SubnSet(P_KeyTable). MADTRACE_M_KEYS=1: each sent MAD is followed by a line "k CLASS ATTRIBUTE
 * M_KEY TID". MADTRACE_TIMES=1: before each MAD is a line "t TIME", in ns (CLOCK_BOOTTIME). MADTRACE_M_KEY=LID:M_KEY (in hex):
 * writes to this LID by LID without this M_Key are dropped without an answer.
 */
#include <dlfcn.h>
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <infiniband/umad.h>

static pthread_once_t once = PTHREAD_ONCE_INIT;
static int trace_fd = -1;
static int signal_number;
static unsigned signal_after;
static bool notes_m_keys, notes_times;
static unsigned m_key_lid;
static uint64_t m_key;
static int (*next_send)(int, int, void *, int, int, int);
static int (*next_recv)(int, void *, int *, int);
static int (*next_open)(const char *, int);

static uint64_t be(const uint8_t *p, unsigned n)
{
        uint64_t v = 0;

        while (n--)
                v = v << 8 | *p++;
        return v;
}

static void start(void)
{
        const char *path = getenv("MADTRACE"), *signal_at = getenv("MADTRACE_SIGNAL"), *wanted = getenv("MADTRACE_M_KEY");

        next_send = (int (*)(int, int, void *, int, int, int)) dlsym(RTLD_NEXT, "umad_send");
        next_recv = (int (*)(int, void *, int *, int)) dlsym(RTLD_NEXT, "umad_recv");
        next_open = (int (*)(const char *, int)) dlsym(RTLD_NEXT, "umad_open_port");
        /* Not open(), which the library of the simulator replaces. */
        if (path)
                trace_fd = (int) syscall(SYS_openat, AT_FDCWD, path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
        if (signal_at && sscanf(signal_at, "%d:%u", &signal_number, &signal_after) != 2)
                signal_after = 0;
        notes_m_keys = getenv("MADTRACE_M_KEYS") != NULL;
        notes_times = getenv("MADTRACE_TIMES") != NULL;
        if (wanted && sscanf(wanted, "%u:%" SCNx64, &m_key_lid, &m_key) != 2)
                m_key_lid = 0;
}

/* ibsim ignores M_Keys, so MADs that such a port would drop are not passed to it. */
static bool lacks_m_key(const void *umad)
{
        const uint8_t *mad = umad_get_mad((void *) umad);

        return m_key_lid && mad[1] == 0x01 && mad[3] == 0x02 && be(mad + 24, 8) != m_key &&
               be16toh(umad_get_mad_addr((void *) umad)->lid) == m_key_lid;
}

static void signal_if_due(const uint8_t *mad)
{
        static unsigned n;

        if (mad[3] == 0x02 && be(mad + 16, 2) == 0x16 && __atomic_add_fetch(&n, 1, __ATOMIC_RELAXED) == signal_after)
                (void) kill(getpid(), signal_number);
}

static size_t hex(char *out, const uint8_t *bytes, unsigned n)
{
        static const char digits[] = "0123456789abcdef";

        for (unsigned i = 0; i < n; i++) {
                out[2 * i] = digits[bytes[i] >> 4];
                out[2 * i + 1] = digits[bytes[i] & 15];
        }
        return 2 * n;
}

static size_t note_time(char *out, size_t size)
{
        struct timespec now;

        (void) clock_gettime(CLOCK_BOOTTIME, &now);
        return (size_t) snprintf(out, size, "t %" PRIu64 "\n", (uint64_t) now.tv_sec * 1000000000 + (uint64_t) now.tv_nsec);
}

static void note(char direction, const void *umad, int length)
{
        const uint8_t *mad = umad_get_mad((void *) umad);
        const ib_mad_addr_t *address = umad_get_mad_addr((void *) umad);
        unsigned class = mad[1], hops = class == 0x81 ? mad[7] & 63 : 0;
        char line[512];
        size_t n = 0;

        if (trace_fd < 0 || length < 128 || (class != 0x01 && class != 0x81))
                return;
        if (notes_times)
                n = note_time(line, sizeof(line));
        n += (size_t) snprintf(line + n, sizeof(line) - n, "%c %02x %04x %08x %08x %04x %04x ", direction, mad[3],
                              (unsigned) be(mad + 16, 2), (unsigned) be(mad + 20, 4), (unsigned) be(mad + 12, 4),
                              (unsigned) be16toh(address->lid), (unsigned) be(mad + 4, 2) & 0x7fff);
        if (class == 0x81)
                n += hex(line + n, mad + 128, hops + 1);
        else
                line[n++] = '-';
        line[n++] = ' ';
        n += hex(line + n, mad + 64, 64);
        line[n++] = '\n';
        if (notes_m_keys && direction == '>')
                n += (size_t) snprintf(line + n, sizeof(line) - n, "k %02x %04x %016" PRIx64 " %08x\n", class,
                                       (unsigned) be(mad + 16, 2), be(mad + 24, 8), (unsigned) be(mad + 12, 4));
        (void) syscall(SYS_write, trace_fd, line, n);
}

int umad_send(int fd, int agent, void *umad, int length, int timeout, int retries)
{
        int r;

        pthread_once(&once, start);
        note('>', umad, length);
        if (lacks_m_key(umad))
                return 0;
        r = next_send(fd, agent, umad, length, timeout, retries);
        if (signal_after)
                signal_if_due(umad_get_mad(umad));
        return r;
}

int umad_recv(int fd, void *umad, int *length, int timeout)
{
        int r;

        pthread_once(&once, start);
        r = next_recv(fd, umad, length, timeout);
        if (r >= 0) {
                int saved = errno;

                note('<', umad, *length);
                errno = saved;
        }
        return r;
}

int umad_open_port(const char *ca, int port)
{
        pthread_once(&once, start);
        if (!getenv("MADTRACE_DENIED"))
                return next_open(ca, port);
        errno = EACCES;
        return -EIO; /* as libibumad has it */
}
