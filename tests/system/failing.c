/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Linked to the objects of pkeyd. test_memory.py chooses the allocation that fails in the file PKEYD_FAIL_ALLOC. */
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "../unit/fail_alloc.h"

__attribute__((constructor)) static void share(void)
{
        const char *path = getenv("PKEYD_FAIL_ALLOC");
        int fd = path ? open(path, O_RDWR | O_CLOEXEC) : -1;
        void *state = MAP_FAILED;

        if (fd >= 0)
                state = mmap(NULL, sizeof(struct fail_alloc_state), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        if (state == MAP_FAILED)
                abort();
        (void) close(fd);
        fail_alloc_use(state);
}
